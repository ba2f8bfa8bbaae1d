"""Text of configured files: UTF-8 with or without a byte order mark, and octets that are no UTF-8 in comments.

Old files have comments in Latin-1 or another code page, which are no data. So each such octet becomes a character of
its own (surrogateescape, PEP 383), and the reader of a format, who knows what is a comment, refuses it elsewhere.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WIDE_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16, and the first of UTF-32's
_ESCAPED: Final = 0xDC00  # the character of an octet is this and the octet
_OTHER_OCTET: Final = re.compile("[\udc80-\udcff]")


class BadText(ValueError):
    """Invalid text; the message has what was found and, for an error in one line, the line."""


def without_mark(octets: bytes) -> bytes:
    """The octets of a file without the byte order mark of UTF-8. Raises ValueError for a file in UTF-16 or UTF-32."""
    little, big = octets[0:1] > b"\0" == octets[1:2] == octets[3:4], b"\0" == octets[0:1] == octets[2:3] < octets[1:2]
    if little or big or octets.startswith(_WIDE_MARKS):
        raise ValueError("found UTF-16 or UTF-32, expected UTF-8")
    return octets.removeprefix(_BYTE_ORDER_MARK)


def decoded(octets: bytes) -> str:
    """The text of a file, with octets that are no UTF-8 (see `foreign_octet`). Raises ValueError as `without_mark`."""
    return without_mark(octets).decode("utf-8", "surrogateescape")


class ForeignOctet(NamedTuple):
    """An octet that is no UTF-8: its offset in the text, and the problem as text for a message."""

    offset: int
    problem: str


def foreign_octet(text: str) -> ForeignOctet | None:
    """The first octet in this text that is no UTF-8; None for none."""
    found = None if text.isascii() else _OTHER_OCTET.search(text)
    if found is None:
        return None
    octet = ord(found[0]) - _ESCAPED
    return ForeignOctet(found.start(), f"found the octet 0x{octet:02x}, which is no UTF-8")


MAX_LINE: Final = 1 << 16  # octets; CoreDNS stops reading a hosts or weight file at a longer line (bufio.Scanner)


def numbered_lines(content: bytes) -> Iterator[tuple[int, bytes | None]]:
    """(number from 1 on, line without newline) of each line; None as the line if it has more than MAX_LINE octets."""
    at, number = 0, 1
    while at < len(content):
        end = content.find(b"\n", at)
        end = len(content) if end < 0 else end
        yield number, content[at:end] if end - at <= MAX_LINE else None
        at, number = end + 1, number + 1
