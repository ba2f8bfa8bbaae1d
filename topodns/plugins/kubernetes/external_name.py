"""Services of type ExternalName: a CNAME record and, for A and AAAA queries, the records of its target.

A target outside the origin is left to the caller, in `Resolution.chase`.
"""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from topodns.dns.message import RRset
from topodns.dns.name import BadName, Name, is_subdomain, name_wire, parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes.records import NXDOMAIN, Facts, found, name_error, no_data
from topodns.plugins.kubernetes.zones import ZoneQuestion, question_of
from topodns.query.cname import owned
from topodns.query.plugin import Resolution

Inside = Callable[[ZoneQuestion], Resolution]

_MAX_CNAMES: Final = 10  # followed in a row, as CoreDNS
_CHASED: Final = frozenset({int(RRType.A), int(RRType.AAAA)})


class ExternalNames:
    """`inside` answers a question for a target under the origin."""

    def __init__(self, ttl: int, inside: Inside) -> None:
        self._ttl = ttl
        self._inside = inside

    def respond(self, external_name: str, question: ZoneQuestion, facts: Facts) -> Resolution:
        """The CNAME to `external_name`, with the target's records for A and AAAA; NODATA for other types.

        A value that is an address or not a name makes the Service nonexistent.
        """
        target = target_of(external_name)
        if target is None:
            return name_error(facts)
        qtype = question.query.qtype
        cname = RRset(b"", RRType.CNAME, self._ttl, (name_wire(target),))
        if qtype == RRType.CNAME:
            return found(facts, (cname,))
        if qtype not in _CHASED or is_subdomain(target, question.query.qname):
            return no_data(facts)
        if is_subdomain(target, question.origin.name):
            return self._follow_inside(target, cname, question, facts)
        resolution = found(facts, (cname,))
        resolution.chase = target
        return resolution

    def _follow_inside(self, target: Name, cname: RRset, question: ZoneQuestion, facts: Facts) -> Resolution:
        """The CNAME with its target's records; NODATA if those do not exist (CoreDNS), SERVFAIL if unsure."""
        seen = (*question.seen, question.query.qname)
        if target in seen or len(seen) > _MAX_CNAMES + 1:
            return no_data(facts)
        query = question.query._replace(qname=target, spelling=name_wire(target))
        resolution = self._inside(question_of(query, question.client, question.origin, seen))
        response = resolution.response
        resolution.facts = (*facts, *resolution.facts)
        if response.rcode == NXDOMAIN:
            response.rcode = Rcode.NOERROR
        if response.answer:
            response.answer = (cname, *owned(response.answer, query.spelling))
        return resolution


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
