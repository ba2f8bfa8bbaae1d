"""The endpoints that a client gets: the table of docs/reference/topology.md, OpenYurt's meaning, hints."""

from collections.abc import Mapping, Sequence

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, node, packed, service
from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Group, Pool
from topodns.cluster.model import Endpoint, InvalidPolicy, KeySource, Policy
from topodns.topology.keys import policy_of
from topodns.topology.select import Location, OnInvalid, Reason, Selection, UnknownClient, select, select_while_denied

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
K = "example.com/rack"
NODE_POOL = "apps.openyurt.io/nodepool"

NODES = {
    each.name: each
    for each in (
        node("n1", {H: "n1", Z: "a", K: "7", "zone": "a"}),
        node("n2", {H: "n2", Z: "a"}),
        node("n3", {H: "n3", Z: "b"}),
        node("n4", {H: "n4"}),
        node("far", {H: "far", Z: "c"}),
        node("no-hostname", {H: ""}),
        node("no-hostname-2", {H: ""}),
        node("no-value", {H: "no-value", Z: ""}),
        node("no-value-2", {H: "no-value-2", Z: ""}),
        node("bare"),
        node("renamed", {H: "its-hostname", Z: "b"}),
    )
}
E1 = endpoint("10.0.0.1", node="n1")
E2 = endpoint("10.0.0.2", node="n2")
E3 = endpoint("10.0.0.3", node="n3")
E4 = endpoint("10.0.0.4", node="n4")
E5 = endpoint("10.0.0.5")
FIVE = (E1, E2, E3, E4, E5)
E5_IN_A = endpoint("10.0.0.5", topology_zone="a")
NOWHERE = ""


def pool_of(endpoints: Sequence[Endpoint], family: int = 4) -> Pool:
    address_type = "IPv4" if family == 4 else "IPv6"
    slices = [endpoint_slice("db", *endpoints, address_type=address_type)]
    return Backends(slices, NODES.get, terminating_fallback=False).pools[family]


def at(node_name: str) -> Location:
    return Location(node_name, NODES.get(node_name), "nodes") if node_name else Location()


def policy(*keys: str) -> Policy | InvalidPolicy | None:
    """The policy of a Service with these keys in spec.topologyKeys."""
    return policy_of(service("db", field=keys), [KeySource.FIELD])


def valid(*keys: str) -> Policy:
    return Policy(keys, KeySource.ANNOTATION)


def octets(group: Group) -> list[int]:
    """The last octets of the addresses: [1, 2] for 10.0.0.1 and 10.0.0.2."""
    return [address[-1] for address in group.addresses]


# Keys, client's node, endpoints -> the endpoints selected, and the reason

