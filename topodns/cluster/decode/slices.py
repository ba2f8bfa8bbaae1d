"""EndpointSlices, and v1 Endpoints as the slices that would mirror them."""

from collections.abc import Iterator, Mapping, Sequence
from sys import intern
from typing import Final

from topodns.cluster.api_objects import (
    ApiConditions,
    ApiEndpoint,
    ApiEndpointAddress,
    ApiEndpoints,
    ApiEndpointSlice,
    ApiHints,
    ApiNamed,
    ApiPort,
    ApiTarget,
)
from topodns.cluster.decode_fields import (
    NO_LABELS,
    checked_hostname,
    interned,
    namespace_of,
    numbered_ports,
    parse_address,
    parse_each,
    version_of,
)
from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, Endpoint, EndpointPort, EndpointSlice

_SERVICE_NAME_LABEL: Final = "kubernetes.io/service-name"
_IMPORT_NAME_LABEL: Final = "multicluster.kubernetes.io/service-name"
_CLUSTER_ID_LABEL: Final = "multicluster.kubernetes.io/source-cluster"


def decode_slice(source: ApiEndpointSlice) -> Iterator[EndpointSlice]:
    """One slice. With the label of a ServiceImport (KEP-1645) it is that import's, whatever other label it has."""
    labels = source.metadata.labels or {}
    imported = _IMPORT_NAME_LABEL in labels
    endpoints = () if source.address_type == "FQDN" else source.endpoints or ()
    yield EndpointSlice(
        namespace=namespace_of(source.metadata),
        name=source.metadata.name,
        service_name=intern(labels.get(_IMPORT_NAME_LABEL if imported else _SERVICE_NAME_LABEL, "")),
        address_type=intern(source.address_type or "IPv4"),
        ports=_endpoint_ports(source.ports, "ports"),
        endpoints=tuple(made for at, endpoint in enumerate(endpoints) for made in _slice_endpoints(endpoint, at)),
        generation=source.metadata.generation or 0,
        imported=imported,
        cluster_id=intern(labels.get(_CLUSTER_ID_LABEL, "")) if imported else "",
        version=version_of(source.metadata),
    )


def _slice_endpoints(source: ApiEndpoint, at: int) -> Iterator[Endpoint]:
    """One value per address, as CoreDNS serves all of them. Unset conditions as discovery.k8s.io/v1 defines them."""
    conditions = source.conditions or ApiConditions()
    ready = conditions.ready is not False
    topology = interned(source.deprecated_topology or source.topology)
    hints = source.hints or ApiHints()
    hostname = checked_hostname(source.hostname, f"endpoints[{at}].hostname")
    for address in parse_each(parse_address, source.addresses or (), f"endpoints[{at}].addresses"):
        yield Endpoint(
            address=address,
            hostname=hostname,
            node_name=intern(source.node_name or topology.get(HOSTNAME_LABEL, "")),
            topology_zone=_topology_zone(source.zone, topology),
            topology=topology,
            ready=ready,
            serving=ready if conditions.serving is None else conditions.serving,
            terminating=bool(conditions.terminating),
            pod_name=_pod_name(source.target_ref),
            zone_hints=_names(hints.for_zones),
            node_hints=_names(hints.for_nodes),
        )


def _topology_zone(given: str | None, topology: Mapping[str, str]) -> str | None:
    found = given or topology.get(ZONE_LABEL)
    return intern(found) if found else None


def decode_endpoints(source: ApiEndpoints) -> Iterator[EndpointSlice]:
    """A slice per subset and family, as the EndpointSlice mirroring controller makes; no object can have its name."""
    service_name = intern(source.metadata.name)
    for at, subset in enumerate(source.subsets or ()):
        endpoints = (
            *_subset_endpoints(subset.addresses or (), f"subsets[{at}].addresses", ready=True),
            *_subset_endpoints(subset.not_ready_addresses or (), f"subsets[{at}].notReadyAddresses", ready=False),
        )
        for address_type, length in (("IPv4", 4), ("IPv6", 16)):
            of_type = tuple(endpoint for endpoint in endpoints if len(endpoint.address) == length)
            if of_type:
                yield EndpointSlice(
                    namespace=namespace_of(source.metadata),
                    name=f"{service_name}/{at}/{address_type}",
                    service_name=service_name,
                    address_type=address_type,
                    ports=_endpoint_ports(subset.ports, f"subsets[{at}].ports"),
                    endpoints=of_type,
                    mirrored=True,
                )


def _subset_endpoints(sources: Sequence[ApiEndpointAddress], field: str, ready: bool) -> Iterator[Endpoint]:
    addresses = parse_each(parse_address, [source.ip or "" for source in sources], field)
    for at, (source, address) in enumerate(zip(sources, addresses, strict=True)):
        yield Endpoint(
            address=address,
            hostname=checked_hostname(source.hostname, f"{field}[{at}].hostname"),
            node_name=intern(source.node_name or ""),
            topology=NO_LABELS,
            ready=ready,
            serving=ready,
            pod_name=_pod_name(source.target_ref),
        )


def _endpoint_ports(ports: Sequence[ApiPort] | None, field: str) -> tuple[EndpointPort, ...]:
    """A port without a number stands for all ports and is left out: like CoreDNS, no SRV record is made of it."""
    return tuple(EndpointPort(*port) for port in numbered_ports(ports, field))


def _pod_name(target: ApiTarget | None) -> str:
    return (target.name or "") if target is not None and target.kind == "Pod" else ""


def _names(entries: Sequence[ApiNamed] | None) -> tuple[str, ...]:
    return tuple(intern(entry.name) for entry in entries or () if entry.name)
