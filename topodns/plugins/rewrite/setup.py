"""Parser of `rewrite [continue|stop] FIELD ...`, on one line or with its words in a body."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from topodns.corefile.arguments import record_type
from topodns.corefile.errors import hint
from topodns.corefile.parser import Directive
from topodns.dns.message import MAX_TTL
from topodns.dns.rrtype import QCLASSES, RCODE_NAMES, parse_rcode
from topodns.plugins.compatibility import differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin, Reads
from topodns.plugins.rewrite.arguments import (
    ArgumentReader,
    parse_option_rule,
    take_filled_in,
    take_match,
    take_pattern,
    take_replacement,
)
from topodns.plugins.rewrite.handler import Rewriter
from topodns.plugins.rewrite.settings import (
    AnswerRule,
    Change,
    ClassRule,
    CnameRule,
    NameRule,
    OptionRule,
    Part,
    RcodeRule,
    RewriteRule,
    TtlRule,
    TypeRule,
)
from topodns.plugins.setup import BlockSetup, Install
from topodns.query.plugin import ChainPart

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


def _setup(settings: tuple[RewriteRule, ...], block: BlockSetup) -> Install:
    return lambda listener: (ChainPart(around=Rewriter(settings, listener.chase, listener.bound)),)


def _reads(settings: tuple[RewriteRule, ...]) -> Reads:
    options = any(isinstance(rule.change, OptionRule) for rule in settings)
    return Reads.EVERYTHING if options else Reads.SPELLING


def _classes(settings: tuple[RewriteRule, ...]) -> Iterator[int]:
    return (rule.change.asked for rule in settings if isinstance(rule.change, ClassRule))


PLUGIN: Final = Plugin(
    name="rewrite",
    coredns=differs(
        "the question in a response is always the client's own, upstreams get those EDNS options of a client that "
        "`append` names, variables from metadata are refused, and the option 0xffee is topodns's node identity"
    ),
    parse=parse_rewrite,
    setup=_setup,
    adds_up=True,
    reads=_reads,
    classes=_classes,
)
