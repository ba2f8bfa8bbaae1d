"""Bytes to lines, however they arrive in pieces. Sans-IO."""

from collections.abc import Iterator
from typing import Final

MAX_LINE: Final = 16 << 20  # octets; etcd takes objects up to 1.5 MiB, which is less than 16 in any JSON


class LineTooLong(ValueError):
    """So much without the end of a line is no watch, and would only fill the memory."""


class LineReader:
    """The lines of one response body. What is left of it at the end, without a line feed, is no line."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._pieces: list[bytes] = []  # of the line that is not complete yet
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that this piece completes, without their line feeds; empty ones are left out.

        The iterator is to be run to its end. Raises LineTooLong.
        """
        first, *rest = data.split(b"\n")
        self._keep(first)
        for piece in rest:
            line = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._keep(piece)
            if line.strip():
                yield line

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_line:
            raise LineTooLong(f"a line of more than {self._max_line} octets")
        if piece:
            self._pieces.append(piece)
