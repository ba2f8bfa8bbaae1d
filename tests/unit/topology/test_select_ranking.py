"""The priorities of `srv_priority`: for each endpoint the index of the first key that it satisfies for a client."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, node
from tests.unit.topology.scene import E1, E2, E3, H, K, Z, at, pool_of
from topodns.cluster.endpoints import Pool
from topodns.cluster.model import ANY_KEY, Endpoint, KeySource, Policy
from topodns.topology.select import (
    Location,
    Reason,
    UnknownClient,
    is_ranked,
    rank_all,
    ranked,
    select,
    select_while_denied,
)

E4 = endpoint("10.0.0.4", node="deleted")
E5 = endpoint("10.0.0.5")
FIVE = (E1, E2, E3, E4, E5)


def policy(*keys: str) -> Policy:
    return Policy(keys, KeySource.ANNOTATION)


def priorities(pool: Pool, keys: Policy, location: Location) -> dict[int, int]:
    """The priority of each endpoint, by the last octet of its address: that of the first group it is in."""
    found: dict[int, int] = {}
    for priority in range(len(keys.keys)):
        for each in ranked(pool, keys, location, priority).endpoints:
            found.setdefault(each.address[-1], priority)
    return found


# Keys, client's node -> the priority of e1@n1 e2@n2 e3@n3 e4@deleted e5 without a node

RANKED: Mapping[str, tuple[Sequence[str], str, list[int]]] = {
    "own node, own zone, the others": ([H, Z, "*"], "n1", [0, 1, 2, 2, 2]),
    "the same for a client elsewhere": ([H, Z, "*"], "n3", [2, 2, 0, 2, 2]),
    "an endpoint that satisfies two keys has the first": ([K, Z, "*"], "n1", [0, 1, 0, 2, 2]),
    "keys need not be nested": ([Z, K, "*"], "n3", [1, 2, 0, 2, 2]),
    "an index does not change where a key matches nothing": ([H, Z, "*"], "far", [2, 2, 2, 2, 2]),
    "a key that the client's node lacks has no endpoint": ([K, Z, "*"], "n2", [1, 1, 2, 2, 2]),
    "an unlocated client: all at the index of *": ([H, Z, "*"], "", [2, 2, 2, 2, 2]),
    "a node without labels has a hostname: its name": ([Z, H, "*"], "bare", [2, 2, 2, 2, 2]),
    "a node without an object has a hostname: its name": ([Z, H, "*"], "deleted", [2, 2, 2, 1, 2]),
}


@pytest.mark.parametrize(("keys", "client", "expected"), RANKED.values(), ids=RANKED)
def test_the_priority_of_an_endpoint_is_the_index_of_the_first_key_that_it_satisfies(
    keys: Sequence[str], client: str, expected: list[int]
) -> None:
    assert priorities(pool_of(FIVE), policy(*keys), at(client)) == dict(enumerate(expected, 1))


@pytest.mark.parametrize(
    ("keys", "source", "expected"),
    [
        ((H, "*"), KeySource.ANNOTATION, True),
        ((H, Z, "*"), KeySource.TRAFFIC_DISTRIBUTION, True),
        ((H, Z), KeySource.ANNOTATION, False),
        ((H,), KeySource.INTERNAL_TRAFFIC_POLICY, False),
        (("*",), KeySource.ANNOTATION, False),
        ((), KeySource.HINTS, False),
    ],
)
def test_only_lists_that_end_in_any_after_another_key_are_ranked(
    keys: tuple[str, ...], source: KeySource, expected: bool
) -> None:
    assert is_ranked(Policy(keys, source)) is expected


def test_a_selection_of_all_endpoints_has_every_key_with_its_matches() -> None:
    pool, keys = pool_of(FIVE), policy(H, K, Z, "*")
    selection = rank_all(select(pool, keys, at("n1")), pool, keys, at("n1"))
    assert selection == (pool.everyone, Reason.RANKED, "", ((H, 1), (K, 2), (Z, 2), ("*", 5)))
    far = rank_all(select(pool, keys, at("far")), pool, keys, at("far"))
    assert far == (pool.everyone, Reason.RANKED, "", ((H, 0), (K, 0), (Z, 0), ("*", 5)))


@pytest.mark.parametrize("unknown_client", UnknownClient)
def test_a_selection_for_another_reason_than_a_key_stays(unknown_client: UnknownClient) -> None:
    pool, keys = pool_of(FIVE), policy(H, Z, "*")
    unlocated = select(pool, keys, Location(), unknown_client)
    assert unlocated.reason is Reason.UNKNOWN_CLIENT_ALL
    assert rank_all(unlocated, pool, keys, Location()) is unlocated
    denied = select_while_denied(pool, keys, at("far"), labels_denied=True)
    assert denied.reason is Reason.NOT_PERMITTED
    assert rank_all(denied, pool, keys, at("far")) is denied
    empty = select(pool_of(()), keys, at("n1"))
    assert rank_all(empty, pool_of(()), keys, at("n1")) is empty


SOME_KEYS = st.lists(st.sampled_from([H, Z, K]), min_size=1, max_size=3, unique=True)
SOME_NAMES = st.sampled_from(["n1", "n2", "n3", "n4"])
SOME_LABELS = st.dictionaries(st.sampled_from([H, Z, K]), st.sampled_from(["", "a", "b", "n1", "n2"]))
SOME_NODES = st.dictionaries(SOME_NAMES, SOME_LABELS, max_size=4)
SOME_ENDPOINTS = st.lists(
    st.builds(endpoint, st.integers(0, 20).map(lambda number: f"10.0.0.{number}"), SOME_NAMES | st.just("")),
    max_size=8,
    unique_by=lambda each: each.address,
)


@settings(max_examples=80, deadline=None)
@given(nodes=SOME_NODES, endpoints=SOME_ENDPOINTS, keys=SOME_KEYS, client=SOME_NAMES | st.just(""))
def test_the_nearest_priority_is_what_would_be_selected_and_every_endpoint_has_one(
    nodes: dict[str, dict[str, str]], endpoints: list[Endpoint], keys: list[str], client: str
) -> None:
    objects = {name: node(name, labels) for name, labels in nodes.items()}
    pool, soft = pool_of(endpoints, objects), policy(*keys, ANY_KEY)
    location = Location(client, objects.get(client)) if client else Location()
    found = priorities(pool, soft, location)
    assert found.keys() == {each.address[-1] for each in endpoints}
    nearest = [octet for octet, priority in found.items() if priority == min(found.values())]
    assert nearest == [each.address[-1] for each in select(pool, soft, location).group.endpoints]
    for priority, key in enumerate(keys):
        alone = [octet for octet, found_at in found.items() if found_at == priority]
        matching = {each.address[-1] for each in select(pool, policy(key), location).group.endpoints}
        earlier = {octet for octet, found_at in found.items() if found_at < priority}
        assert set(alone) == matching - earlier
