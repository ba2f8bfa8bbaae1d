"""What is wrong with a configuration, and where: the one exception of this package, and how its problems are worded."""

from collections.abc import Collection
from typing import Final

_LONGEST_SHOWN: Final = 300  # characters of a foreign word that a message repeats
_LONGEST_COMPARED: Final = 40  # no known word is longer, and difflib is quadratic


class ConfigError(Exception):
    """A configuration that cannot be used. `problem` says what was found and what was expected.

    `line` counts from 1; 0 means the file as a whole.
    """

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(file, line, problem)
        self.file = file
        self.line = line
        self.problem = problem

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.problem}"


def shown(text: str) -> str:
    """`text` quoted for a message: shortened, and with control characters escaped."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")


def listed(words: Collection[str]) -> str:
    """`a, b or c`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that is most like `word`; None when none is."""
    if len(word) > _LONGEST_COMPARED:
        return None
    from difflib import get_close_matches  # here: who has made no mistake needs none of it, and a node's cache is small

    matches = get_close_matches(word.lower(), known, n=1)
    return matches[0] if matches else None


def hint(word: str, known: Collection[str]) -> str:
    """How a message about the unknown `word` goes on: with the nearest known word, else all of them."""
    if not known:
        return ", expected none"
    near = nearest(word, known)
    return f", did you mean '{near}'?" if near else f", expected {listed(known)}"
