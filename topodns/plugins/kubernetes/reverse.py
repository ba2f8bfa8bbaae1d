"""PTR records: which Service or endpoints an address belongs to (Kubernetes DNS schema 1.1.0 section 2.3.2, 2.4.3).

Topology never filters them: a reverse lookup asks who someone is, not whom to talk to.
"""

from topodns.cluster.facts import Fact, address_fact, namespace_fact, service_fact
from topodns.cluster.model import ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dns.message import RRset, RRType
from topodns.dns.names import label_wire
from topodns.resolve.endpoint_names import EndpointNames
from topodns.resolve.exposure import Exposure
from topodns.resolve.origins import Origin
from topodns.resolve.step import Resolution
from topodns.resolve.verdict import Facts, found, name_error
from topodns.settings.kubernetes import KubernetesSettings


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

    def respond(self, address: bytes) -> Resolution:
        """The Service with this packed ClusterIP, else the ready endpoints at the address, one of each Service."""
        targets, facts = self._targets(address)
        if not targets:
            return name_error(facts)
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
