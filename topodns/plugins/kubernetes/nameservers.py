"""The name servers of an origin: the NS records of its apex and the addresses of `ns.dns.<origin>`."""

from topodns.cluster.model import Service
from topodns.dependency import address_fact, service_fact
from topodns.dns.name import MAX_WIRE
from topodns.dns.soa import PRIMARY
from topodns.plugins.kubernetes.endpoints import endpoints_at, members, service_wire
from topodns.plugins.kubernetes.question import Answer, Facts, ZoneQuestion
from topodns.plugins.kubernetes.records import address_type, glue
from topodns.plugins.kubernetes.zone import KubernetesZone

Server = tuple[bytes, bytes]  # wire-form name, packed address


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
