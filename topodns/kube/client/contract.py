"""What the rest of the house sees of an API server: the errors, the deadlines, and what can be asked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from topodns.edge.api_error import ApiError

__all__ = ["DEADLINES", "ApiError", "Deadlines", "KubeApi"]


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long things may take, in seconds."""

    connect: float = 5.0  # name lookup, TCP and TLS
    response: float = 30.0  # from the request, connecting included, to the head of its response
    login: float = 30.0  # of an exec plugin
    login_age: float = 60.0  # credentials are read anew when they are older; client-go's period


DEADLINES: Final = Deadlines()


class KubeApi(Protocol):
    """One API server. Made by `connect`."""

    def stream(self, path: str, parameters: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """GET: the body of a 200 response, piece by piece as it comes.

        At most some hundred KiB wait here for a caller that does not ask for the next piece; then TCP makes the
        server wait. Raises ApiError, also while the body is read; the request after such a failure goes over a new
        connection. How long silence in the body may last is the caller's business.
        """

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        """POST, PUT or PATCH; the body of a 2xx response. Raises ApiError."""

    async def close(self) -> None:
        """Close all connections."""
