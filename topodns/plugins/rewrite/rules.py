"""Rules as callables: each rewrites a query that it matches, adds amendments for the response, and returns a match."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from topodns.dns.message import RRset
from topodns.dns.rrtype import RRType
from topodns.dns.wire_format import POINTER_RECORD_HEAD_SIZE
from topodns.plugins.rewrite.cname_rule import TargetChange
from topodns.plugins.rewrite.edns_rules import OptionChange
from topodns.plugins.rewrite.names import (
    Rename,
    matcher,
    pattern_renaming,
    renamed_wire,
    renaming,
    suffix_renaming,
    turning_back,
)
from topodns.plugins.rewrite.settings import (
    AnswerRule,
    Change,
    ClassRule,
    CnameRule,
    Comparison,
    NameMatch,
    NameRule,
    OptionRule,
    Part,
    RcodeRule,
    TtlRule,
    TypeRule,
)
from topodns.plugins.rewrite.transaction import LONGEST_BY_SHORTEST, Amendment, Passage, Returning
from topodns.query.cname import Chase
from topodns.query.plugin import ANY_SIZE

_NAPTR_STRINGS: Final = 3  # FLAGS, SERVICES and REGEXP, behind ORDER and PREFERENCE (RFC 3403 section 4.1)
_NAME_AT: Final[Mapping[int, int]] = {  # octet in the RDATA where the name for `answer value` begins
    RRType.NS: 0,
    RRType.CNAME: 0,
    RRType.SOA: 0,  # MNAME, not RNAME, as in CoreDNS
    RRType.PTR: 0,
    RRType.MX: 2,
    RRType.SRV: 6,
    RRType.NAPTR: 4,
    RRType.DNAME: 0,
}


@dataclass(frozen=True, slots=True)
class OwnerRenaming:
    rename: Rename

    def __call__(self, returning: Returning) -> None:
        returning.replace(lambda rrset: rrset._replace(owner=renamed_wire(rrset.owner, self.rename)))


@dataclass(frozen=True, slots=True)
class ValueRenaming:
    rename: Rename

    def __call__(self, returning: Returning) -> None:
        """Rename values until the response is full; the rest is dropped, as renaming thousands takes 10 us each."""
        response, room = returning.resolution.response, returning.limit
        returning.limit //= LONGEST_BY_SHORTEST
        answer = []
        for rrset in response.answer:
            renamed, room = self._renamed(rrset, room)
            answer.append(renamed)
            if room < 0:
                response.answer, response.authority, response.additional = tuple(answer), (), ()
                return
        response.answer = tuple(answer)
        response.authority = tuple(self._renamed(rrset, ANY_SIZE)[0] for rrset in response.authority)
        response.additional = tuple(self._renamed(rrset, ANY_SIZE)[0] for rrset in response.additional)

    def _renamed(self, rrset: RRset, room: int) -> tuple[RRset, int]:
        """The RRset up to the first record that does not fit, and the octets left (negative if one does not fit).

        An RRset of a type without names stays whole, so that a cached reply can rotate all its addresses.
        """
        rtype, rdatas = rrset.rtype, list[bytes]()
        if rtype not in _NAME_AT:
            return rrset, room - sum(map(len, rrset.rdatas)) - POINTER_RECORD_HEAD_SIZE * len(rrset.rdatas)
        for rdata in rrset.rdatas:
            rdatas.append(rename_value(rtype, rdata, self.rename))
            room -= POINTER_RECORD_HEAD_SIZE + len(rdatas[-1])
            if room < 0:
                break
        return rrset._replace(rdatas=tuple(rdatas)), room


def rename_value(rtype: int, rdata: bytes, rename: Rename) -> bytes:
    """RDATA of a type of `Part.VALUE` with its name renamed. Raises BadName if the new name is invalid."""
    start = _NAME_AT[rtype]
    if rtype == RRType.NAPTR:
        for _ in range(_NAPTR_STRINGS):
            start += 1 + rdata[start]
    end = start
    while rdata[end]:
        end += 1 + rdata[end]
    end += 1
    return rdata[:start] + renamed_wire(rdata[start:end], rename) + rdata[end:]


@dataclass(frozen=True, slots=True)
class TtlBounds:
    low: int
    high: int

    def __call__(self, returning: Returning) -> None:
        returning.replace(lambda rrset: rrset._replace(ttl=min(max(rrset.ttl, self.low), self.high)))


@dataclass(frozen=True, slots=True)
class RcodeChange:
    decided: int
    instead: int

    def __call__(self, returning: Returning) -> None:
        response = returning.resolution.response
        if response.rcode == self.decided:
            response.rcode = self.instead


Rule = Callable[[Passage], bool]
"""Applies the rule to a query; whether it matched. May raise BadName."""

_BASIC_RCODES = 16  # rcodes that fit into the header; others need the client's EDNS (RFC 6891 section 6.1.3)


def build_rule(change: Change, chase: Chase | None, server_address: bytes) -> Rule:
    match change:
        case NameRule():
            return NameChange(change)
        case TypeRule():
            return _type_change(change)
        case ClassRule():
            return _class_change(change)
        case TtlRule():
            return _response_change(change.match, TtlBounds(change.low, change.high))
        case RcodeRule():
            return _rcode_change(change)
        case CnameRule():
            return TargetChange(change, chase)
        case OptionRule():
            return OptionChange(change, server_address)
        case _:
            assert_never(change)


class NameChange:
    """A `name` rule. It reverts the name in the answer if it is exact or has `answer auto`."""

    def __init__(self, rule: NameRule) -> None:
        self._rename = renaming(rule.match, rule.replacement)
        by_suffix = rule.match.comparison is Comparison.SUFFIX
        self._turns_back = rule.match.comparison is Comparison.EXACT or (rule.auto and not by_suffix)
        self._amendments: tuple[Amendment, ...] = tuple(map(_answer_amendment, rule.answers))
        if rule.auto and by_suffix:  # for all names in the answer, not only the queried one
            self._amendments = (*_both(suffix_renaming(rule.replacement, rule.match.text)), *self._amendments)

    def __call__(self, passage: Passage) -> bool:
        name = passage.name
        renamed = self._rename(name)
        if renamed is None:
            return False
        passage.rename(renamed)
        if self._turns_back:
            passage.amendments.extend(_both(turning_back(passage.name, name)))
        passage.amendments.extend(self._amendments)
        return True


def _both(rename: Rename) -> Iterable[Amendment]:
    return OwnerRenaming(rename), ValueRenaming(rename)


def _answer_amendment(rule: AnswerRule) -> Amendment:
    rename = pattern_renaming(rule.pattern, rule.replacement)
    return OwnerRenaming(rename) if rule.part is Part.OWNER else ValueRenaming(rename)


def _type_change(rule: TypeRule) -> Rule:
    def change(passage: Passage) -> bool:
        if passage.query.qtype != rule.asked:
            return False
        passage.query = passage.query._replace(qtype=rule.instead)
        return True

    return change


def _class_change(rule: ClassRule) -> Rule:
    def change(passage: Passage) -> bool:
        if passage.query.qclass != rule.asked:
            return False
        passage.query = passage.query._replace(qclass=rule.instead)
        return True

    return change


def _response_change(match: NameMatch, amendment: Amendment) -> Rule:
    matches = matcher(match)

    def change(passage: Passage) -> bool:
        if not matches(passage.name):
            return False
        passage.amendments.append(amendment)
        return True

    return change


def _rcode_change(rule: RcodeRule) -> Rule:
    change = _response_change(rule.match, RcodeChange(rule.decided, rule.instead))
    if rule.instead < _BASIC_RCODES:
        return change
    return lambda passage: passage.asked_with_edns and change(passage)
