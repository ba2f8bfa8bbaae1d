"""The name servers of an origin: the NS records of its apex and the addresses of `ns.dns.<origin>`."""

from collections.abc import Sequence
from typing import Final

from topodns.cluster.model import Service
from topodns.cluster.state import ClusterState
from topodns.dependency import address_fact, service_fact
from topodns.dns.message import RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.endpoints import EndpointNames, service_wire
from topodns.plugins.kubernetes.records import Facts, address_records, address_type, found, glue
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zones import ZoneQuestion
from topodns.query.plugin import Resolution

_PRIMARY: Final = label_wire("ns") + label_wire("dns")

Server = tuple[bytes, bytes]  # wire-form name, packed address


class NameServers:
    """`own_addresses` (packed) are those that this server is bound to, without loopback ones."""

    def __init__(
        self,
        settings: KubernetesSettings,
        state: ClusterState,
        endpoints: EndpointNames,
        own_addresses: Sequence[bytes],
    ) -> None:
        self._ttl = settings.ttl
        self._state = state
        self._endpoints = endpoints
        self._own = tuple(own_addresses)

    def name_servers(self, question: ZoneQuestion) -> Resolution:
        """The NS records of the apex, with the servers' addresses."""
        servers, facts = self._servers(question)
        targets = tuple(dict.fromkeys(name for name, _ in servers))
        answer = (RRset(b"", RRType.NS, self._ttl, targets),) if targets else ()
        return found(facts, answer, glue(servers, self._ttl))

    def addresses(self, question: ZoneQuestion) -> Resolution:
        """A or AAAA of `ns.dns`, the primary server in the SOA: the addresses of all name servers."""
        servers, facts = self._servers(question)
        qtype = question.query.qtype
        addresses = tuple(dict.fromkeys(address for _, address in servers if address_type(address) == qtype))
        return found(facts, address_records(qtype, self._ttl, addresses))

    def _servers(self, question: ZoneQuestion) -> tuple[list[Server], Facts]:
        """The Services with this server as a ready endpoint, as in CoreDNS; without any, this server itself."""
        keys = dict.fromkeys(key for address in self._own for key, _ in self._endpoints.at(address))
        facts = (*map(address_fact, self._own), *(service_fact(key.namespace, key.name) for key in keys))
        services = filter(None, map(self._state.service, keys))
        servers = [server for service in services for server in self._servers_of(service, question)]
        if not servers:
            servers = [(_PRIMARY + question.origin_wire, address) for address in self._own]
        return servers, facts

    def _servers_of(self, service: Service, question: ZoneQuestion) -> list[Server]:
        name = service_wire(service, question)
        if not service.headless:
            return [(name, address) for address in service.cluster_ips]
        return self._endpoints.members(service, question)
