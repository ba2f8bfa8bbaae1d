"""Pod names, `<dashed address>.<namespace>.pod`: answered from the name itself, or only for Pods that exist."""

from socket import AF_INET, AF_INET6, inet_pton
from typing import Final

from topodns.dependency import address_fact
from topodns.dns.addresses import unmapped
from topodns.dns.name import label_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes.namespaces import exposes
from topodns.plugins.kubernetes.not_ready import LEFT_OUT, NOT_READY
from topodns.plugins.kubernetes.parse import PodName
from topodns.plugins.kubernetes.question import NAME_ERRORS, NO_DATA, Answer, Facts, Missing, ZoneQuestion
from topodns.plugins.kubernetes.records import Offer, address_type, srv_answer, srv_records
from topodns.plugins.kubernetes.settings import PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone

_POD: Final = label_wire("pod")
_NO_PORT: Final = 0


def missing_of_pods(kubernetes: KubernetesZone, namespace: str) -> Missing | None:
    """Why no names of Pods exist in this namespace; None if they may."""
    if kubernetes.settings.pods is PodMode.DISABLED:
        return Missing.PODS
    if ("", namespace) in kubernetes.state.namespaces and not kubernetes.limits_namespaces:
        return None  # as most
    return None if exposes(kubernetes.settings, kubernetes.state, namespace) else Missing.NAMESPACE


def answer_pod(kubernetes: KubernetesZone, name: PodName, question: ZoneQuestion) -> Answer:
    """The record of the address that the name contains.

    NXDOMAIN if it contains none, if the namespace is not exposed, in mode `disabled`, and in mode `verified` if no Pod
    of the namespace has the address, but then SERVFAIL while RBAC denies Pods, or some of the namespace are left out.
    SRV has port 0 and the name itself as target, as CoreDNS.
    """
    settings, state = kubernetes.settings, kubernetes.state
    missing = missing_of_pods(kubernetes, name.namespace)
    if missing is not None:
        return NAME_ERRORS[missing]
    address = pod_address(name.label)
    if address is None:
        return NAME_ERRORS[Missing.POD_ADDRESS]
    pods = 1
    facts: Facts = ()
    if settings.pods is PodMode.VERIFIED:
        facts = (address_fact(address),)
        pods = len([pod for pod in state.pods_with_address(address) if pod.namespace == name.namespace])
        if not pods:
            answer = NAME_ERRORS[Missing.POD] if "Pod" not in state.denied else NOT_READY
            return (LEFT_OUT if state.left_out.cuts(name.namespace) else answer)._replace(facts=facts)
    if question.qtype == RRType.SRV:
        offer = Offer(_pod_wire(name, question), address, _NO_PORT)
        return srv_answer(srv_records([offer] * pods, settings.ttl), settings.ttl)._replace(facts=facts)
    if question.qtype != address_type(address):
        return Answer(facts=facts) if facts else NO_DATA
    return Answer(Rcode.NOERROR, (address,), settings.ttl, facts=facts)


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
