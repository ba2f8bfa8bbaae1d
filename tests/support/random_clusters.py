"""Hypothesis strategies for small clusters whose objects share names, nodes and addresses, and for changes of them."""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, pod, pod_locator, service
from topodns.cluster.label_selector import parse_selector
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    Alias,
    Change,
    ClusterObject,
    Deleted,
    Endpoint,
    EndpointSlice,
    Kind,
    Namespace,
    Node,
    Pod,
    PodLocator,
    Replaced,
    Service,
    Upserted,
    kind_of,
)
from topodns.dns.name import parse_name
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.client_locator import Method
from topodns.topology.select import OnInvalid, UnknownClient

KINDS: Final[Sequence[Kind]] = ("Namespace", "Node", "Service", "EndpointSlice", "Pod", "PodLocator")
NODES: Final = ("n0", "n1", "n2")
SHARED: Final = "10.0.0.9"  # an address that several nodes may claim
POD_ADDRESSES: Final = tuple(f"10.244.{number}.{host}" for number in range(3) for host in (1, 2))
CLIENTS: Final = tuple(map(packed, ("10.0.0.0", "10.0.0.1", SHARED, *POD_ADDRESSES, "192.0.2.1", "192.0.2.2")))
SOFT: Final = f"{HOSTNAME_LABEL},{ZONE_LABEL},*"
POLICIES: Final = (
    None,
    "none",
    "*",
    HOSTNAME_LABEL,
    ZONE_LABEL,
    f"{HOSTNAME_LABEL},{ZONE_LABEL}",
    f"{ZONE_LABEL},*",
    SOFT,
    "not a label key",
)

any_address = st.sampled_from(POD_ADDRESSES)
any_node = st.sampled_from((*NODES, *NODES, "gone", ""))
service_names = st.sampled_from((("s0", "a"), ("s0", "a"), ("s0", "a"), ("s1", "a"), ("s0", "b"), ("s1", "b")))
namespaces = st.builds(
    Namespace,
    st.sampled_from(("a", "b")),
    st.sampled_from(({}, {"dns": "yes"})),
    st.sampled_from((None, None, *POLICIES)),
)


def _labels(hostname: str | None, topology_zone: str | None) -> dict[str, str]:
    labels = {HOSTNAME_LABEL: hostname, ZONE_LABEL: topology_zone}
    return {key: value for key, value in labels.items() if value is not None}


@st.composite
def nodes(draw: st.DrawFn, number: int | None = None) -> Node:
    number = draw(st.integers(0, len(NODES) - 1)) if number is None else number
    return node(
        NODES[number],
        _labels(draw(st.sampled_from((NODES[number], None, "other"))), draw(st.sampled_from(("z1", "z2", None)))),
        addresses=draw(st.sampled_from(((f"10.0.0.{number}",), (f"10.0.0.{number}", SHARED), ()))),
        pod_cidrs=draw(st.sampled_from(((f"10.244.{number}.0/24",), (), ("10.244.0.0/16",)))),
        created=draw(st.sampled_from(("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"))),
        ready=draw(st.booleans()),
    )


@st.composite
def services(draw: st.DrawFn) -> Service:
    name, space = draw(service_names)
    shape = draw(st.sampled_from(("headless", "headless", "headless", "cluster-ip", "external")))
    if shape == "external":
        target = draw(st.sampled_from(("s0.a.svc.cluster.local", "s1.b.svc.cluster.local", "www.example")))
        return service(name, space, external_name=target)
    ips = draw(st.sampled_from((("10.96.0.1",), ("10.96.0.2", "2001:db8::2")))) if shape == "cluster-ip" else ()
    ports = draw(st.sampled_from((("http:80",), ())))
    policy, ttl = draw(st.sampled_from(POLICIES)), draw(st.sampled_from((None, "3")))
    return service(name, space, ips, ports, annotation=policy, ttl=ttl)


