"""The endpoints of one Service: merged over slices, split by family, port and name, indexed by topology."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, node, packed
from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import EMPTY_GROUP, Group, endpoint_label, identity_of
from topodns.cluster.model import Alias, Endpoint, EndpointPort, EndpointSlice, Node

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK = "example.com/rack"


def backends(
    *slices: EndpointSlice, nodes: Sequence[Node] = (), terminating_fallback: bool = False, pod_names: bool = False
) -> Backends:
    by_name = {each.name: each for each in nodes}
    return Backends(slices, by_name.get, terminating_fallback, pod_names)


def of(*endpoints: Endpoint, nodes: Sequence[Node] = ()) -> Backends:
    return backends(endpoint_slice("db", *endpoints), nodes=nodes)


def generation(number: int, one: EndpointSlice) -> EndpointSlice:
    return replace(one, generation=number)


def addresses(*texts: str) -> tuple[bytes, ...]:
    return tuple(map(packed, texts))


# Merging slices


def test_endpoints_keep_the_order_of_slices_and_of_endpoints_in_them() -> None:
    merged = backends(
        endpoint_slice("db", endpoint("10.0.0.9"), endpoint("10.0.0.1")), endpoint_slice("db", endpoint("10.0.0.5"))
    )
    assert merged.pools[4].everyone.addresses == addresses("10.0.0.9", "10.0.0.1", "10.0.0.5")


def test_an_endpoint_in_two_slices_is_one_where_it_is_first_seen() -> None:
    merged = backends(
        endpoint_slice("db", endpoint("10.0.0.1"), endpoint("10.0.0.2")),
        endpoint_slice("db", endpoint("10.0.0.3"), endpoint("10.0.0.1")),
    )
    assert merged.pools[4].everyone.addresses == addresses("10.0.0.1", "10.0.0.2", "10.0.0.3")


def test_two_hostnames_on_one_address_are_two_endpoints_with_one_address() -> None:
    everyone = of(endpoint("10.0.0.1", hostname="a"), endpoint("10.0.0.1", hostname="b")).pools[4].everyone
    assert [each.hostname for each in everyone.endpoints] == ["a", "b"]
    assert everyone.addresses == addresses("10.0.0.1")


@pytest.mark.parametrize("flip", [False, True], ids=["ready copy first", "ready copy last"])
def test_an_endpoint_ready_in_any_slice_is_ready(flip: bool) -> None:
    ready = generation(1, endpoint_slice("db", endpoint("10.0.0.1", node="n1")))
    unready = generation(2, endpoint_slice("db", endpoint("10.0.0.1", node="n2", ready=False)))
    slices = (unready, ready) if flip else (ready, unready)
    assert backends(*slices).pools[4].everyone.endpoints == (endpoint("10.0.0.1", node="n1"),)


@pytest.mark.parametrize("flip", [False, True], ids=["newer slice last", "newer slice first"])
def test_of_two_ready_copies_the_one_of_the_newer_generation_counts(flip: bool) -> None:
    older = generation(3, endpoint_slice("db", endpoint("10.0.0.1", node="n1")))
    newer = generation(4, endpoint_slice("db", endpoint("10.0.0.1", node="n2")))
    slices = (newer, older) if flip else (older, newer)
    assert backends(*slices).nodes == {"n2"}


def test_of_two_equal_copies_the_first_counts() -> None:
    first, second = endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.1", node="n2")
    assert backends(endpoint_slice("db", first), endpoint_slice("db", second)).nodes == {"n1"}


def test_each_family_has_its_own_pool() -> None:
    dual = backends(endpoint_slice("db", endpoint("10.0.0.1")), endpoint_slice("db", endpoint("fd00::1")))
    assert dual.pools[4].everyone.addresses == addresses("10.0.0.1")
    assert dual.pools[6].everyone.addresses == addresses("fd00::1")


def test_slices_of_fully_qualified_names_have_aliases_in_place_of_addresses() -> None:
    aliases = [Alias("www.example.org"), Alias("asleep.example.org", ready=False)]
    named = backends(endpoint_slice("db", address_type="FQDN", ports=["http:80"], aliases=aliases))
    assert named.has_ready
    assert named.aliases == ((aliases[0], (HTTP,)),)
    assert [pool.everyone for pool in named.pools.values()] == [EMPTY_GROUP, EMPTY_GROUP]
    assert not backends(endpoint_slice("db", aliases=aliases[1:])).has_ready


def test_the_first_thousand_aliases_count() -> None:
    aliases = [Alias(f"h{at}.example.org") for at in range(1500)]
    assert backends(endpoint_slice("db", aliases=aliases)).aliases[-1][0].target == "h999.example.org"


def test_nodes_are_those_under_ready_endpoints() -> None:
    some = of(endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.2", node="n2", ready=False), endpoint("10.0.0.3"))
    assert some.nodes == {"n1"}


def test_a_service_without_slices_has_nothing() -> None:
    nothing = backends()
    assert not nothing.has_ready
    assert nothing.pools[4].everyone is EMPTY_GROUP
    assert nothing.pools[6].everyone is EMPTY_GROUP
    assert nothing.named("10-0-0-1") == {}


def test_clusters_of_an_imported_service_are_named_once_in_slice_order() -> None:
    clusters = ["west", "east", "west", ""]
    slices = [endpoint_slice("db", endpoint(f"10.0.0.{n}"), cluster_id=each) for n, each in enumerate(clusters)]
    assert backends(*slices).cluster_ids == ("west", "east")


# Readiness

SERVING = endpoint("10.0.0.1", ready=False, serving=True, terminating=True)
STOPPED = endpoint("10.0.0.2", ready=False, serving=False, terminating=True)
STARTING = endpoint("10.0.0.3", ready=False, serving=False)
UNREADY = endpoint("10.0.0.5", ready=False, serving=True)
READY = endpoint("10.0.0.4")
READY6 = endpoint("fd00::4")

FALLBACK = {
    "off: nobody is ready": (False, [SERVING, STOPPED, STARTING], []),
    "on: serving and terminating ones": (True, [SERVING, STOPPED, STARTING, UNREADY], [SERVING]),
    "on, but one is ready": (True, [SERVING, STOPPED, READY], [READY]),
    "on, but one of the other family is ready": (True, [SERVING, READY6], []),
    "on, and nobody serves": (True, [STOPPED, STARTING], []),
}


@pytest.mark.parametrize(("fallback", "given", "kept"), FALLBACK.values(), ids=FALLBACK)
def test_terminating_fallback(fallback: bool, given: list[Endpoint], kept: list[Endpoint]) -> None:
    merged = backends(*(endpoint_slice("db", each) for each in given), terminating_fallback=fallback)
    assert list(merged.pools[4].everyone.endpoints) == kept
    assert merged.has_ready is bool(kept or READY6 in given)


def test_a_ready_terminating_endpoint_is_ready_as_publish_not_ready_addresses_has_it() -> None:
    assert of(endpoint("10.0.0.1", ready=True, serving=False, terminating=True)).has_ready


# Topology

NODES = (
    node("n1", {HOST: "n1", ZONE: "a", RACK: "7"}),
    node("n2", {HOST: "n2", ZONE: "a"}),
    node("n3", {ZONE: "", RACK: "7"}),
    node("n4", {HOST: "other-name", ZONE: "b"}),
)

MATCHING = {
    "live labels of the nodes": (ZONE, "a", ["10.0.0.1", "10.0.0.2"]),
    "any label will do": (RACK, "7", ["10.0.0.1", "10.0.0.3"]),
    "an empty value equals an empty value": (ZONE, "", ["10.0.0.3"]),
    "no node has the value": (ZONE, "c", []),
    "no node has the key": ("example.com/none", "a", []),
    "keys are compared byte by byte": (ZONE.upper(), "a", []),
    "values are compared byte by byte": (ZONE, "A", []),
    "the live label beats the slice's stale zone": (ZONE, "b", ["10.0.0.4"]),
    "a deleted node's endpoints keep the slice's zone": (ZONE, "gone", ["10.0.0.5"]),
    "a deleted node's endpoints keep the slice's region": (REGION, "gone-region", ["10.0.0.5"]),
    "endpoints without a node have the slice's zone": (ZONE, "manual", ["10.0.0.6"]),
    "a node that exists without the label has no zone, whatever the slice says": (REGION, "stale", []),
    "hostname is the label": (HOST, "other-name", ["10.0.0.4"]),
    "a node with a hostname label is not found by its name": (HOST, "n4", []),
    "a node without the label has its name": (HOST, "n3", ["10.0.0.3"]),
    "a node without an object has its name": (HOST, "n5", ["10.0.0.5"]),
    "no node name, no hostname": (HOST, "", []),
}


@pytest.mark.parametrize(("key", "value", "expected"), MATCHING.values(), ids=MATCHING)
def test_matching(key: str, value: str, expected: list[str]) -> None:
    pool = of(
        endpoint("10.0.0.1", node="n1", topology_zone="stale"),
        endpoint("10.0.0.2", node="n2", topology={REGION: "stale"}),
        endpoint("10.0.0.3", node="n3"),
        endpoint("10.0.0.4", node="n4", topology_zone="a"),
        endpoint("10.0.0.5", node="n5", topology_zone="gone", topology={REGION: "gone-region", HOST: "not-its-name"}),
        endpoint("10.0.0.6", topology_zone="manual"),
        nodes=NODES,
    ).pools[4]
    assert pool.matching(key, value).addresses == addresses(*expected)


SAME_HOST = {
    "the name is the label": ("n1", "n1", ["10.0.0.1"]),
    "the label differs from the name": ("n4", "other-name", ["10.0.0.4"]),
    "the label has changed since": ("n4", "new-name", ["10.0.0.4"]),
    "another node bears the label, too": ("n1", "other-name", ["10.0.0.1", "10.0.0.4"]),
    "no endpoint is there": ("n9", "n9", []),
    "only another node bears the label": ("n9", "other-name", ["10.0.0.4"]),
}


@pytest.mark.parametrize(("node_name", "hostname", "expected"), SAME_HOST.values(), ids=SAME_HOST)
def test_same_host_is_the_same_label_or_the_same_node(node_name: str, hostname: str, expected: list[str]) -> None:
    pool = of(
        endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.4", node="n4"), endpoint("10.0.0.6"), nodes=NODES
    ).pools[4]
    assert pool.same_host(node_name, hostname).addresses == addresses(*expected)


def test_on_node_goes_by_name_and_never_holds_endpoints_without_a_node() -> None:
    pool = of(endpoint("10.0.0.4", node="n4"), endpoint("10.0.0.6"), nodes=NODES).pools[4]
    assert pool.on_node("n4").addresses == addresses("10.0.0.4")
    assert pool.on_node("other-name") is EMPTY_GROUP
    assert pool.on_node("") is EMPTY_GROUP


def test_a_group_is_built_once_and_handed_out_again() -> None:
    pool = of(
        endpoint("10.0.0.1", node="n1", zone_hints=["a"]),
        endpoint("10.0.0.2", node="n2", zone_hints=["b"]),
        endpoint("10.0.0.4", node="n4", zone_hints=["b"]),
        nodes=NODES,
    ).pools[4]
    assert pool.matching(ZONE, "a") is pool.matching(ZONE, "a")
    assert pool.same_host("n4", "n1") is pool.same_host("n4", "n1")
    assert pool.same_host("n4", "other-name") is pool.matching(HOST, "other-name")
    assert pool.hinted_for_zone("b") is pool.hinted_for_zone("b")


def test_a_key_that_all_share_selects_the_group_of_everyone_itself() -> None:
    pool = of(endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.2", node="n2"), nodes=NODES).pools[4]
    assert pool.matching(ZONE, "a") is pool.everyone


def test_zonal_names_go_by_the_slice_and_ignore_case() -> None:
    pool = of(
        endpoint("10.0.0.1", node="n1", topology_zone="EU-West-1a"),
        endpoint("10.0.0.2", node="n2", topology_zone="eu-west-1a"),
        endpoint("10.0.0.3", node="n3", topology_zone="eu-west-1b"),
        endpoint("10.0.0.4", node="n4"),
        nodes=NODES,
    ).pools[4]
    assert pool.by_topology_zone("eu-WEST-1a").addresses == addresses("10.0.0.1", "10.0.0.2")
    assert pool.by_topology_zone("a") is EMPTY_GROUP, "the live label is not asked"


# Ports

HTTP = EndpointPort("http", "TCP", 80)
HTTP_ALT = EndpointPort("http", "TCP", 8080)
DNS = EndpointPort("dns", "UDP", 53)
UNNAMED = EndpointPort("", "TCP", 9000)


def ported() -> Backends:
    """Two slices of which each has endpoints with another number for `http`, as named targetPorts make them."""
    return backends(
        endpoint_slice(
            "db", endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.2", node="n4"), ports=["http:80", "9000"]
        ),
        endpoint_slice("db", endpoint("10.0.0.3", node="n2"), ports=["dns:53/UDP", "http:8080", "9000"]),
        endpoint_slice("db", endpoint("fd00::1", node="n1"), ports=["http:80"]),
        nodes=NODES,
    )


def test_ports_are_those_of_all_slices_in_the_order_first_seen() -> None:
    assert ported().ports == (HTTP, UNNAMED, DNS, HTTP_ALT)


PORT_POOLS = {
    "one slice has it": (4, HTTP, ["10.0.0.1", "10.0.0.2"]),
    "the same name with another number is another port": (4, HTTP_ALT, ["10.0.0.3"]),
    "both slices have it": (4, UNNAMED, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
    "the other family": (6, HTTP, ["fd00::1"]),
    "nobody in this family": (6, DNS, []),
    "nobody at all": (4, EndpointPort("http", "UDP", 80), []),
}


@pytest.mark.parametrize(("family", "port", "expected"), PORT_POOLS.values(), ids=PORT_POOLS)
def test_a_port_has_the_endpoints_of_the_slices_that_expose_it(
    family: int, port: EndpointPort, expected: list[str]
) -> None:
    assert ported().pool_for_port(family, port).everyone.addresses == addresses(*expected)


def test_topology_is_asked_of_the_endpoints_of_one_port() -> None:
    pool = ported().pool_for_port(4, HTTP)
    assert pool.matching(ZONE, "a").addresses == addresses("10.0.0.1")
    assert ported().pool_for_port(4, HTTP_ALT).matching(ZONE, "a").addresses == addresses("10.0.0.3")


def test_a_pool_is_built_once_and_shared_where_a_port_is_everyones() -> None:
    merged = ported()
    assert merged.pool_for_port(4, HTTP) is merged.pool_for_port(4, HTTP)
    assert merged.pool_for_port(4, UNNAMED) is merged.pools[4]


def test_an_endpoint_that_two_slices_expose_with_different_ports_has_both() -> None:
    merged = backends(
        endpoint_slice("db", endpoint("10.0.0.1"), ports=["http:80"]),
        endpoint_slice("db", endpoint("10.0.0.1"), ports=["dns:53/UDP"]),
    )
    assert merged.pool_for_port(4, HTTP).everyone.addresses == addresses("10.0.0.1")
    assert merged.pool_for_port(4, DNS).everyone.addresses == addresses("10.0.0.1")


def test_an_endpoint_that_is_ready_at_one_port_has_that_one_only() -> None:
    """As Pods in their node's network during a rollout that changes the port."""
    merged = backends(
        endpoint_slice("db", endpoint("10.0.0.1", ready=False), endpoint("10.0.0.2"), ports=["http:80"]),
        endpoint_slice("db", endpoint("10.0.0.1", "n1"), ports=["http:8080"]),
        nodes=NODES,
    )
    assert merged.pools[4].everyone.addresses == addresses("10.0.0.2", "10.0.0.1")
    assert merged.pool_for_port(4, HTTP).everyone.addresses == addresses("10.0.0.2")
    assert merged.pool_for_port(4, HTTP_ALT).matching(ZONE, "a").addresses == addresses("10.0.0.1")
    named = merged.named("10-0-0-1")[4]
    assert merged.exposing(4, HTTP, named) is EMPTY_GROUP
    assert merged.exposing(4, HTTP_ALT, named).addresses == addresses("10.0.0.1")


