"""Configuration errors: the exception with file and line, and helpers for its text."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

MAX_ERRORS: Final = 100  # of one Corefile that are listed; a file that is no Corefile has one in each line
_LONGEST_SHOWN: Final = 300  # characters of an argument quoted in a message
_LONGEST_WORD: Final = 64  # characters of a word quoted by `shown_word`
_RUN: Final = r"[^\W_]{1,15}"  # letters and digits in a row; secret keys, tokens and hashes have more
_WORD: Final = re.compile(rf"(?:{_RUN}(?![^\W_])|[-_.,;:/*@%()\[\]{{}}])*")
_ZONE: Final = re.compile(
    r"""
    (?: (?:dns|tls|https|https3|grpc|quic|unix):// )?
    (?: (?=[^:]*\.) \.? (?: (?:\*|\w[\w-]*) (?:\.+|(?=:)|\Z) )*  # a name with a dot
    | [0-9A-Fa-f.:]+/[0-9]+  # a prefix
    | \w[\w-]* (?=:)  # one label, and a port
    )
    (?: :[0-9]+ )?
    """,
    re.VERBOSE,
)
_HARMLESS: Final = re.compile(
    r"""
    .?  # a character
    | (?: [0-9.]{1,6} [a-zµμ]{0,2} ){1,3}  # a number or a duration
    | (?= .*[.:].*[.:] ) [0-9A-Fa-f.:]{3,39}  # an address
    """,
    re.VERBOSE,
)
_QUOTED: Final = re.compile(r"""'([^']+)'|"([^"]+)\"""")
_SHORTEST_SECRET: Final = 4  # characters
_FEW: Final = 2  # letters of a slip
_LONGEST_COMPARED: Final = 40  # no known word is longer, and difflib is quadratic


class ConfigError(Exception):
    """An invalid configuration. `problem` states the text found and the text expected.

    `line` counts from 1; 0 means the whole file.
    """

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(file, line, problem)
        self.file = file
        self.line = line
        self.problem = problem

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.problem}"

    @property
    def each(self) -> "tuple[ConfigError, ...]":
        """This error, or the several that a `ConfigErrors` has."""
        return (self,)


class ConfigErrors(ConfigError):
    """All errors of a Corefile, two or more, as text a line each; `file`, `line` and `problem` are of the first."""

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        self._each = tuple(errors)
        first = self._each[0]
        super().__init__(first.file, first.line, first.problem)

    def __str__(self) -> str:
        return "\n".join(map(str, self._each))

    @property
    def each(self) -> tuple[ConfigError, ...]:
        return self._each


Note = Callable[[ConfigError], object]
"""Takes an error, after which the reading goes on; or raises it."""


def raise_it(problem: ConfigError) -> None:
    """The `Note` of a reader that stops at the first error."""
    raise problem


class Problems:
    """The errors of a Corefile so far: of each line the first, as others may only follow from it, and MAX_ERRORS."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, int], ConfigError] = {}
        self.incomplete = False  # whether lines are missing that were not read, so that what needs them is not judged

    def __bool__(self) -> bool:
        return bool(self._by_place)

    @property
    def full(self) -> bool:
        return len(self._by_place) >= MAX_ERRORS

    def note(self, problem: ConfigError) -> None:
        for each in problem.each:
            if not self.full:
                self._by_place.setdefault((each.file, each.line), each)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Within the context, an error is noted, and ends the context instead of the caller."""
        try:
            yield
        except ConfigError as problem:
            self.note(problem)

    def __iter__(self) -> Iterator[ConfigError]:
        """The errors by place."""
        return (self._by_place[place] for place in sorted(self._by_place))

    def error(self, explained: Callable[[ConfigError], ConfigError] = lambda problem: problem) -> ConfigError:
        """The errors as one, each as `explained` returns it; there must be one."""
        found = list(map(explained, self))
        if self.full:
            found.append(ConfigError(found[-1].file, 0, f"only the first {MAX_ERRORS} errors are listed"))
        return found[0] if len(found) == 1 else ConfigErrors(found)


