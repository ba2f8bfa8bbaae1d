"""The syntax of Go's package flag, which node-cache's command line has. Knows no particular flag.

`-name value`, `-name=value`, both also with two dashes; a switch is `-name` or `-name=true`, never `-name true`. The
last of several wins. `--`, or the first word without a dash, ends the flags.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from topodns.corefile.errors import hint, listed, shown

BOOLEAN: Final = ""
"""The `value` of a boolean flag."""

_TRUE: Final = ("true", "True", "TRUE", "t", "T", "1")
_FALSE: Final = ("false", "False", "FALSE", "f", "F", "0")
_LONGEST_MARKER: Final = 2  # dashes


class WrongUsage(Exception):
    """A command line for which Go's package flag would print the usage and exit with status 2."""


@dataclass(frozen=True, slots=True)
class GoFlag:
    """A known flag. `value` names its argument in a word, BOOLEAN for a switch; `default` is as on the command line."""

    name: str
    value: str
    meaning: str
    default: str = ""


@dataclass(slots=True)
class ParsedFlags:
    """A parsed command line: texts and switches by the flag's name, and the words after all flags."""

    texts: dict[str, str] = field(default_factory=dict)
    booleans: dict[str, bool] = field(default_factory=dict)
    rest: tuple[str, ...] = ()


def read_flags(arguments: Sequence[str], known: Mapping[str, GoFlag]) -> ParsedFlags:
    """The flags at the beginning of the arguments, and the words after them. Raises WrongUsage."""
    given, at = ParsedFlags(), 0
    while at < len(arguments) and _is_flag(arguments[at]):
        word = arguments[at]
        at += 1
        if word == "--":
            break
        flag, value = _split(word, known)
        if flag.value == BOOLEAN:
            given.booleans[flag.name] = True if value is None else _boolean(flag.name, value)
            continue
        if value is None:
            if at == len(arguments):
                raise WrongUsage(f"flag needs an argument: -{flag.name}")
            value = arguments[at]
            at += 1
        given.texts[flag.name] = value
    given.rest = tuple(arguments[at:])
    return given


def usage_text(program: str, opening: str, flags: Iterable[GoFlag]) -> str:
    """The output of `-help`: every flag with its meaning and default."""
    lines = [f"Usage of {program}:", opening, ""]
    for flag in flags:
        default = f" (default {flag.default})" if flag.default else ""
        lines += [f"  -{flag.name} {flag.value}".rstrip(), f"    \t{flag.meaning}{default}"]
    return "\n".join(lines)


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")


def _split(word: str, known: Mapping[str, GoFlag]) -> tuple[GoFlag, str | None]:
    """The flag of a word, and the text after its `=`; None without `=`. Raises WrongUsage for an unknown flag."""
    bare = word.lstrip("-")
    name, separator, value = bare.partition("=")
    if len(word) - len(bare) > _LONGEST_MARKER or not name:
        raise WrongUsage(f"bad flag syntax: {shown(word)}, expected -NAME, -NAME VALUE or -NAME=VALUE")
    if name not in known:
        raise WrongUsage(f"flag provided but not defined: {shown(f'-{name}')}{_guess(name, known)}")
    return known[name], value if separator else None


def _guess(name: str, known: Mapping[str, GoFlag]) -> str:
    guess = hint(name, known)
    return guess if guess.endswith("?") else ", see -help"


def _boolean(name: str, text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise WrongUsage(f"'-{name}' has {shown(text)}, expected {listed((_TRUE[0], _FALSE[0]))}")