def test_endpoints_that_serve_while_terminating_do_so_at_the_ports_of_their_slice() -> None:
    merged = backends(
        endpoint_slice("db", SERVING, ports=["http:80"]),
        endpoint_slice("db", replace(SERVING, serving=False), ports=["dns:53/UDP"]),
        terminating_fallback=True,
    )
    assert merged.pool_for_port(4, HTTP).everyone.addresses == addresses("10.0.0.1")
    assert merged.pool_for_port(4, DNS).everyone is EMPTY_GROUP


ENTRIES = st.builds(
    endpoint,
    st.sampled_from(("10.0.0.1", "10.0.0.2", "fd00::1")),
    node=st.sampled_from(("n1", "n2", "")),
    hostname=st.sampled_from(("", "", "db-0", "db-1")),
    ready=st.booleans(),
    serving=st.booleans(),
    terminating=st.booleans(),
    pod=st.sampled_from(("", "a", "b")),
)
PORTED_SLICES = st.lists(
    st.builds(
        lambda entries, ports, number: generation(number, endpoint_slice("db", *entries, ports=ports)),
        st.lists(ENTRIES, max_size=3),
        st.sampled_from((["http:80"], ["http:8080"], ["http:80", "dns:53/UDP"], [])),
        st.integers(0, 3),
    ),
    max_size=4,
)


