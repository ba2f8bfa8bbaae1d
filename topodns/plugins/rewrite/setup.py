"""Parser of `rewrite [continue|stop] FIELD ...`, on one line or with its words in a body.

As in CoreDNS, words in the body count as if on the directive's line, so line ends matter only for error messages.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from topodns.corefile.arguments import record_type
from topodns.corefile.errors import ConfigError, hint, listed, shown, unshown
from topodns.corefile.parser import Directive
from topodns.dns.message import MAX_TTL, Option
from topodns.dns.name import ROOT, BadName, Name, name_text, parse_name
from topodns.dns.rrtype import QCLASSES, RCODE_NAMES, parse_rcode
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin, Reads
from topodns.plugins.rewrite.handler import Rewriter
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
from topodns.plugins.setup import BlockListener, BlockSetup, Install
from topodns.query.metadata import is_label
from topodns.query.plugin import ChainPart
from topodns.query.regex import BadPattern, compile_pattern

_COMPARISONS: Final = {comparison.value: comparison for comparison in Comparison}
_MAX_GROUPS: Final = 100  # CoreDNS looks for {0} to {100}


class ArgumentReader:
    """Reads the words in order. Errors refer to the line of the word taken last."""

    def __init__(self, directive: Directive) -> None:
        self._words = [(word, directive) for word in directive.args]
        self._at = 0
        self._directive = directive
        if len(directive.args) > 1 and directive.body:
            raise directive.body[0].error("found a body, expected all the words of the rule on the line or in the body")
        for line in directive.body:
            if line.body:
                inner = line.body[0]
                raise inner.error(f"found {inner.shown_name()}, but {line.shown_name()} has no options")
            self._words += [(word, line) for word in (line.name, *line.args)]

    @property
    def left(self) -> int:
        return len(self._words) - self._at

    def peek(self, ahead: int = 0) -> str | None:
        """The word `ahead` positions after the next one; None after the last. Takes nothing."""
        return self._words[self._at + ahead][0] if ahead < self.left else None

    def take(self, expected: str) -> str:
        """Take the next word. Raises ConfigError with `expected` if there is none."""
        if not self.left:
            before = f"after {self.shown(self._words[-1][0])}" if self._words else "in it"
            raise self.error(f"'rewrite' has nothing {before}, expected {expected}")
        self._at += 1
        return self._words[self._at - 1][0]

    def take_if(self, word: str) -> bool:
        """Take the next word if it equals `word`, and return whether it does."""
        there = self.peek() == word
        self._at += there
        return there

    def end(self) -> None:
        """Raise ConfigError if any word is left."""
        if self.left:
            word = self.take("")
            before = self.shown(self._words[self._at - 2][0])
            raise self.error(f"found {self.shown(word)} after {before}, expected nothing more")

    @property
    def hidden(self) -> bool:
        """Whether the word taken last is of a file that is imported into the body: it may be no Corefile."""
        line = self._words[self._at - 1][1] if self._at else self._directive
        return line.imported and not self._directive.imported

    def shown(self, text: str) -> str:
        """A text from the words taken last, quoted for a message; only its length where it is `hidden`."""
        return unshown(text) if self.hidden else shown(text)

    def error(self, problem: str) -> ConfigError:
        line = self._words[self._at - 1][1] if self._at else self._directive
        return line.error(problem)


def take_match(words: ArgumentReader, after: int, final_dot: bool = True) -> NameMatch:
    """Take `[exact|prefix|suffix|substring|regex] FROM`. `after`: the number of words that the rule has after FROM.

    Without a comparison word it is exact, and then not more than `after` words may follow. With `final_dot`, the FROM
    of prefix, suffix and substring gets a final dot; a whole name always has one. Raises ConfigError.
    """
    comparison = _take_comparison(words, after)
    match comparison:
        case Comparison.EXACT:
            return NameMatch(comparison, take_name(words))
        case Comparison.REGEX:
            return NameMatch(comparison, take_pattern(words))
        case _:
            return NameMatch(comparison, _fragment(words, words.take("the part of a name"), final_dot))


def _take_comparison(words: ArgumentReader, after: int) -> Comparison:
    word = words.peek() or ""
    comparison = _COMPARISONS.get(word.lower())
    if comparison is None and words.left <= after + 1:
        return Comparison.EXACT
    words.take("a comparison")
    if comparison is None:
        raise words.error(f"found {words.shown(word)} with {words.left} words after it{hint(word, _COMPARISONS)}")
    return comparison


def take_name(words: ArgumentReader) -> str:
    """Take a whole name, as lower-case text with the final dot. Raises ConfigError."""
    text = words.take("a name")
    try:
        return name_text(parse_name(text))
    except BadName as problem:
        raise words.error(f"found {words.shown(text) if words.hidden else problem}, expected a name") from None


def take_pattern(words: ArgumentReader) -> str:
    text = words.take("a regular expression")
    try:
        compile_pattern(text)
    except BadPattern as problem:
        raise words.error(f"found {words.shown(text)}, expected a regular expression: {problem}") from None
    return text


def take_replacement(words: ArgumentReader, match: NameMatch, final_dot: bool = True) -> str:
    """Take the replacement for what `match` matched: a whole name if the match is exact, a text as `take_filled_in`
    takes it for a regular expression, else a part of a name, with `final_dot` ending in a dot. Raises ConfigError.
    """
    match match.comparison:
        case Comparison.EXACT:
            return take_name(words)
        case Comparison.REGEX:
            return take_filled_in(words, match.text, final_dot)
        case _:
            return _fragment(words, words.take("the replacement"), final_dot)


def take_filled_in(words: ArgumentReader, expression: str, final_dot: bool = True) -> str:
    """Take a replacement in which {N} refers to group N of the expression. Raises ConfigError if there is no group N.

    With `final_dot` it gets a final dot.
    """
    text = words.take("the replacement")
    groups = compile_pattern(expression).groups
    for number in range(groups + 1, _MAX_GROUPS + 1):
        if f"{{{number}}}" in text:
            raise words.error(
                f"found {{{number}}} in {words.shown(text)}, but {words.shown(expression)} has no group {number}"
            )
    return _fragment(words, text, final_dot)


def _fragment(words: ArgumentReader, text: str, final_dot: bool) -> str:
    """The text in lower case, with `final_dot` ending in a dot. Raises ConfigError if it is not ASCII."""
    if not text.isascii():
        raise words.error(f"found {words.shown(text)}, expected ASCII; write IDNs in their A-label (xn--) form")
    lower = text.lower()
    return lower if not final_dot or lower.endswith(".") else lower + "."


_REVERT: Final = "revert"
_CODE: Final = re.compile(r"0[xX][0-9A-Fa-f]{1,4}|0|[1-9][0-9]{0,4}")
_MAX_CODE: Final = 65_535
_MAX_DATA: Final = 512  # octets: more might not fit beside a long name (`plugins.forward.handler.PAYLOAD_SIZE`)
_BITS: Final = re.compile(r"[0-9]{1,3}")
_ACTIONS: Final = {action.value: action for action in OptionAction}
_VARIABLES: Final = {variable.value: variable for variable in OptionVariable}


def parse_option_rule(words: ArgumentReader) -> OptionRule:
    kind = words.take("local, nsid or subnet").lower()
    if kind not in _KINDS:
        raise words.error(f"found {words.shown(kind)} after edns0{hint(kind, _KINDS)}")
    word = words.take(listed(_ACTIONS)).lower()
    if word not in _ACTIONS:
        raise words.error(f"found {words.shown(word)} after edns0 {kind}{hint(word, _ACTIONS)}")
    return _KINDS[kind](words, _ACTIONS[word])


def _parse_local(words: ArgumentReader, action: OptionAction) -> OptionRule:
    code = _take_code(words)
    if action is OptionAction.UNSET:
        return OptionRule(action, code)
    return OptionRule(action, code, _take_data(words), words.take_if(_REVERT))


def _parse_nsid(words: ArgumentReader, action: OptionAction) -> OptionRule:
    """The rule for the option NSID of the query, a request without data for a server's identifier (RFC 5001)."""
    return OptionRule(action, Option.NSID, revert=action is not OptionAction.UNSET and words.take_if(_REVERT))


