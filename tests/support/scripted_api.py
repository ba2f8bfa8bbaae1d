"""An API server with a script of responses, request after request, that remembers the requests. No sockets."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from topodns.kube.client.contract import ApiError

Object = dict[str, Any]

Piece = bytes | float | Callable[[], Awaitable[object]]
"""Octets, seconds of silence, or something to wait for."""

REFUSED: Final = ApiError(0, "connection refused")
NO_WATCH_LIST: Final = ApiError(422, "sendInitialEvents is forbidden")
GONE: Final = ApiError(410, "Expired")
FORBIDDEN: Final = ApiError(403, "services is forbidden")
NOT_FOUND: Final = ApiError(404, "the server could not find the requested resource")


@dataclass(frozen=True, slots=True)
class Body:
    """A 200 response: octets, and what happens between them. At its end it closes, or `stalls` for ever."""

    pieces: Sequence[Piece]
    stalls: bool = False

    async def read(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, bytes):
                yield piece
            elif callable(piece):
                await piece()
            else:
                await asyncio.sleep(piece)
        if self.stalls:
            await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class Request:
    at: float  # seconds of the loop's clock
    path: str
    parameters: Mapping[str, str]

    @property
    def streams_list(self) -> bool:
        return "sendInitialEvents" in self.parameters

    @property
    def is_watch(self) -> bool:
        return "watch" in self.parameters


@dataclass
class ScriptedApi:
    """Gives the replies in their order; after the last one nothing more is said. `lists` go to lists alone, first."""

    replies: deque[Body | ApiError] = field(default_factory=deque)
    lists: deque[Body | ApiError] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)

    @asynccontextmanager
    async def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        self.requests.append(Request(asyncio.get_running_loop().time(), path, dict(parameters)))
        replies = self.replies if "watch" in parameters else self.lists or self.replies
        reply = replies.popleft() if replies else Body((), stalls=True)
        if isinstance(reply, ApiError):
            raise reply
        yield reply.read()

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        raise AssertionError(f"reflectors send nothing, but here is {method} {path}")

    async def close(self) -> None:
        self.requests.clear()

    @property
    def times(self) -> list[float]:
        return [request.at for request in self.requests]


def page(*objects: Object, version: int, token: str = "", kind: str = "Service") -> Body:
    """A page of a list of this kind."""
    metadata = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return Body((_json({"kind": f"{kind}List", "metadata": metadata, "items": list(objects)}),))


def watch(*pieces: Piece, ends: bool = False) -> Body:
    """A watch that says this and stays open, unless it `ends`."""
    return Body(pieces, stalls=not ends)


def event(kind: str, value: Object, version: int) -> bytes:
    """A line: `ADDED`, `MODIFIED` or `DELETED`."""
    return _line(kind, at_version(value, version))


def bookmark(version: int, initial_events_end: bool = False) -> bytes:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if initial_events_end else {}
    return _line("BOOKMARK", {"kind": "Service", "metadata": {"resourceVersion": str(version), **annotations}})


def error(status: int, reason: str) -> bytes:
    return _line("ERROR", {"kind": "Status", "code": status, "reason": reason, "message": "because"})


def at_version(value: Object, version: int) -> Object:
    return {**value, "metadata": {**value["metadata"], "resourceVersion": str(version)}}


def _line(kind: str, value: Object) -> bytes:
    return _json({"type": kind, "object": value}) + b"\n"


def _json(value: Object) -> bytes:
    return json.dumps(value).encode()
