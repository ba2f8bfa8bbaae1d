"""HTTP/1.1 client of one API server. Only this module imports aiohttp.

aiohttp pools connections by a key that includes the TLS context. A new context after every failure and every rotation
of credentials therefore keeps old connections from being reused.
"""

import asyncio
import os
import platform
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler

from topodns import __version__
from topodns.kube.client.contract import MAX_BODY, NO_RESPONSE, ApiError, RequestCounters, RequestDeadlines, api_error
from topodns.kube.client.credentials import Access, Login, tls_context
from topodns.logs import one_line

TRANSPORT_ERRORS: Final = (aiohttp.ClientError, OSError)  # of a connection; a timeout is an OSError

_IDLE, _EVERY, _PROBES = 15, 5, 3  # TCP keepalive: seconds, seconds, count; a dead peer is noticed within 30 s
_UNACKNOWLEDGED: Final = 30_000  # milliseconds that sent data may remain unacknowledged

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]


def open_socket(address: AddressInfo) -> socket.socket:
    """A TCP socket with keepalive and user timeout, for an address in the form of getaddrinfo.

    A watch may be silent for minutes, so only the kernel can distinguish a quiet server from one that has lost power or
    whose packets are dropped. Without these options Linux needs two hours, or 15 minutes with unacknowledged data
    (kubernetes/kubernetes#95981).
    """
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _EVERY)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED)
    return sock


MAX_SENT_BACK: Final = 4 << 20  # octets of the response to `send`; etcd stores objects up to 1.5 MiB
LOOK_EVERY: Final = 1.0  # seconds between checks for a closed connection while a body is read

_USER_AGENT: Final = f"topodns/{__version__} ({sys.platform}/{os.uname().machine}; Python {platform.python_version()})"
_HEADERS: Final = {
    "User-Agent": _USER_AGENT,
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # on a cluster's own network, decompressing costs more than the octets it saves
}


_STATUS_LABELS: Final[Mapping[int, str]] = {status: str(status.value) for status in HTTPStatus}
_PIECE: Final = 1 << 14  # octets between two looks at the framing
_FRAMING: Final = 1 << 15  # octets of one response beside its content: interim responses, headers, chunks, trailers
_SHARE: Final = 8  # and one octet for so many of content; an API server needs 7 for each event of some hundred


class _TooMuchFraming(aiohttp.ClientPayloadError):
    """A response with more octets of framing than any API server or proxy needs."""


