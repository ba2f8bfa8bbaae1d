"""The connection to an API server: configuration and authentication by the kubernetes package, bytes by aiohttp.

The one importer of kubernetes and aiohttp, both only inside `connect`. Objects never pass through their models.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager

from topodns.settings.kubernetes import ApiSettings


class ApiError(Exception):
    """The API server refused or could not be reached. `status` is 0 where no response came."""

    def __init__(self, status: int, problem: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {problem}" if status else problem)
        self.status = status
        self.retry_after = retry_after  # seconds that the server asked us to wait


class KubeApi:
    """One API server. Made by `connect`."""

    def stream(self, path: str, parameters: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """GET: the body of a 200 response, piece by piece as it comes.

        Connect deadline 5 s, first-byte deadline 30 s, each time on a new connection after a failure. Raises ApiError.
        How long silence in the body may last is the caller's business.
        """
        raise NotImplementedError

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        """POST, PUT or PATCH; the body of a 2xx response. Raises ApiError."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError


async def connect(settings: ApiSettings) -> KubeApi:
    """The API server that these settings name. Raises ApiError where they cannot be used (no such file, context...)."""
    raise NotImplementedError
