"""Names that are no Service's: of Pods, of addresses (PTR), and of the name servers of an origin.

A Pod's name, `<dashed address>.<namespace>.pod`, is answered from the name itself, or only for Pods that exist. The
targets of PTR records are under the first forward origin, as configured (Kubernetes DNS schema 1.1.0 section 2.3.2,
2.4.3). Topology does not filter them: a reverse lookup identifies a peer and chooses none.
"""

from collections.abc import Sequence
from socket import AF_INET, AF_INET6, inet_pton
from typing import Final

from topodns.cluster.endpoints import endpoint_label
from topodns.cluster.model import ObjectKey, Service
from topodns.dependency import Fact, address_fact, namespace_fact, service_fact
from topodns.dns.addresses import unmapped
from topodns.dns.name import MAX_WIRE, label_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import PRIMARY
from topodns.plugins.kubernetes.endpoints import endpoints_at, members, service_wire
from topodns.plugins.kubernetes.question import (
    LEFT_OUT,
    NAME_ERRORS,
    NO_DATA,
    NOT_READY,
    Answer,
    Facts,
    Missing,
    PodName,
    ZoneQuestion,
)
from topodns.plugins.kubernetes.records import Offer, address_type, glue, srv_answer, srv_records
from topodns.plugins.kubernetes.settings import PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone, exposes, exposes_reverse

_POD: Final = label_wire("pod")
_NO_PORT: Final = 0
_SVC: Final = label_wire("svc")

Server = tuple[bytes, bytes]  # wire-form name, packed address


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


def answer_address(kubernetes: KubernetesZone, address: bytes, qtype: int) -> Answer:
    """PTR: the Service with this packed ClusterIP; else the names of all ready endpoints with this address.

    NODATA for any other type, NXDOMAIN if there is no such Service or endpoint in a namespace that is exposed.
    """
    targets, facts = _targets(kubernetes, address)
    return pointers(targets, facts, qtype, kubernetes.settings.ttl)


def pointers(targets: Sequence[bytes], facts: Facts, qtype: int, ttl: int) -> Answer:
    """PTR records to these wire-form names, of at most 255 octets; NODATA for any other type, NXDOMAIN without any."""
    targets = [target for target in targets if len(target) <= MAX_WIRE]
    if not targets:
        return NAME_ERRORS[Missing.ADDRESS]._replace(facts=facts)
    if qtype != RRType.PTR:
        return Answer(facts=facts)
    return Answer(rdatas=tuple(dict.fromkeys(targets)), ttl=ttl, facts=facts)


def _targets(kubernetes: KubernetesZone, address: bytes) -> tuple[list[bytes], Facts]:
    settings, state = kubernetes.settings, kubernetes.state
    facts: list[Fact] = [address_fact(address)]
    service = state.service_with_address(address)
    if service is not None:
        facts += (namespace_fact(service.namespace), service_fact(*service.key))
        if exposes_reverse(settings, state, service.namespace):
            return [_name(kubernetes, service.key)], tuple(facts)
    targets = []
    for key, endpoint in endpoints_at(kubernetes, address):
        facts += (namespace_fact(key.namespace), service_fact(*key))
        if exposes_reverse(settings, state, key.namespace):
            label = endpoint_label(endpoint, settings.endpoint_pod_names)
            targets.append(label_wire(label) + _name(kubernetes, key))
    return targets, tuple(dict.fromkeys(facts))


def _name(kubernetes: KubernetesZone, key: ObjectKey) -> bytes:
    return label_wire(key.name) + label_wire(key.namespace) + _SVC + kubernetes.origins.primary.wire


def name_servers(kubernetes: KubernetesZone, question: ZoneQuestion) -> Answer:
    """The NS records of the apex, with the servers' addresses."""
    servers, facts = _servers(kubernetes, question)
    ttl, targets = kubernetes.settings.ttl, tuple(dict.fromkeys(name for name, _ in servers))
    return Answer(rdatas=targets, ttl=ttl, additional=glue(servers, ttl), facts=facts)


def server_addresses(kubernetes: KubernetesZone, question: ZoneQuestion) -> Answer:
    """A or AAAA of `ns.dns`, the primary server in the SOA: the addresses of all name servers."""
    servers, facts = _servers(kubernetes, question)
    addresses = dict.fromkeys(address for _, address in servers if address_type(address) == question.qtype)
    return Answer(rdatas=tuple(addresses), ttl=kubernetes.settings.ttl, facts=facts)


def services_behind(kubernetes: KubernetesZone) -> tuple[list[Service], Facts]:
    """The Services that have one of this server's own addresses as a ready endpoint, and the dependencies of that.

    There are no such Services with `noendpoints`.
    """
    own = kubernetes.own_addresses
    keys = dict.fromkeys(key for address in own for key, _ in endpoints_at(kubernetes, address))
    facts = (*map(address_fact, own), *(service_fact(key.namespace, key.name) for key in keys))
    return [service for key in keys if (service := kubernetes.state.service(key)) is not None], facts


def _servers(kubernetes: KubernetesZone, question: ZoneQuestion) -> tuple[list[Server], Facts]:
    """Name, of at most 255 octets, and address of each name server, and their dependencies.

    The name servers are the Services with this server as a ready endpoint (of headless ones, all ready endpoints), as
    in CoreDNS; without any, `ns.dns` at this server's own addresses.
    """
    services, facts = services_behind(kubernetes)
    servers = [server for service in services for server in _servers_of(kubernetes, service, question)]
    servers = servers or [(PRIMARY + question.origin_wire, address) for address in kubernetes.own_addresses]
    return [(name, address) for name, address in servers if len(name) <= MAX_WIRE], facts


def _servers_of(kubernetes: KubernetesZone, service: Service, question: ZoneQuestion) -> list[Server]:
    if service.headless:
        return members(kubernetes, service, question)
    name = service_wire(service, question)
    return [(name, address) for address in service.cluster_ips]
