"""PTR records: the Service or endpoints of an address (Kubernetes DNS schema 1.1.0 section 2.3.2, 2.4.3).

Topology does not filter them: a reverse lookup identifies a peer and chooses none. Targets are under the first forward
origin, as configured.
"""

from collections.abc import Sequence
from typing import Final

from topodns.cluster.endpoint_names import endpoint_label
from topodns.cluster.model import ObjectKey
from topodns.dependency import Fact, address_fact, namespace_fact, service_fact
from topodns.dns.name import MAX_WIRE, label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.endpoints import endpoints_at
from topodns.plugins.kubernetes.namespaces import exposes_reverse
from topodns.plugins.kubernetes.question import NAME_ERRORS, Answer, Facts, Missing
from topodns.plugins.kubernetes.zone import KubernetesZone

_SVC: Final = label_wire("svc")


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
