"""`topodns.io/min-endpoints`: how many ready endpoints a key must match to win."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import endpoint
from tests.unit.topology.scene import E1, E2, E3, NODES, H, K, Z, at, pool_of
from topodns.cluster.model import Endpoint, KeySource, Policy
from topodns.topology.select import Location, Reason, select, select_while_denied

E4 = endpoint("10.0.0.4", node="bare")
FOUR = (E1, E2, E3, E4)


def policy(keys: Sequence[str], least: int) -> Policy:
    return Policy(tuple(keys), KeySource.ANNOTATION, min_endpoints=least)


# Keys, at least, client's node, endpoints -> the endpoints selected, the winner, and the reason

VECTORS: Mapping[str, tuple[list[str], int, str, Sequence[Endpoint], list[int], str, Reason]] = {
    "one is what every key needs": ([H, Z], 1, "n1", FOUR, [1], H, Reason.MATCHED),
    "one of two: the next key": ([H, Z], 2, "n1", FOUR, [1, 2], Z, Reason.MATCHED),
    "two of two": ([Z, "*"], 2, "n1", FOUR, [1, 2], Z, Reason.MATCHED),
    "an endpoint that is not ready does not count": (
        [Z, "*"],
        2,
        "n1",
        (E1, endpoint("10.0.0.2", node="n2", ready=False), E3),
        [1, 3],
        "*",
        Reason.ANY,
    ),
    "no key has enough: *": ([H, Z, "*"], 3, "n1", FOUR, [1, 2, 3, 4], "*", Reason.ANY),
    "* needs no number": ([Z, "*"], 1000, "n1", (E1,), [1], "*", Reason.ANY),
    "no key has enough, without *: the first with a match": ([K, H, Z], 3, "n2", FOUR, [2], H, Reason.LAST_RESORT),
    "not the one with the most": ([H, Z], 3, "n1", FOUR, [1], H, Reason.LAST_RESORT),
    "other domains count likewise": (["!" + H, "*"], 3, "n1", FOUR, [2, 3, 4], "!" + H, Reason.MATCHED),
    "no match is no match": ([Z], 2, "far", FOUR, [], "", Reason.NO_MATCH),
    "a node without labels has its own endpoint": ([Z, H], 2, "bare", FOUR, [4], H, Reason.LAST_RESORT),
    "an unlocated client is as ever": ([Z], 2, "", FOUR, [], "", Reason.UNKNOWN_CLIENT),
}


@pytest.mark.parametrize(
    ("keys", "least", "client", "endpoints", "got", "winner", "reason"), VECTORS.values(), ids=VECTORS
)
def test_a_key_wins_with_enough_matches(
    keys: list[str],
    least: int,
    client: str,
    endpoints: Sequence[Endpoint],
    got: list[int],
    winner: str,
    reason: Reason,
) -> None:
    selection = select(pool_of(endpoints), policy(keys, least), at(client))
    assert [address[-1] for address in selection.group.addresses] == got
    assert (selection.key, selection.reason) == (winner, reason)


def test_every_key_that_was_passed_over_was_tried() -> None:
    assert select(pool_of(FOUR), policy([H, Z], 3), at("n1")).tried == ((H, 1), (Z, 2))
    assert select(pool_of(FOUR), policy([H, Z, "*"], 3), at("n1")).tried == ((H, 1), (Z, 2), ("*", 4))


@pytest.mark.parametrize(("least", "got"), [(1, [1]), (2, [1, 2, 3, 4])])
def test_while_nodes_are_denied_a_hostname_with_too_few_matches_needs_the_labels_of_the_next_key(
    least: int, got: list[int]
) -> None:
    """The zone may have enough, which is not known."""
    selection = select_while_denied(pool_of(FOUR, {}), policy([H, Z], least), Location("n1"), labels_denied=True)
    assert [address[-1] for address in selection.group.addresses] == got
    assert selection.reason is (Reason.MATCHED if least == 1 else Reason.NOT_PERMITTED)


KEYS = st.lists(st.sampled_from([H, Z, K, "!" + Z]), min_size=1, unique=True)


@given(KEYS, st.booleans(), st.integers(1, 5), st.sampled_from([*NODES, ""]), st.sets(st.sampled_from(range(4))))
def test_the_number_takes_an_answer_from_no_client(
    keys: list[str], soft: bool, least: int, client: str, ready: set[int]
) -> None:
    pool = pool_of([FOUR[at_] for at_ in sorted(ready)])
    listed = [*keys, "*"] if soft else keys
    with_one, with_more = (select(pool, policy(listed, each), at(client)) for each in (1, least))
    assert bool(with_one.group.endpoints) == bool(with_more.group.endpoints)
    if with_more.reason is Reason.MATCHED:
        assert len(with_more.group.endpoints) >= least
