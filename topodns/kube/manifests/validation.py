"""What an API server refuses, and so never sends: manifests, which any program may write, are checked for it here."""

import json
import re
from dataclasses import replace
from ipaddress import ip_address
from typing import Final

from topodns.cluster.api_names import is_dns_label, is_subdomain
from topodns.cluster.decode.objects import Decoded, DecodeError
from topodns.cluster.decode.unreadable_elements import LeftOutElements
from topodns.cluster.model import ClusterObject, EndpointSlice, Namespace, Node, Pod, Service

_OCTETS: Final = {"IPv4": 4, "IPv6": 16}  # of an address, by addressType
_LONGEST_SHOWN: Final = 60  # characters of a value
# ValidateDNS1123Subdomain with a final dot or without; also with capitals and `_`, which DNS has.
_LABEL: Final = r"[A-Za-z0-9_](?:[-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?"
_DNS_NAME: Final = re.compile(rf"(?=.{{1,254}}\Z){_LABEL}(?:\.{_LABEL})*\.?")


def check_names(kind: str, decoded: Decoded[ClusterObject]) -> None:
    """Raise DecodeError for an object with a name that its kind cannot have, or an externalName that is no DNS name."""
    one = decoded.objects[0] if decoded.objects else None
    if not isinstance(one, Service | Namespace | Node | Pod):
        return
    name, is_label = "/".join(filter(None, one.key)), isinstance(one, Service | Namespace)
    if not (is_dns_label if is_label else is_subdomain)(one.name):
        expected = "a DNS label" if is_label else "DNS labels with dots between them,"
        raise DecodeError(kind, name, f"metadata.name: expected {expected} in lower case (RFC 1123)")
    external = one.external_name if isinstance(one, Service) else None
    if external is not None and not _DNS_NAME.fullmatch(external):
        found = json.dumps(external[:_LONGEST_SHOWN])
        raise DecodeError(kind, name, f"spec.externalName: expected a DNS name, found {found}{_advice(external)}")


def _advice(name: str) -> str:
    return "" if name.isascii() else "; IDNs have A-labels (xn--) here"


def of_one_family(decoded: Decoded[ClusterObject]) -> Decoded[ClusterObject]:
    """A decoded EndpointSlice without the addresses that its addressType excludes; any other object as it is.

    An API server refuses such a slice (ValidateEndpointSlice).
    """
    one = decoded.objects[0] if decoded.objects else None
    if not isinstance(one, EndpointSlice) or one.mirrored:
        return decoded
    octets, left_out = _OCTETS.get(one.address_type), LeftOutElements()
    if octets is None and one.address_type != "FQDN":
        left_out.add("all endpoints", f"addressType {one.address_type!r}, expected IPv4, IPv6 or FQDN")
    wrong = [each for each in one.endpoints if len(each.address) != octets]
    for each in wrong:
        left_out.add(str(ip_address(each.address)), f"no {one.address_type} address, which is the addressType")
    if not left_out.number:
        return decoded
    kept = replace(one, endpoints=tuple(each for each in one.endpoints if len(each.address) == octets))
    return decoded._replace(objects=(kept,), left_out="; ".join(filter(None, (decoded.left_out, str(left_out)))))
