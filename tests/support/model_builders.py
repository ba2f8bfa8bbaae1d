"""Builders of model values with readable arguments: addresses, CIDRs and ports as text, the rest by default."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address, ip_network

from topodns.cluster.model import (
    CLUSTER_KEY,
    OWN_CLUSTER,
    Alias,
    ClusterObject,
    ClusterProperty,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    KeySource,
    Kind,
    Namespace,
    Node,
    NodeLocator,
    Pod,
    PodLocator,
    Replaced,
    Service,
    ServicePort,
    StatefulSet,
    TopologyInputs,
    Upserted,
    kind_of,
)
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader


def packed(text: str) -> bytes:
    """The 4 or 16 octets of an address given as text."""
    return ip_address(text).packed


def packed_cidr(text: str) -> tuple[bytes, int]:
    network = ip_network(text)
    return network.network_address.packed, network.prefixlen


def namespace(name: str, labels: Mapping[str, str] | None = None) -> Namespace:
    return Namespace(name, labels or {})


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    addresses: Sequence[str] = (),
    tunnels: Sequence[str] = (),
    pod_cidrs: Sequence[str] = (),
    created: str = "2024-01-01T00:00:00Z",
    ready: bool = True,
) -> Node:
    """A Node with exactly these labels (no kubernetes.io/hostname of its own)."""
    return Node(
        name=name,
        labels=labels or {},
        addresses=tuple(map(packed, addresses)),
        tunnel_addresses=tuple(map(packed, tunnels)),
        pod_cidrs=tuple(map(packed_cidr, pod_cidrs)),
        created=created,
        ready=ready,
    )


def service(
    name: str,
    namespace: str = "default",
    cluster_ips: Sequence[str] = (),
    ports: Sequence[str] = (),
    external_name: str | None = None,
    imported: bool = False,
    external_ips: Sequence[str] = (),
    external_hostnames: Sequence[str] = (),
    ip_families: tuple[str, ...] = (),
    **topology: str | tuple[object, ...] | None,
) -> Service:
    """A Service: headless unless it has `cluster_ips` or an `external_name`. `topology` is TopologyInputs' fields."""
    return Service(
        namespace=namespace,
        name=name,
        cluster_ips=tuple(map(packed, cluster_ips)),
        headless=not cluster_ips and external_name is None,
        external_name=external_name,
        ports=tuple(ServicePort(*_port(text)) for text in ports),
        topology=TopologyInputs(**topology),  # type: ignore[arg-type]  # the fields' own types
        imported=imported,
        external_ips=tuple(map(packed, external_ips)),
        external_hostnames=tuple(external_hostnames),
        ip_families=ip_families,
    )


def endpoint(
    address: str,
    node: str = "",
    hostname: str = "",
    topology_zone: str | None = None,
    topology: Mapping[str, str] | None = None,
    ready: bool = True,
    serving: bool | None = None,
    terminating: bool = False,
    pod: str | None = None,
    target: str = "",
    zone_hints: Sequence[str] = (),
    node_hints: Sequence[str] = (),
) -> Endpoint:
    """An endpoint; `serving` is as `ready` unless given, and an endpoint on a node is a Pod named after its address.

    `target` is the name of an object that is no Pod.
    """
    return Endpoint(
        address=packed(address),
        hostname=hostname,
        node_name=node,
        topology_zone=topology_zone,
        topology=topology or {},
        ready=ready,
        serving=ready if serving is None else serving,
        terminating=terminating,
        pod_name=pod if pod is not None else f"pod-{address}" if node and not target else "",
        other_target=target,
        zone_hints=tuple(zone_hints),
        node_hints=tuple(node_hints),
    )


def endpoint_slice(
    service: str,
    *endpoints: Endpoint,
    name: str = "",
    namespace: str = "default",
    ports: Sequence[str] = (),
    address_type: str = "",
    imported: bool = False,
    cluster_id: str = "",
    aliases: Sequence[Alias] = (),
) -> EndpointSlice:
    """A slice of this Service, `<service>-1` unless `name` is given; its address type is its first endpoint's."""
    if cluster_id:
        endpoints = tuple(replace(each, topology={**each.topology, CLUSTER_KEY: cluster_id}) for each in endpoints)
    return EndpointSlice(
        namespace=namespace,
        name=name or f"{service}-1",
        service_name=service,
        address_type=address_type or ("IPv6" if endpoints and len(endpoints[0].address) == 16 else "IPv4"),
        ports=tuple(EndpointPort(*_port(text)) for text in ports),
        endpoints=endpoints,
        aliases=tuple(aliases),
        imported=imported,
        cluster_id=cluster_id,
    )


def cluster_property(value: str) -> ClusterProperty:
    """The ClusterProperty with this cluster's id."""
    return ClusterProperty(OWN_CLUSTER, value)


def pod(
    name: str,
    ips: Sequence[str] = (),
    namespace: str = "default",
    node: str = "",
    host_network: bool = False,
    terminating: bool = False,
    started: str = "2024-01-01T00:00:00Z",
) -> Pod:
    return Pod(
        namespace=namespace,
        name=name,
        ips=tuple(map(packed, ips)),
        node_name=node,
        host_network=host_network,
        terminating=terminating,
        started=started,
    )


def node_locator(
    name: str, pod_ips: Sequence[str] = (), addresses: Sequence[str] = (), labels: Mapping[str, str] | None = None
) -> NodeLocator:
    return NodeLocator(name, tuple(map(packed, pod_ips)), tuple(map(packed, addresses)), labels or {})


def pod_locator(
    name: str,
    addresses: Sequence[str],
    node: str,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
) -> PodLocator:
    return PodLocator(namespace, name, tuple(map(packed, addresses)), node, tuple(sorted((labels or {}).items())))


def stateful_set(name: str, service_name: str, namespace: str = "default") -> StatefulSet:
    return StatefulSet(namespace, name, service_name)


def state_of(*objects: ClusterObject, needed: Iterable[Kind] = ()) -> ClusterState:
    """A state that reads topology keys from the annotation and holds these objects."""
    state = ClusterState(frozenset(needed), key_reader((KeySource.ANNOTATION,)))
    for value in objects:
        state.apply(Upserted(value), 0)
    return state


def listed_state(kinds: Iterable[Kind], *objects: ClusterObject, all_pods: bool = False) -> ClusterState:
    """A state that needs these kinds and has the first list of each: the objects of this kind."""
    return listed(ClusterState(frozenset(kinds), all_pods=all_pods), kinds, objects)


def listed(state: ClusterState, kinds: Iterable[Kind], objects: Sequence[ClusterObject]) -> ClusterState:
    """The state, once it has a list of each of these kinds: the objects of this kind."""
    for kind in kinds:
        state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)
    return state


def _port(text: str) -> tuple[str, str, int | None]:
    """`http:80/TCP`, `http:` (without a number), `80/UDP` (unnamed) or `80` as (name, protocol, number)."""
    name, _, rest = text.rpartition(":")
    number, _, protocol = rest.partition("/")
    return name, protocol or "TCP", int(number) if number else None