@given(PORTED_SLICES, st.booleans(), st.booleans())
def test_names_and_ports_are_those_of_ready_entries_of_slices_with_the_port(
    slices: list[EndpointSlice], fallback: bool, pod_names: bool
) -> None:
    """As CoreDNS walks slices, their ready endpoints and their ports."""
    slices = [replace(one, name=f"db-{at}") for at, one in enumerate(slices)]
    merged = backends(*slices, nodes=NODES, terminating_fallback=fallback, pod_names=pod_names)
    entries = [(one, each) for one in slices for each in one.endpoints]
    counted = [(one, each) for one, each in entries if each.ready]
    if fallback and not counted:
        counted = [(one, each) for one, each in entries if each.serving and each.terminating]

    def names(endpoints: Iterable[Endpoint]) -> set[tuple[str, bytes]]:
        return {(endpoint_label(each, pod_names), each.address) for each in endpoints}

    for family, size in ((4, 4), (6, 16)):
        of_family = [(one, each) for one, each in counted if len(each.address) == size]
        everyone = merged.pools[family].everyone.endpoints
        assert names(everyone) == names(each for _, each in of_family)
        assert len(set(map(identity_of, everyone))) == len(everyone)
        for port in (HTTP, HTTP_ALT, DNS):
            exposed = names(each for one, each in of_family if port in one.ports)
            assert names(merged.pool_for_port(family, port).everyone.endpoints) == exposed
            for label, _ in names(everyone):
                named = merged.exposing(family, port, merged.named(label)[family])
                assert names(named.endpoints) == {each for each in exposed if each[0] == label}