VECTORS: Mapping[str, tuple[list[str], str, Sequence[Endpoint], list[int], Reason]] = {
    "no keys: everyone": ([], "n1", FIVE, [1, 2, 3, 4, 5], Reason.UNFILTERED),
    "no keys and nobody knows the client: everyone": ([], NOWHERE, FIVE, [1, 2, 3, 4, 5], Reason.UNFILTERED),
    "the client's topology zone": ([Z], "n1", FIVE, [1, 2], Reason.MATCHED),
    "the client's node": ([H], "n1", FIVE, [1], Reason.MATCHED),
    "the first key that matches wins": ([H, Z], "n1", FIVE, [1], Reason.MATCHED),
    "the local endpoint is not ready: the next key": (
        [H, Z],
        "n1",
        (endpoint("10.0.0.1", node="n1", ready=False), *FIVE[1:]),
        [2],
        Reason.MATCHED,
    ),
    "a label that only one node has": ([K], "n1", FIVE, [1], Reason.MATCHED),
    "* alone: everyone": (["*"], "n1", FIVE, [1, 2, 3, 4, 5], Reason.ANY),
    "* alone and nobody knows the client: everyone": (
        ["*"],
        NOWHERE,
        FIVE,
        [1, 2, 3, 4, 5],
        Reason.UNKNOWN_CLIENT_ALL,
    ),
    "the client's node lacks the key: the next key": ([K, Z], "n2", FIVE, [1, 2], Reason.MATCHED),
    "the client's node lacks the only key: nobody": ([K], "n2", FIVE, [], Reason.NO_MATCH),
    "no endpoint's node has the key: the next key": ([K, Z], "n1", (E2, E3), [2], Reason.MATCHED),
    "neither side has the key: absence is not equal": ([K], "n2", (E3, E4), [], Reason.NO_MATCH),
    "nobody is in the client's topology zone: nobody": ([Z], "far", FIVE, [], Reason.NO_MATCH),
    "nobody is in the client's topology zone, * last: everyone": ([Z, "*"], "far", FIVE, [1, 2, 3, 4, 5], Reason.ANY),
    "a match is not widened by *": ([Z, "*"], "n1", FIVE, [1, 2], Reason.MATCHED),
    "nobody knows the client: nobody": ([Z], NOWHERE, FIVE, [], Reason.UNKNOWN_CLIENT),
    "nobody knows the client, * last: everyone": ([Z, "*"], NOWHERE, FIVE, [1, 2, 3, 4, 5], Reason.UNKNOWN_CLIENT_ALL),
    "an empty value is not an absent one": ([Z], "no-value", FIVE, [], Reason.NO_MATCH),
    "an empty value equals an empty value": (
        [Z],
        "no-value",
        (endpoint("10.0.0.6", node="no-value-2"), E4),
        [6],
        Reason.MATCHED,
    ),
    "an empty hostname is a hostname, too": (
        [H],
        "no-hostname",
        (endpoint("10.0.0.6", node="no-hostname-2"), E4),
        [6],
        Reason.MATCHED,
    ),
    "* in the middle: what follows is cut off": ([H, "*", Z], "n4", (E1, E2), [1, 2], Reason.ANY),
    "* in the middle holds for unknown clients, too": (
        [H, "*", Z],
        NOWHERE,
        FIVE,
        [1, 2, 3, 4, 5],
        Reason.UNKNOWN_CLIENT_ALL,
    ),
    "a repeated key is as one": ([Z, Z], "n1", FIVE, [1, 2], Reason.MATCHED),
    "keys differ in case: no match": (["Zone"], "n1", FIVE, [], Reason.NO_MATCH),
    "seventeen keys: invalid, everyone": ([f"k{n}" for n in range(17)], "n1", FIVE, [1, 2, 3, 4, 5], Reason.INVALID),
    "an invalid key: invalid, everyone": (["no key", Z], "n1", FIVE, [1, 2, 3, 4, 5], Reason.INVALID),
    "an endpoint without node has the slice's topology zone": (
        [Z],
        "n1",
        (*FIVE[:4], E5_IN_A),
        [1, 2, 5],
        Reason.MATCHED,
    ),
    "an endpoint without node is on no node": ([H], "n1", (E5_IN_A,), [], Reason.NO_MATCH),
    "an endpoint without node is anyone's with *": ([H, "*"], "n1", (E5_IN_A,), [5], Reason.ANY),
    "a node without labels is unknown: nobody": ([Z], "bare", FIVE, [], Reason.UNKNOWN_CLIENT),
    "a node without labels, * last: everyone": ([Z, "*"], "bare", FIVE, [1, 2, 3, 4, 5], Reason.ANY),
    "a node without labels has a hostname: its name": (
        [Z, H],
        "bare",
        (*FIVE, endpoint("10.0.0.6", node="bare")),
        [6],
        Reason.MATCHED,
    ),
    "a node without labels, nobody on it": ([H], "bare", FIVE, [], Reason.NO_MATCH),
    "a deleted node has a hostname: its name": (
        [H],
        "gone",
        (E1, endpoint("10.0.0.6", node="gone")),
        [6],
        Reason.MATCHED,
    ),
    "a deleted node is in no topology zone": (
        [Z],
        "gone",
        (endpoint("10.0.0.6", node="gone", topology_zone="a"),),
        [],
        Reason.UNKNOWN_CLIENT,
    ),
    "a deleted node, * last: everyone": ([Z, "*"], "gone", FIVE, [1, 2, 3, 4, 5], Reason.ANY),
    "endpoints of a deleted node keep the slice's topology zone": (
        [Z],
        "n1",
        (endpoint("10.0.0.6", node="gone", topology_zone="a"),),
        [6],
        Reason.MATCHED,
    ),
    "hostname label and node name differ: still the same node": (
        [H],
        "renamed",
        (E1, endpoint("10.0.0.6", node="renamed")),
        [6],
        Reason.MATCHED,
    ),
    "the client's own pod is one of them": ([H], "n1", (E1, endpoint("10.0.0.6", node="n1")), [1, 6], Reason.MATCHED),
    "endpoints keep their order": ([Z], "n1", (E3, E2, E1), [2, 1], Reason.MATCHED),
    "no endpoint at all: no key is tried": ([Z, "*"], "n1", (), [], Reason.NO_ENDPOINTS),
}


