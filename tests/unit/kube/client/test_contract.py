"""Errors and bodies of requests to an API server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from topodns.kube.client.contract import MAX_READ, ApiError, read_body


class Api:
    """A client whose every response has this body, piece by piece."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    @asynccontextmanager
    async def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append((path, parameters))

        async def body() -> AsyncIterator[bytes]:
            for piece in self._pieces:
                yield piece

        yield body()

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


def test_a_body_is_read_whole() -> None:
    api = Api(b"ab", b"", b"c")
    assert asyncio.run(read_body(api, "/version", {"a": "b"})) == b"abc"
    assert api.asked == [("/version", {"a": "b"})]


def test_a_body_beyond_the_limit_is_an_error() -> None:
    piece = b"x" * (MAX_READ // 2)
    assert len(asyncio.run(read_body(Api(piece, piece), "/a"))) == MAX_READ
    with pytest.raises(ApiError, match="longer than"):
        asyncio.run(read_body(Api(piece, piece, b"x"), "/a"))


@pytest.mark.parametrize(("status", "text"), [(0, "a b"), (403, "403: a b")])
def test_an_error_is_one_line_whatever_the_server_says(status: int, text: str) -> None:
    error = ApiError(status, "a\nb", 1.5)
    assert (str(error), error.status, error.retry_after) == (text, status, 1.5)
