"""The `k8s_external` plugin of a server block: answers names of Services for clients outside the cluster.

Their addresses are spec.externalIPs and those of the load balancer; with `headless`, those of endpoints. Topology does
not apply: a client outside the cluster is on no Node.

As in CoreDNS, one label in front of a Service with external addresses is ignored. Differences: a load balancer with
only a hostname is one CNAME for queries of type A, AAAA and CNAME (CoreDNS writes several where there are several, and
none for CNAME); SRV answers with such a hostname come without its addresses; names of Services are SERVFAIL instead of
NXDOMAIN while the watches are incomplete.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact, address_fact, namespace_fact, service_fact
from topodns.dns.message import Query, Response
from topodns.dns.name import Name, is_below_any, is_part_of_reverse, name_wire, reverse_address
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.k8s_external.answer import K8sExternalZone, answer_service, at_apex, below_apex, soa
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.kubernetes.answer import question_of
from topodns.plugins.kubernetes.handler import resolution_of
from topodns.plugins.kubernetes.other_names import pointers
from topodns.plugins.kubernetes.question import (
    NAME_ERRORS,
    NO_DATA,
    Answer,
    Missing,
    ZoneQuestion,
    confirmed,
    ttl_now,
)
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import KubernetesZone, Origins, exposes, exposes_reverse
from topodns.query.cname import Chase, follow_each
from topodns.query.plugin import Answered, Client, FellThrough, Resolution, Scope

NAME: Final = "k8s_external"


class ExternalZone:
    """The plugin of a `k8s_external` directive, over the cluster state of the block's `kubernetes`.

    `own_addresses` (packed) are those that the server is bound to, without loopback ones. `chase` resolves the hostname
    of a load balancer.
    """

    __slots__ = ("_external", "_origins")

    def __init__(
        self,
        settings: K8sExternal,
        kubernetes: KubernetesSettings,
        state: ClusterState,
        own_addresses: Sequence[bytes] = (),
        chase: Chase | None = None,
    ) -> None:
        with_endpoints = replace(kubernetes, noendpoints=False)
        inside = KubernetesZone(
            settings=with_endpoints,
            topology=None,
            state=state,
            locator=None,
            own_addresses=tuple(own_addresses),
            chase=chase,
        )
        self._external = K8sExternalZone(settings, inside)
        self._origins = Origins(settings.origins)

    def __call__(self, query: Query, client: Client) -> Answered | FellThrough | None:
        """The resolution of a query under one of the origins, or FellThrough by `fallthrough`; None for all others.

        Deferred if it waits for the target of a CNAME.
        """
        origin = self._origins.match(query.qname)
        if origin is None:
            return None
        external, question = self._external, question_of(query, client, origin)
        resolution = _resolution(external, question)
        response = resolution.response
        if response.rcode == Rcode.NXDOMAIN and _falls_through(external, question):
            return FellThrough(resolution.facts)
        if not response.answer:
            response.authority = (soa(external, question.origin_wire),)
        return follow_each(resolution.chase, resolution, query, client, external.kubernetes.chase)


def _resolution(external: K8sExternalZone, question: ZoneQuestion) -> Resolution:
    labels = question.labels
    if question.qtype == RRType.SOA and not labels:
        record = soa(external, question.origin_wire)
        return Resolution(Response(answer=(record,)), NAME, Scope.CLIENT)  # its serial is the time of the last change
    cname_ttl = ttl_now(external.settings.ttl, external.kubernetes.state)
    resolution = resolution_of(_answer(external, labels, question), question.qtype, cname_ttl)
    resolution.plugin = NAME
    return resolution


def _answer(external: K8sExternalZone, labels: Name, question: ZoneQuestion) -> Answer:
    if not labels:
        return at_apex(external, question)
    if labels[-1] == external.settings.apex:
        return below_apex(external, labels, question.qtype)
    answer = _answer_name(external, labels, question)
    state = external.kubernetes.state
    return answer if state.synced else confirmed(answer, state.restored)


def _answer_name(external: K8sExternalZone, labels: Name, question: ZoneQuestion) -> Answer:
    """The answer to the name of a Service or namespace, or to a reverse name; `labels` are those before the origin."""
    kubernetes = external.kubernetes
    if (address := reverse_address(question.qname)) is not None:
        return _pointers(external, address, question.qtype)
    if is_part_of_reverse(question.qname) and not _falls_through(external, question):
        return NO_DATA  # reverse names of addresses may be below it (RFC 8020)
    namespace = labels[-1]
    facts = (namespace_fact(namespace),)
    if not exposes(kubernetes.settings, kubernetes.state, namespace):
        return NAME_ERRORS[Missing.NAMESPACE]._replace(facts=facts)
    if len(labels) == 1:
        return Answer(facts=facts)
    key = ObjectKey(namespace, labels[-2])
    answer = answer_service(external, key, labels[:-2], question)
    return answer._replace(facts=(*facts, service_fact(*key)))


def _pointers(external: K8sExternalZone, address: bytes, qtype: int) -> Answer:
    """PTR: the Services with this packed external address, under the first origin; NODATA for any other type.

    NXDOMAIN without such a Service.
    """
    settings, kubernetes = external.settings, external.kubernetes
    facts: list[Fact] = [address_fact(address)]
    targets = []
    for key in kubernetes.state.external.at(address):
        facts += (namespace_fact(key.namespace), service_fact(*key))
        if exposes_reverse(kubernetes.settings, kubernetes.state, key.namespace):
            targets.append(name_wire((key.name, key.namespace, *settings.origins[0])))
    return pointers(targets, tuple(facts), qtype, settings.ttl)


def _falls_through(external: K8sExternalZone, question: ZoneQuestion) -> bool:
    return is_below_any(question.qname, external.settings.fallthrough)
