"""Words that others wrote, made fit for a log line, /ready and a terminal. Pure; knows nothing of who they are."""

from typing import Final

LONGEST: Final = 500  # characters

_LOOKED_AT: Final = 4 * LONGEST  # characters of a text, however long: white space is not counted


def printable(text: str) -> str:
    """The same in one line that does nothing to a terminal: what is not printable is escaped as in Python (`\\x1b`).

    Line feeds are, too, so that no text can pass for a line of its own.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def one_line(text: str) -> str:
    """At most LONGEST printable characters, with single blanks for white space of any sort."""
    line = printable(" ".join(text[:_LOOKED_AT].split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
