"""Pod names, `<dashed address>.<namespace>.pod`: answered from the name itself, or only for Pods that exist."""

from socket import AF_INET, AF_INET6, inet_pton
from typing import Final

from topodns.dependency import address_fact, namespace_fact
from topodns.dns.addresses import unmapped
from topodns.dns.message import RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.namespaces import exposes
from topodns.plugins.kubernetes.not_ready import left_out, not_ready
from topodns.plugins.kubernetes.parse import NamespaceNode, PodName
from topodns.plugins.kubernetes.records import (
    Facts,
    Offer,
    address_type,
    found,
    name_error,
    no_data,
    srv_records,
)
from topodns.plugins.kubernetes.settings import PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone, ZoneQuestion
from topodns.query.plugin import Resolution

_POD: Final = label_wire("pod")
_NO_PORT: Final = 0


def serves(kubernetes: KubernetesZone, node: NamespaceNode) -> bool:
    """Whether `<namespace>.pod` exists."""
    settings = kubernetes.settings
    return settings.pods is not PodMode.DISABLED and exposes(settings, kubernetes.state, node.namespace)


def respond(kubernetes: KubernetesZone, name: PodName, question: ZoneQuestion) -> Resolution:
    """The record of the address that the name contains.

    NXDOMAIN if it contains none, if the namespace is not exposed, in mode `disabled`, and in mode `verified` if no Pod
    of the namespace has the address, but then SERVFAIL while RBAC denies Pods, or some of the namespace are left out.
    SRV has port 0 and the name itself as target, as CoreDNS.
    """
    settings, state = kubernetes.settings, kubernetes.state
    facts: Facts = (namespace_fact(name.namespace),)
    if settings.pods is PodMode.DISABLED or not exposes(settings, state, name.namespace):
        return name_error(facts)
    address = pod_address(name.label)
    if address is None:
        return name_error(facts)
    pods = 1
    if settings.pods is PodMode.VERIFIED:
        facts = (*facts, address_fact(address))
        pods = sum(pod.namespace == name.namespace for pod in state.pods_with_address(address))
        if not pods and state.left_out.cuts(name.namespace):
            return left_out(facts)
        if not pods:
            return name_error(facts) if "Pod" not in state.denied else not_ready(facts)
    if question.query.qtype == RRType.SRV:
        offer = Offer(_pod_wire(name, question), address, _NO_PORT)
        return found(facts, *srv_records([offer] * pods, settings.ttl))
    if question.query.qtype != address_type(address):
        return no_data(facts)
    return found(facts, (RRset(b"", question.query.qtype, settings.ttl, (address,)),))


def _pod_wire(name: PodName, question: ZoneQuestion) -> bytes:
    """The Pod's name in wire form, with the origin in the query's spelling."""
    return label_wire(name.label) + label_wire(name.namespace) + _POD + question.origin_wire


def pod_address(label: str) -> bytes | None:
    """The packed address in a label such as `10-0-0-1` or `2001-db8--1`; None for any other label.

    As in CoreDNS: exactly three dashes, none doubled, are an IPv4 address; anything else is tried as IPv6, where an
    IPv4-mapped address has an A record.
    """
    try:
        if label.count("-") == 3 and "--" not in label:
            return inet_pton(AF_INET, label.replace("-", "."))
        return unmapped(inet_pton(AF_INET6, label.replace("-", ":")))
    except (OSError, ValueError):
        return None
