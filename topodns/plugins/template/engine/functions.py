"""Functions of templates: those of Go's predefined ones that are useful for records, and CoreDNS's `parseInt`.

`execute` implements the short-circuit evaluation of `and` and `or`. `printf` is Go's fmt for strings, integers and
booleans, with flags, widths and precisions.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from topodns.plugins.template.engine.values import NO_VALUE, RenderFailed, Struct, Value, is_true, kind, printed

MAX_STRING: Final = 65_536  # characters of a result

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_MAX_DIGITS: Final = 64  # maximum for parseInt: 64 bits in base 2
_PREFIXES: Final = {"0x": 16, "0b": 2, "0o": 8}
_UNDERSCORED: Final = re.compile(r"(0[xX]_?|0[bB]_?|0[oO]_?)?[0-9a-zA-Z]+(_[0-9a-zA-Z]+)*")

_MAX_WIDTH: Final = 255  # characters; no record needs more padding
_VERB: Final = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>[0-9]*)(?:\.(?P<precision>[0-9]*))?(?P<verb>.?)", re.DOTALL)
_BASES: Final[Mapping[str, str]] = {"d": "d", "v": "d", "x": "x", "X": "X", "o": "o", "b": "b"}
_BASE_PREFIXES: Final[Mapping[str, str]] = {"x": "0x", "X": "0X", "o": "0", "b": "0b"}
_QUOTED: Final[Mapping[str, str]] = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class TemplateFunction(NamedTuple):
    """A function with its least and most number of arguments; `most` None: no limit."""

    least: int
    most: int | None
    call: Callable[..., Value]


def parse_int(text: Value, base: Value, bits: Value) -> int:
    """Go's strconv.ParseUint, which CoreDNS calls parseInt. Raises RenderFailed."""
    if not isinstance(text, str) or type(base) is not int or type(bits) is not int:
        raise RenderFailed("parseInt: expected a string, a base and a size in bits")
    if not (base == 0 or 2 <= base <= 36) or not 0 <= bits <= 64:
        raise RenderFailed(f"parseInt: base {base} or size {bits} does not exist")
    digits, actual = _without_prefix(text) if base == 0 else (text.lower(), base)
    if not 0 < len(digits) <= _MAX_DIGITS or any(digit not in _DIGITS[:actual] for digit in digits):
        raise RenderFailed(f"parseInt: {text[:_MAX_DIGITS]!r} is no number of base {actual}")
    number = int(digits, actual)
    if number >= 1 << (bits or 64):
        raise RenderFailed(f"parseInt: {text!r} has more than {bits or 64} bits")
    return number


def _without_prefix(text: str) -> tuple[str, int]:
    lowered = text.lower()
    if not _UNDERSCORED.fullmatch(text):
        return "", 10
    base = _PREFIXES.get(lowered[:2])
    if base is not None:
        return lowered[2:].replace("_", ""), base
    return lowered.replace("_", ""), 8 if lowered.startswith("0") and len(lowered) > 1 else 10


def index(value: Value, *keys: Value) -> Value:
    """`value[key1][key2]...`; of a string its octets. A map without the key gives "". Raises RenderFailed."""
    for key in keys:
        value = _element(value, key)
    return value


def _element(value: Value, key: Value) -> Value:
    if isinstance(value, Mapping):
        if not isinstance(key, str):
            raise RenderFailed(f"index: found {kind(key)} for a map, expected a string")
        return value.get(key, "")  # Go's zero value of its elements, which are strings
    if isinstance(value, Struct) or not isinstance(value, str | tuple):
        raise RenderFailed(f"index: found {kind(value)}, expected a list, a map or a string")
    if type(key) is not int:
        raise RenderFailed(f"index: found {kind(key)} for {kind(value)}, expected an integer")
    octets = value.encode() if isinstance(value, str) else value
    if not 0 <= key < len(octets):
        raise RenderFailed(f"index out of range: {key}")
    return octets[key]


