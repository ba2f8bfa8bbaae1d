"""The `rewrite` plugin: applies the rules to a query; `response` adapts the response of the plugins below.

Rules are callables: each rewrites a query that it matches, adds amendments for the response, and returns whether it
matched. Names are compared and replaced as text, as defined in `plugins.rewrite.settings`. A `cname` rule replaces the
target of a CNAME in the answer, and looks up the new target. An `edns0` rule changes EDNS options of the query, which
the plugins below see, and which `forward` sends to its upstreams.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, assert_never

from topodns.dns.message import Edns, Flag, Option, Query, Response, RRset
from topodns.dns.name import BadName, Name, name_text, name_wire, parse_name, wire_labels
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.rewrite.response import (
    LONGEST_BY_SHORTEST,
    Amendment,
    OptionReverting,
    OwnerRenaming,
    RcodeChange,
    Rename,
    ResponseReverter,
    RewrittenResponse,
    TtlBounds,
    ValueRenaming,
    invalid_name,
)
from topodns.plugins.rewrite.settings import (
    AnswerRule,
    Change,
    ClassRule,
    CnameRule,
    Comparison,
    MetadataVariable,
    NameMatch,
    NameRule,
    OptionAction,
    OptionRule,
    OptionVariable,
    Part,
    RcodeRule,
    RewriteRule,
    Subnet,
    TtlRule,
    TypeRule,
)
from topodns.query.cname import Chase, owned
from topodns.query.metadata import ReaderOf, no_value, without_metadata
from topodns.query.plugin import Answered, Below, Client, Dropped, ForwardedOption, Resolution, Scope, settled
from topodns.query.regex import compile_pattern


class RewrittenQuery:
    """The query as rewritten by the rules so far."""

    __slots__ = ("_name", "client", "own", "query", "reverter_if_any")

    def __init__(self, query: Query, client: Client) -> None:
        self.own = self.query = query  # `own`: as the client sent it
        self.client = client
        self.reverter_if_any: ResponseReverter | None = None  # None: no rule has something to change in the response
        self._name: str | None = None

    @property
    def name(self) -> str:
        """The name as lower-case text with the final dot; made on first use, as exact rules compare labels."""
        name = self._name
        if name is None:
            name = self._name = name_text(self.query.qname)
        return name

    @property
    def reverter(self) -> ResponseReverter:
        """Collects the changes to the response."""
        reverter = self.reverter_if_any
        if reverter is None:
            reverter = self.reverter_if_any = ResponseReverter(self.own, self.client)
        return reverter

    def rename(self, name: str) -> None:
        """Set the query's name, and note it for the response (`renamed`). Raises BadName if it is invalid."""
        labels = parse_name(name)
        self.query = self.query._replace(qname=labels, spelling=name_wire(labels))
        self._name = None
        self.reverter.renamed = True


Rule = Callable[[RewrittenQuery], bool]
"""Applies the rule to a query and returns whether it matched. May raise BadName."""

_GROUP: Final = re.compile(r"\{(0|[1-9][0-9]*)\}")
_BASIC_RCODES: Final = 16  # rcodes that fit into the header; others need the client's EDNS (RFC 6891 section 6.1.3)


