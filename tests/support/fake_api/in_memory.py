"""The fake API server without sockets, for tests in virtual time: an API that topodns's reflectors can ask."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from tests.support.fake_api.exchange import Request
from tests.support.fake_api.listener import Answer
from topodns.kube.client.contract import ApiError, RequestDeadlines

_DEADLINES: Final = RequestDeadlines()


class MemoryFront:
    """Requests are method calls. `attempts` are the times of all of them, of those that found it closed too."""

    url = "memory:"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.attempts: list[float] = []
        self.responses: set[_MemoryResponse] = set()
        self.is_open = False

    async def open(self) -> None:
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False
        self.cut()

    def cut(self) -> None:
        for response in self.responses:
            response.abort()


class MemoryClient:
    """Asks a MemoryFront. Fails as topodns's own connection to an API server does, with ApiError."""

    def __init__(self, front: MemoryFront) -> None:
        self._front = front

    @asynccontextmanager
    async def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET, as KubeApi.stream."""
        async with self._asked(Request("GET", path, dict(parameters))) as body:
            yield body

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        """As KubeApi.send."""
        async with self._asked(Request(method, path, {}, {"content-type": content_type}, body)) as pieces:
            return b"".join([piece async for piece in pieces])

    async def close(self) -> None: ...

    @asynccontextmanager
    async def _asked(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        self._front.attempts.append(asyncio.get_running_loop().time())
        if not self._front.is_open:
            raise ApiError(0, "connection refused")
        response = _MemoryResponse()
        self._front.responses.add(response)
        serving = asyncio.create_task(self._serve(request, response), name="fake-api")
        try:
            yield await response.body()
        finally:
            self._front.responses.discard(response)
            response.hang_up()
            serving.cancel()
            (outcome,) = await asyncio.gather(serving, return_exceptions=True)
            if isinstance(outcome, Exception):
                raise outcome

    async def _serve(self, request: Request, response: "_MemoryResponse") -> None:
        try:
            await self._front.answer(request, response)
        finally:
            response.abort()  # which changes nothing where it has ended well


class _MemoryResponse:
    """The body of a response, for its reader."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes | ApiError | None] = asyncio.Queue()  # to None or the error that ends it
        self._head: asyncio.Future[ApiError | None] = asyncio.get_running_loop().create_future()
        self._ended = False
        self._hung_up: Callable[[], object] = lambda: None

    async def body(self) -> AsyncIterator[bytes]:
        """Once the head is there. Raises ApiError."""
        try:
            async with asyncio.timeout(_DEADLINES.response):
                refused = await self._head
        except TimeoutError:
            raise ApiError(0, f"no response within {_DEADLINES.response:g} s") from None
        if refused is not None:
            raise refused
        return self._read()

    async def _read(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            if isinstance(piece, ApiError):
                raise piece
            yield piece

    def hang_up(self) -> None:
        self._hung_up()

    async def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        if status >= 300:
            retry_after = (headers or {}).get("Retry-After")
            seconds = None if retry_after is None else float(retry_after)
            self._begin_with(ApiError(status, json.loads(body)["message"], seconds))
            return
        await self.begin()
        await self.write(body)
        await self.end()

    async def begin(self, first_write: int = 0) -> None:
        self._begin_with(None)

    def _begin_with(self, refused: ApiError | None) -> None:
        if not self._head.done():  # else the client waits no longer
            self._head.set_result(refused)

    async def write(self, data: bytes) -> None:
        self._pieces.put_nowait(data)

    async def end(self) -> None:
        self._ended = True
        self._pieces.put_nowait(None)

    async def break_framing(self) -> None:
        self._ended = True
        self._pieces.put_nowait(ApiError(0, "the response was cut off"))

    @asynccontextmanager
    async def on_hangup(self, act: Callable[[], object]) -> AsyncIterator[None]:
        self._hung_up = act
        yield

    def abort(self) -> None:
        if not self._head.done():
            self._head.set_result(ApiError(0, "the connection was cut"))
        elif not self._ended:
            self._pieces.put_nowait(ApiError(0, "the connection was cut"))
        self._ended = True
