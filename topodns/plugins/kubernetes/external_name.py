"""Services of type ExternalName: a CNAME record and, for A and AAAA queries, the records of its target.

`plugins.kubernetes.handler` follows a target under the origin, `query.cname` any other.
"""

from ipaddress import ip_address

from topodns.dns.name import BadName, Name, is_subdomain, name_wire, parse_name
from topodns.dns.rrtype import ADDRESS_TYPES, RRType
from topodns.plugins.kubernetes.question import NAME_ERRORS, NO_DATA, Answer, Missing, ZoneQuestion


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