@st.composite
def slices(draw: st.DrawFn, least: int = 0) -> EndpointSlice:
    name, space = draw(service_names)
    endpoints = draw(st.lists(_endpoints(), min_size=least, max_size=4))
    if draw(st.sampled_from((False, False, True))):
        endpoints = [endpoint(f"2001:db8::{at}", each.node_name, each.hostname) for at, each in enumerate(endpoints)]
    ports = draw(st.sampled_from((("http:80",), ("http:80", "dns:53/UDP"), ("80",), ("http:",), ())))
    number = draw(st.integers(0, 1))
    aliases = draw(st.lists(_aliases, max_size=2)) if draw(st.sampled_from((False, False, False, True))) else ()
    return endpoint_slice(name, *endpoints, name=f"{name}-{number}", namespace=space, ports=ports, aliases=aliases)


_aliases = st.builds(
    Alias,
    st.sampled_from(("www.example", "s0.a.svc.cluster.local", "10.0.0.1", "no..name")),
    hostname=st.sampled_from(("", "h0")),
    topology_zone=st.sampled_from((None, "z1")),
    ready=st.sampled_from((True, True, False)),
)


def _endpoints() -> st.SearchStrategy[Endpoint]:
    return st.builds(
        endpoint,
        any_address,
        any_node,
        hostname=st.sampled_from(("", "", "h0")),
        ready=st.sampled_from((True, True, False)),
        terminating=st.sampled_from((False, False, True)),
        pod=st.sampled_from(("", "p0")),
    )


def pods() -> st.SearchStrategy[Pod]:
    return st.builds(
        pod,
        st.sampled_from(("p0", "p1")),
        st.lists(any_address, max_size=1),
        st.sampled_from(("a", "b")),
        any_node,
        terminating=st.booleans(),
    )


OF_KIND: Final[dict[Kind, st.SearchStrategy[ClusterObject]]] = {
    "Namespace": namespaces,
    "Node": nodes(),
    "Service": services(),
    "EndpointSlice": slices(),
    "Pod": pods(),
}

objects = st.one_of(OF_KIND["Node"], OF_KIND["EndpointSlice"], *OF_KIND.values())


def _distinct(values: Sequence[ClusterObject]) -> list[ClusterObject]:
    return list({(kind_of(value), value.key): value for value in values}.values())


@st.composite
def _clusters(draw: st.DrawFn) -> list[ClusterObject]:
    """All nodes, a Service under a policy with endpoints, an alias of it, and a pod; the rest may be there."""
    known: list[ClusterObject] = [draw(nodes(number)) for number in range(len(NODES))]
    policy = draw(st.sampled_from(POLICIES[::-1]))
    known += [namespace("a", {"dns": "yes"}), service("s0", "a", annotation=policy), pod("p0", POD_ADDRESSES[:1], "a")]
    known += [namespace("b", {"dns": "yes"}), service("s1", "b", external_name="s0.a.svc.cluster.local")]
    return _distinct(
        [*draw(st.lists(objects, max_size=12)), *draw(st.lists(slices(1), min_size=1, max_size=3)), *known]
    )


clusters = _clusters()

History = tuple[list[ClusterObject], list[Change]]
"""What is there at first, and what becomes of it."""


@st.composite
def _histories(
    draw: st.DrawFn, start: st.SearchStrategy[list[ClusterObject]], others: st.SearchStrategy[ClusterObject]
) -> History:
    """The same objects come and go, in few versions each: so that changes undo and redo each other."""
    first = draw(start)
    values = st.sampled_from([*first, *draw(st.lists(others, min_size=2, max_size=8))])
    change: st.SearchStrategy[Change] = st.one_of(
        values.map(Upserted),
        values.map(Upserted),
        values.map(_deletion),
        st.builds(_replacement, st.sampled_from(KINDS), st.lists(values, max_size=8)),
    )
    return first, draw(st.lists(change, min_size=3, max_size=10))


def _deletion(value: ClusterObject) -> Deleted:
    return Deleted(kind_of(value), value.key)


def _replacement(kind: Kind, values: Sequence[ClusterObject]) -> Replaced:
    return Replaced(kind, tuple(value for value in _distinct(values) if kind_of(value) == kind))


histories = _histories(clusters, objects)