def _parse_subnet(words: ArgumentReader, action: OptionAction) -> OptionRule:
    """The rule for the EDNS Client Subnet, with prefix lengths for IPv4 and IPv6 except for `unset`."""
    if action is OptionAction.UNSET:
        return OptionRule(action, Option.CLIENT_SUBNET)
    subnet = Subnet(_take_bits(words, "IPv4", 32), _take_bits(words, "IPv6", 128))
    return OptionRule(action, Option.CLIENT_SUBNET, subnet, words.take_if(_REVERT))


_KINDS: Final[Mapping[str, Callable[[ArgumentReader, OptionAction], OptionRule]]] = {
    "local": _parse_local,
    "nsid": _parse_nsid,
    "subnet": _parse_subnet,
}


def _take_code(words: ArgumentReader) -> int:
    text = words.take("the code of an option")
    if _CODE.fullmatch(text) and int(text, 0) <= _MAX_CODE:
        return int(text, 0)
    raise words.error(f"the option's code is {words.shown(text)}, expected 0 to {_MAX_CODE}, or 0x0 to 0xffff")


def _take_data(words: ArgumentReader) -> bytes | OptionVariable | MetadataVariable:
    text = words.take("the data of the option")
    if text.startswith("{") and text.endswith("}"):
        return _variable(words, text)
    try:
        data = bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()
    except ValueError:
        raise words.error(f"the option's data is {words.shown(text)}, expected pairs of hexadecimal digits") from None
    if len(data) > _MAX_DATA:
        raise words.error(f"the option's data has {len(data)} octets, expected at most {_MAX_DATA}")
    return data