def shown(text: str) -> str:
    """`text` quoted for a message, or in words if empty: cut at 300 characters, with control characters escaped."""
    if not text:
        return "an empty word"
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")


def shown_word(text: str) -> str:
    """`text`, the first word of a line or a server block's key, quoted for a message if it looks like a Corefile word.

    Of any other word, only the length: it may come from a file that is no Corefile, such as a private key or a token,
    and is kept out of logs.
    """
    if len(text) <= _LONGEST_WORD and _WORD.fullmatch(text):
        return shown(text)
    return unshown(text)


def shown_name(text: str, imported: bool, known: Collection[str] = ()) -> str:
    """An unknown word where a name of `known` belongs, quoted for a message.

    `imported`: it stands in an imported file, which may be no Corefile but a password, so that the word is shown only
    if it is a slip of a known one.
    """
    return unshown(text) if imported and not is_slip(text, known) else shown_word(text)


def is_slip(text: str, known: Collection[str]) -> bool:
    """Whether a word of `known` differs from this one by two letters at most."""
    from difflib import SequenceMatcher  # here: as in `nearest`

    near = nearest(text, known)
    if near is None:
        return False
    changes = SequenceMatcher(None, text.lower(), near, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for change, i1, i2, j1, j2 in changes if change != "equal") <= _FEW


def may_show_key(text: str) -> bool:
    """Whether a server block's key in an imported file may be shown: a zone with a dot, a port or a prefix length."""
    return shown_word(text) == shown(text) and _ZONE.fullmatch(text) is not None


def without_secrets(problem: str, arguments: Collection[str], name: str = "") -> str:
    """The message about a line of an imported file, with only the lengths of arguments, and of their quoted parts, that
    may be secrets: the file may be no Corefile.

    Numbers, durations, addresses, and names with a dot are shown. `name`: the directive's, which stays.
    """
    secrets = [argument for argument in arguments if not _is_harmless(argument)]
    if not secrets:
        return problem

    def quoted(match: re.Match[str]) -> str:
        part = match[1] or match[2]
        plain = part.lower().replace("\\", "").rstrip(".")  # a name may be in lower case, with escapes and a final dot
        hidden = part != name and not _is_harmless(part) and any(plain in secret.lower() for secret in secrets)
        return unshown(part) if hidden else match[0]

    for text in (" ".join(arguments), *secrets):
        problem = problem.replace(shown(text), unshown(text))
    problem = _QUOTED.sub(quoted, problem)
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET and not (secret.isalpha() and secret.islower()):  # no word of the message
            problem = re.sub(re.escape(secret), "…", problem, flags=re.IGNORECASE)
    return problem


def _is_harmless(argument: str) -> bool:
    return _HARMLESS.fullmatch(argument) is not None or may_show_key(argument)


def unshown(text: str) -> str:
    """The length of a text that a message does not show."""
    return f"'…' ({len(text)} characters, not shown)"


def listed(words: Collection[str]) -> str:
    """The words, at least one, as text for a message: `a, b or c`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def nearest(word: str, known: Collection[str]) -> str | None:
    """The word of `known` most similar to `word` in lower case; None if none is similar."""
    if len(word) > _LONGEST_COMPARED:
        return None
    from difflib import get_close_matches  # here: only errors need it, and a node cache must stay small

    matches = get_close_matches(word.lower(), known, n=1)
    return matches[0] if matches else None


def hint(word: str, known: Collection[str]) -> str:
    """The end of a message about the unknown `word`: ", did you mean ...?" with the nearest known word, if any.

    Else ", expected ..." with all known words, or "none" without any.
    """
    if not known:
        return ", expected none"
    near = nearest(word, known)
    return f", did you mean '{near}'?" if near else f", expected {listed(known)}"
