"""DNS messages in a stream: each behind its length in two octets (RFC 1035 section 4.2.2, RFC 7766 section 8).

Bytes in, messages out; whose stream it is and how long it may take is the caller's business.
"""

from typing import Final

MAX_MESSAGE: Final = 0xFFFF
PREFIX: Final = 2


def frame(message: bytes) -> bytes:
    """The message behind its length. Raises OverflowError above `MAX_MESSAGE` octets: no stream can carry that."""
    return len(message).to_bytes(PREFIX, "big") + message


class MessageReader:
    """Cuts one stream into messages, however its octets arrive (RFC 7766 section 8).

    It never keeps more than one unfinished message: at most `MAX_MESSAGE` octets and a prefix.
    """

    __slots__ = ("_needed", "_partial")

    def __init__(self) -> None:
        self._partial = bytearray()
        self._needed = PREFIX  # octets of `_partial` before there is anything to do

    def __repr__(self) -> str:
        return f"<MessageReader {self.pending} of {self._needed} octets>"

    @property
    def pending(self) -> int:
        """Octets kept of a message that is not complete; 0 between two messages."""
        return len(self._partial)

    def receive_data(self, data: bytes) -> list[bytes]:
        """The messages that these next octets of the stream complete, oldest first. An empty one is b""."""
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
    """The complete messages at the start of `data`, and where they end."""
    messages = []
    position, size = 0, len(data)
    while size - position >= PREFIX:
        end = position + PREFIX + (data[position] << 8 | data[position + 1])
        if end > size:
            break
        messages.append(data[position + PREFIX : end])
        position = end
    return messages, position
