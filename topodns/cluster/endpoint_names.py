"""The DNS label of an endpoint below its Service's name, and an index of endpoints by that label."""

from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address
from itertools import chain
from struct import Struct
from typing import Final

from topodns.cluster.model import Alias, Endpoint
from topodns.dns.addresses import OCTETS
from topodns.dns.name import MAX_LABEL

_HEXTETS: Final = Struct("!8H")
_ZEROS: Final = tuple("-" + "0-" * run for run in range(8, 1, -1))  # zero runs, longest first, for RFC 5952's "::"


def endpoint_label(endpoint: Endpoint, pod_names: bool) -> str:
    """The label of an endpoint: hostname, else the name of its target (if `pod_names`), else dashed IP.

    The target is a Pod or, as in CoreDNS, any other object. What is not one label, as the names of static Pods on Nodes
    with dots in theirs, does not count: an endpoint's name is one label below its Service's (Kubernetes DNS schema
    1.1.0 section 2.4.1). The address is in CoreDNS's spelling: IPv6 in its shortest text (RFC 5952), with a 0 appended
    if it would end in a dash.
    """
    return _own_label(endpoint, pod_names) or _dashed(endpoint.address)


class LabelIndex:
    """Distinct endpoints of one family (`endpoints.identity_of`) by label. Built on first use.

    Endpoints whose label is their dashed address are indexed by address: parsing one label is cheap, formatting the
    addresses of 5,000 endpoints is not.
    """

    __slots__ = ("_endpoints", "_labelled", "_pod_names", "_unnamed")

    def __init__(self, endpoints: Sequence[Endpoint], pod_names: bool) -> None:
        self._endpoints = endpoints
        self._pod_names = pod_names
        self._labelled: dict[str, list[Endpoint]] | None = None  # by lower-case label
        self._unnamed: dict[bytes, Endpoint | list[Endpoint]] = {}  # by address, which Pods may share

    def members(self, label: str, address: bytes) -> Sequence[Endpoint]:
        """The endpoints with this lower-case label, in order. `address` is `undashed(label)`."""
        labelled = self._labelled if self._labelled is not None else self._build()
        named, unnamed = labelled.get(label, ()), self._unnamed.get(address)
        if unnamed is None:
            return named
        if not isinstance(unnamed, list):
            unnamed = [unnamed]
        if not named:
            return unnamed
        both = set(map(id, chain(named, unnamed)))
        return [endpoint for endpoint in self._endpoints if id(endpoint) in both]

    def _build(self) -> dict[str, list[Endpoint]]:
        labelled: dict[str, list[Endpoint]] = {}
        for endpoint in self._endpoints:
            own = _own_label(endpoint, self._pod_names)
            if own:
                labelled.setdefault(own.lower(), []).append(endpoint)
                continue
            known = self._unnamed.setdefault(endpoint.address, endpoint)
            if isinstance(known, list):
                known.append(endpoint)
            elif known is not endpoint:
                self._unnamed[endpoint.address] = [known, endpoint]
        self._labelled = labelled
        return labelled


def alias_label(alias: Alias, pod_names: bool) -> str:
    """As `endpoint_label`, with dashes for the dots of the host name at last; "" if that is no label."""
    label = _own_label(alias, pod_names) or alias.target.replace(".", "-")
    return label if len(label) <= MAX_LABEL else ""


def _own_label(endpoint: Endpoint | Alias, pod_names: bool) -> str:
    """The hostname or name of the target that is the label; "" if the label is made of the address."""
    hostname = endpoint.hostname
    if hostname and "." not in hostname:
        return hostname
    if not pod_names:
        return ""
    target = endpoint.pod_name or endpoint.other_target
    return target if len(target) <= MAX_LABEL and "." not in target else ""


def _dashed(address: bytes) -> str:
    if len(address) == 4:
        first, second, third, fourth = address
        return f"{first}-{second}-{third}-{fourth}"
    text = "-{:x}-{:x}-{:x}-{:x}-{:x}-{:x}-{:x}-{:x}-".format(*_HEXTETS.unpack(address))
    zeros = next((run for run in _ZEROS if run in text), None)
    if zeros is None:
        return text[1:-1]
    before, _, after = text.partition(zeros)
    return f"{before[1:]}--{after[:-1] or '0'}"


def undashed(label: str) -> bytes:
    """The packed address for which `_dashed` gives exactly this label; b"" if there is none."""
    parts = label.split("-")
    if len(parts) == 4 and OCTETS.keys() >= set(parts):
        return bytes([OCTETS[part] for part in parts])
    try:
        address = IPv6Address(label.replace("-", ":")).packed
    except AddressValueError:
        return b""
    return address if _dashed(address) == label else b""
