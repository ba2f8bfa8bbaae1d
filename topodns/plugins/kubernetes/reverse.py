"""PTR records: the Service or endpoints of an address (Kubernetes DNS schema 1.1.0 section 2.3.2, 2.4.3).

Topology does not filter them: a reverse lookup identifies a peer and chooses none.
"""

from topodns.cluster.model import ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact, address_fact, namespace_fact, service_fact
from topodns.dns.message import RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.endpoints import EndpointNames
from topodns.plugins.kubernetes.namespaces import Exposure
from topodns.plugins.kubernetes.records import Facts, found, name_error, no_data
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zones import Origin
from topodns.query.plugin import Resolution


class ReverseZone:
    """Targets are under `primary`, the first forward origin, as configured."""

    def __init__(
        self,
        settings: KubernetesSettings,
        state: ClusterState,
        exposure: Exposure,
        endpoints: EndpointNames,
        primary: Origin,
    ) -> None:
        self._ttl = settings.ttl
        self._state = state
        self._exposure = exposure
        self._endpoints = endpoints
        self._suffix = label_wire("svc") + primary.wire

    def respond(self, address: bytes, qtype: int) -> Resolution:
        """PTR: the Service with this packed ClusterIP; else the ready endpoints with this address, one per Service.

        NODATA for any other type where there is such a Service or endpoint.
        """
        targets, facts = self._targets(address)
        if not targets:
            return name_error(facts)
        if qtype != RRType.PTR:
            return no_data(facts)
        return found(facts, (RRset(b"", RRType.PTR, self._ttl, tuple(dict.fromkeys(targets))),))

    def _targets(self, address: bytes) -> tuple[list[bytes], Facts]:
        facts: list[Fact] = [address_fact(address)]
        service = self._state.service_with_address(address)
        if service is not None:
            facts += (namespace_fact(service.namespace), service_fact(*service.key))
            if self._exposure.exposes_reverse(service.namespace):
                return [self._name(service.key)], tuple(facts)
        targets = []
        for key, endpoint in self._endpoints.at(address):
            facts += (namespace_fact(key.namespace), service_fact(*key))
            if self._exposure.exposes_reverse(key.namespace):
                targets.append(label_wire(self._endpoints.label(endpoint)) + self._name(key))
        return targets, tuple(facts)

    def _name(self, key: ObjectKey) -> bytes:
        return label_wire(key.name) + label_wire(key.namespace) + self._suffix
