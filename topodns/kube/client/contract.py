"""The interface of the API server client: requests and deadlines."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from topodns.kube.errors import ApiError


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
        """GET: the body of a 200 response, piece by piece as it arrives.

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
    """GET: the complete body of a 200 response. Raises ApiError, also for one longer than MAX_READ."""
    content = bytearray()
    async with api.stream(path, parameters) as pieces:
        async for piece in pieces:
            content += piece
            if len(content) > MAX_READ:
                raise ApiError(0, f"the response to GET {path} is longer than {MAX_READ} octets")
    return bytes(content)
