"""Rules as callables: each rewrites a query that it matches, adds amendments for the response, and returns whether it
matched.
"""

from collections.abc import Callable, Iterable
from typing import assert_never

from topodns.plugins.rewrite.cname_rule import TargetChange
from topodns.plugins.rewrite.edns_rules import OptionChange
from topodns.plugins.rewrite.names import (
    Rename,
    matcher,
    pattern_renaming,
    renaming,
    reverting,
    suffix_renaming,
)
from topodns.plugins.rewrite.response import Amendment, OwnerRenaming, RcodeChange, TtlBounds, ValueRenaming
from topodns.plugins.rewrite.rewritten_query import RewrittenQuery
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
from topodns.query.cname import Chase

Rule = Callable[[RewrittenQuery], bool]
"""Applies the rule to a query and returns whether it matched. May raise BadName."""

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
    """A `name` rule. Names in the response are renamed back if the rule is exact or has `answer auto`."""

    def __init__(self, rule: NameRule) -> None:
        self._rename = renaming(rule.match, rule.replacement)
        by_suffix = rule.match.comparison is Comparison.SUFFIX
        self._reverts = rule.match.comparison is Comparison.EXACT or (rule.auto and not by_suffix)
        self._amendments: tuple[Amendment, ...] = tuple(map(_answer_amendment, rule.answers))
        if rule.auto and by_suffix:  # for all names in the answer, not only the queried one
            self._amendments = (*_both(suffix_renaming(rule.replacement, rule.match.text)), *self._amendments)

    def __call__(self, rewritten: RewrittenQuery) -> bool:
        name = rewritten.name
        renamed = self._rename(name)
        if renamed is None:
            return False
        rewritten.rename(renamed)
        amendments = rewritten.reverter.amendments
        if self._reverts:
            amendments.extend(_both(reverting(rewritten.name, name)))
        amendments.extend(self._amendments)
        return True


def _both(rename: Rename) -> Iterable[Amendment]:
    return OwnerRenaming(rename), ValueRenaming(rename)


def _answer_amendment(rule: AnswerRule) -> Amendment:
    rename = pattern_renaming(rule.pattern, rule.replacement)
    return OwnerRenaming(rename) if rule.part is Part.OWNER else ValueRenaming(rename)


def _type_change(rule: TypeRule) -> Rule:
    def change(rewritten: RewrittenQuery) -> bool:
        if rewritten.query.qtype != rule.asked:
            return False
        rewritten.query = rewritten.query._replace(qtype=rule.instead)
        return True

    return change


def _class_change(rule: ClassRule) -> Rule:
    def change(rewritten: RewrittenQuery) -> bool:
        if rewritten.query.qclass != rule.asked:
            return False
        rewritten.query = rewritten.query._replace(qclass=rule.instead)
        return True

    return change


def _response_change(match: NameMatch, amendment: Amendment) -> Rule:
    matches = matcher(match)

    def change(rewritten: RewrittenQuery) -> bool:
        if not matches(rewritten.name):
            return False
        rewritten.reverter.amendments.append(amendment)
        return True

    return change


def _rcode_change(rule: RcodeRule) -> Rule:
    change = _response_change(rule.match, RcodeChange(rule.decided, rule.instead))
    if rule.instead < _BASIC_RCODES:
        return change
    return lambda rewritten: rewritten.reverter.query.edns is not None and change(rewritten)
