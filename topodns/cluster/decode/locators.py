"""Decoders of NodeLocators and PodLocators, with the limits of their schemas (config/kubernetes/locator/crds.yaml).

The API server checks the schema; here it counts again, because manifests have none and a cluster may have a CRD of its
own. One address that is refused does not cost the others of its object; the value has it as `refused`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from sys import intern
from typing import Final

from topodns.cluster.decode.fields import interned, namespace_of, parse_address, shared_labels, version_of
from topodns.cluster.decode.structs import ApiNodeLocator, ApiNodeLocatorSpec, ApiPodLocator, ApiPodLocatorSpec
from topodns.cluster.decode.unreadable_elements import LeftOutElements
from topodns.cluster.model import LOCATOR_GROUP, LOCATOR_VERSION, NodeLocator, PodLocator, RefusedAddresses

LOCATOR_VERSIONS: Final = frozenset((f"{LOCATOR_GROUP}/{LOCATOR_VERSION}",))
MAX_POD_IPS: Final = 1024  # of one Node
MAX_ADDRESSES: Final = 32  # of a Node itself
MAX_ADDRESSES_OF_POD: Final = 8
MAX_LABELS: Final = 64  # further ones are ignored
_MAX_LABEL_NAME: Final = 253 + 1 + 63  # characters of prefix, slash and name; a longer one is no label of a Node
_MAX_LABEL_VALUE: Final = 63
_SHOWN: Final = 50  # characters of a refused address in the log

_IPV4_BROADCAST: Final = b"\xff\xff\xff\xff"
_IPV6_LOOPBACK: Final = bytes(15) + b"\x01"


def decode_node_locator(source: ApiNodeLocator, _left_out: LeftOutElements) -> Iterator[NodeLocator]:
    spec = source.spec or ApiNodeLocatorSpec()
    pod_ips, refused_pod_ips = _checked("spec.podIPs", spec.pod_ips or (), MAX_POD_IPS)
    addresses, refused_addresses = _checked("spec.addresses", spec.addresses or (), MAX_ADDRESSES)
    yield NodeLocator(
        name=intern(source.metadata.name),
        pod_ips=pod_ips,
        addresses=addresses,
        labels=interned(_some_labels(spec.labels)),
        refused=(*refused_pod_ips, *refused_addresses),
        version=version_of(source.metadata),
    )


def decode_pod_locator(source: ApiPodLocator, _left_out: LeftOutElements) -> Iterator[PodLocator]:
    """Raises ValueError where spec.nodeName is missing or empty."""
    spec = source.spec or ApiPodLocatorSpec()
    if not spec.node_name:
        raise ValueError("spec.nodeName: missing, expected the name of a Node")
    addresses, refused = _checked("spec.addresses", spec.addresses or (), MAX_ADDRESSES_OF_POD)
    yield PodLocator(
        namespace=namespace_of(source.metadata),
        name=source.metadata.name,
        addresses=addresses,
        node_name=intern(spec.node_name),
        node_labels=shared_labels(_some_labels(spec.node_labels).items()),
        refused=refused,
        version=version_of(source.metadata),
    )


def _some_labels(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    """The first MAX_LABELS labels, without those that are too long for a label."""
    some = islice((labels or {}).items(), MAX_LABELS)
    return {name: value for name, value in some if len(name) <= _MAX_LABEL_NAME and len(value) <= _MAX_LABEL_VALUE}


def _checked(field: str, texts: Sequence[str], most: int) -> tuple[tuple[bytes, ...], tuple[RefusedAddresses, ...]]:
    """The distinct valid addresses among the first `most` texts, and for each reason the refused ones."""
    accepted: dict[bytes, None] = {}
    refused: dict[str, RefusedAddresses] = {}
    for at, text in enumerate(texts[:most]):
        try:
            address = parse_address(text)
            fault = address_fault(address)
        except ValueError:
            fault = "malformed"
        if not fault:
            accepted[address] = None
        elif fault in refused:
            refused[fault] = refused[fault]._replace(number=refused[fault].number + 1)
        else:
            refused[fault] = RefusedAddresses(fault, 1, f"{field}[{at}] '{text[:_SHOWN]}'")
    if len(texts) > most:
        refused["too_many"] = RefusedAddresses("too_many", len(texts) - most, f"{field}[{most}]")
    return tuple(accepted), tuple(refused.values())


def address_fault(address: bytes) -> str:
    """Why no Pod or Node can have this address; "" if one can. The schema's `isGlobalUnicast()` refuses the same."""
    first = address[0]
    if not any(address):
        return "unspecified"
    if len(address) == 4:
        if first == 127:
            return "loopback"
        if first == 169 and address[1] == 254:
            return "link_local"
        if address == _IPV4_BROADCAST:
            return "broadcast"
        return "multicast" if first >> 4 == 0xE else ""
    if address == _IPV6_LOOPBACK:
        return "loopback"
    if first == 0xFE and address[1] >> 6 == 0b10:
        return "link_local"
    return "multicast" if first == 0xFF else ""
