"""Lines of a configured file, each of bounded length, for readers that work in short steps."""

from collections.abc import Iterator
from typing import Final

MAX_LINE: Final = 1 << 16  # octets; CoreDNS stops reading a hosts or weight file at a longer line (bufio.Scanner)


def numbered_lines(content: bytes) -> Iterator[tuple[int, bytes | None]]:
    """(number from 1 on, line without newline) of each line; None as the line if it has more than MAX_LINE octets."""
    at, number = 0, 1
    while at < len(content):
        end = content.find(b"\n", at)
        end = len(content) if end < 0 else end
        yield number, content[at:end] if end - at <= MAX_LINE else None
        at, number = end + 1, number + 1
