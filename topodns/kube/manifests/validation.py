"""What an API server refuses, and so never sends: manifests, which any program may write, are checked for it here.

The rules are those of Kubernetes (pkg/apis/core/validation, pkg/apis/discovery/validation) and of the
CustomResourceDefinition of ServiceImports, as far as they are about fields that are read. Two are left out: addresses
of endpoints may be loopback ones, which a server on one machine has, and an externalName may have what DNS allows.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from topodns.cluster.api_names import is_dns_label, is_subdomain
from topodns.cluster.decode.fields import parse_address
from topodns.cluster.decode.objects import Decoded, DecodeError
from topodns.cluster.decode.unreadable_elements import first_problems
from topodns.cluster.model import ClusterObject, EndpointSlice, Namespace, Node, Pod, Service

Fields = Mapping[str, Any]
"""A parsed object, or a part of one. The decoder takes care of values of another type than their field's."""

_OCTETS: Final = {"IPv4": 4, "IPv6": 16}  # of an address, by addressType
_LONGEST_SHOWN: Final = 60  # characters of a value
# ValidateDNS1123Subdomain with a final dot or without; also with capitals and `_`, which DNS has.
_LABEL: Final = r"[A-Za-z0-9_](?:[-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?"
_DNS_NAME: Final = re.compile(rf"(?=.{{1,254}}\Z){_LABEL}(?:\.{_LABEL})*\.?")
_A_LABEL: Final = "a DNS label in lower case (RFC 1123)"
_A_SUBDOMAIN: Final = "DNS labels with dots between them, in lower case (RFC 1123)"

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_HIGHEST_PORT: Final = 65535
_SERVICE_TYPES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_IMPORT_TYPES: Final = ("ClusterSetIP", "Headless")
_ADDRESS_TYPES: Final = ("IPv4", "IPv6", "FQDN")
_MOST_CLUSTER_IPS: Final = 2
_MOST_ENDPOINTS: Final = 1000  # of a slice, as the limits below
_MOST_PORTS: Final = 20000  # 100 before Kubernetes 1.31
_MOST_ADDRESSES: Final = 100  # of an endpoint, as the limits below
_MOST_LABELS: Final = 16
_MOST_HINTS: Final = 8


def check_names(kind: str, decoded: Decoded[ClusterObject]) -> None:
    """Raise DecodeError for an object with a name that its kind cannot have, or an externalName that is no DNS name."""
    one = decoded.objects[0] if decoded.objects else None
    if not isinstance(one, Service | Namespace | Node | Pod | EndpointSlice) or kind == "Endpoints":
        return
    name, is_label = "/".join(filter(None, one.key)), isinstance(one, Service | Namespace)
    if not (is_dns_label if is_label else is_subdomain)(one.name):
        raise DecodeError(kind, name, f"metadata.name: expected {_A_LABEL if is_label else _A_SUBDOMAIN}")
    external = one.external_name if isinstance(one, Service) else None
    if external is not None and not _DNS_NAME.fullmatch(external):
        found = _shown(external)
        raise DecodeError(kind, name, f"spec.externalName: expected a DNS name, found {found}{_advice(external)}")


def _advice(name: str) -> str:
    return "" if name.isascii() else "; IDNs have A-labels (xn--) here"


def check_fields(kind: str, manifest: Fields, name: str) -> None:
    """Raise DecodeError for an object, of this `namespace/name`, with values that its kind cannot have."""
    rule = _RULES.get(kind)
    if rule is not None and (faults := list(rule(manifest))):
        raise DecodeError(kind, name, first_problems(faults))


def doubtful_ports(kind: str, manifest: Fields) -> str:
    """The ports of a ServiceImport that a Service could not have, "" for none: the CustomResourceDefinition says so in
    words only, and an API server takes them.
    """
    faults = list(_port_faults(_part(manifest, "spec"), "spec.", _SERVICE_PORTS)) if kind == "ServiceImport" else []
    return first_problems(faults)


def _service_faults(manifest: Fields) -> Iterator[str]:
    """ValidateService, after the defaults of the API (SetDefaults_Service)."""
    spec = _part(manifest, "spec")
    kind = _text(spec, "type") or "ClusterIP"
    if kind not in _SERVICE_TYPES:
        yield _expected("spec.type", _one_of(_SERVICE_TYPES), kind)
    yield from _cluster_ip_faults(spec, kind)
    yield from _port_faults(spec, "spec.", _SERVICE_PORTS)