kubernetes_settings = st.builds(
    KubernetesSettings,
    origins=st.just(tuple(map(parse_name, ("cluster.local.", "in-addr.arpa.")))),
    namespaces=st.sampled_from((frozenset(), frozenset({"a"}))),
    namespace_labels=st.sampled_from((None, None, parse_selector("dns=yes"))),
    pods=st.sampled_from(PodMode),
    endpoint_pod_names=st.booleans(),
    noendpoints=st.sampled_from((False, False, False, True)),
    ignore_empty_service=st.booleans(),
)

topology_settings = st.builds(
    TopologySettings,
    locate=st.permutations(tuple(Method)).flatmap(
        lambda methods: st.sampled_from((1, 2, 5)).map(lambda n: tuple(methods[:n]))
    ),
    unknown_client=st.sampled_from(UnknownClient),
    on_invalid=st.sampled_from(OnInvalid),
    filter_hostnames=st.booleans(),
    terminating_fallback=st.booleans(),
    srv_priority=st.booleans(),
)


# A smaller world: one Service, mostly under a policy, its own or its Namespace's; its clients and endpoints move about.


@st.composite
def _labelled_nodes(draw: st.DrawFn, number: int) -> Node:
    labels = _labels(draw(st.sampled_from((NODES[number], "other"))), draw(st.sampled_from(("z1", "z2", None))))
    addresses = draw(st.sampled_from(((f"10.0.0.{number}",), (f"10.0.0.{number}", SHARED))))
    return node(NODES[number], labels, addresses, pod_cidrs=(f"10.244.{number}.0/24",), ready=draw(st.booleans()))


@st.composite
def _placed_slices(draw: st.DrawFn) -> EndpointSlice:
    numbers = draw(st.lists(st.sampled_from(range(len(POD_ADDRESSES))), min_size=1, max_size=4, unique=True))
    places = (draw(st.sampled_from((NODES[number // 2], NODES[number // 2], *NODES))) for number in numbers)
    endpoints = [endpoint(POD_ADDRESSES[number], place) for number, place in zip(numbers, places, strict=True)]
    return endpoint_slice("s0", *endpoints, name=f"s0-{draw(st.integers(0, 1))}", namespace="a", ports=("http:80",))


def _governed(policy: str | None) -> Service:
    return service("s0", "a", annotation=policy)


def _keyed(policy: str) -> Namespace:
    return Namespace("a", topology_keys=policy)


@st.composite
def _placed_locators(draw: st.DrawFn) -> PodLocator:
    """Some say other labels of one Node, as while the locator writes them anew."""
    place = draw(st.sampled_from(NODES))
    labels = _labels(place, draw(st.sampled_from(("z1", "z2", None))))
    return pod_locator(f"p{draw(st.integers(0, 3))}", [draw(any_address)], place, "a", labels)


_policies = st.sampled_from((HOSTNAME_LABEL, ZONE_LABEL, f"{HOSTNAME_LABEL},{ZONE_LABEL}", f"{ZONE_LABEL},*", SOFT))
_movable = st.one_of(
    *map(_labelled_nodes, range(3)),
    _placed_slices(),
    pods(),
    _placed_locators(),
    (_policies | st.none()).map(_governed),
    _policies.map(_keyed),
)


@st.composite
def _roaming_clusters(draw: st.DrawFn) -> list[ClusterObject]:
    nodes_there = [draw(_labelled_nodes(number)) for number in draw(st.sampled_from((range(3), range(1))))]
    placed = draw(st.lists(st.one_of(_placed_slices(), pods(), _placed_locators()), min_size=2, max_size=5))
    return _distinct([_keyed(draw(_policies)), _governed(draw(st.none() | _policies)), *nodes_there, *placed])


roaming_histories = _histories(_roaming_clusters(), _movable)

roaming_topology = st.builds(
    TopologySettings,
    locate=st.sampled_from(
        (
            (Method.SLICES,),
            (Method.PODCIDR,),
            (Method.PODS, Method.SLICES),
            (Method.NODES, Method.SLICES, Method.PODS),
            (Method.NODES, Method.PODCIDR, Method.SLICES),
            (Method.NODES, Method.PODCIDR_UNVERIFIED),
            (Method.PODLOCATOR,),
        )
    ),
    unknown_client=st.sampled_from((UnknownClient.STRICT, UnknownClient.ALL)),
    srv_priority=st.booleans(),
)
