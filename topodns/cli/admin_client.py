"""Client of a server's admin endpoints, for `topodns explain`, `who` and `audit`, and the kubectl plugin.

What a server sends is foreign text: it is bounded in size and time, checked, and printed without control characters.
"""

import json
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TIMEOUT: Final = 5.0  # seconds until the whole reply is there
MAX_BODY: Final = 16 << 20  # octets of a reply
_MAX_PORT: Final = 65_535
_NO_ROUTE: Final = "not found"  # what a topodns replies at its other addresses, such as that of `health`
_PIECE: Final = 1 << 16  # octets read at once


class AdminError(Exception):
    """No reply, a refusal, or a reply that makes no sense; the text gives the reason."""


def fetch(server: str, path: str, arguments: Mapping[str, str], timeout: float = TIMEOUT) -> bytes:
    """The body of a reply with status 200 of an admin endpoint of `server` (host:port), within `timeout` seconds.

    Asks no proxy and follows no redirect: a foreign server could have other addresses of the operator's network asked.
    Raises AdminError.
    """
    import http.client  # here, as the command that serves imports this module, too
    from urllib.parse import urlencode

    from topodns.logs import one_line

    try:
        connection = http.client.HTTPConnection(server)
        try:
            if not 1 <= connection.port <= _MAX_PORT:
                raise ValueError(f"{connection.port} is no port, expected 1 to {_MAX_PORT}")
            connection.sock = _connected(connection.host, connection.port, time.monotonic() + timeout)
            connection.request("GET", f"{path}?{urlencode(arguments)}")
            reply = connection.getresponse()
            body = _body(reply.read1)
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as failed:
        reason = failed.strerror if isinstance(failed, OSError) else None
        problem = one_line(reason or str(failed) or type(failed).__name__)
        raise AdminError(f"no answer from {server}: {problem}; is it the `ready` address of a topodns?") from None
    if reply.status != http.client.OK:
        text = body.decode("utf-8", "replace").strip()
        if reply.status == http.client.NOT_FOUND and text == _NO_ROUTE:
            text = f"not found: {server} has no {path}; is it the `ready` address of a topodns, and not an older one?"
        raise AdminError(one_line(text or f"HTTP Error {reply.status}: {reply.reason}"))
    return body


def _connected(host: str, port: int, end: float) -> socket.socket:
    """A connection that ends at `end` (monotonic). Each address of the host has the whole time to connect."""
    plain = socket.create_connection((host, port), max(0.0, end - time.monotonic()))
    return _EndingSocket(end, plain.detach())


class _EndingSocket(socket.socket):
    """A connected socket that is read until `end` (monotonic), however many octets arrive one by one."""

    def __init__(self, end: float, descriptor: int) -> None:
        super().__init__(fileno=descriptor)
        self._end = end

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int = 0, flags: int = 0) -> int:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.settimeout(left)
        return super().recv_into(buffer, nbytes, flags)


def _body(read1: Callable[[int], bytes]) -> bytes:
    """The whole body. Raises ValueError if it is larger than MAX_BODY."""
    body = bytearray()
    while piece := read1(_PIECE):
        body += piece
        if len(body) > MAX_BODY:
            raise ValueError(f"the reply is larger than {MAX_BODY >> 20} MB")
    return bytes(body)


def fetch_object(
    server: str, path: str, arguments: Mapping[str, str], key: str, timeout: float = TIMEOUT
) -> dict[str, object]:
    """The JSON object that the endpoint replies with, which has this key. Raises AdminError."""
    body = fetch(server, path, arguments, timeout)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or key not in found:
        raise AdminError(f"{server} does not answer {path}: is it the `ready` address of a topodns?")
    return found


def object_text(found: Mapping[str, object], as_json: bool, text_of: Callable[[Mapping[str, object]], str]) -> str:
    """The object as JSON, or by `text_of` in printable lines. Raises AdminError where `text_of` cannot read it."""
    from topodns.logs import printable

    if as_json:
        return json.dumps(found, indent=2)
    try:
        return "\n".join(map(printable, text_of(found).split("\n")))
    except (KeyError, TypeError) as problem:
        raise AdminError(f"the server is of another version: its reply has no {problem}") from None