class Rewriter:
    """All `rewrite` directives of a server block, in order.

    `chase` queries the listener for the new target of a CNAME; None leaves CNAMEs alone. `server_address` is the packed
    address that the listener is bound to, b"" for all addresses: rules with {server_ip} then never match, as in CoreDNS
    over UDP.
    """

    def __init__(
        self,
        rules: Iterable[RewriteRule],
        chase: Chase | None = None,
        server_address: bytes = b"",
        reader_of: ReaderOf = without_metadata,
    ) -> None:
        self._rules = [(build_rule(rule.change, chase, server_address, reader_of), rule.continues) for rule in rules]

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The resolution of the rewritten query, made one of the client's own query.

        If nothing of it is to be changed back, that of the plugins below. SERVFAIL if a rule gives an invalid name, in
        the query or in the response.
        """
        rewritten = RewrittenQuery(query, client)
        try:
            self._apply(rewritten)
        except BadName as problem:
            return invalid_name(problem)
        reverter = rewritten.reverter_if_any
        if reverter is None or not reverter.needed:
            return below(rewritten.query, client)
        if reverter.may_shorten:
            client = client._replace(limit=client.limit * LONGEST_BY_SHORTEST)
        answered = below(rewritten.query, client)
        if reverter.waits or not isinstance(answered, Resolution):
            return reverter.revert_later(answered, rewritten.query)
        return reverter.revert(answered, rewritten.query)

    def _apply(self, rewritten: RewrittenQuery) -> None:
        """Apply the rules up to the first match without `continues`."""
        for rule, continues in self._rules:
            if rule(rewritten) and not continues:
                break


def build_rule(change: Change, chase: Chase | None, server_address: bytes, reader_of: ReaderOf) -> Rule:
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
            return OptionChange(change, server_address, reader_of)
        case _:
            assert_never(change)


class NameChange:
    """A `name` rule. Names in the response are renamed back if the rule is exact or has `answer auto`."""

    def __init__(self, rule: NameRule) -> None:
        self._rename = renaming(rule.match, rule.replacement)
        by_suffix = rule.match.comparison is Comparison.SUFFIX
        exact = rule.match.comparison is Comparison.EXACT
        self._only = parse_name(rule.match.text) if exact else None  # the only name that matches
        self._reverts = exact or (rule.auto and not by_suffix)
        self._amendments: tuple[Amendment, ...] = tuple(map(_answer_amendment, rule.answers))
        if rule.auto and by_suffix:  # for all names in the answer, not only the queried one
            self._amendments = (*_both(suffix_renaming(rule.replacement, rule.match.text)), *self._amendments)

    def __call__(self, rewritten: RewrittenQuery) -> bool:
        if self._only is not None and rewritten.query.qname != self._only:
            return False
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
    return lambda rewritten: rewritten.own.edns is not None and change(rewritten)


def matcher(match: NameMatch) -> Callable[[str], bool]:
    """A predicate: whether a name matches, in lower case and with the final dot. A regular expression may match a part.

    Raises BadPattern for an invalid expression.
    """
    text = match.text
    match match.comparison:
        case Comparison.EXACT:
            return lambda name: name == text
        case Comparison.PREFIX:
            return lambda name: name.startswith(text)
        case Comparison.SUFFIX:
            return lambda name: name.endswith(text)
        case Comparison.SUBSTRING:
            return lambda name: text in name
        case Comparison.REGEX:
            pattern = compile_pattern(text)
            return lambda name: pattern.search(name) is not None


def renaming(match: NameMatch, replacement: str) -> Rename:
    """The renaming of lower-case names that match. All groups in a regular expression's replacement must exist."""
    text = match.text
    match match.comparison:
        case Comparison.EXACT:
            return lambda name: replacement if name == text else None
        case Comparison.PREFIX:
            return lambda name: replacement + name[len(text) :] if name.startswith(text) else None
        case Comparison.SUFFIX:
            return suffix_renaming(text, replacement)
        case Comparison.SUBSTRING:
            return lambda name: name.replace(text, replacement) if text in name else None
        case Comparison.REGEX:
            return pattern_renaming(text, replacement)


def suffix_renaming(suffix: str, replacement: str) -> Rename:
    """A function that replaces the lower-case `suffix` of names, compared case-insensitively."""

    def rename(name: str) -> str | None:
        return name[: len(name) - len(suffix)] + replacement if name.lower().endswith(suffix) else None

    return rename


def pattern_renaming(expression: str, replacement: str) -> Rename:
    """A function that replaces whole names in which the expression matches by the replacement, with {N} in it replaced
    by the text of group N.

    {N} in the text of a group is not replaced, since that text comes from the client.
    """
    pattern = compile_pattern(expression)
    literals, groups = _GROUP.split(replacement)[::2], [int(number) for number in _GROUP.findall(replacement)]

    def rename(name: str) -> str | None:
        found = pattern.search(name)
        if found is None:
            return None
        values = (found.group(number) or "" for number in groups)
        return literals[0] + "".join(value + literal for value, literal in zip(values, literals[1:], strict=True))

    return rename


