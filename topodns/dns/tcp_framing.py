"""Framing of DNS messages over TCP: a length of two octets before each (RFC 1035 section 4.2.2, RFC 7766 section 8).

Bytes in, messages out; connections and timeouts are the caller's.
"""

from struct import Struct
from typing import Final

PREFIX: Final = 2
_unpack_prefix: Final = Struct("!H").unpack_from


def frame(message: bytes) -> bytes:
    """The message after its length prefix. Raises OverflowError above `MAX_MESSAGE` octets, the limit of the prefix."""
    return len(message).to_bytes(PREFIX, "big") + message


class MessageReader:
    """Splits one stream into messages, whatever the sizes in which its octets arrive (RFC 7766 section 8).

    It keeps at most one incomplete message: `MAX_MESSAGE` octets and a prefix.
    """

    __slots__ = ("_needed", "_partial")

    def __init__(self) -> None:
        self._partial = bytearray()
        self._needed = PREFIX  # octets that `_partial` needs before the next step

    def __repr__(self) -> str:
        return f"<MessageReader {self.pending} of {self._needed} octets>"

    @property
    def pending(self) -> int:
        """Number of octets kept of an incomplete message; 0 between two messages."""
        return len(self._partial)

    def receive_data(self, data: bytes) -> list[bytes]:
        """The messages that these next octets of the stream complete, in order. An empty message is b""."""
        if self._partial:
            self._partial += data
            if len(self._partial) < self._needed:
                return []
            data = bytes(self._partial)
        messages, position = _cut(data)
        self._keep(data, position)
        return messages

    def _keep(self, data: bytes, position: int) -> None:
        self._partial = bytearray(data[position:])
        self._needed = PREFIX
        if len(self._partial) >= PREFIX:
            self._needed += int.from_bytes(self._partial[:PREFIX], "big")


def _cut(data: bytes) -> tuple[list[bytes], int]:
    """The complete messages at the start of `data`, and the offset after them."""
    messages = []
    position, size = 0, len(data)
    while size - position >= PREFIX:
        (length,) = _unpack_prefix(data, position)
        start = position + PREFIX
        end = start + length
        if end > size:
            break
        messages.append(data[start:end])
        position = end
    return messages, position
