"""$GENERATE of zone files: a line that makes one record per number of a range.

BIND's directive, as CoreDNS reads it; no RFC has it.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from topodns.dns.text_fields import BadRecord, wrong

MAX_LINES: Final = 1 << 16  # as in CoreDNS
_MOST: Final = (1 << 31) - 1
_MAX_WIDTH: Final = 255  # as in CoreDNS

_RANGE: Final = re.compile(r"([0-9]{1,10})-([0-9]{1,10})(?:/([0-9]{1,10}))?")
_NUMBER: Final = re.compile(r"\\\$|\$\$|\$(?:\{([^}]*)\})?")
_MODIFIER: Final = re.compile(r"(-?[0-9]{1,10})(?:,([0-9]{1,3})(?:,([doxX]))?)?")


def generated(text: str, most: int) -> Iterator[str]:
    """The lines of `START-STOP[/STEP] LINE`, in which `$` and `${OFFSET[,WIDTH[,BASE]]}` are replaced by the number.

    BASE is d, o, x or X; `\\$` and `$$` stand for `$`. Raises BadRecord, also for a line of over `most` characters.
    """
    words = text.split(None, 1)
    if len(words) < 2:
        raise wrong(text.strip(), "START-STOP[/STEP] and a record")
    parts = _parts(words[1])
    for number in _numbers(words[0]):
        found = "".join(part if isinstance(part, str) else part.of(number) for part in parts)
        if len(found) > most:
            raise BadRecord(f"found a generated line of {len(found)} characters, expected at most {most}")
        yield found


class _Modified(NamedTuple):
    """The place of a number: what is added to it, and its format, such as `03x`."""

    offset: int
    form: str

    def of(self, number: int) -> str:
        found = number + self.offset
        if not 0 <= found <= _MOST:
            raise BadRecord(f"found the number {found}, expected 0 to {_MOST}")
        return format(found, self.form)


def _parts(line: str) -> list[str | _Modified]:
    """Literal text, and the places of numbers. Raises BadRecord."""
    parts: list[str | _Modified] = []
    at = 0
    for match in _NUMBER.finditer(line):
        parts.append(line[at : match.start()])
        parts.append("$" if match[0] in ("\\$", "$$") else _modified(match[1]))
        at = match.end()
    return [*parts, line[at:]]


def _modified(text: str | None) -> _Modified:
    match = _MODIFIER.fullmatch(text if text is not None else "0")
    if match is None or int(match[2] or 0) > _MAX_WIDTH:
        raise wrong(f"${{{text}}}", "${OFFSET[,WIDTH[,BASE]]}, BASE one of d, o, x, X")
    return _Modified(int(match[1]), f"0{int(match[2] or 1) or 1}{match[3] or 'd'}")


def _numbers(text: str) -> range:
    match = _RANGE.fullmatch(text)
    if match is None or int(match[3] or 1) == 0:
        raise wrong(text, "START-STOP or START-STOP/STEP")
    numbers = range(int(match[1]), int(match[2]) + 1, int(match[3] or 1))
    if not 1 <= len(numbers) <= MAX_LINES or numbers[-1] > _MOST:
        raise wrong(text, f"1 to {MAX_LINES} numbers, none above {_MOST}")
    return numbers
