"""Decoders of EndpointSlices, and of v1 Endpoints to the slices that the control plane would mirror them to."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, starmap
from sys import intern
from typing import Final, NamedTuple, cast

from topodns.cluster.annotations import bad_elsewhere
from topodns.cluster.decode.fields import (
    MAX_LISTED,
    NO_LABELS,
    checked_label,
    generation_of,
    interned,
    label_of,
    namespace_of,
    parse_address,
    parse_each,
    parse_label,
    parse_ports,
    subdomain,
    version_of,
)
from topodns.cluster.decode.structs import (
    ApiConditions,
    ApiEndpoint,
    ApiEndpointAddress,
    ApiEndpoints,
    ApiEndpointSlice,
    ApiMetadata,
    ApiNamed,
    ApiPort,
    ApiTarget,
    ApiUnreadSlice,
    Json,
    read_endpoint,
    read_port,
)
from topodns.cluster.decode.unreadable_elements import LeftOutElements
from topodns.cluster.model import (
    CLUSTER_KEY,
    HOSTNAME_LABEL,
    ZONE_LABEL,
    Alias,
    ClusterObject,
    Endpoint,
    EndpointPort,
    EndpointSlice,
)
from topodns.cluster.slices import MOST_MIRRORED

MAX_ADDRESSES: Final = 2000  # addresses of one slice
MAX_HINTS: Final = 8  # zones, and Nodes, that an endpoint has hints for; as in the API
MAX_TOPOLOGY: Final = 16  # entries of an endpoint's topology map; as in the API

_ADDRESS_TYPES: Final = frozenset({"IPv4", "IPv6"})
_MAX_POD_NAME: Final = 253  # characters of a DNS subdomain
_MAX_NAME: Final = 255  # characters of a host name
_MAX_ZONE: Final = 63  # characters of a label's value

_SERVICE_NAME_LABEL: Final = "kubernetes.io/service-name"
_IMPORT_NAME_LABEL: Final = "multicluster.kubernetes.io/service-name"
_CLUSTER_ID_LABEL: Final = "multicluster.kubernetes.io/source-cluster"
_SKIP_MIRROR_LABEL: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER_ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"
_MAX_MIRRORED: Final = 1000  # addresses of a subset: kube-controller-manager's --mirroring-max-endpoints-per-subset
_NO_DIGEST: Final = 0
_NO_CONDITIONS: Final = ApiConditions()


def decode_slice(source: ApiEndpointSlice, left_out: LeftOutElements) -> tuple[EndpointSlice]:
    """One slice. With the label of a ServiceImport (KEP-1645) it belongs to that, whatever other label it has.

    Of address type FQDN its endpoints are aliases; of a type that is unknown it has none. Invalid ports and addresses
    are left out, and invalid hostnames. Raises ValueError for another invalid field, and above 2,000 addresses: the API
    accepts 1,000 endpoints of 100 addresses each, though only the first of each has a meaning, and decoding so many
    would delay queries for seconds.
    """
    address_type = source.address_type or "IPv4"
    endpoints = source.endpoints or () if address_type in _ADDRESS_TYPES else ()
    named = source.endpoints or () if address_type == "FQDN" else ()
    addresses = sum([len(endpoint.addresses or ()) for endpoint in (*endpoints, *named)])
    if addresses > MAX_ADDRESSES:
        raise ValueError(f"endpoints: expected at most {MAX_ADDRESSES} addresses, found {addresses}")
    owner = _owner_of(source.metadata)
    decoded = _slice(
        source,
        owner,
        ports=_endpoint_ports(source.ports, "ports", left_out),
        endpoints=_slice_endpoints(endpoints, owner.namespace, left_out, owner.cluster_id),
        aliases=_aliases(named, owner.namespace, left_out),
    )
    return (decoded,)


class _Owner(NamedTuple):
    """The Service or ServiceImport of a slice; `cluster_id`: of an imported one, "" unknown."""

    namespace: str
    service_name: str
    cluster_id: str | None


class AnotherSlice(ValueError):
    """A slice that `decode_changed_slice` does not decode."""


def decode_changed_slice(
    source: ApiUnreadSlice, held: ClusterObject | None, left_out: LeftOutElements
) -> EndpointSlice:
    """As `decode_slice`; the endpoints whose JSON has a digest that `held` has, too, are those of `held`.

    Raises AnotherSlice for one of addresses of no IP family, and of many ports or addresses.
    """
    ports = source.ports or ()
    if (source.address_type or "IPv4") not in _ADDRESS_TYPES or len(ports) > MAX_LISTED:
        raise AnotherSlice
    owner = _owner_of(source.metadata)
    decoded_ports = _endpoint_ports([read_port(each) for each in ports], "ports", left_out)
    endpoints, digests = _changed_endpoints(source.endpoints or (), _by_digest(held, owner), owner, left_out)
    return _slice(source, owner, decoded_ports, tuple(endpoints), digests=digests.tobytes())


def _by_digest(held: ClusterObject | None, owner: _Owner) -> dict[int, Endpoint]:
    """The endpoints of a held slice by the digests of their JSON; none if those of this owner are decoded otherwise.

    Python's hash of octets has 64 bits and a secret key, and a slice's writer could mislead only its own slice.
    """
    if not isinstance(held, EndpointSlice) or (held.cluster_id if held.imported else None) != owner.cluster_id:
        return {}
    known = dict(zip(array("q", held.digests), held.endpoints, strict=False))
    known.pop(_NO_DIGEST, None)
    return known


def _changed_endpoints(
    texts: Iterable[Json], known: Mapping[int, Endpoint], owner: _Owner, left_out: LeftOutElements
) -> "tuple[list[Endpoint], array[int]]":
    """The endpoints in JSON, and the digest of each; _NO_DIGEST where the next version has to be decoded, too: of one
    with several addresses, or of which something is left out, so that this is reported again.
    """
    octets = [*map(bytes, texts)]
    digests = array("q", map(hash, octets))
    found: list[Endpoint | None] = [*map(known.get, digests)]
    others: dict[int, tuple[Endpoint, ...]] = {}  # those in JSON that are not one endpoint each
    addresses = len(found)
    for at in [at for at, one in enumerate(found) if one is None]:
        source, number = read_endpoint(octets[at]), left_out.number
        addresses += max(0, len(source.addresses or ()) - 1)
        if addresses > MAX_ADDRESSES:
            raise AnotherSlice
        decoded = _slice_endpoints((source,), owner.namespace, left_out, owner.cluster_id, at)
        if left_out.number > number:
            digests[at] = _NO_DIGEST
        if len(decoded) == 1:
            found[at] = decoded[0]
        else:
            others[at] = decoded
    if others:
        return _joined(found, digests, others)
    return cast(list[Endpoint], found), digests


def _joined(
    found: Sequence[Endpoint | None], digests: Sequence[int], others: Mapping[int, Sequence[Endpoint]]
) -> "tuple[list[Endpoint], array[int]]":
    """The endpoints with those of `others`, by index, in their places, which have no digest."""
    parts = [others[at] if one is None else (one,) for at, one in enumerate(found)]
    joined = [
        (_NO_DIGEST if found[at] is None else digests[at], each) for at, part in enumerate(parts) for each in part
    ]
    return [each for _, each in joined], array("q", [digest for digest, _ in joined])


def _owner_of(metadata: ApiMetadata) -> _Owner:
    labels = metadata.labels or {}
    imported = _IMPORT_NAME_LABEL in labels
    owner_label = _IMPORT_NAME_LABEL if imported else _SERVICE_NAME_LABEL
    cluster_id = subdomain(labels.get(_CLUSTER_ID_LABEL)) if imported else None
    service_name = checked_label(labels.get(owner_label), f"the label {owner_label}")
    return _Owner(namespace_of(metadata), service_name, cluster_id)


def _slice(
    source: ApiEndpointSlice | ApiUnreadSlice,
    owner: _Owner,
    ports: tuple[EndpointPort, ...],
    endpoints: tuple[Endpoint, ...],
    aliases: tuple[Alias, ...] = (),
    digests: bytes = b"",
) -> EndpointSlice:
    metadata = source.metadata
    return EndpointSlice(
        namespace=owner.namespace,
        name=metadata.name,
        service_name=owner.service_name,
        address_type=intern(source.address_type or "IPv4"),
        ports=ports,
        endpoints=endpoints,
        aliases=aliases,
        generation=generation_of(metadata),
        imported=owner.cluster_id is not None,
        cluster_id=owner.cluster_id or "",
        bad=bad_elsewhere(metadata.annotations) if metadata.annotations else (),
        digests=digests,
        version=version_of(metadata),
    )


def _slice_endpoints(
    sources: Sequence[ApiEndpoint], namespace: str, left_out: LeftOutElements, cluster_id: str | None, first: int = 0
) -> tuple[Endpoint, ...]:
    """One value per address of an endpoint, since CoreDNS serves all of them; unset conditions as in v1 of the API.

    `cluster_id`: of an imported slice, "" unknown. `first`: the index of the first endpoint in its slice.
    """
    endpoints = []
    for at, source in enumerate(sources, first):
        hostname = _hostname(source.hostname, left_out, "endpoints[", at, "].hostname")
        conditions = source.conditions or _NO_CONDITIONS
        ready = conditions.ready is not False
        labels = source.deprecated_topology or source.topology
        topology = interned(dict(islice(labels.items(), MAX_TOPOLOGY))) if labels else NO_LABELS
        if cluster_id is not None:
            topology = _of_cluster(topology, cluster_id)
        hints = source.hints
        pod_name, other_target = _target_names(source.target_ref, namespace)
        for address in parse_each(parse_address, source.addresses, left_out, "endpoints[", at, "].addresses"):
            endpoint = Endpoint(
                address=address,
                hostname=hostname,
                node_name=intern(source.node_name or topology.get(HOSTNAME_LABEL, "")),
                topology_zone=_topology_zone(source.zone, topology),
                topology=topology,
                ready=ready,
                serving=ready if conditions.serving is None else conditions.serving,
                terminating=bool(conditions.terminating),
                pod_name=pod_name,
                other_target=other_target,
                zone_hints=_names(hints.for_zones) if hints is not None else (),
                node_hints=_names(hints.for_nodes) if hints is not None else (),
            )
            endpoints.append(endpoint)
    return tuple(endpoints)


def _of_cluster(topology: Mapping[str, str], cluster_id: str) -> Mapping[str, str]:
    """The labels of an imported slice's endpoint, where CLUSTER_KEY is its cluster, in lower case, and nothing else."""
    others = {label: value for label, value in topology.items() if label != CLUSTER_KEY}
    return interned({**others, CLUSTER_KEY: cluster_id.lower()} if cluster_id else others)