def _cluster_ip_faults(spec: Fields, kind: str) -> Iterator[str]:
    """ValidateServiceClusterIPsRelatedFields. A list is there where it has an item."""
    alone, given = _text(spec, "clusterIP"), [str(each) for each in _items(spec, "clusterIPs")]
    every, place = (given, "spec.clusterIPs") if given else ([alone] if alone else [], "spec.clusterIP")
    if not every:
        return
    if kind == "ExternalName":
        yield _expected(place, "none at the type ExternalName", every[0])
    elif every[0] == "None" and kind in ("NodePort", "LoadBalancer"):
        yield _expected(place, f"an address at the type {kind}", "None")
    if alone != every[0]:
        yield _expected("spec.clusterIP", f"the first of spec.clusterIPs, {_shown(every[0])}", alone or None)
    if every == ["None"]:
        return
    families = [_octets(each) for each in every]
    for at, octets in enumerate(families):
        if not octets:
            expected = "an address" if len(every) > 1 else "an address or None"
            yield _expected(f"spec.clusterIPs[{at}]" if given else place, expected, every[at])
    if len(families) > _MOST_CLUSTER_IPS or (all(families) and len(set(families)) < len(families)):
        yield f"{place}: expected at most one address of each family, found {', '.join(map(_shown, every[:3]))}"