def _variable(words: ArgumentReader, text: str) -> OptionVariable | MetadataVariable:
    if text in _VARIABLES:
        return _VARIABLES[text]
    if is_label(text[1:-1]):
        return MetadataVariable(text[1:-1])
    raise words.error(f"unknown variable {words.shown(text)}{hint(text, _VARIABLES)}")


def _take_bits(words: ArgumentReader, family: str, most: int) -> int:
    text = words.take(f"the prefix length for {family}")
    if _BITS.fullmatch(text) and int(text) <= most:
        return int(text)
    raise words.error(f"the prefix length for {family} is {words.shown(text)}, expected 0 to {most}")


_MODES: Final = {"continue": True, "stop": False}
_ANSWER: Final = "answer"
_AUTO: Final = "auto"
_PARTS: Final = {part.value: part for part in Part}
_MAX_RCODE: Final = max(RCODE_NAMES)


def parse_rewrite(directive: Directive, context: Context) -> tuple[RewriteRule, ...]:
    """A tuple of one, the directive's rule, as in CoreDNS 1.14.7. Raises ConfigError.

    Invalid names and patterns are refused; whether a part of a name (prefix, suffix, substring) can match at all is not
    checked.
    """
    words = ArgumentReader(directive)
    continues = False
    if (words.peek() or "").lower() in _MODES:
        continues = _MODES[words.take("a mode").lower()]
    field = words.take("a field, such as name or ttl").lower()
    if field == _ANSWER:
        raise words.error("'answer' comes first, expected a rule for the name before it")
    parse = _FIELDS.get(field)
    if parse is None:
        raise words.error(f"unknown field {words.shown(field)} of 'rewrite'{hint(field, _FIELDS)}")
    rule = RewriteRule(parse(words), continues)
    words.end()
    if isinstance(rule.change, NameRule) and not rule.change.names_records:
        context.warn(
            "plugin/rewrite: records keep the new name, as in CoreDNS, and stub resolvers that compare names (glibc) "
            f"ignore them; 'answer auto' gives them the client's ({directive.place})"
        )
    return (rule,)


def _parse_name(words: ArgumentReader) -> NameRule:
    match = take_match(words, after=1)
    replacement = take_replacement(words, match)
    if words.left and words.peek() != _ANSWER:
        words.end()
    auto, answers = _parse_answers(words)
    return NameRule(match, replacement, auto, answers)


def _parse_answers(words: ArgumentReader) -> tuple[bool, tuple[AnswerRule, ...]]:
    """`answer auto|name FROM TO|value FROM TO`, repeated: (whether `auto` is among them, the others).

    Only the first needs the word `answer`.
    """
    auto, answers = False, list[AnswerRule]()
    while words.left:
        words.take_if(_ANSWER)
        kind = words.take("auto, name or value")
        if kind == _AUTO or (kind == Part.OWNER.value and _is_auto(words)):
            auto = True
        elif kind in _PARTS:
            pattern = take_pattern(words)
            answers.append(AnswerRule(_PARTS[kind], pattern, take_filled_in(words, pattern)))
        else:
            raise words.error(f"found {words.shown(kind)} after answer{hint(kind, (_AUTO, *_PARTS))}")
    if auto and any(rule.part is Part.OWNER for rule in answers):
        raise words.error("found both 'answer auto' and 'answer name', expected one of them")
    return auto, tuple(answers)


def _is_auto(words: ArgumentReader) -> bool:
    """Take `auto` of `answer name auto` (in CoreDNS's README) unless it is a pattern; returns whether it was taken."""
    return words.peek(1) in (None, _ANSWER) and words.take_if(_AUTO)


def _parse_type(words: ArgumentReader) -> TypeRule:
    return TypeRule(_take_type(words), _take_type(words))


def _take_type(words: ArgumentReader) -> int:
    return record_type(words.take("two record types"), words.error)