@pytest.mark.parametrize(("keys", "client", "endpoints", "got", "reason"), VECTORS.values(), ids=VECTORS)
def test_a_client_gets_the_matches_of_the_first_key_with_any(
    keys: list[str], client: str, endpoints: Sequence[Endpoint], got: list[int], reason: Reason
) -> None:
    selection = select(pool_of(endpoints), policy(*keys), at(client))
    assert octets(selection.group) == got
    assert selection.reason is reason


FAMILIES: Mapping[str, tuple[list[str], str, str, list[int], list[int]]] = {
    "hard, IPv4 elsewhere: AAAA only": ([Z], "n3", "n1", [], [1]),
    "soft, IPv4 elsewhere: each has its own": ([Z, "*"], "n3", "n1", [1], [1]),
    "IPv4 in the zone, IPv6 on the node: each has its own": ([H, Z], "n2", "n1", [1], [1]),
}


@pytest.mark.parametrize(("keys", "node4", "node6", "told4", "told6"), FAMILIES.values(), ids=FAMILIES)
def test_each_family_is_chosen_alone(
    keys: list[str], node4: str, node6: str, told4: list[int], told6: list[int]
) -> None:
    ipv4 = select(pool_of([endpoint("10.0.0.1", node=node4)]), policy(*keys), at("n1"))
    ipv6 = select(pool_of([endpoint("fd00::1", node=node6)], family=6), policy(*keys), at("n1"))
    assert (octets(ipv4.group), octets(ipv6.group)) == (told4, told6)


TRIED: Mapping[str, tuple[list[str], str, str, tuple[tuple[str, int], ...]]] = {
    "the winner is the last of them": ([H, Z, "*"], "n2", H, ((H, 1),)),
    "keys without a match count nought": ([K, Z], "n3", Z, ((K, 0), (Z, 1))),
    "* counts everyone": ([K, "*"], "n3", "*", ((K, 0), ("*", 5))),
    "nobody won": ([K, Z], "far", "", ((K, 0), (Z, 0))),
    "a node without labels": ([Z, H], "bare", "", ((Z, 0), (H, 0))),
    "nobody knows the client: nothing was tried": ([Z, H], NOWHERE, "", ()),
}


@pytest.mark.parametrize(("keys", "client", "winner", "tried"), TRIED.values(), ids=TRIED)
def test_a_selection_lists_the_keys_that_were_tried(
    keys: list[str], client: str, winner: str, tried: tuple[tuple[str, int], ...]
) -> None:
    selection = select(pool_of(FIVE), policy(*keys), at(client))
    assert (selection.key, selection.tried) == (winner, tried)