def test_a_slice_without_ports_has_addresses_all_the_same() -> None:
    merged = of(endpoint("10.0.0.1"))
    assert merged.ports == (EndpointPort("", "", None),)
    assert merged.has_ready


# Names

LABELS = {
    "hostname": (endpoint("10.0.0.1", hostname="db-0", pod="db-0-pod"), True, "db-0"),
    "the pod's name where asked for": (endpoint("10.0.0.1", pod="db-x7k2p"), True, "db-x7k2p"),
    "not where not asked for": (endpoint("10.0.0.1", pod="db-x7k2p"), False, "10-0-0-1"),
    "a pod's name of 63 characters": (endpoint("10.0.0.1", pod="p" * 63), True, "p" * 63),
    "a pod's name of 64 characters is no label": (endpoint("10.0.0.1", pod="p" * 64), True, "10-0-0-1"),
    "no pod": (endpoint("10.0.0.1"), True, "10-0-0-1"),
    "IPv6": (endpoint("5678:abcd::1"), False, "5678-abcd--1"),
    "IPv6 in full": (endpoint("1:2:3:4:5:6:7:8"), False, "1-2-3-4-5-6-7-8"),
    "IPv6 with one group of zero is not shortened": (endpoint("1:2:3:0:5:6:7:8"), False, "1-2-3-0-5-6-7-8"),
    "IPv6 that would end in a dash": (
        endpoint("2001:db8:3333:4444:5555:6666::"),
        False,
        "2001-db8-3333-4444-5555-6666--0",
    ),
    "IPv6 that begins with a dash stays so, as in CoreDNS": (endpoint("::1"), False, "--1"),
}