def _parse_class(words: ArgumentReader) -> ClassRule:
    return ClassRule(_take_class(words), _take_class(words))


def _take_class(words: ArgumentReader) -> int:
    text = words.take("two classes")
    if text.upper() not in QCLASSES:
        raise words.error(f"unknown class {words.shown(text)}, expected IN, CH or HS")
    return QCLASSES[text.upper()]


def _parse_ttl(words: ArgumentReader) -> TtlRule:
    match = take_match(words, after=1)
    text = words.take("the seconds, or MIN-MAX")
    low, dash, high = text.partition("-")
    bounds = _seconds(low, 0), _seconds(high if dash else low, MAX_TTL)
    if bounds[0] is None or bounds[1] is None or not (low or high) or bounds[0] > bounds[1]:
        raise words.error(f"the TTL is {words.shown(text)}, expected seconds, MIN-MAX, MIN- or -MAX, up to {MAX_TTL}")
    return TtlRule(match, bounds[0], bounds[1])


def _seconds(text: str, default: int) -> int | None:
    if not text:
        return default
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_TTL))
    return int(text) if plain and int(text) <= MAX_TTL else None


def _parse_rcode(words: ArgumentReader) -> RcodeRule:
    match = take_match(words, after=2)
    return RcodeRule(match, _take_rcode(words), _take_rcode(words))


def _take_rcode(words: ArgumentReader) -> int:
    text = words.take("two response codes")
    if text.isascii() and text.isdigit() and len(text) <= 2 and int(text) <= _MAX_RCODE:
        return int(text)
    rcode = parse_rcode(text)
    if rcode is None:
        raise words.error(
            f"unknown response code {words.shown(text)}, expected a name such as NXDOMAIN, or 0 to {_MAX_RCODE}"
        )
    return rcode


def _parse_cname(words: ArgumentReader) -> CnameRule:
    """The rule of `cname [COMPARISON] FROM TO`.

    Fragments get no final dot, so `suffix example.com` matches no target, as in CoreDNS.
    """
    match = take_match(words, after=1, final_dot=False)
    return CnameRule(match, take_replacement(words, match, final_dot=False))


_FIELDS: Final[Mapping[str, Callable[[ArgumentReader], Change]]] = {
    "name": _parse_name,
    "type": _parse_type,
    "class": _parse_class,
    "ttl": _parse_ttl,
    "cname": _parse_cname,
    "rcode": _parse_rcode,
    "edns0": parse_option_rule,
}


def labels(settings: tuple[RewriteRule, ...]) -> frozenset[str]:
    """The labels of metadata that are variables of rules."""
    changes = (rule.change.data for rule in settings if isinstance(rule.change, OptionRule))
    return frozenset(data.label for data in changes if isinstance(data, MetadataVariable))


def _setup(settings: tuple[RewriteRule, ...], block: BlockSetup) -> Install:
    scope = block.vary_by_labels(labels(settings))

    def install(listener: BlockListener) -> tuple[ChainPart]:
        rewriter = Rewriter(settings, listener.chase, listener.bound, block.reader_of)
        return (ChainPart(around=rewriter, scope=scope),)

    return install


def _reads(settings: tuple[RewriteRule, ...]) -> Reads:
    options = any(isinstance(rule.change, OptionRule) for rule in settings)
    return Reads.EVERYTHING if options else Reads.SPELLING


def _classes(settings: tuple[RewriteRule, ...]) -> Iterator[int]:
    return (rule.change.asked for rule in settings if isinstance(rule.change, ClassRule))


def _zones(rules: tuple[RewriteRule, ...]) -> tuple[Name, ...]:
    """The names and zones of rules for one name, or for all below one; the root for others."""
    return tuple(_zone(rule.change) for rule in rules)


def _zone(change: Change) -> Name:
    match = change.match if isinstance(change, NameRule) else None
    if match is None or match.comparison not in (Comparison.EXACT, Comparison.SUFFIX):
        return ROOT
    # A suffix that begins in the middle of a label is also that of names outside of the zone.
    whole = match.comparison is Comparison.EXACT or match.text.startswith(".")
    return parse_name(match.text.removeprefix(".")) if whole else ROOT


PLUGIN: Final = Plugin(
    name="rewrite",
    coredns=differs(
        Effect.ANSWER,
        "the question in a response is always the client's own, upstreams get those EDNS options of a client that "
        "`append` names, and the option 0xffee is topodns's node identity",
    ),
    parse=parse_rewrite,
    zones=_zones,
    setup=_setup,
    adds_up=True,
    reads=_reads,
    labels=labels,
    classes=_classes,
)
