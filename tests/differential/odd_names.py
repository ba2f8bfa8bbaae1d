"""Names of the cluster for which the two servers have other records, because of objects that are seldom like that."""

from collections.abc import Iterator, Sequence
from functools import cache
from ipaddress import ip_address
from typing import Final

from tests.differential.mirroring import as_slices
from tests.differential.names import Labels, dashed, existing, text_labels
from tests.differential.world import cluster, of_kind
from tests.support.api_objects import Object

CLUSTER_OF_TWO_LABELS: Final = (b"eu", b"west-1")  # random_world.py's

_LABEL: Final = 63  # octets


@cache
def of_dotted_pods() -> frozenset[Labels]:
    """(dashed address, Service, namespace) of ready endpoints without a hostname whose targets' names have dots."""
    return frozenset(
        (dashed(endpoint["addresses"][0]).encode(), *owner)
        for owner, slice_ in _owned_slices()
        for endpoint in slice_["endpoints"]
        if _is_ready(endpoint) and "hostname" not in endpoint and _is_dotted(endpoint)
    )


@cache
def of_shared_zones() -> frozenset[Labels]:
    """(Service, namespace) with a slice in which ready endpoints with one address have not all the same zone."""
    found = set()
    for owner, slice_ in _owned_slices():
        placed = {(each["addresses"][0], each.get("zone")) for each in slice_["endpoints"] if _is_ready(each)}
        if len({address for address, _ in placed}) < len(placed):
            found.add(owner)
    return frozenset(found)


@cache
def of_mixed_slices() -> frozenset[Labels]:
    """(Service, namespace) with several slices that have ready endpoints, host names among them."""
    types: dict[Labels, list[str]] = {}
    for owner, slice_ in _owned_slices():
        if any(map(_is_ready, slice_["endpoints"])):
            types.setdefault(owner, []).append(slice_["addressType"])
    return frozenset(owner for owner, found in types.items() if len(found) > 1 and "FQDN" in found)


@cache
def without_records() -> frozenset[Labels]:
    """Names that have others below them, in front of any origin: those of the schema, of namespaces, of protocols of a
    Service, and between a Service and its topology zones and clusters.
    """
    objects = as_slices(cluster())
    found = {(), (b"svc",), (b"pod",), (b"dns",), (b"ns", b"dns"), (b"dns-version",)}
    found |= {
        (one["metadata"]["name"].encode(), kind) for one in of_kind(objects, "Namespace") for kind in (b"svc", b"pod")
    }
    for service in of_kind(objects, "Service"):
        name = (*_key(service), b"svc")
        found |= {(*between, *name) for between in ((b"_zone",), (b"pin", b"_zone"), (b"prefer", b"_zone"))}
        found |= _protocols(name, service["spec"].get("ports", ()))
    for owner, slice_ in _owned_slices():
        found |= _protocols((*owner, b"svc"), slice_.get("ports") or ())
    for slice_ in of_kind(objects, "EndpointSlice"):
        labels = slice_["metadata"]["labels"]
        if imported := labels.get("multicluster.kubernetes.io/service-name"):
            name = (imported.encode(), slice_["metadata"]["namespace"].encode(), b"svc")
            ident = text_labels(labels["multicluster.kubernetes.io/source-cluster"].lower())
            found |= {(*ident[at:], *name) for at in range(len(ident))} | _protocols(name, slice_.get("ports") or ())
    return frozenset(found)


@cache
def external_without_records() -> frozenset[Labels]:
    """Of `k8s_external`: (Service, namespace), above names of endpoints and ports, and with a protocol before these."""
    services = {_key(one) for one in of_kind(cluster(), "Service")}
    protocols = {name[:-1] for name in without_records() if len(name) == 4 and name[1:3] in services}
    return frozenset(services | protocols)


@cache
def addresses() -> frozenset[Labels]:
    """The reverse names of all addresses in the cluster."""
    return frozenset(existing(as_slices(cluster()))["reverse"])


@cache
def of_no_service() -> frozenset[Labels]:
    """The reverse names of ready endpoints of slices that name no Service."""
    slices = of_kind(as_slices(cluster()), "EndpointSlice")
    unowned = [one for one in slices if not one["metadata"]["labels"].get("kubernetes.io/service-name")]
    ips = {each["addresses"][0] for one in unowned for each in one["endpoints"] if _is_ready(each)}
    return frozenset(text_labels(ip_address(ip).reverse_pointer) for ip in ips)


def _protocols(name: Labels, ports: Sequence[Object]) -> set[Labels]:
    """The names above those of ports; CoreDNS takes them without underscores too."""
    found = {port.get("protocol", "TCP").lower().encode() for port in ports}
    return {(prefix + protocol, *name) for protocol in found for prefix in (b"", b"_")}


def _key(value: Object) -> Labels:
    return value["metadata"]["name"].encode(), value["metadata"]["namespace"].encode()


def _owned_slices() -> Iterator[tuple[Labels, Object]]:
    for slice_ in of_kind(as_slices(cluster()), "EndpointSlice"):
        metadata = slice_["metadata"]
        if service := metadata["labels"].get("kubernetes.io/service-name"):
            yield (service.encode(), metadata["namespace"].encode()), slice_


def _is_ready(endpoint: Object) -> bool:
    return bool(endpoint["conditions"].get("ready", True))


def _is_dotted(endpoint: Object) -> bool:
    name = endpoint.get("targetRef", {}).get("name", "")
    return "." in name and len(name) <= _LABEL