def _aliases(sources: Sequence[ApiEndpoint], namespace: str, left_out: LeftOutElements) -> tuple[Alias, ...]:
    """One value per host name of an endpoint; conditions as in `_slice_endpoints`."""
    return tuple(
        Alias(
            target,
            _hostname(source.hostname, left_out, "endpoints[", at, "].hostname"),
            _topology_zone(source.zone, NO_LABELS),
            (source.conditions or _NO_CONDITIONS).ready is not False,
            *_target_names(source.target_ref, namespace),
        )
        for at, source in enumerate(sources)
        for target in source.addresses or ()
        if len(target) <= _MAX_NAME
    )


def _topology_zone(given: str | None, topology: Mapping[str, str]) -> str | None:
    """The zone, if any Node can have it: the API server bounds only the slice as a whole."""
    found = given or topology.get(ZONE_LABEL)
    return intern(found) if found and len(found) <= _MAX_ZONE else None


def decode_endpoints(source: ApiEndpoints, left_out: LeftOutElements) -> Iterator[EndpointSlice]:
    """A slice per subset and family, as the EndpointSlice mirroring controller makes them (KEP-752).

    None of an object that it leaves alone: one with the label `skip-mirror`, and a lock of leader election. Of the
    first 100 subsets, as no more slices of a mirrored Service count; of a subset the first 1,000 addresses count, ready
    ones before others. The names contain "/", which no API object's name can. Invalid ports and addresses are left out,
    and invalid hostnames. Raises ValueError for another invalid field.
    """
    labels, annotations = source.metadata.labels or {}, source.metadata.annotations or {}
    if labels.get(_SKIP_MIRROR_LABEL) == "true" or _LEADER_ANNOTATION in annotations:
        return
    service_name = label_of(source.metadata)
    namespace = namespace_of(source.metadata)
    for at, subset in enumerate((source.subsets or ())[:MOST_MIRRORED]):
        every = (
            *_subset_endpoints(subset.addresses or (), namespace, True, left_out, f"subsets[{at}].addresses"),
            *_subset_endpoints(
                subset.not_ready_addresses or (), namespace, False, left_out, f"subsets[{at}].notReadyAddresses"
            ),
        )
        endpoints = every[:_MAX_MIRRORED]
        ports = _endpoint_ports(subset.ports, f"subsets[{at}].ports", left_out)
        for address_type, length in (("IPv4", 4), ("IPv6", 16)):
            of_type = tuple(endpoint for endpoint in endpoints if len(endpoint.address) == length)
            if of_type:
                yield EndpointSlice(
                    namespace=namespace,
                    name=f"{service_name}/{at}/{address_type}",
                    service_name=service_name,
                    address_type=address_type,
                    ports=ports,
                    endpoints=of_type,
                    mirrored=True,
                )


