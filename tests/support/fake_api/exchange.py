"""A request and its response, whatever carries them."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from tests.support.fake_api.resources import Object
from tests.support.fake_api.statuses import Refusal

COMPRESS_FROM: Final = 128 * 1024  # octets: smaller first writes are never compressed, as by Kubernetes


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)  # names in small letters
    body: bytes = b""

    @property
    def gzip(self) -> bool:
        return "gzip" in self.headers.get("accept-encoding", "")


class Response(Protocol):
    """Either `send`; or `begin`, any number of `write`, `end`."""

    async def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None: ...

    async def begin(self, first_write: int = 0) -> None:
        """A 200 response of unknown length, whose first write has about this size in octets."""

    async def write(self, data: bytes) -> None: ...

    async def end(self) -> None: ...

    async def break_framing(self) -> None:
        """Send octets in a place where HTTP has a meaning for them, and they have none."""

    def on_hangup(self, act: Callable[[], object]) -> AbstractAsyncContextManager[None]:
        """Call `act` if the client closes the connection in the meantime. No next request may come meanwhile."""

    def abort(self) -> None:
        """End the connection in the middle of things."""


async def refuse(response: Response, refusal: Refusal) -> None:
    extra = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    await response.send(refusal.code, encoded(refusal.status()) + b"\n", extra)


def encoded(value: Object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
