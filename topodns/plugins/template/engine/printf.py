"""The function `printf`: Go's fmt for strings, integers and booleans, with flags, widths and precisions."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from topodns.plugins.template.engine.values import RenderFailed, Value, kind, printed

_MAX_WIDTH: Final = 255  # characters; no record needs more padding
_VERB: Final = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>[0-9]*)(?:\.(?P<precision>[0-9]*))?(?P<verb>.?)", re.DOTALL)
_BASES: Final[Mapping[str, str]] = {"d": "d", "v": "d", "x": "x", "X": "X", "o": "o", "b": "b"}
_PREFIXES: Final[Mapping[str, str]] = {"x": "0x", "X": "0X", "o": "0", "b": "0b"}
_QUOTED: Final[Mapping[str, str]] = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


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
    sign += _PREFIXES.get(verb.verb, "") if "#" in verb.flags else ""
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
