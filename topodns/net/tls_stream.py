"""TLS of a client's connection (RFC 7858): octets of TCP below, a `TcpConnection` that knows nothing of TLS above.

OpenSSL works on memory, so that the connection's limits, deadlines, schedule and buffers are those of TCP: asyncio's
own TLS would admit a connection only after its handshake, and give each a buffer of 256 KiB. A handshake costs as much
as a hundred queries, so it waits for its turn in the schedule of all TCP clients.
"""

import asyncio
import ssl
from contextlib import suppress
from typing import Any, cast

from topodns.net.tcp_connection import UNDELIVERED, TcpClients, TcpConnection


class TlsStream(asyncio.Transport, asyncio.BufferedProtocol):
    """The transport of one TcpConnection, and the protocol of its TCP transport.

    `received`: where TCP puts octets; all connections of a listener share it, as it is read within one callback.
    """

    def __init__(self, clients: TcpClients, connection: TcpConnection, received: memoryview) -> None:
        super().__init__()
        assert clients.tls is not None
        self._clients = clients
        self._connection = connection
        self._received = received
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = clients.tls.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._secure = False  # the handshake is complete
        self._scheduled = False  # a step of the handshake waits for its turn
        self._reading = True  # as the connection wants it
        self._client_ended = False
        self._notified = False  # close_notify is sent
        self._tcp: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tcp = cast(asyncio.Transport, transport)
        self._connection.deadline.handshake_begins()
        self._connection.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
        del self._connection  # a cycle

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        self._incoming.write(self._received[:nbytes])
        if self._secure:
            self._deliver()
        elif not self._scheduled:
            self._scheduled = True
            self._tcp.pause_reading()
            self._clients.schedule.serve(self._connection.address, self._shake_hands)

    def _shake_hands(self, messages: int, until: float) -> bool:
        """Do the next step of the handshake; an `AnswerSome`."""
        self._scheduled = False
        if self._tcp.is_closing():
            return False
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._tcp.resume_reading()
        except ssl.SSLError:
            self._clients.counts.no_tls += 1
            self._flush()  # the alert
            self._tcp.close()
            return False
        else:
            self._secure = True
            self._connection.deadline.handshake_ended()
            self.resume_reading()
        self._flush()
        return False

    def _deliver(self) -> None:
        """Give the connection what is decrypted, while it reads."""
        buffer = self._clients.read_buffer
        while self._reading and not self._client_ended and not self._tcp.is_closing():
            try:
                size = cast(int, self._tls.read(len(buffer), buffer))
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:  # close_notify of both sides
                size = 0
            except ssl.SSLError:
                self._flush()
                self._tcp.close()
                return
            if size:
                self._connection.buffer_updated(size)
            else:
                self._end()
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._tcp.is_closing():
            self._tcp.write(self._outgoing.read())

    def _end(self) -> None:
        """The client sends nothing more."""
        self._client_ended = True
        if not self._connection.eof_received():
            self.close()

    def eof_received(self) -> bool:
        if self._secure and not self._client_ended:
            self._end()
        elif not self._secure:
            self._tcp.close()
        return True

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def write(self, data: Any) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._tls.write(left) :]
        except ssl.SSLError:
            self.abort()
            return
        self._flush()

    def write_eof(self) -> None:
        self._notify()
        self._tcp.write_eof()

    def close(self) -> None:
        self._notify()
        self._tcp.close()

    def _notify(self) -> None:
        """Send close_notify, once, without a wait for the client's."""
        if self._secure and not self._notified:
            self._notified = True
            with suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()

    def abort(self) -> None:
        self._tcp.abort()

    def is_closing(self) -> bool:
        return self._tcp.is_closing()

    def pause_reading(self) -> None:
        self._reading = False
        self._tcp.pause_reading()

    def resume_reading(self) -> None:
        self._reading = True
        asyncio.get_running_loop().call_soon(self._deliver)  # what came before it was paused
        self._tcp.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._tcp.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._tcp.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == UNDELIVERED:
            return self._incoming.pending + self._tls.pending()
        return self._tcp.get_extra_info(name, default)
