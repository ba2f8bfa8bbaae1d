"""Colour of output on a terminal: the words that grade a line, in red, yellow or green."""

import os
import re
import sys
from typing import Final, TextIO

_RED: Final = r"^  [-+ ] error\b|: (?:not good|not as it is|refused|not supported|not looked at|error)(?=:)|^\[ERROR\]"
_YELLOW: Final = r"^  [-+ ] warning\b|: warning(?=:)|^(?:can change an answer|not checked):$|^\[WARNING\]"
_GREEN: Final = r": (?:good|the image can be swapped)(?=:)|<- wins$"
_GRADES: Final = re.compile(f"(?P<red>{_RED})|(?P<yellow>{_YELLOW})|(?P<green>{_GREEN})", re.MULTILINE)
_CODES: Final = {"red": 31, "yellow": 33, "green": 32}


def show(text: str, stream: TextIO | None = None) -> None:
    """Print the text, in colour if the stream (None: standard output) is a terminal and NO_COLOR is not set."""
    stream = stream or sys.stdout
    print(_GRADES.sub(_coloured, text) if _has_colour(stream) else text, file=stream)


def _has_colour(stream: TextIO) -> bool:
    """By https://no-color.org and terminfo(5)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _coloured(match: re.Match[str]) -> str:
    assert match.lastgroup is not None
    return f"\x1b[{_CODES[match.lastgroup]}m{match[0]}\x1b[0m"
