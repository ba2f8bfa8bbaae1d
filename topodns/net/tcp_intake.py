"""The messages that a client's TCP connection takes: complete ones, up to a number, and none that begin after its end.

Octets in, messages out; the connection answers them.
"""

from topodns.dns.tcp_framing import PREFIX, MessageReader


class TcpIntake:
    """The incoming half of a connection. `queries`: the most messages, 0 for no limit.

    `finishing`: no message that begins from now on is taken. `arrived`: of that time, the octets of the stream that the
    kernel already had and that are not read yet; messages that begin in them are still taken. `reader` has what is
    pending of an incomplete message.
    """

    __slots__ = ("_queries", "_taken", "arrived", "finishing", "reader")

    def __init__(self, queries: int) -> None:
        self.finishing = False
        self.arrived = 0
        self._queries = queries
        self._taken = 0
        self.reader = MessageReader()

    @property
    def is_over(self) -> bool:
        """Whether no further octet matters."""
        return self.finishing and not (self.reader.pending or self.arrived)

    def lone_message(self, buffer: memoryview, size: int) -> bytes | None:
        """The message, if a read of `size` octets is exactly one, which `receive` would return alone; else None.

        `buffer` begins with the octets read. None, too, if `queries` or `finishing` may apply to the message. The
        intake does not change, so the caller may still give the same octets to `receive`.
        """
        if size <= PREFIX or self.finishing or self._queries or self.reader.pending:
            return None
        return bytes(buffer[PREFIX:size]) if buffer[0] << 8 | buffer[1] == size - PREFIX else None

    def receive(self, octets: bytes) -> list[bytes]:
        """The complete messages after a read. Once a message begins too late, the rest of the stream is dropped."""
        pending = self.reader.pending
        messages = self.reader.receive_data(octets)
        return self._begun_in_time(messages, len(octets), pending) if self.finishing else messages

    def limited(self, messages: list[bytes]) -> list[bytes]:
        """Of these messages those within `queries`; with the last one of them the rest of the stream is dropped.

        A client with more queries reconnects, and is load-balanced anew.
        """
        if not self._queries:
            return messages
        messages = messages[: self._queries - self._taken]
        self._taken += len(messages)
        if self._taken == self._queries:
            self.drop_rest()
        return messages

    def drop_rest(self) -> None:
        """Take no further message, neither an incomplete one nor those that the kernel has."""
        self.reader = MessageReader()
        self.arrived = 0
        self.finishing = True

    def _begun_in_time(self, messages: list[bytes], size: int, pending: int) -> list[bytes]:
        """The messages of a read of `size` octets that begin in its first `arrived` octets, or before.

        `pending`: octets of an incomplete message before the read.
        """
        start, accepted = -pending, 0
        for message in messages:
            if start >= self.arrived:
                break
            start += PREFIX + len(message)
            accepted += 1
        if start >= self.arrived:
            self.drop_rest()
        else:
            self.arrived = max(0, self.arrived - size)
        return messages[:accepted]
