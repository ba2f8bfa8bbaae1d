"""The `rewrite` directive as an around: the query through the rules, the response back through what they left."""

from collections.abc import Iterable
from typing import Final

from topodns.dns.message import Ede, EdeCode, Query, Rcode, Response, RRset
from topodns.dns.names import BadName, name_text
from topodns.resolve.chase import Chase
from topodns.resolve.rewrite.options import restore_subnet
from topodns.resolve.rewrite.passage import Passage, Returning
from topodns.resolve.rewrite.rules import build_rule
from topodns.resolve.step import Answered, Below, Client, Resolution, Scope, settled
from topodns.settings.rewrite import RewriteRule

_PLUGIN: Final = "rewrite"


class Rewriter:
    """All `rewrite` directives of a block, in order.

    `chase` asks the listener about the new target of a CNAME; None leaves CNAMEs alone. `server_address` is the packed
    address that the listener is bound to, b"" where it listens on all: rules with {server_ip} then never match, as in
    CoreDNS over UDP.
    """

    def __init__(self, rules: Iterable[RewriteRule], chase: Chase | None = None, server_address: bytes = b"") -> None:
        self._rules = [(build_rule(rule.change, chase, server_address), rule.continues) for rule in rules]

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The resolution for what the rules make of the query. SERVFAIL where that, or the answer, has a name that is
        too long or malformed.
        """
        passage = Passage(query, client, name_text(query.qname))
        try:
            matched = self._apply(passage)
        except BadName as problem:
            return _failed(problem)
        if not matched:
            return below(query, client)
        answered = below(passage.query, client)
        if not passage.leaves_traces:
            return answered
        if passage.waits or not isinstance(answered, Resolution):
            return _return_later(passage, answered, query)
        return _return(passage, answered, query)

    def _apply(self, passage: Passage) -> bool:
        """Whether any rule matched."""
        matched = False
        for rule, continues in self._rules:
            if not rule(passage):
                continue
            matched = True
            if not continues:
                break
        return matched


def _return(passage: Passage, resolution: Resolution, query: Query) -> Resolution:
    returning = _begin(passage, resolution)
    try:
        for amend in reversed(passage.amendments):
            amend(returning)
    except BadName as problem:
        return _failed(problem)
    return _end(passage, resolution, query)


async def _return_later(passage: Passage, answered: Answered, query: Query) -> Resolution:
    resolution = await settled(answered)
    returning = _begin(passage, resolution)
    try:
        for amend in reversed(passage.amendments):
            waiting = amend(returning)
            if waiting is not None:
                await waiting
    except BadName as problem:
        return _failed(problem)
    return _end(passage, resolution, query)


def _begin(passage: Passage, resolution: Resolution) -> Returning:
    """The response with its owners spelled out: an RRset's b"" meant the name that was asked below."""
    returning = Returning(resolution)
    if passage.renamed:
        asked = passage.query.spelling
        returning.replace(lambda rrset: rrset if rrset.owner else rrset._replace(owner=asked))
    return returning


def _end(passage: Passage, resolution: Resolution, query: Query) -> Resolution:
    """The response in terms of the client's own query."""
    response = resolution.response
    if passage.renamed:
        own = query.spelling.lower()  # a length octet, 63 at most, is no letter
        Returning(resolution).replace(lambda rrset: _reowned(rrset, own))
    if passage.subnet_changed:
        restore_subnet(response, query.edns)
    if passage.client_dependent:
        resolution.scope = Scope.CLIENT
    return resolution


def _reowned(rrset: RRset, own: bytes) -> RRset:
    return rrset._replace(owner=b"") if rrset.owner.lower() == own else rrset


def _failed(problem: BadName) -> Resolution:
    ede = Ede(EdeCode.OTHER, f"rewrite gives no valid name: {problem}")
    return Resolution(Response(Rcode.SERVFAIL, flags=0, ede=ede), _PLUGIN, Scope.CLIENT)
