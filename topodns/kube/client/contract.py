"""The interface of the API server client: settings, deadlines, requests, errors. It loads no HTTP library."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from topodns.logs import one_line


class ApiError(Exception):
    """A request failed or cannot be made. `status` is the HTTP status of a refusal, also of one within a watch; else 0.

    0 means no response, an unusable one, and unusable settings or credentials.

    Its text is one short printable line even where `problem` comes from the server: it goes to the log and to /ready.
    """

    def __init__(self, status: int, problem: str, retry_after: float | None = None) -> None:
        super().__init__(one_line(f"{status}: {problem}" if status else problem))
        self.status = status
        self.retry_after = retry_after  # seconds, at least 0, from Retry-After or the Status; None if absent


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Address and credentials of the API server, from the directive `kubernetes`. All empty: a service account."""

    endpoint: str = ""  # URL of the server, https:// or http://, without a trailing slash
    tls: tuple[str, str, str] | None = None  # files: client certificate, its key, CA; each "" where not given
    kubeconfig: str = ""  # file
    context: str = ""  # of the kubeconfig; "" is its current one
    place: str = field(default="", compare=False)  # FILE:LINE of the Corefile, for messages


@dataclass(frozen=True, slots=True)
class RequestDeadlines:
    """Deadlines of the API client, in seconds."""

    connect: float = 5.0  # name lookup, TCP and TLS
    response: float = 30.0  # from the request, including the connect, to the head of the response
    login: float = 30.0  # for an exec plugin of a kubeconfig
    login_age: float = 60.0  # credentials older than this are read again; client-go's period


DEADLINES: Final = RequestDeadlines()


class KubeApi(Protocol):
    """A client of one API server, made by `connect`."""

    def stream(self, path: str, parameters: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """GET: the body of a 2xx response, piece by piece as it arrives.

        At most some hundred KiB are buffered for a slow caller; then TCP flow control stops the server. Silence in the
        body has no deadline here; the caller sets one. Raises ApiError, also while the body is read; the request after
        such a failure uses a new connection.
        """

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        """POST, PUT or PATCH; returns the body of a 2xx response. Raises ApiError."""

    async def close(self) -> None:
        """Close all connections."""


MAX_READ: Final = 4 << 20  # octets; etcd stores objects up to 1.5 MiB

_NO_PARAMETERS: Final[Mapping[str, str]] = {}


async def read_body(api: KubeApi, path: str, parameters: Mapping[str, str] = _NO_PARAMETERS) -> bytes:
    """GET: the complete body of a 2xx response. Raises ApiError, also for one longer than MAX_READ."""
    content = bytearray()
    async with api.stream(path, parameters) as pieces:
        async for piece in pieces:
            content += piece
            if len(content) > MAX_READ:
                raise ApiError(0, f"the response to GET {path} is longer than {MAX_READ} octets")
    return bytes(content)
