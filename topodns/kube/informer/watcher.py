"""One watch request, from start to end; with sendInitialEvents (KEP-3157) it is also the list."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from topodns.cluster.decode.stream import Bookmark, Event, Refusal, Undecodable, UnreadableReply, read_watch_line
from topodns.kube.client.contract import ApiError
from topodns.kube.informer.decode_turns import Turn
from topodns.kube.informer.lister import Lister

MAX_LINE: Final = 16 << 20  # octets; etcd stores objects up to 1.5 MiB, which is less than 16 MiB in any JSON encoding


class LineTooLong(ValueError):
    """A line of a watch is longer than the limit, which bounds memory."""


class LineReader:
    """Splits one response body into lines. A rest without a line feed at the end is discarded."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._pieces: list[bytes] = []  # of the incomplete line
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that this piece completes, without line feeds and without empty lines.

        The iterator must be exhausted. Raises LineTooLong.
        """
        first, *rest = data.split(b"\n")
        self._keep(first)
        for piece in rest:
            line = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._keep(piece)
            if line.strip():
                yield line

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_line:
            raise LineTooLong(f"a line of more than {self._max_line} octets")
        if piece:
            self._pieces.append(piece)


WATCH_SECONDS: Final = (240.0, 295.0)  # timeoutSeconds of the request; random, so that watches do not end together
OVERDUE: Final = 10.0  # seconds past timeoutSeconds after which the client ends the watch
INITIAL_SILENCE: Final = 5.0  # seconds without data among the initial events that mean no support for them
INITIAL_DEADLINE: Final = 60.0  # seconds from the request to the end of the initial events
HEALTHY_AFTER: Final = 0.5  # seconds after which a watch without a list counts as healthy: errors arrive sooner
SHORT_WATCH: Final = 1.0  # seconds: a watch that ends sooner without a new event is a failure, as in client-go

_NO_RESPONSE: Final = 0
_GONE: Final = 410
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500  # and above
_REFUSALS: Final = (400, 422)  # for sendInitialEvents where it is unknown or disabled


class NoInitialEvents(Exception):
    """The response is no complete list in initial events: the server does not stream lists (KEP-3157)."""


class WatchRun:
    """One watch request and its response; `with_list`: it also requests the list, as initial events (KEP-3157)."""

    def __init__(self, lister: Lister, with_list: bool) -> None:
        self._lister = lister
        self._listing = lister.new_listing() if with_list else None
        self._lines = LineReader()
        self._turn = lister.shared.turns.turn()
        self._decode = lister.shared.store.decode
        self._has_delivered = False  # whether it has delivered a new object or event
        self._seconds = lister.shared.rng.uniform(*WATCH_SECONDS)
        self._began = asyncio.get_running_loop().time()
        self._overdue = self._began + self._seconds + OVERDUE
        self._limit = asyncio.timeout_at(self._overdue)

    async def run(self) -> None:
        """Apply all items until the server ends the watch, or should have ended it OVERDUE seconds ago.

        Raises ApiError (also for a watch that ended too soon), ImplausibleList, NoInitialEvents.
        """
        try:
            await self._read_to_the_end()
        except ApiError as error:
            if _is_loss(error.status):
                self._lister.shared.gate.losses += 1
            raise
        if self._lister.shared.checks_each_watch:
            self._lister.shared.gate.losses += 1

    async def _read_to_the_end(self) -> None:
        try:
            await self._read()
        except TimeoutError:
            if self._listing is not None:
                raise NoInitialEvents from None
            if asyncio.get_running_loop().time() < self._overdue:
                raise ApiError(_NO_RESPONSE, f"the watch was silent for {self._lister.shared.silence:g} s") from None
            progress = self._lister.progress
            progress.reports.say(f"watch of {progress.resource.name}: overdue, asking again", logging.INFO)
            return
        except ApiError as error:
            if self._listing is not None and error.status in _REFUSALS:
                raise NoInitialEvents from None
            raise
        except (UnreadableReply, LineTooLong) as problem:
            raise ApiError(_NO_RESPONSE, str(problem)) from None
        self._conclude()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        async with self._limit, self._lister.shared.api.stream(self._lister.path, self._parameters()) as body:
            self._lister.received()
            timer = loop.call_later(HEALTHY_AFTER, self._note_open)
            try:
                await self._read_pieces(body)
            finally:
                timer.cancel()

    def _conclude(self) -> None:
        """Judge a watch ended by the server: reset the backoff of a healthy one.

        Raises NoInitialEvents if its list is incomplete, ApiError if it was short and had no new event.
        """
        if self._listing is not None:
            raise NoInitialEvents
        if not self._proves_health():
            raise ApiError(_NO_RESPONSE, "the watch ended at once")
        self._lister.backoff.succeeded()

    async def _read_pieces(self, body: AsyncIterator[bytes]) -> None:
        self._extend_deadline()
        async for piece in body:
            await self._take_piece(piece)
            self._extend_deadline()

    def _parameters(self) -> dict[str, str]:
        times = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(int(self._seconds))}
        version = self._lister.sync.version
        if self._listing is not None:
            newest = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            start = {**newest, **self._lister.sync.not_older_than}
        else:
            start = {"resourceVersion": version} if version else {}
        return {**self._lister.progress.resource.selectors, **times, **start}

    def _extend_deadline(self) -> None:
        """Set the deadline for silence: among the initial events a short one, after them that of `SharedState`."""
        if self._listing is not None:
            silence = asyncio.get_running_loop().time() + INITIAL_SILENCE
            self._limit.reschedule(min(silence, self._began + INITIAL_DEADLINE))
        elif self._lister.shared.silence < math.inf:
            silence = asyncio.get_running_loop().time() + self._lister.shared.silence
            self._limit.reschedule(min(silence, self._overdue))

    async def _take_piece(self, piece: bytes) -> None:
        async with self._turn as turn:
            for line in self._lines.feed(piece):
                item = read_watch_line(self._lister.progress.resource.kind, line, self._decode)
                if isinstance(item, Refusal):
                    if item.status == _GONE:
                        self._lister.succeeded()  # a valid answer: the version is too old, the server is healthy
                    raise ApiError(item.status, item.problem, item.retry_after)
                if self._listing is None:
                    await turn.pause_if_long()  # so that no query waits for both decoding and applying
                await self._take_item(item, turn)
                if self._listing is not None:
                    self._lister.received()
                elif self._proves_health():
                    self._lister.succeeded()
                await turn.pause_if_due()

    def _note_open(self) -> None:
        """Count a watch without initial events as healthy once it has been open for HEALTHY_AFTER."""
        if self._listing is None:
            self._lister.succeeded()

    async def _take_item(self, item: Event[Any] | Bookmark | Undecodable, turn: Turn) -> None:
        if self._listing is None:
            self._apply_item(item)
        elif not isinstance(item, Bookmark):
            self._has_delivered = True
            self._lister.collect(self._listing, item)
        elif item.initial_events_end:
            listing, self._listing = self._listing, None
            self._limit.reschedule(self._overdue)
            listing.version = item.version
            await self._lister.accept(listing, turn)
            self._has_delivered = True

    def _apply_item(self, item: Event[Any] | Bookmark | Undecodable) -> None:
        """Apply an item. Only a new event resets the backoff before SHORT_WATCH: after a bookmark or a repeated event,
        the next watch may bring nothing.
        """
        before = self._lister.sync.version
        self._lister.sync.apply(item)
        if isinstance(item, Event) and self._lister.sync.version != before:
            self._has_delivered = True
        if self._proves_health():
            self._lister.backoff.succeeded()

    def _proves_health(self) -> bool:
        """Whether the watch proves the server healthy: it delivered something new or has been open for SHORT_WATCH."""
        return self._has_delivered or asyncio.get_running_loop().time() - self._began >= SHORT_WATCH


def _is_loss(status: int) -> bool:
    """Whether the status means an unavailable server: no response, or 429 or 5xx from it or from a proxy."""
    return status in (_NO_RESPONSE, _TOO_MANY_REQUESTS) or status >= _SERVER_ERROR
