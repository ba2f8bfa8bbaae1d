"""The rules as objects: each looks at a query on its way down, changes it where it matches, and says whether it did."""

from collections.abc import Callable, Iterable
from typing import assert_never

from topodns.resolve.chase import Chase
from topodns.resolve.rewrite.amendments import OwnerRenaming, RcodeChange, TtlBounds, ValueRenaming
from topodns.resolve.rewrite.options import OptionChange
from topodns.resolve.rewrite.passage import Amendment, Passage
from topodns.resolve.rewrite.renaming import Rename, matcher, pattern_renaming, renaming, suffix_renaming, turning_back
from topodns.resolve.rewrite.targets import TargetChange
from topodns.settings.rewrite import (
    AnswerRule,
    Change,
    ClassRule,
    CnameRule,
    Comparison,
    Match,
    NameRule,
    OptionRule,
    Part,
    RcodeRule,
    TtlRule,
    TypeRule,
)

Rule = Callable[[Passage], bool]
"""Whether it matched. May raise BadName."""

_BASIC_RCODES = 16  # those that fit into the header; more needs the client's EDNS (RFC 6891 section 6.1.3)


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
    """The name replaced; and turned back in the answer where the rule is exact or says `answer auto`."""

    def __init__(self, rule: NameRule) -> None:
        self._rename = renaming(rule.match, rule.replacement)
        by_suffix = rule.match.comparison is Comparison.SUFFIX
        self._turns_back = rule.match.comparison is Comparison.EXACT or (rule.auto and not by_suffix)
        self._amendments: tuple[Amendment, ...] = tuple(map(_answer_amendment, rule.answers))
        if rule.auto and by_suffix:  # for whatever name the answer holds, not for the one asked only
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


def _response_change(match: Match, amendment: Amendment) -> Rule:
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
