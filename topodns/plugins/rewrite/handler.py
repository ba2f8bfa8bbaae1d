"""The `rewrite` plugin: applies the rules to a query, and their amendments in reverse order to its response."""

from collections.abc import Iterable
from typing import Final

from topodns.dns.message import Ede, EdeCode, Query, Response, RRset
from topodns.dns.name import BadName, name_text
from topodns.dns.rrtype import Rcode
from topodns.plugins.rewrite.edns_rules import restore_subnet
from topodns.plugins.rewrite.rules import RcodeChange, TtlBounds, ValueRenaming, build_rule
from topodns.plugins.rewrite.settings import RewriteRule
from topodns.plugins.rewrite.transaction import LONGEST_BY_SHORTEST, Passage, Returning
from topodns.query.cname import Chase
from topodns.query.plugin import ANY_SIZE, Answered, Below, Client, Resolution, Scope, settled

_PLUGIN: Final = "rewrite"
_NEVER_SHORTER: Final = (TtlBounds, RcodeChange)  # amendments that never shorten a response


class Rewriter:
    """All `rewrite` directives of a server block, in order.

    `chase` queries the listener for the new target of a CNAME; None leaves CNAMEs alone. `server_address` is the packed
    address that the listener is bound to, b"" for all addresses: rules with {server_ip} then never match, as in CoreDNS
    over UDP.
    """

    def __init__(self, rules: Iterable[RewriteRule], chase: Chase | None = None, server_address: bytes = b"") -> None:
        self._rules = [(build_rule(rule.change, chase, server_address), rule.continues) for rule in rules]

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The resolution of the rewritten query. SERVFAIL if a rewritten name in it or in the answer is invalid."""
        passage = Passage(query, client, name_text(query.qname))
        try:
            matched = self._apply(passage)
        except BadName as problem:
            return _failed(problem)
        if not matched:
            return below(query, client)
        if not all(isinstance(each, _NEVER_SHORTER) for each in passage.amendments):
            # Rewriting may shorten names, so that more records fit than the plugins below reckon with.
            client = client._replace(limit=client.limit * LONGEST_BY_SHORTEST)
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
    """The response, with owners of b"" (the rewritten name) spelled out if a name rule matched."""
    returning = Returning(resolution, _limit(passage))
    if passage.renamed:
        asked = passage.query.spelling
        returning.replace(lambda rrset: rrset if rrset.owner else rrset._replace(owner=asked))
    return returning


def _limit(passage: Passage) -> int:
    """Size in octets up to which the first value renaming must go, since later ones may shorten the records."""
    if passage.waits:
        return ANY_SIZE
    others = sum([isinstance(each, ValueRenaming) for each in passage.amendments]) - 1
    factor: int = LONGEST_BY_SHORTEST ** max(0, others)
    return passage.client.limit * factor


def _end(passage: Passage, resolution: Resolution, query: Query) -> Resolution:
    """The response adapted to the client's own query."""
    response = resolution.response
    if passage.renamed:
        own = query.spelling.lower()  # length octets, at most 63, are no letters
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
