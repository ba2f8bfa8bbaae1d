"""Services of type ExternalName: a CNAME, and what stands behind it where addresses are asked for.

A target under another origin is left to the caller, who is told by `Resolution.chase`.
"""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from topodns.dns.message import Rcode, RRset, RRType
from topodns.dns.names import BadName, Name, is_subdomain, name_wire, parse_name
from topodns.resolve.chase import owned
from topodns.resolve.origins import Question, question_of
from topodns.resolve.step import Resolution
from topodns.resolve.verdict import NXDOMAIN, Facts, found, name_error, no_data

Inside = Callable[[Question], Resolution]

_MAX_CNAMES: Final = 10  # followed before one more is dropped, as CoreDNS
_CHASED: Final = frozenset({int(RRType.A), int(RRType.AAAA)})


class ExternalNames:
    """`inside` resolves a question under its origin."""

    def __init__(self, ttl: int, inside: Inside) -> None:
        self._ttl = ttl
        self._inside = inside

    def respond(self, external_name: str, question: Question, facts: Facts) -> Resolution:
        """The CNAME to `external_name`, with the target's addresses where asked for; NODATA for types beyond these.

        A value that is an address or no name at all makes a Service that does not exist.
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

    def _follow_inside(self, target: Name, cname: RRset, question: Question, facts: Facts) -> Resolution:
        """A target that gives nothing takes its CNAME with it (CoreDNS): NODATA, though not while unsure."""
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
    """The name that a Service's externalName stands for; None for an address, an empty or a malformed one."""
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