def length(value: Value) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Struct) or not isinstance(value, tuple | Mapping):
        raise RenderFailed(f"len: found {kind(value)}, expected a string, a list or a map")
    return len(value)


def part(value: Value, *bounds: Value) -> Value:
    """Go's `slice`: `value[first:last]`, counted in octets for a string. Raises RenderFailed."""
    if isinstance(value, Struct) or not isinstance(value, str | tuple):
        raise RenderFailed(f"slice: found {kind(value)}, expected a string or a list")
    limits = [bound for bound in bounds if type(bound) is int]
    whole = value.encode() if isinstance(value, str) else value
    first, last = (*limits, len(whole))[:2] if limits else (0, len(whole))
    if len(limits) < len(bounds) or not 0 <= first <= last <= len(whole):
        raise RenderFailed(f"slice: bounds {', '.join(map(printed, bounds))} of {len(whole)} elements")
    taken = whole[first:last]
    return taken.decode(errors="replace") if isinstance(taken, bytes) else taken


def equal(value: Value, *others: Value) -> bool:
    """Whether `value` equals any of the others, compared in order up to the first equal one.

    Raises RenderFailed for two values of different types, or of another type than string, integer and boolean.
    """
    return any(_comparable(value, other) and value == other for other in others)


def not_equal(value: Value, other: Value) -> bool:
    return not equal(value, other)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def compared(value: Value, other: Value) -> bool:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise RenderFailed(f"found {kind(value)}, expected something that has an order")
        _comparable(value, other)
        return compare(value, other)

    return compared


def _comparable(value: Value, other: Value) -> bool:
    basic = (str, int, bool)
    if not isinstance(value, basic) or not isinstance(other, basic) or type(value) is not type(other):
        raise RenderFailed(f"{kind(value)} cannot be compared with {kind(other)}")
    return True


def join(*values: Value) -> str:
    """Go's `print`: a space between two values if neither is a string."""
    text = ""
    for at, value in enumerate(values):
        if at and not isinstance(value, str) and not isinstance(values[at - 1], str):
            text += " "
        text += printed(value)
    return text


def join_line(*values: Value) -> str:
    return " ".join(map(printed, values)) + "\n"


def _printf(pattern: Value, *arguments: Value) -> str:
    if not isinstance(pattern, str):
        raise RenderFailed(f"printf: found {kind(pattern)}, expected a string with verbs")
    return sprintf(pattern, arguments)


class _Verb(NamedTuple):
    flags: str
    width: int
    precision: int | None
    verb: str


def sprintf(pattern: str, arguments: Sequence[Value]) -> str:
    """`pattern` with its verbs replaced. Raises RenderFailed where Go would write an error into the text.

    These errors are a % without a verb, a verb without an argument, one that does not fit its argument, and arguments
    without a verb. Also raised for formats that only Go prints, such as argument indexes, `*`, widths and precisions
    above 255, %T, %O, and %q of an integer. `-` is the only flag with an effect on values other than integers.
    """
    left = list(arguments)

    def replaced(match: re.Match[str]) -> str:
        if match["verb"] == "%":
            return "%"
        if not match["verb"]:
            raise RenderFailed(f"printf: {match[0]!r} at the end has no verb")
        if not left:
            raise RenderFailed(f"printf: nothing is left for {match[0]!r}")
        return _formatted(_read(match), left.pop(0))

    text = _VERB.sub(replaced, pattern)
    if left:
        raise RenderFailed(f"printf: {len(left)} more arguments than verbs in {pattern!r}")
    return text


def _read(match: re.Match[str]) -> _Verb:
    numbers = [match["width"] or "0", match["precision"] or "0"]
    if any(len(number) > 3 or int(number) > _MAX_WIDTH for number in numbers):
        raise RenderFailed(f"printf: {match[0]!r} is wider than {_MAX_WIDTH}")
    precision = None if match["precision"] is None else int(numbers[1])
    return _Verb(match["flags"], int(numbers[0]), precision, match["verb"])


