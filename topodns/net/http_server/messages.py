"""Request, reply, stream and route types of the HTTP server, the limits for its clients, and its counts."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AdminLimits:
    """Limits for the clients of each listener. Times in seconds, sizes in octets.

    Above `connections`, a new connection evicts one: the oldest of the address with the most connections, except those
    whose first request may have arrived and is not answered yet. (Refusing the new one would let 64 idle connections,
    which cost nothing, keep the kubelet's probes out.)
    """

    connections: int = 64
    head: int = 8192  # of a request's first line and headers
    request: float = 5.0  # for a whole request, from the start of the connection or from its first octet
    answer: float = 60.0  # for a route to make its reply
    reply: float = 10.0  # for the client to read its reply
    idle: float = 60.0  # until the next request


@dataclass(frozen=True, slots=True)
class HttpRequest:
    path: str
    arguments: Mapping[str, str]  # of the query string; the first of each name
    peer: str  # the client's address as text
    headers: Mapping[str, str] = field(default_factory=dict)  # by name in lower case; the last of each name
    repeated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # all values of each argument, in order


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()  # beside Content-Type, Content-Length, Allow and Connection


@dataclass(eq=False)
class HttpStream:
    """A reply of status 200 without an end, in parts, such as server-sent events.

    It holds at most one part that is not sent yet. The connection is dropped if the client takes longer than
    `AdminLimits.reply` for a part, if it sends anything, or after `AdminLimits.idle` without a new part.
    """

    content_type: str
    headers: tuple[tuple[str, str], ...] = ()
    ended: Callable[["HttpStream"], object] = lambda stream: None  # called once, when the connection is closed
    part: bytes = b""  # the next one to be sent; when made, the first one
    sending: bool = True  # the head or an earlier part is not all sent yet
    wake: Callable[[], object] = lambda: None  # set by the connection while it is open
    close: Callable[[], object] = lambda: None  # likewise: ends the stream and the connection

    @property
    def ready(self) -> bool:
        """Whether all earlier parts are sent, as far as the kernel takes them."""
        return not self.part and not self.sending

    def send(self, part: bytes) -> bool:
        """Send `part`, octets of the body, if the stream is `ready`. Returns whether it was; else the part is lost."""
        if not self.ready:
            return False
        self.part = part
        self.wake()
        return True


@dataclass(eq=False)
class HttpCounts:
    """Counters of all HTTP listeners of the process."""

    refused: Counter[int] = field(default_factory=Counter)  # requests answered with 400 to 499, by status
    streams: int = 0  # that are open now
    streams_dropped: int = 0  # reset by either side, mostly because the client did not read


Route = Callable[[HttpRequest], "HttpReply | HttpStream | asyncio.Future[HttpReply]"]
"""Handles a request: returns the reply, a stream, or a future if the reply takes too long for one turn of the loop."""