@pytest.mark.parametrize(("one", "pod_names", "label"), LABELS.values(), ids=LABELS)
def test_an_endpoint_is_named_by(one: Endpoint, pod_names: bool, label: str) -> None:
    assert endpoint_label(one, pod_names) == label
    assert backends(endpoint_slice("db", one), pod_names=pod_names).named(label)[4 if len(one.address) == 4 else 6]


def test_pods_that_share_an_address_have_their_names_each() -> None:
    shared = (endpoint("10.0.0.1", "n1", pod="web-a"), endpoint("10.0.0.1", "n1", pod="web-b"))
    by_pod = backends(endpoint_slice("db", *shared), pod_names=True)
    assert [by_pod.named(name)[4].endpoints for name in ("web-a", "web-b")] == [shared[:1], shared[1:]]
    assert of(*shared).named("10-0-0-1")[4].endpoints == shared
    assert by_pod.pools[4].everyone.addresses == addresses("10.0.0.1")


def shared_name() -> Backends:
    return of(
        endpoint("10.0.0.1", node="n1", hostname="db"),
        endpoint("10.0.0.4", node="n4", hostname="db"),
        endpoint("10.0.0.2", node="n2", hostname="other"),
        endpoint("10.0.0.3", hostname="db", ready=False),
        endpoint("fd00::1", node="n1", hostname="db"),
        nodes=NODES,
    )


