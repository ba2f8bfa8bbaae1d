"""Names of the cluster for which the two servers have other records, because of objects that are seldom like that."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from tests.differential.mirroring import as_slices
from tests.differential.names import Labels, dashed
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
