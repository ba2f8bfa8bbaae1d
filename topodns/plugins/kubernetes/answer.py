"""The answer of a cluster to a question: the one place of the rules on which names exist, and what they have.

All names under the origins are answered as by CoreDNS's plugin `kubernetes`. Differences, on purpose: clients of a
headless Service with a topology policy get the endpoints of their topology domain; while watches are incomplete a name
that seems not to exist is SERVFAIL; NS at the apex ignores the query's case (RFC 4343); a name that has records of some
type, or names below it, is NODATA for all other types, where CoreDNS has NXDOMAIN for some (RFC 8020).
"""

from typing import Final

from topodns.dns.name import is_below_any, is_part_of_reverse, reverse_address
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes import nameservers
from topodns.plugins.kubernetes.endpoints import FAMILY_OF_TYPE
from topodns.plugins.kubernetes.namespaces import exposes
from topodns.plugins.kubernetes.not_ready import confirmed
from topodns.plugins.kubernetes.parse import (
    SCHEMA_VERSION,
    Fixed,
    NamespaceNode,
    PodName,
    ServiceName,
    ZonalName,
    parse,
)
from topodns.plugins.kubernetes.pods import answer_pod, missing_of_pods
from topodns.plugins.kubernetes.question import NAME_ERRORS, NO_DATA, Answer, Missing, NameOrAddress, ZoneQuestion
from topodns.plugins.kubernetes.reverse import answer_address
from topodns.plugins.kubernetes.services import answer_service
from topodns.plugins.kubernetes.zone import KubernetesZone

_VERSION: Final = Answer(
    rdatas=(bytes((len(SCHEMA_VERSION),)) + SCHEMA_VERSION.encode(),),
    ttl=28800,  # whatever `ttl` says (CoreDNS)
)
_NO_NAME: Final = NAME_ERRORS[Missing.NAME]


def name_of(kubernetes: KubernetesZone, question: ZoneQuestion) -> NameOrAddress:
    """What the qname of this question is."""
    origin = question.origin
    if _may_be_reverse(question) and (address := reverse_address(question.qname)) is not None:
        return address
    name = parse(question.labels, origin.multicluster, kubernetes.settings.zonal)
    return None if origin.reverse and not isinstance(name, Fixed) else name


def answer(kubernetes: KubernetesZone, name: NameOrAddress, question: ZoneQuestion) -> Answer:
    """The answer to this question, whose qname is `name`, of any type but SOA.

    Raises BadOption for a malformed Client Subnet from a trusted source, where the client's location counts.
    """
    if isinstance(name, ServiceName) or isinstance(name, ZonalName):  # noqa: SIM101 - most are the first
        found = answer_service(kubernetes, name, question)
    elif name is None:
        found = NO_DATA if _may_be_reverse(question) and _is_above_addresses(kubernetes, question) else _NO_NAME
    elif isinstance(name, PodName):
        found = answer_pod(kubernetes, name, question)
    elif isinstance(name, bytes):
        found = answer_address(kubernetes, name, question.qtype)
    elif isinstance(name, Fixed):
        found = _answer_fixed(kubernetes, name, question)
    else:
        found = _answer_namespace(kubernetes, name)
    return found if kubernetes.state.synced else confirmed(found)


def falls_through(kubernetes: KubernetesZone, question: ZoneQuestion) -> bool:
    """Whether the next plugin answers for this name if it does not exist here."""
    return is_below_any(question.qname, kubernetes.settings.fallthrough)


def _answer_fixed(kubernetes: KubernetesZone, name: Fixed, question: ZoneQuestion) -> Answer:
    if name is Fixed.DNS_VERSION and question.qtype == RRType.TXT:
        return _VERSION
    if name is Fixed.NS_DNS and question.qtype in FAMILY_OF_TYPE:
        return nameservers.server_addresses(kubernetes, question)
    if name is Fixed.APEX and question.qtype == RRType.NS:
        return nameservers.name_servers(kubernetes, question)
    return NO_DATA


def _answer_namespace(kubernetes: KubernetesZone, node: NamespaceNode) -> Answer:
    if node.pods:
        missing = missing_of_pods(kubernetes, node.namespace)
    else:
        missing = None if exposes(kubernetes.settings, kubernetes.state, node.namespace) else Missing.NAMESPACE
    return NO_DATA if missing is None else NAME_ERRORS[missing]


def _may_be_reverse(question: ZoneQuestion) -> bool:
    return question.origin.reverse or question.qtype == RRType.PTR or not question.origin.name


def _is_above_addresses(kubernetes: KubernetesZone, question: ZoneQuestion) -> bool:
    """Whether reverse names of addresses may be below this one, which NXDOMAIN would deny as well (RFC 8020).

    Such names get NODATA: right for empty non-terminals, harmless for names with nothing below; no index
    distinguishes them. With `fallthrough` the next plugin may know such a name.
    """
    return is_part_of_reverse(question.qname) and not falls_through(kubernetes, question)
