"""Services and endpoints that are host names: CNAME records to them.

A Service of type ExternalName has a CNAME record and, for A and AAAA queries, the records of its target.
`plugins.kubernetes.handler` follows a target under the origin, `query.cname` any other.

Endpoints of slices of addressType FQDN have CNAME records to their host names, as in CoreDNS. Kubernetes gives such
slices no meaning in DNS. As with ExternalName Services, topology keys never filter them, and SRV answers do not have
them. Besides addresses and other aliases of the same name CoreDNS gives all their CNAME records; so does topodns, for
at most 16 host names, each of which may cost a query to an upstream. Of a name that a CNAME led to only the first one
is followed: Services that are aliases of each other would make a tree.
"""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import alias_label
from topodns.cluster.model import Alias
from topodns.dns.name import BadName, Name, is_subdomain, name_wire, parse_name
from topodns.dns.rrtype import ADDRESS_TYPES, Rcode, RRType
from topodns.plugins.kubernetes.question import (
    NAME_ERRORS,
    NO_DATA,
    Answer,
    Missing,
    ServiceName,
    ZonalName,
    ZoneQuestion,
    matching,
)
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.query.cname import MAX_TARGETS

_ANSWERED: Final = frozenset({Rcode.NOERROR, Rcode.NXDOMAIN})


def answer_alias(external_name: str, question: ZoneQuestion, ttl: int) -> Answer:
    """The CNAME to `external_name`; for A and AAAA to be followed; NODATA for other types.

    NODATA also for A and AAAA if the target is at or below the queried name. NXDOMAIN if `external_name` is an address
    or not a name.
    """
    target = target_of(external_name)
    if target is None:
        return NAME_ERRORS[Missing.EXTERNAL_NAME]
    if question.qtype == RRType.CNAME:
        return Answer(rdatas=(name_wire(target),), ttl=ttl)
    if question.qtype not in ADDRESS_TYPES or is_subdomain(target, question.qname):
        return NO_DATA
    return Answer(targets=(target,))


def target_of(external_name: str) -> Name | None:
    """The name in a Service's externalName; None for an address, an empty or a malformed one."""
    try:
        ip_address(external_name)
    except ValueError:
        return _parsed(external_name)
    return None


def _parsed(text: str) -> Name | None:
    try:
        return parse_name(text) or None
    except BadName:
        return None


def with_aliases(
    kubernetes: KubernetesZone,
    name: ServiceName | ZonalName,
    backends: Backends,
    question: ZoneQuestion,
    answer: Answer,
) -> Answer:
    """The answer for a name of `kubernetes`, with CNAME records to the aliases among its endpoints."""
    targets = targets_of(backends, name, kubernetes.settings.endpoint_pod_names)
    return with_cnames(answer, targets, question.qname, question.qtype, kubernetes.settings.ttl)


def targets_of(backends: Backends, name: ServiceName | ZonalName, pod_names: bool) -> list[Name]:
    """The host names of the ready aliases with this name, without repeats; `pod_names` as for `endpoint_label`."""
    if not backends.aliases:
        return []
    named = _in_zone(backends, name) if isinstance(name, ZonalName) else _named(backends, name, pod_names)
    return list({target: None for alias in named if (target := target_of(alias.target)) is not None})[:MAX_TARGETS]


def with_cnames(answer: Answer, targets: Sequence[Name], qname: Name, qtype: int, ttl: int) -> Answer:
    """The answer for a name that has these aliases as well; failures and refusals stay what they are.

    For A and AAAA the targets are those but for names at or below `qname`. CNAME has the first one, as CoreDNS.
    """
    if not targets or answer.rcode not in _ANSWERED:
        return answer
    if qtype == RRType.CNAME:
        return answer._replace(rcode=Rcode.NOERROR, missing=None, rdatas=(name_wire(targets[0]),), ttl=ttl)
    followed = tuple(target for target in targets if not is_subdomain(target, qname)) if qtype in ADDRESS_TYPES else ()
    return answer._replace(rcode=Rcode.NOERROR, missing=None, targets=followed)


def is_in_zone(backends: Backends, topology_zone: str) -> bool:
    """Whether a ready alias is in this topology zone, given in lower case."""
    return any(_is_of(alias, topology_zone) for alias, _ in backends.aliases)


def _named(backends: Backends, name: ServiceName, pod_names: bool) -> Iterator[Alias]:
    for alias, ports in backends.aliases:
        if name.endpoint and alias_label(alias, pod_names).lower() != name.endpoint:
            continue
        if not (name.port or name.protocol) or matching(ports, name):
            yield alias


def _in_zone(backends: Backends, name: ZonalName) -> Iterator[Alias]:
    missed = name.prefer and not is_in_zone(backends, name.topology_zone)
    if missed and any(pool.by_topology_zone(name.topology_zone).endpoints for pool in backends.pools.values()):
        return
    for alias, _ in backends.aliases:
        if missed or _is_of(alias, name.topology_zone):
            yield alias


def _is_of(alias: Alias, topology_zone: str) -> bool:
    return alias.topology_zone is not None and alias.topology_zone.lower() == topology_zone
