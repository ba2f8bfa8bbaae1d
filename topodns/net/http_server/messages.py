"""Request, reply and route types of the HTTP server, and the limits for its clients."""

import asyncio
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


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Route = Callable[[HttpRequest], "HttpReply | asyncio.Future[HttpReply]"]
"""Handles a request: returns the reply, or a future if the reply would take too long for one turn of the loop."""