def test_several_endpoints_with_one_hostname_answer_together_by_family() -> None:
    found: dict[int, Group] = dict(shared_name().named("db"))
    assert {family: group.addresses for family, group in found.items()} == {
        4: addresses("10.0.0.1", "10.0.0.4"),
        6: addresses("fd00::1"),
    }


def test_a_name_is_found_in_any_case_and_an_unknown_one_is_not() -> None:
    assert of(endpoint("10.0.0.1", hostname="Db-0")).named("dB-0")[4].addresses == addresses("10.0.0.1")
    assert shared_name().named("db-1") == {}
    assert of(endpoint("10.0.0.1", hostname="db-0")).named("10-0-0-1") == {}, "an endpoint has one name only"


def test_an_endpoint_name_can_be_selected_by_topology_among_endpoints_that_share_it() -> None:
    merged = shared_name()
    pool = merged.pool_for_name(4, "DB")
    assert pool.everyone is merged.named("db")[4]
    assert pool.matching(ZONE, "a").addresses == addresses("10.0.0.1")
    assert merged.pool_for_name(4, "db") is pool
    assert merged.pool_for_name(6, "other").everyone is EMPTY_GROUP
    assert merged.pool_for_name(4, "nobody").everyone is EMPTY_GROUP


# What is derived from groups


def test_of_chosen_endpoints_those_that_expose_a_port_are_found() -> None:
    some = ported()
    everyone = some.pools[4].everyone
    assert some.exposing(4, UNNAMED, everyone) is everyone, "the port of all"
    assert some.exposing(4, HTTP, everyone).endpoints == some.pool_for_port(4, HTTP).everyone.endpoints
    one = some.named("10-0-0-3")[4]
    assert some.exposing(4, HTTP, one) is EMPTY_GROUP
    assert some.exposing(4, HTTP_ALT, one).addresses == addresses("10.0.0.3")
    assert some.exposing(4, EndpointPort("other", "TCP", 1), one) is EMPTY_GROUP


def test_a_port_that_thousands_of_endpoints_expose_is_looked_for_once() -> None:
    slices = [
        endpoint_slice(
            "db",
            *(endpoint(f"10.0.{part}.{at}") for at in range(100)),
            name=f"db-{part}",
            ports=["http:80"] if part % 2 else ["dns:53/UDP"],
        )
        for part in range(10)
    ]
    some = backends(*slices)
    _, port = some.ports
    everyone, exposing = some.pools[4].everyone, some.pool_for_port(4, port).everyone
    assert some.exposing(4, port, everyone) is some.exposing(4, port, everyone)
    assert len(some.exposing(4, port, everyone).endpoints) == 500
    joined = some.joined_addresses([exposing, everyone, exposing])
    assert joined is some.joined_addresses([exposing, everyone, exposing])
    assert joined == (*exposing.addresses, *(each for each in everyone.addresses if each not in exposing.addresses))
    assert some.joined_addresses([everyone, everyone]) is everyone.addresses
    assert some.joined_addresses([EMPTY_GROUP]) == ()


def test_slices_with_ports_of_their_own_have_one_pool_for_all_of_these_and_a_thousand_ports_count() -> None:
    made = backends(
        *(
            endpoint_slice(
                "db", endpoint(f"10.0.0.{at}"), name=f"db-{at}", ports=[f"p{at}-{n}:{n}" for n in range(100)]
            )
            for at in range(11)
        )
    )
    assert len(made.ports) == 1000
    for at, port in enumerate(made.ports):
        pool = made.pool_for_port(4, port)
        assert pool.everyone.addresses == addresses(f"10.0.0.{at // 100}")
        assert pool is made.pool_for_port(4, made.ports[at // 100 * 100])
    assert made.pool_for_port(4, EndpointPort("p10-0", "TCP", 0)).everyone is EMPTY_GROUP


def test_the_number_of_values_derived_from_groups_is_bounded() -> None:
    slices = [
        endpoint_slice(
            "db", *(endpoint(f"10.0.{at}.{n}") for n in range(60)), name=f"db-{at}", ports=[f"p{at}:{at + 1}"]
        )
        for at in range(20)
    ]
    made = backends(*slices)
    for one in made.pools[4].everyone.endpoints:
        named = made.named(endpoint_label(one, pod_names=False))[4]
        exposing = [made.exposing(4, port, named).addresses for port in made.ports]
        assert sum(map(len, exposing)) == 1
    assert len(made._derived) <= 1000