def reverting(inner: str, outer: str) -> Rename:
    """A function that replaces the lower-case name `inner`, compared case-insensitively, by `outer`, also as the suffix
    of names below it.
    """
    below = "." + inner

    def rename(name: str) -> str | None:
        lower = name.lower()
        if lower == inner:
            return outer
        return name[: len(name) - len(inner)] + outer if lower.endswith(below) else None

    return rename


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

        Other records are dropped, since they may belong to the old target. A target in no server block has no answer.
        Without such a CNAME, or where the target's query is dropped, the response is left unchanged. The rcode is never
        changed. All as in CoreDNS.
        """
        response = rewritten.resolution.response
        changed = _changed_target(response.answer, self._rename)
        if changed is None or self._chase is None:
            return
        kept, target = changed
        try:
            answered = self._chase(target, query.qtype, client)
            found = (await settled(answered)).response if answered is not None else Response(Rcode.REFUSED)
        except Dropped:  # `acl` drops the target's query; the client's own was allowed
            return
        response.answer = (*kept, *owned(found.answer, name_wire(target)))
        response.flags = response.flags & ~Flag.TC | found.flags & Flag.TC
        # The target's answer may age or depend on the client, and its scope is not known here.
        rewritten.resolution.scope = Scope.CLIENT


def _changed_target(answer: Iterable[RRset], rename: Rename) -> tuple[list[RRset], Name] | None:
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


_UDP_PAYLOAD_SIZE: Final = 4096  # CoreDNS's, in the OPT record that it adds for a rule
_SAME_FOR_ALL: Final = frozenset({OptionVariable.QNAME, OptionVariable.QTYPE})

_Options = tuple[tuple[int, bytes], ...]


class OptionChange:
    """An `edns0` rule. `server_address`: the packed address of the socket, b"" if it is not bound to a single one."""

    def __init__(self, rule: OptionRule, server_address: bytes, reader_of: ReaderOf = without_metadata) -> None:
        self._rule = rule
        self._server_address = server_address
        self._read = reader_of(rule.data.label) if isinstance(rule.data, MetadataVariable) else no_value
        # A variable of metadata narrows the answers of the whole block: see `BlockSetup.vary_by_labels`.
        self._client_dependent = isinstance(rule.data, Subnet) or (
            isinstance(rule.data, OptionVariable) and rule.data not in _SAME_FOR_ALL
        )

    def __call__(self, rewritten: RewrittenQuery) -> bool:
        """Apply the rule, and return whether it matched.

        As in CoreDNS, the query then has an OPT record even if no option changed, except where the rule's variable has
        no value.
        """
        rule, query, reverter = self._rule, rewritten.query, rewritten.reverter
        data = self._data(query, rewritten)
        if data is None:
            return False
        edns = query.edns or Edns(_UDP_PAYLOAD_SIZE, 0, False)
        options, matched = _changed_options(edns.options, rule, data)
        rewritten.query = query._replace(edns=edns._replace(options=options))
        if rule.action is OptionAction.UNSET:
            return True
        reverter.subnet_forwarded |= rule.code == Option.CLIENT_SUBNET
        if matched:
            reverter.client_dependent |= self._client_dependent
            if rule.revert:
                reverter.amendments.append(OptionReverting(rule.code, edns.option(rule.code)))
        return matched

    def _data(self, query: Query, rewritten: RewrittenQuery) -> bytes | None:
        """The option's data; None if the rule's variable has no value. Metadata is that of the client's own query."""
        data, client = self._rule.data, rewritten.client
        if isinstance(data, bytes):
            return data
        if isinstance(data, Subnet):
            return subnet_data(client.address, data)
        if isinstance(data, MetadataVariable):
            return (self._read(rewritten.own, client) or "").encode() or None
        if data is OptionVariable.SERVER_IP:
            return self._server_address or None
        return variable_data(data, query, client)


def _changed_options(options: _Options, rule: OptionRule, data: bytes) -> tuple[_Options, bool]:
    """The options after the rule, and whether it matched. `unset` always matches, as in CoreDNS.

    `append` keeps an option of the client and sends it on. As in CoreDNS, constant data is appended nevertheless.
    """
    code, new = rule.code, ForwardedOption(rule.code, data)
    found = any(option[0] == code for option in options)
    match rule.action:
        case OptionAction.UNSET:
            return tuple(option for option in options if option[0] != code), True
        case OptionAction.APPEND:
            kept = tuple(ForwardedOption(*option) if option[0] == code else option for option in options)
            return (kept, False) if found and not isinstance(rule.data, bytes) else ((*kept, new), True)
        case OptionAction.REPLACE if not found:
            return options, False
        case _:
            at = next((at for at, option in enumerate(options) if option[0] == code), len(options))
            return (*options[:at], new, *(option for option in options[at:] if option[0] != code)), True


def variable_data(variable: OptionVariable, query: Query, client: Client) -> bytes:
    """The value of any variable but SERVER_IP: name and protocol as text, numbers in two octets, addresses packed.

    Raises ValueError for SERVER_IP.
    """
    match variable:
        case OptionVariable.QNAME:
            return name_text(wire_labels(query.spelling)).encode("ascii")
        case OptionVariable.QTYPE:
            return query.qtype.to_bytes(2, "big")
        case OptionVariable.CLIENT_IP:
            return client.address
        case OptionVariable.CLIENT_PORT:
            return client.port.to_bytes(2, "big")
        case OptionVariable.PROTOCOL:
            return client.transport.encode("ascii")
        case OptionVariable.SERVER_PORT:
            return client.local_port.to_bytes(2, "big")
        case OptionVariable.SERVER_IP:
            raise ValueError("the address is the socket's, not the query's")


def subnet_data(address: bytes, subnet: Subnet) -> bytes:
    """Data of an EDNS Client Subnet option: the prefix in the fewest octets, padded with zero bits (RFC 7871 6)."""
    family, bits = (1, subnet.ipv4_bits) if len(address) == 4 else (2, subnet.ipv6_bits)
    width = 8 * len(address)
    prefix = int.from_bytes(address, "big") >> (width - bits) << (width - bits)
    return bytes((0, family, bits, 0)) + prefix.to_bytes(len(address), "big")[: (bits + 7) // 8]