UNKNOWN: Mapping[str, tuple[list[str], str, UnknownClient, list[int], Reason]] = {
    "strict: nobody": ([Z], NOWHERE, UnknownClient.STRICT, [], Reason.UNKNOWN_CLIENT),
    "refuse: nobody, and the caller refuses": ([Z], NOWHERE, UnknownClient.REFUSE, [], Reason.UNKNOWN_CLIENT),
    "refuse is for hard policies": (
        [Z, "*"],
        NOWHERE,
        UnknownClient.REFUSE,
        [1, 2, 3, 4, 5],
        Reason.UNKNOWN_CLIENT_ALL,
    ),
    "all: everyone": ([Z], NOWHERE, UnknownClient.ALL, [1, 2, 3, 4, 5], Reason.UNKNOWN_CLIENT_ALL),
    "all counts for nodes without labels": ([Z], "bare", UnknownClient.ALL, [1, 2, 3, 4, 5], Reason.UNKNOWN_CLIENT_ALL),
    "all counts for deleted nodes": ([Z], "gone", UnknownClient.ALL, [1, 2, 3, 4, 5], Reason.UNKNOWN_CLIENT_ALL),
    "all does not help a node that is known and alone": ([H], "bare", UnknownClient.ALL, [], Reason.NO_MATCH),
    "all does not help a client in an empty topology zone": ([Z], "far", UnknownClient.ALL, [], Reason.NO_MATCH),
}


