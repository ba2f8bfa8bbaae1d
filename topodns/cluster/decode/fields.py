"""Decoders of fields that several kinds of API object share: addresses to packed bytes, strings interned."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Final, TypeVar

from topodns.cluster.decode.structs import ApiMetadata, ApiPort
from topodns.cluster.decode.unreadable_elements import LeftOutElements
from topodns.cluster.model import MAX_PORTS, LabelPairs
from topodns.dns.addresses import OCTETS, packed_address, unmapped_network

S = TypeVar("S")
T = TypeVar("T")

NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})  # shared: most endpoints have no topology map

_LEADING_ZEROS: Final = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")
MAX_LISTED: Final = 1000  # addresses of one field of an object other than a slice; more are ignored
_MAX_PORT: Final = 65535
_MAX_LABEL: Final = 63  # octets (RFC 1035 section 2.3.4)
_MAX_VERSION: Final = 2**64 - 1  # a resourceVersion of etcd has 63 bits
_MAX_DIGITS: Final = len(str(_MAX_VERSION))
_MAX_GENERATION: Final = 2**63 - 1  # int64 in ObjectMeta
_SHARED_SETS: Final = 8192  # of labels: one for each Node of a large cluster
_SHARED_CHARACTERS: Final = 1000  # of a set, so that all together are a few MB


def parse_address(text: str) -> bytes:
    """The 4 or 16 octets of an address, as Kubernetes reads it (ParseIPSloppy of k8s.io/utils/net). Raises ValueError.

    Numbers may have leading zeros, which stored objects keep, and are decimal all the same: 10.0.010.1 is 10.0.10.1.
    An IPv4-mapped IPv6 address gives the IPv4 address. A scope (`fe80::1%eth0`) is an error: no API field may have one.
    """
    try:
        first, second, third, fourth = text.split(".")
        return bytes((OCTETS[first], OCTETS[second], OCTETS[third], OCTETS[fourth]))
    except (ValueError, KeyError):
        return _parse_address_slowly(text)


def _parse_address_slowly(text: str) -> bytes:
    if "%" in text:
        raise ValueError(f"'{text}' has a scope")
    try:
        return packed_address(text)
    except ValueError:
        plain = _without_leading_zeros(text)
        if plain == text:
            raise
    return packed_address(plain)


def parse_prefix(text: str) -> tuple[bytes, int]:
    """(packed network address, prefix length) of a CIDR; host bits are cleared. Raises ValueError.

    Numbers may have leading zeros, as in `parse_address` (ParseCIDRSloppy).
    """
    network = unmapped_network(_without_leading_zeros(text))
    return network.network_address.packed, network.prefixlen


def _without_leading_zeros(text: str) -> str:
    return _LEADING_ZEROS.sub("", text)


def parse_each(
    parse: Callable[[S], T], items: Iterable[S] | None, left_out: LeftOutElements, *place: object
) -> tuple[T, ...]:
    """The items of a field, parsed; one that `parse` raises ValueError for is left out.

    The parts of `place` make the field's path, without a text being built for every field of every object.
    """
    parsed: list[T] = []
    for at, item in enumerate(items or ()):
        try:
            parsed.append(parse(item))
        except ValueError as error:
            left_out.add(f"{''.join(map(str, place))}[{at}]", error)
    return tuple(parsed)


def parse_listed(
    parse: Callable[[str], T], texts: Sequence[str] | None, alone: str | None, left_out: LeftOutElements, field: str
) -> tuple[T, ...]:
    """The values of a list field, without duplicates, as two spellings may be one address.

    Of the first MAX_LISTED texts. Where the list is empty, that of the field `alone`, which older objects have, named
    in the singular. Raises ValueError if that cannot be parsed: it is in no list, so nothing would be left of the
    field.
    """
    if texts:
        return tuple(dict.fromkeys(parse_each(parse, texts[:MAX_LISTED], left_out, field)))
    try:
        return (parse(alone),) if alone else ()
    except ValueError as error:
        raise ValueError(f"{field.removesuffix('s')}: {error}") from None


def namespace_of(metadata: ApiMetadata) -> str:
    """The namespace of an object, `default` if missing, as with kubectl; objects of the API server always have one.

    Raises ValueError if it is over 63 octets or not ASCII.
    """
    return checked_label(metadata.namespace or "default", "metadata.namespace")


def label_of(metadata: ApiMetadata) -> str:
    """The name of an object that is a label of DNS names.

    Raises ValueError if it is empty, as only a manifest's can be, over 63 octets or not ASCII.
    """
    if not metadata.name:
        raise ValueError("metadata.name: empty")
    return checked_label(metadata.name, "metadata.name")


def version_of(metadata: ApiMetadata) -> int:
    """The resourceVersion if it is a decimal number, as Kubernetes guarantees since 1.35 (KEP-5504), else 0."""
    return parse_version(metadata.resource_version or "")


def parse_version(text: str) -> int:
    """A resourceVersion as a number; 0 if it is not a decimal one of 64 bits: then it is opaque and has no order."""
    number = int(text) if len(text) <= _MAX_DIGITS and text.isascii() and text.isdecimal() else 0
    return number if number <= _MAX_VERSION else 0


def generation_of(metadata: ApiMetadata) -> int:
    """The generation, 0 if missing. Raises ValueError for a number that is none in the API."""
    generation = metadata.generation or 0
    if not 0 <= generation <= _MAX_GENERATION:
        raise ValueError(f"metadata.generation: not in 0..{_MAX_GENERATION}")
    return generation


def interned(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    """The labels with interned keys and values, which all objects share."""
    return {intern(key): intern(value) for key, value in labels.items()} if labels else NO_LABELS


def shared_labels(labels: Iterable[tuple[str, str]]) -> LabelPairs:
    """The labels in order of name; unless they are very long, one copy for all objects with the same ones."""
    pairs = tuple(sorted(labels))
    return _shared(pairs) if sum(len(name) + len(value) for name, value in pairs) <= _SHARED_CHARACTERS else pairs


@lru_cache(maxsize=_SHARED_SETS)
def _shared(pairs: LabelPairs) -> LabelPairs:
    return tuple((intern(name), intern(value)) for name, value in pairs)


def parse_ports(
    ports: Sequence[ApiPort] | None, field: str, left_out: LeftOutElements
) -> Sequence[tuple[str, str, int | None]]:
    """(name, protocol, number) of each of the first 1,000 ports, None for one without a number.

    The default protocol is the API's, TCP. No more ports of a Service are served, and the API has no limit. A port with
    a number outside 0..65535, the range of SRV (RFC 2782), is left out.
    """
    parsed = []
    for at, port in enumerate((ports or ())[:MAX_PORTS]):
        if port.port is not None and not 0 <= port.port <= _MAX_PORT:
            left_out.add(f"{field}[{at}].port", f"{port.port} is not in 0..{_MAX_PORT}")
            continue
        parsed.append((intern(port.name or ""), intern(port.protocol or "TCP"), port.port))
    return parsed


def subdomain(text: str | None) -> str:
    """A text of one or more DNS labels with dots between them; "" for None, and for any other text."""
    if not text or not text.isascii() or any(not 0 < len(label) <= _MAX_LABEL for label in text.split(".")):
        return ""
    return intern(text)


def checked_label(text: str | None, field: str) -> str:
    """A text for a DNS label; None gives "". Raises ValueError with `field` if it is over 63 octets or not ASCII."""
    try:
        return parse_label(text)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def parse_label(text: str | None) -> str:
    """A text for a DNS label; None gives "". Raises ValueError if it is over 63 octets or not ASCII."""
    if not text:
        return ""
    if len(text.encode()) > _MAX_LABEL:
        raise ValueError(f"longer than {_MAX_LABEL} octets")
    if not text.isascii():
        raise ValueError("not ASCII")
    return intern(text)