def _formatted(verb: _Verb, value: Value) -> str:
    if isinstance(value, bool):
        return _padded(verb, printed(value)) if verb.verb in ("t", "v") else _refuse(verb, value)
    if isinstance(value, int):
        return _integer(verb, value)
    if isinstance(value, str):
        write = _STRINGS.get(verb.verb)
        return _refuse(verb, value) if write is None else _padded(verb, write(value[: verb.precision]))
    return _padded(verb, printed(value)) if verb.verb in ("v", "s") else _refuse(verb, value)


def _integer(verb: _Verb, value: int) -> str:
    if verb.verb == "c":
        is_character = 0 <= value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF
        return _padded(verb, chr(value) if is_character else "\ufffd")
    base = _BASES.get(verb.verb)
    if base is None:
        return _refuse(verb, value)
    digits = format(abs(value), base).zfill(verb.precision or 0)
    sign = "-" if value < 0 else "+" if "+" in verb.flags else " " if " " in verb.flags else ""
    sign += _BASE_PREFIXES.get(verb.verb, "") if "#" in verb.flags else ""
    if "0" in verb.flags and "-" not in verb.flags and verb.precision is None:
        digits = digits.zfill(verb.width - len(sign))
    return _padded(verb, sign + digits)


def _padded(verb: _Verb, text: str) -> str:
    return text.ljust(verb.width) if "-" in verb.flags else text.rjust(verb.width)


def _refuse(verb: _Verb, value: Value) -> str:
    raise RenderFailed(f"printf: %{verb.verb} cannot print {kind(value)}")


def _quoted(text: str) -> str:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


_STRINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "s": str,
    "v": str,
    "q": _quoted,
    "x": lambda text: text.encode().hex(),
    "X": lambda text: text.encode().hex().upper(),
}


def _meta(name: Value) -> str:
    """`.Meta`: always "", CoreDNS's result for metadata that no plugin has published."""
    if not isinstance(name, str):
        raise RenderFailed(f"Meta: found {kind(name)}, expected a string")
    return ""


META: Final = ".Meta"
AND: Final = "and"
OR: Final = "or"

FUNCTIONS: Final[Mapping[str, TemplateFunction]] = {
    AND: TemplateFunction(1, None, lambda *values: values[-1]),
    OR: TemplateFunction(1, None, lambda *values: values[-1]),
    "not": TemplateFunction(1, 1, lambda value: not is_true(value)),
    "eq": TemplateFunction(2, None, equal),
    "ne": TemplateFunction(2, 2, not_equal),
    "lt": TemplateFunction(2, 2, _ordered(operator.lt)),
    "le": TemplateFunction(2, 2, _ordered(operator.le)),
    "gt": TemplateFunction(2, 2, _ordered(operator.gt)),
    "ge": TemplateFunction(2, 2, _ordered(operator.ge)),
    "index": TemplateFunction(1, None, index),
    "slice": TemplateFunction(1, 3, part),
    "len": TemplateFunction(1, 1, length),
    "print": TemplateFunction(0, None, join),
    "println": TemplateFunction(0, None, join_line),
    "printf": TemplateFunction(1, None, _printf),
    "parseInt": TemplateFunction(3, 3, parse_int),
    META: TemplateFunction(1, 1, _meta),
}

GO_ONLY: Final = frozenset({"call", "html", "js", "urlquery"})
"""Functions of Go's templates that are not supported here."""


def apply(name: str, arguments: list[Value]) -> Value:
    """The function's result. Raises RenderFailed, also for NO_VALUE as an argument (Go: invalid value)."""
    if any(argument is NO_VALUE for argument in arguments):
        raise RenderFailed(f"{name}: found no value, expected an argument")
    result = FUNCTIONS[name].call(*arguments)
    if isinstance(result, str) and len(result) > MAX_STRING:  # a `range` could double a string repeatedly
        raise RenderFailed(f"{name}: more than {MAX_STRING} characters")
    return result