def _import_faults(manifest: Fields) -> Iterator[str]:
    """The schema of ServiceImport in sigs.k8s.io/mcs-api."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return
    if (kind := spec.get("type")) not in _IMPORT_TYPES:
        yield _expected("spec.type", _one_of(_IMPORT_TYPES), kind)
    if spec.get("ports") is None:
        yield _expected("spec.ports", "a list", None)
    for at, port in _objects(spec, "ports"):
        if port.get("port") is None:
            yield _expected(f"spec.ports[{at}].port", f"1 to {_HIGHEST_PORT}", None)
    yield from _too_many(spec, "ips", "spec.ips", _MOST_CLUSTER_IPS)


def _slice_faults(manifest: Fields) -> Iterator[str]:
    """ValidateEndpointSlice. The addresses are not looked at if their type is unknown."""
    address_type = _text(manifest, "addressType")
    if address_type not in _ADDRESS_TYPES:
        yield _expected("addressType", _one_of(_ADDRESS_TYPES), address_type or None)
    yield from _too_many(manifest, "ports", "ports", _MOST_PORTS)
    yield from _port_faults(manifest, "", _SLICE_PORTS)
    yield from _too_many(manifest, "endpoints", "endpoints", _MOST_ENDPOINTS)
    for at, endpoint in _objects(manifest, "endpoints"):
        yield from _endpoint_faults(endpoint, f"endpoints[{at}]", address_type)


def _endpoint_faults(endpoint: Fields, place: str, address_type: str) -> Iterator[str]:
    addresses = _items(endpoint, "addresses")
    if not 1 <= len(addresses) <= _MOST_ADDRESSES:
        yield f"{place}.addresses: expected 1 to {_MOST_ADDRESSES}, found {len(addresses)}"
    is_of_type = _ADDRESS_SYNTAX.get(address_type)
    for at, address in enumerate(addresses):
        if isinstance(address, str) and is_of_type is not None and not is_of_type(address):
            article = "a name of address type" if address_type == "FQDN" else "an address of type"
            yield _expected(f"{place}.addresses[{at}]", f"{article} {address_type}", address)
    yield from _name_faults(endpoint, place)
    hints = _part(endpoint, "hints")
    for name in ("forZones", "forNodes"):
        yield from _too_many(hints, name, f"{place}.hints.{name}", _MOST_HINTS)
    for name in ("deprecatedTopology", "topology"):
        if (number := len(_part(endpoint, name))) > _MOST_LABELS:
            yield f"{place}.{name}: expected at most {_MOST_LABELS} labels, found {number}"


def _name_faults(endpoint: Fields, place: str) -> Iterator[str]:
    hostname, node = endpoint.get("hostname"), endpoint.get("nodeName")
    if isinstance(hostname, str) and not is_dns_label(hostname):
        yield _expected(f"{place}.hostname", _A_LABEL, hostname)
    if isinstance(node, str) and not is_subdomain(node):
        yield _expected(f"{place}.nodeName", _A_SUBDOMAIN, node)


def _octets(text: str) -> int:
    """How many octets the address has; 0 for a text that is none."""
    try:
        return len(parse_address(text))
    except ValueError:
        return 0


def _is_full_name(text: str) -> bool:
    """IsFullyQualifiedDomainName: two DNS labels or more, with a final dot or without."""
    labels = text.removesuffix(".").split(".")
    return len(labels) > 1 and is_subdomain(text.removesuffix(".")) and all(map(is_dns_label, labels))


_ADDRESS_SYNTAX: Final[Mapping[str, Callable[[str], bool]]] = {
    "IPv4": lambda text: _octets(text) == _OCTETS["IPv4"],
    "IPv6": lambda text: _octets(text) == _OCTETS["IPv6"],
    "FQDN": _is_full_name,
}


def _endpoints_faults(manifest: Fields) -> Iterator[str]:
    """ValidateEndpoints of v1."""
    for number, subset in _objects(manifest, "subsets"):
        place = f"subsets[{number}]"
        yield from _port_faults(subset, f"{place}.", _SUBSET_PORTS)
        for name in ("addresses", "notReadyAddresses"):
            for at, address in _objects(subset, name):
                own = f"{place}.{name}[{at}]"
                if not _octets(ip := _text(address, "ip")):
                    yield _expected(f"{own}.ip", "an address", ip or None)
                named = address if address.get("hostname") else {**address, "hostname": None}
                yield from _name_faults(named, own)


class _PortRules(NamedTuple):
    """The rules about ports in which the kinds differ. All have protocols, and names that are DNS labels."""

    numbered: bool  # a port has a number, which is in range
    named: bool  # each of several has a name
    distinct: bool  # no two have the same name
    apart: bool  # no two have the same number and protocol
    implied: tuple[str | None, ...]  # values of `protocol` that stand for TCP


_SERVICE_PORTS: Final = _PortRules(numbered=True, named=True, distinct=True, apart=True, implied=(None, ""))
_SUBSET_PORTS: Final = _PortRules(numbered=True, named=True, distinct=False, apart=False, implied=(None, ""))
_SLICE_PORTS: Final = _PortRules(numbered=False, named=False, distinct=True, apart=False, implied=(None,))


def _port_faults(having: Fields, prefix: str, rules: _PortRules) -> Iterator[str]:
    """validateServicePort, validateEndpointPort, and validatePorts of slices."""
    ports = list(_objects(having, "ports"))
    names: set[str] = set()
    taken: set[tuple[object, object]] = set()
    for at, port in ports:
        place, name, number = f"{prefix}ports[{at}]", _text(port, "name"), port.get("port")
        protocol = "TCP" if port.get("protocol") in rules.implied else port["protocol"]
        if name and not is_dns_label(name):
            yield _expected(f"{place}.name", _A_LABEL, name)
        elif rules.named and not name and len(ports) > 1:
            yield _expected(f"{place}.name", "a name, as there are several ports", None)
        elif rules.distinct and name in names:
            yield f"{place}.name: expected a name of its own, found {_shown(name)} again"
        if rules.numbered and not (isinstance(number, int | float) and 1 <= number <= _HIGHEST_PORT):
            yield _expected(f"{place}.port", f"1 to {_HIGHEST_PORT}", number)
        elif rules.apart and (number, protocol) in taken:
            yield f"{place}: expected a port of its own, found {number} of {protocol} again"
        if protocol not in _PROTOCOLS:
            yield _expected(f"{place}.protocol", _one_of(_PROTOCOLS), protocol)
        names.add(name)
        taken.add((number, protocol))


_RULES: Final[Mapping[str, Callable[[Fields], Iterable[str]]]] = {
    "Service": _service_faults,
    "ServiceImport": _import_faults,
    "EndpointSlice": _slice_faults,
    "Endpoints": _endpoints_faults,
}


def _text(fields: Fields, name: str) -> str:
    return value if isinstance(value := fields.get(name), str) else ""


def _part(fields: Fields, name: str) -> Fields:
    return value if isinstance(value := fields.get(name), dict) else {}


def _items(fields: Fields, name: str) -> Sequence[Any]:
    return value if isinstance(value := fields.get(name), list) else ()


def _objects(fields: Fields, name: str) -> Iterator[tuple[int, Fields]]:
    """The objects of a list with their indices."""
    return ((at, each) for at, each in enumerate(_items(fields, name)) if isinstance(each, dict))


def _too_many(fields: Fields, name: str, place: str, most: int) -> Iterator[str]:
    if (number := len(_items(fields, name))) > most:
        yield f"{place}: expected at most {most}, found {number}"


def _one_of(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _expected(place: str, expected: str, found: object) -> str:
    return f"{place}: expected {expected}, found {_shown(found)}"


def _shown(value: object) -> str:
    """A value in JSON, of which a text may be cut."""
    if value is None:
        return "none"
    return json.dumps(value[:_LONGEST_SHOWN] if isinstance(value, str) else value)
