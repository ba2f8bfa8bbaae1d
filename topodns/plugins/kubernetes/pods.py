"""Pod names, `<dashed address>.<namespace>.pod`: answered from the name itself, or only for Pods that exist."""

from ipaddress import IPv6Address
from socket import AF_INET, AF_INET6, inet_pton
from typing import Final

from topodns.cluster.state import ClusterState
from topodns.dependency import address_fact, namespace_fact
from topodns.dns.message import RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.namespaces import Exposure
from topodns.plugins.kubernetes.parse import NamespaceNode, PodName
from topodns.plugins.kubernetes.records import (
    Facts,
    Offer,
    address_type,
    found,
    name_error,
    no_data,
    not_ready,
    srv_records,
)
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.kubernetes.zones import ZoneQuestion
from topodns.query.plugin import Resolution

_POD: Final = label_wire("pod")
_NO_PORT: Final = 0


class PodNames:
    def __init__(self, settings: KubernetesSettings, state: ClusterState, exposure: Exposure) -> None:
        self._mode = settings.pods
        self._ttl = settings.ttl
        self._state = state
        self._exposure = exposure

    def serves(self, node: NamespaceNode) -> bool:
        """Whether `<namespace>.pod` exists."""
        return self._mode is not PodMode.DISABLED and self._exposure.exposes(node.namespace)

    def respond(self, name: PodName, question: ZoneQuestion) -> Resolution:
        """The address spelled in the name; in mode `verified` only if a Pod of the namespace has it.

        SRV gives that address at port 0, as CoreDNS.
        """
        facts: Facts = (namespace_fact(name.namespace),)
        if self._mode is PodMode.DISABLED or not self._exposure.exposes(name.namespace):
            return name_error(facts)
        address = pod_address(name.label)
        if address is None:
            return name_error(facts)
        pods = 1
        if self._mode is PodMode.VERIFIED:
            facts = (*facts, address_fact(address))
            pods = sum(pod.namespace == name.namespace for pod in self._state.pods_with_address(address))
            if not pods:
                return name_error(facts) if "Pod" not in self._state.denied else not_ready(facts)
        if question.query.qtype == RRType.SRV:
            offer = Offer(_pod_wire(name, question), address, _NO_PORT)
            return found(facts, *srv_records([offer] * pods, self._ttl))
        if question.query.qtype != address_type(address):
            return no_data(facts)
        return found(facts, (RRset(b"", question.query.qtype, self._ttl, (address,)),))


def _pod_wire(name: PodName, question: ZoneQuestion) -> bytes:
    """The Pod's name in wire form, with the origin in the query's spelling."""
    return label_wire(name.label) + label_wire(name.namespace) + _POD + question.origin_wire


def pod_address(label: str) -> bytes | None:
    """The packed address that a label such as `10-0-0-1` or `2001-db8--1` spells, or None.

    As in CoreDNS: exactly three dashes, none doubled, are an IPv4 address; anything else is tried as IPv6.
    """
    try:
        if label.count("-") == 3 and "--" not in label:
            return inet_pton(AF_INET, label.replace("-", "."))
        return _unmapped(inet_pton(AF_INET6, label.replace("-", ":")))
    except (OSError, ValueError):
        return None


def _unmapped(address: bytes) -> bytes:
    """The address; an IPv4-mapped one as its 4 octets, for an A record."""
    mapped = IPv6Address(address).ipv4_mapped if address.startswith(bytes(10)) else None
    return mapped.packed if mapped else address