def _subset_endpoints(
    sources: Sequence[ApiEndpointAddress], namespace: str, ready: bool, left_out: LeftOutElements, field: str
) -> Iterator[Endpoint]:
    for at, source in enumerate(sources):
        try:
            address = parse_address(source.ip or "")
        except ValueError as error:
            left_out.add(f"{field}[{at}]", error)
            continue
        pod_name, other_target = _target_names(source.target_ref, namespace)
        yield Endpoint(
            address=address,
            hostname=_hostname(source.hostname, left_out, field, "[", at, "].hostname"),
            node_name=intern(source.node_name or ""),
            topology=NO_LABELS,
            ready=ready,
            serving=ready,
            pod_name=pod_name,
            other_target=other_target,
        )


def _hostname(text: str | None, left_out: LeftOutElements, *place: object) -> str:
    """The hostname of an endpoint. One that is no label is left out; the endpoint has its dashed address then."""
    if not text:  # as in most endpoints
        return ""
    try:
        return parse_label(text)
    except ValueError as error:
        left_out.add("".join(map(str, place)), error)
        return ""


def _endpoint_ports(ports: Sequence[ApiPort] | None, field: str, left_out: LeftOutElements) -> tuple[EndpointPort, ...]:
    return tuple(starmap(EndpointPort, parse_ports(ports, field, left_out)))


def _target_names(target: ApiTarget | None, namespace: str) -> tuple[str, str]:
    """The name in an endpoint's targetRef: of a Pod of the slice's namespace, else as the second; "" for the other.

    Write permission for slices in one namespace must not affect the Pods of another. The API server does not validate
    the name; one that is not ASCII, or too long, cannot be a Pod's.
    """
    if target is None or not target.name or len(target.name) > _MAX_POD_NAME or not target.name.isascii():
        return "", ""
    if target.kind == "Pod" and target.namespace in (None, "", namespace):
        return target.name, ""
    return "", target.name


def _names(entries: Sequence[ApiNamed] | None) -> tuple[str, ...]:
    return tuple(intern(entry.name) for entry in (entries or ())[:MAX_HINTS] if entry.name)