@pytest.mark.parametrize(("keys", "client", "setting", "got", "reason"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_client(keys: list[str], client: str, setting: UnknownClient, got: list[int], reason: Reason) -> None:
    selection = select(pool_of(FIVE), policy(*keys), at(client), unknown_client=setting)
    assert octets(selection.group) == got
    assert selection.reason is reason


DENIED: Mapping[str, tuple[list[str], str, bool, list[int], Reason]] = {
    "no method finds the client: everyone": ([Z], NOWHERE, False, [1, 2, 3, 4, 5], Reason.NOT_PERMITTED),
    "not even its own node's": ([H], NOWHERE, True, [1, 2, 3, 4, 5], Reason.NOT_PERMITTED),
    "a client that is found gets the same as ever": ([Z], "n1", False, [1, 2], Reason.MATCHED),
    "also nothing": ([Z], "far", False, [], Reason.NO_MATCH),
    "a node's labels are not known: everyone": ([Z], "n1", True, [1, 2, 3, 4, 5], Reason.NOT_PERMITTED),
    "its name is": ([H, Z], "n1", True, [1], Reason.MATCHED),
    "and then the labels are asked for": ([H, Z], "far", True, [1, 2, 3, 4, 5], Reason.NOT_PERMITTED),
    "keys behind an unknown label are not looked at": ([Z, H], "n1", True, [1, 2, 3, 4, 5], Reason.NOT_PERMITTED),
    "keys that need no label decide alone": ([H], "far", True, [], Reason.NO_MATCH),
    "also for *": ([H, "*"], "far", True, [1, 2, 3, 4, 5], Reason.ANY),
    "no keys": ([], NOWHERE, True, [1, 2, 3, 4, 5], Reason.UNFILTERED),
}


@pytest.mark.parametrize("unknown_client", UnknownClient)
@pytest.mark.parametrize(("keys", "client", "nodes_denied", "got", "reason"), DENIED.values(), ids=DENIED)
def test_a_client_without_a_location_for_want_of_a_permission_gets_endpoints(
    keys: list[str], client: str, nodes_denied: bool, got: list[int], reason: Reason, unknown_client: UnknownClient
) -> None:
    location = Location(client, None if nodes_denied else NODES.get(client), "slices") if client else Location()
    pool = Backends([endpoint_slice("db", *FIVE)], (lambda _: None) if nodes_denied else NODES.get, False).pools[4]
    selection = select_while_denied(pool, policy(*keys), location, nodes_denied, unknown_client)
    assert (octets(selection.group), selection.reason) == (got, reason)


def test_while_nodes_are_denied_openyurt_s_key_for_unpooled_nodes_gives_every_endpoint() -> None:
    """OpenYurt's keys for nodes without a pool would leave such a client with nothing."""
    pooled = policy_of(service("db", openyurt="openyurt.io/nodepool"), [KeySource.OPENYURT])
    pool = Backends([endpoint_slice("db", *FIVE)], lambda _: None, False).pools[4]
    selection = select_while_denied(pool, pooled, Location("far", None, "slices"), labels_denied=True)
    assert selection == Selection(pool.everyone, Reason.NOT_PERMITTED)


def test_an_invalid_policy_is_ignored_or_denied_for_every_client() -> None:
    pool, flawed = pool_of(FIVE), policy("no key")
    for client in ("n1", NOWHERE):
        assert select(pool, flawed, at(client)) == Selection(pool.everyone, Reason.INVALID)
        assert select(pool, flawed, at(client), on_invalid=OnInvalid.DENY).reason is Reason.DENIED
        assert select(pool, flawed, at(client), on_invalid=OnInvalid.DENY).group.addresses == ()


def test_a_service_without_policy_has_all_endpoints_for_every_client() -> None:
    pool = pool_of(FIVE)
    for client in ("n1", "bare", "gone", NOWHERE):
        assert select(pool, None, at(client), UnknownClient.REFUSE, OnInvalid.DENY) == Selection(
            pool.everyone, Reason.UNFILTERED
        )


# OpenYurt: pools "east" (p1, p2) and "west" (p3), and nodes in no pool

YURT_NODES = {
    each.name: each
    for each in (
        node("p1", {H: "p1", NODE_POOL: "east"}),
        node("p2", {H: "p2", NODE_POOL: "east"}),
        node("p3", {H: "p3", NODE_POOL: "west"}),
        node("lone", {H: "lone"}),
        node("empty-pool", {H: "empty-pool", NODE_POOL: ""}),
        node("empty-too", {H: "empty-too", NODE_POOL: ""}),
        node("lonely-pool", {H: "lonely-pool", NODE_POOL: "north"}),
    )
}
YURT_ENDPOINTS = [
    endpoint("10.0.0.1", node="p1"),
    endpoint("10.0.0.2", node="p2"),
    endpoint("10.0.0.3", node="p3"),
    endpoint("10.0.0.4", node="lone"),
    endpoint("10.0.0.5"),
    endpoint("10.0.0.6", node="empty-too"),
]
EVERY_YURT = [1, 2, 3, 4, 5, 6]

OPENYURT: Mapping[str, tuple[str, str, list[int]]] = {
    "hostname: the client's node": (H, "p1", [1]),
    "hostname, nobody there: nobody": (H, "lonely-pool", []),
    "node pool: the client's pool": ("openyurt.io/nodepool", "p1", [1, 2]),
    "kubernetes.io/zone means the pool": ("kubernetes.io/zone", "p3", [3]),
    "the pool has no endpoint: nobody": ("openyurt.io/nodepool", "lonely-pool", []),
    "a node in no pool: its node": ("openyurt.io/nodepool", "lone", [4]),
    "a node in no pool and nobody on it: nobody": ("openyurt.io/nodepool", "other", []),
    "a pool without name is no pool": ("openyurt.io/nodepool", "empty-pool", []),
    "nobody knows the client: nobody": ("openyurt.io/nodepool", NOWHERE, []),
    "another value: everyone": (f"{H},kubernetes.io/zone", "p1", EVERY_YURT),
    "the real zone label: everyone": (Z, "p1", EVERY_YURT),
    "nothing: everyone": ("", "p1", EVERY_YURT),
}


@pytest.mark.parametrize(("value", "client", "got"), OPENYURT.values(), ids=OPENYURT)
def test_openyurt(value: str, client: str, got: list[int]) -> None:
    pool = Backends([endpoint_slice("db", *YURT_ENDPOINTS)], YURT_NODES.get, terminating_fallback=False).pools[4]
    wish = policy_of(service("db", openyurt=value), [KeySource.OPENYURT])
    location = Location(client, YURT_NODES.get(client)) if client else Location()
    assert octets(select(pool, wish, location).group) == got


# Hints: what they keep is in test_hints; here, for whom

HINTED_ENDPOINTS = [
    endpoint("10.0.0.1", zone_hints=["a"], node_hints=["n1"]),
    endpoint("10.0.0.2", zone_hints=["a"], node_hints=["n2"]),
    endpoint("10.0.0.3", zone_hints=["b"], node_hints=["n3"]),
]
HINTS: Mapping[str, tuple[str, list[int], Reason]] = {
    "those hinted for the client's node": ("n1", [1], Reason.HINTED),
    "else those for the zone of its Node": ("renamed", [3], Reason.HINTED),
    "else everyone": ("far", [1, 2, 3], Reason.HINTED),
    "a node without labels: everyone": ("bare", [1, 2, 3], Reason.HINTED),
    "nobody knows the client: everyone": (NOWHERE, [1, 2, 3], Reason.UNKNOWN_CLIENT_ALL),
}


@pytest.mark.parametrize(("client", "got", "reason"), HINTS.values(), ids=HINTS)
def test_hints_are_followed_for_the_clients_node(client: str, got: list[int], reason: Reason) -> None:
    wish = policy_of(service("db"), [KeySource.HINTS])
    selection = select(pool_of(HINTED_ENDPOINTS), wish, at(client), UnknownClient.REFUSE)
    assert octets(selection.group) == got
    assert selection.reason is reason


WITH_A_GAP = [*HINTED_ENDPOINTS, endpoint("10.0.0.4", node_hints=["n4"])]
SAME_NODE = [endpoint("10.0.0.1", zone_hints=["a"], node_hints=["n1"])]
HINTS_WHILE_NODES_ARE_DENIED: Mapping[str, tuple[Sequence[Endpoint], str, list[int], Reason]] = {
    "those hinted for the client's node": (HINTED_ENDPOINTS, "n1", [1], Reason.HINTED),
    "all may be hinted for it": (SAME_NODE, "n1", [1], Reason.HINTED),
    "hints for zones would decide: everyone": (HINTED_ENDPOINTS, "far", [1, 2, 3], Reason.NOT_PERMITTED),
    "one endpoint has no hint for a zone: everyone, as with the permission": (
        WITH_A_GAP,
        "far",
        [1, 2, 3, 4],
        Reason.HINTED,
    ),
    "no hints: everyone, as with the permission": (FIVE, "n1", [1, 2, 3, 4, 5], Reason.HINTED),
    "no endpoints": ([], "n1", [], Reason.NO_ENDPOINTS),
    "no method finds the client: everyone": (HINTED_ENDPOINTS, NOWHERE, [1, 2, 3], Reason.NOT_PERMITTED),
}


@pytest.mark.parametrize(
    ("endpoints", "client", "got", "reason"),
    HINTS_WHILE_NODES_ARE_DENIED.values(),
    ids=HINTS_WHILE_NODES_ARE_DENIED,
)
def test_while_nodes_are_denied_answers_that_hints_for_zones_would_narrow_are_not_permitted(
    endpoints: Sequence[Endpoint], client: str, got: list[int], reason: Reason
) -> None:
    wish = policy_of(service("db"), [KeySource.HINTS])
    location = Location(client, None, "slices") if client else Location()
    selection = select_while_denied(pool_of(endpoints), wish, location, labels_denied=True)
    assert (octets(selection.group), selection.reason) == (got, reason)


def test_while_only_pods_are_denied_hints_for_zones_are_followed() -> None:
    wish = policy_of(service("db"), [KeySource.HINTS])
    selection = select_while_denied(pool_of(HINTED_ENDPOINTS), wish, at("renamed"), labels_denied=False)
    assert (octets(selection.group), selection.reason) == ([3], Reason.HINTED)


def test_a_node_is_itself_even_while_its_hostname_label_is_seen_to_change() -> None:
    relabelled = Location("n1", node("n1", {H: "new-name", Z: "a"}))
    assert octets(select(pool_of(FIVE), valid(H), relabelled).group) == [1]


def test_addresses_are_those_of_the_chosen_endpoints() -> None:
    assert select(pool_of(FIVE), valid(Z), at("n1")).group.addresses == (packed("10.0.0.1"), packed("10.0.0.2"))
