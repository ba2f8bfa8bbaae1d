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
from topodns.dns.message import Query
from topodns.dns.name import Name, is_below_any, is_part_of_reverse, name_wire, reverse_address
from topodns.dns.rrtype import Rcode
from topodns.plugins.k8s_external import nameservers, services
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.k8s_external.zone import K8sExternalZone
from topodns.plugins.kubernetes.namespaces import exposes, exposes_reverse
from topodns.plugins.kubernetes.not_ready import confirmed
from topodns.plugins.kubernetes.records import name_error, no_data
from topodns.plugins.kubernetes.reverse import pointers
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import KubernetesZone, Origins, ZoneQuestion, question_of
from topodns.query.cname import Chase, follow_each
from topodns.query.plugin import Answered, Client, FellThrough, Resolution

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
        inside = KubernetesZone(with_endpoints, None, state, None, tuple(own_addresses), chase)
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
        resolution = _look_up(external, question)
        resolution.plugin = NAME
        response = resolution.response
        if response.rcode == Rcode.NXDOMAIN and _falls_through(external, query):
            return FellThrough(resolution.facts)
        if not response.answer:
            response.authority = (nameservers.soa(external, question.origin_wire),)
        return follow_each(resolution.chase, resolution, query, client, external.kubernetes.chase)


def _look_up(external: K8sExternalZone, question: ZoneQuestion) -> Resolution:
    query = question.query
    labels = query.qname[: len(query.qname) - len(question.origin.name)]
    if not labels:
        return nameservers.at_apex(external, question)
    if labels[-1] == external.settings.apex:
        return nameservers.below_apex(external, labels, query.qtype)
    resolution = _respond(external, labels, question)
    is_name_error = resolution.response.rcode == Rcode.NXDOMAIN
    return confirmed(resolution, external.kubernetes.state) if is_name_error else resolution


def _respond(external: K8sExternalZone, labels: Name, question: ZoneQuestion) -> Resolution:
    """The answer to the name of a Service or namespace, or to a reverse name; `labels` are those before the origin."""
    query, kubernetes = question.query, external.kubernetes
    if (address := reverse_address(query.qname)) is not None:
        return _pointers(external, address, query.qtype)
    if is_part_of_reverse(query.qname) and not _falls_through(external, query):
        return no_data()  # reverse names of addresses may be below it (RFC 8020)
    namespace = labels[-1]
    facts = (namespace_fact(namespace),)
    if not exposes(kubernetes.settings, kubernetes.state, namespace):
        return name_error(facts)
    if len(labels) == 1:
        return no_data(facts)
    key = ObjectKey(namespace, labels[-2])
    return services.respond(external, key, labels[:-2], question, (*facts, service_fact(*key)))


def _pointers(external: K8sExternalZone, address: bytes, qtype: int) -> Resolution:
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


def _falls_through(external: K8sExternalZone, query: Query) -> bool:
    return is_below_any(query.qname, external.settings.fallthrough)
