"""The `cname` rule: a CNAME's target replaced, and what stands behind the new one looked up."""

from collections.abc import Iterable

from topodns.dns.message import Flag, Query, RRset, RRType
from topodns.dns.names import Name, name_text, name_wire, parse_name, wire_labels
from topodns.resolve.chase import Chase, owned
from topodns.resolve.rewrite.passage import Passage, Returning
from topodns.resolve.rewrite.renaming import Rename, renaming
from topodns.resolve.step import Client, Dropped, Resolution, Scope, settled
from topodns.settings.rewrite import CnameRule


class TargetChange:
    """A rule for every query: what its answer will hold is not known yet. `chase` asks the listener anew (CoreDNS)."""

    def __init__(self, rule: CnameRule, chase: Chase | None) -> None:
        self._rename = renaming(rule.match, rule.replacement)
        self._chase = chase

    def __call__(self, passage: Passage) -> bool:
        query, client = passage.query, passage.client
        passage.amendments.append(lambda returning: self._amend(returning, query, client))
        passage.waits = True
        return True

    async def _amend(self, returning: Returning, query: Query, client: Client) -> None:
        """The CNAMEs up to the first whose target is replaced, and then the answer for the new target.

        Other records before it are dropped, since they may be the old target's. Where the listener has no answer, the
        response stays what it was. The rcode stays in any case (CoreDNS).
        """
        response = returning.resolution.response
        changed = _changed(response.answer, self._rename)
        if changed is None:
            return
        kept, target = changed
        looked_up = await self._look_up(target, query, client)
        if looked_up is None:
            return
        response.answer = (*kept, *owned(looked_up.response.answer, name_wire(target)))
        response.flags = response.flags & ~Flag.TC | looked_up.response.flags & Flag.TC
        # What stands there may age, or differ by client, which nobody says here.
        returning.resolution.scope = Scope.CLIENT

    async def _look_up(self, target: Name, query: Query, client: Client) -> Resolution | None:
        answered = None
        try:
            answered = None if self._chase is None else self._chase(target, query.qtype, client)
            return None if answered is None else await settled(answered)
        except Dropped:  # the acl's word on the target; the client's own name was allowed
            return None


def _changed(answer: Iterable[RRset], rename: Rename) -> tuple[list[RRset], Name] | None:
    """The CNAMEs up to the one that gets a new target, and that target; None where none does. May raise BadName."""
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
