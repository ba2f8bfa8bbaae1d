"""The `cname` rule: replaces the target of a CNAME in the answer, and looks up the new target."""

from collections.abc import Iterable

from topodns.dns.message import Flag, Query, RRset
from topodns.dns.name import Name, name_text, name_wire, parse_name, wire_labels
from topodns.dns.rrtype import RRType
from topodns.plugins.rewrite.names import Rename, renaming
from topodns.plugins.rewrite.response import RewrittenResponse
from topodns.plugins.rewrite.rewritten_query import RewrittenQuery
from topodns.plugins.rewrite.settings import CnameRule
from topodns.query.cname import Chase, owned
from topodns.query.plugin import Client, Dropped, Resolution, Scope, settled


class TargetChange:
    """A `cname` rule. It matches every query, as the answer is not known yet.

    `chase` sends a query for the new target to the listener, as in CoreDNS; None leaves CNAMEs alone.
    """

    def __init__(self, rule: CnameRule, chase: Chase | None) -> None:
        self._rename = renaming(rule.match, rule.replacement)
        self._chase = chase

    def __call__(self, rewritten: RewrittenQuery) -> bool:
        query, client, reverter = rewritten.query, rewritten.client, rewritten.reverter
        reverter.amendments.append(lambda response: self._amend(response, query, client))
        reverter.waits = True
        return True

    async def _amend(self, rewritten: RewrittenResponse, query: Query, client: Client) -> None:
        """Replace the answer by its CNAMEs up to and including the first whose target changes, and the answer for the
        new target.

        Other records are dropped, since they may belong to the old target. Without such a CNAME, or
        without an answer of the listener, the response is left unchanged. The rcode is never changed (as in CoreDNS).
        """
        response = rewritten.resolution.response
        changed = _changed(response.answer, self._rename)
        if changed is None:
            return
        kept, target = changed
        looked_up = await self._look_up(target, query, client)
        if looked_up is None:
            return
        response.answer = (*kept, *owned(looked_up.response.answer, name_wire(target)))
        response.flags = response.flags & ~Flag.TC | looked_up.response.flags & Flag.TC
        # The target's answer may age or depend on the client, and its scope is not known here.
        rewritten.resolution.scope = Scope.CLIENT

    async def _look_up(self, target: Name, query: Query, client: Client) -> Resolution | None:
        answered = None
        try:
            answered = None if self._chase is None else self._chase(target, query.qtype, client)
            return None if answered is None else await settled(answered)
        except Dropped:  # `acl` drops the target's query; the client's own was allowed
            return None


def _changed(answer: Iterable[RRset], rename: Rename) -> tuple[list[RRset], Name] | None:
    """The CNAMEs up to and including the first whose target changes, with its new target, and that target.

    None if no target changes. May raise BadName.
    """
    kept: list[RRset] = []
    for rrset in answer:
        if rrset.rtype != RRType.CNAME:
            continue
        renamed = rename(name_text(wire_labels(rrset.rdatas[0])).lower())
        if renamed is not None:
            target = parse_name(renamed)
            return [*kept, rrset._replace(rdatas=(name_wire(target),))], target
        kept.append(rrset)
    return None