class _BoundedFraming(ResponseHandler):
    """The connection, which ends when a response has too much framing.

    aiohttp bounds the size of each interim response and header, and that of no chunk extension, but takes them without
    end, with a Python object each (RFC 9110 section 15.2, RFC 9112 section 7.1).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._arrived = 0  # octets of the present response

    def set_response_params(self, **parameters: Any) -> None:
        self._arrived = 0
        super().set_response_params(**parameters)

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data) or 1, _PIECE):
            piece = data[at : at + _PIECE]
            self._arrived += len(piece)
            super().data_received(piece)
            if self.transport is None or self.transport.is_closing():
                return
            if self._reading_paused:  # the parser may hold content back, until the reader has taken some
                continue
            content = self._payload.total_bytes if self._payload is not None else 0
            if self._arrived - content > _FRAMING + content // _SHARE:
                self._end()
                return

    def _end(self) -> None:
        payload, transport = self._payload, self.transport
        problem = _TooMuchFraming("the response has more framing than content")
        self.set_exception(problem)
        if payload is not None:
            payload.set_exception(problem)
        if transport is not None:
            transport.abort()


class _Connector(aiohttp.TCPConnector):
    """Makes each connection a `_BoundedFraming`: aiohttp has no public way to it."""

    def __init__(self) -> None:
        super().__init__(limit=0, socket_factory=open_socket)
        self._factory = cast("partial[ResponseHandler]", partial(_BoundedFraming, self._loop))


class _Request(NamedTuple):
    method: str
    path: str
    parameters: Mapping[str, str]
    body: bytes | None = None
    content_type: str = ""


class ApiConnection:
    """The client of one API server; implements `KubeApi`."""

    def __init__(self, login: Login, deadlines: RequestDeadlines, socket_counters: RequestCounters) -> None:
        self._login = login
        self._deadlines = deadlines
        self._socket_counters = socket_counters
        self._tls: tuple[Access, ssl.SSLContext] | None = None
        # No cookies, redirects or proxies from the environment: a token is sent only to the configured server.
        self._session = aiohttp.ClientSession(
            connector=_Connector(),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=deadlines.connect),
            headers=_HEADERS,
            auto_decompress=False,  # a compressed body is rejected: it may be a bomb
        )

    @asynccontextmanager
    async def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        response = await self._accepted(_Request("GET", path, parameters))
        with _Body(self, response) as body:
            yield body

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        response = await self._accepted(_Request(method, path, {}, body, content_type))
        try:
            with self.translated(_origin(response)):
                async with asyncio.timeout(self._deadlines.response):
                    content = await _read(response, MAX_SENT_BACK + 1)
        finally:
            response.close()
        if len(content) > MAX_SENT_BACK:
            raise ApiError(0, f"the response to {method} {path} is longer than {MAX_SENT_BACK} octets")
        return content

    async def close(self) -> None:
        await self._session.close()

    @contextmanager
    def translated(self, server: str) -> Iterator[None]:
        """Turn every connection failure in the context into an ApiError, and force a new connection afterwards."""
        try:
            yield
        except TRANSPORT_ERRORS as problem:
            self._tls = None
            raise ApiError(0, f"{server}: {self._reason(problem)}") from problem

    async def _accepted(self, request: _Request) -> aiohttp.ClientResponse:
        """The 2xx response. After a 401, read the credentials again and retry once with new ones. Raises ApiError."""
        access = await self._login.access()
        response = await self._counted(access, request)
        if response.status == 401:
            refused = await self._refusal(response)
            renewed = await self._login.renew(access)
            if renewed == access:
                raise refused
            response = await self._counted(renewed, request)
        if not 200 <= response.status < 300:
            raise await self._refusal(response)
        if coding := _coding(response):
            response.close()
            raise ApiError(0, f"{_origin(response)}: the response has Content-Encoding {one_line(coding)!r}")
        return response

    async def _counted(self, access: Access, request: _Request) -> aiohttp.ClientResponse:
        began, code = time.monotonic(), NO_RESPONSE
        try:
            response = await self._ask(access, request)
            code = _STATUS_LABELS.get(response.status, "other")
            return response
        finally:
            self._socket_counters.count(request.method, urlsplit(access.server).netloc, code, time.monotonic() - began)

    async def _ask(self, access: Access, request: _Request) -> aiohttp.ClientResponse:
        """Send one request; returns the response with its body unread. Raises ApiError."""
        headers = {"Authorization": access.authorization} if access.authorization else {}
        if request.content_type:
            headers["Content-Type"] = request.content_type
        context = self._context(access)
        with self.translated(access.server):
            async with asyncio.timeout(self._deadlines.response):
                return await self._session.request(
                    request.method,
                    access.server + request.path,
                    params=request.parameters,
                    data=request.body,
                    headers=headers,
                    ssl=context,
                    server_hostname=access.server_name or None,
                    proxy=access.proxy or None,
                    allow_redirects=False,
                )

    def _context(self, access: Access) -> ssl.SSLContext:
        if self._tls is None or self._tls[0] is not access:
            self._tls = (access, tls_context(access))
        return self._tls[1]

    async def _refusal(self, response: aiohttp.ClientResponse) -> ApiError:
        """The ApiError of a response, with the reason from its body if that arrives in time. Closes the response.

        After a 5xx the next request uses a new connection.
        """
        try:
            async with asyncio.timeout(self._deadlines.connect):
                body = await _read(response, MAX_BODY)
        except TRANSPORT_ERRORS:
            body = b""
        finally:
            response.close()
        if _coding(response):
            body = b""
        if response.status >= 500:
            self._tls = None  # force a new connection: a load balancer may choose a healthy server
        return api_error(response.status, response.headers.get("Retry-After", ""), body, time.time())

    def _reason(self, problem: Exception) -> str:
        """The reason for a missing or incomplete response, in words."""
        match problem:
            case aiohttp.ConnectionTimeoutError():
                return f"no connection within {self._deadlines.connect:g} s"
            case TimeoutError(errno=None):
                return f"no response within {self._deadlines.response:g} s"
            case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as error):
                return f"its certificate is not trusted: {error.verify_message}"
            case aiohttp.ClientHttpProxyError(status=status):
                return f"the proxy refused with {status}"
            case aiohttp.ClientProxyConnectionError(os_error=error):
                return f"the proxy cannot be reached: {_words(error)}"
            case aiohttp.ClientConnectorDNSError(os_error=error):
                return f"its address is unknown: {error.strerror or error}"
            case aiohttp.ClientConnectorError(os_error=error):
                return _words(error)
            case aiohttp.ServerDisconnectedError():
                return "the connection was closed before a response came"
            case aiohttp.ClientPayloadError() if not isinstance(problem, _TooMuchFraming):
                return "the response was cut off"
        # For a response that is not HTTP, aiohttp invents a status, which is in no log of the server.
        text = f"not HTTP: {problem.message}" if isinstance(problem, aiohttp.ClientResponseError) else str(problem)
        return one_line(text) or type(problem).__name__


class _Body:
    """Iterates over the pieces of a response's body. Not a generator, which would outlive a caller that leaves it.

    After invalid framing (RFC 9112 section 7.1) aiohttp closes the connection and reports it to the next request, but
    not to a pending read of this body: so the connection is polled. Over TLS the close alone may take 30 s.
    """

    __slots__ = ("_connection", "_look", "_response")

    def __init__(self, connection: ApiConnection, response: aiohttp.ClientResponse) -> None:
        self._connection = connection
        self._response = response

    def __enter__(self) -> "_Body":
        self._look_later()
        return self

    def __exit__(self, *_: object) -> None:
        self._look.cancel()
        self._response.close()  # no effect after a complete body: its connection is in the pool already

    def __aiter__(self) -> "_Body":
        return self

    async def __anext__(self) -> bytes:
        with self._connection.translated(_origin(self._response)):
            piece = await self._response.content.readany()
        if not piece:
            raise StopAsyncIteration
        return piece

    def _look_later(self) -> None:
        self._look = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look_now)

    def _look_now(self) -> None:
        connection = self._response.connection
        if connection is not None and connection.closed:
            self._response.content.set_exception(aiohttp.ClientPayloadError())
        else:
            self._look_later()


def _words(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else one_line(str(error))


def _origin(response: aiohttp.ClientResponse) -> str:
    return str(response.url.origin())


def _coding(response: aiohttp.ClientResponse) -> str:
    """The Content-Encoding of the response's body; "" for none or identity, the only coding that requests accept."""
    coding: str = response.headers.get("Content-Encoding", "").strip()
    return "" if coding.lower() == "identity" else coding


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, or its first `limit` octets."""
    content = bytearray()
    while len(content) < limit and (piece := await response.content.readany()):
        content += piece
    return bytes(content[:limit])
