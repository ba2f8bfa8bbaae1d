"""One watch, from its request to its end. Where it begins with a list, it is both."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

from topodns.cluster.watch import Bookmark, Event, Refusal, Undecodable, UnreadableReply, read_watch_line
from topodns.edge.api_source.line_reader import LineReader, LineTooLong
from topodns.edge.api_source.reader import Reader
from topodns.edge.api_source.turns import Turn
from topodns.edge.kube_api.contract import ApiError

log = logging.getLogger(__name__)

WATCH_SECONDS: Final = (240.0, 295.0)  # asked of the server; random, so that watches do not end together
OVERDUE: Final = 10.0  # seconds after which we end a watch that the server should have ended
INITIAL_SILENCE: Final = 5.0  # seconds: a server that stops before the initial events end does not know of such an end
INITIAL_DEADLINE: Final = 60.0  # seconds from the request to the end of the initial events, however busily they come
STANDING: Final = 0.5  # seconds after which a watch without a list counts as granted: trouble comes sooner
SHORT_WATCH: Final = 1.0  # seconds: a watch that ends sooner and brings nothing new is a failure, as in client-go

_NO_RESPONSE: Final = 0
_GONE: Final = 410
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500  # and all above
_REFUSALS: Final = (400, 422)  # of a wish that the server does not know, or has switched off


class NoInitialEvents(Exception):
    """The server does not stream lists."""


class WatchRun:
    """Reads one response to a watch request."""

    def __init__(self, reader: Reader, with_list: bool) -> None:
        self._reader = reader
        self._listing = reader.new_listing() if with_list else None
        self._lines = LineReader()
        self._fruitful = False  # something new has come of it
        self._seconds = reader.company.rng.uniform(*WATCH_SECONDS)
        self._began = asyncio.get_running_loop().time()
        self._limit = asyncio.timeout_at(self._began + self._seconds + OVERDUE)

    async def run(self) -> None:
        """Take everything in until the server ends the watch. Raises ApiError, Doubtful, NoInitialEvents."""
        try:
            await self._read_to_the_end()
        except ApiError as error:
            if _is_loss(error.status):
                self._reader.company.gate.losses += 1
            raise

    async def _read_to_the_end(self) -> None:
        try:
            await self._read()
        except TimeoutError:
            if self._listing is not None:
                raise NoInitialEvents from None
            log.info("plugin/kubernetes: watch of %s: overdue, asking again", self._reader.progress.resource.name)
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
        async with self._limit, self._reader.company.api.stream(self._reader.path, self._parameters()) as body:
            self._reader.heard()
            standing = loop.call_later(STANDING, self._stand)
            try:
                await self._read_pieces(body)
            finally:
                standing.cancel()

    def _conclude(self) -> None:
        """The server has ended it."""
        if self._listing is not None:
            raise NoInitialEvents
        if not self._is_useful():
            raise ApiError(_NO_RESPONSE, "the watch ended at once")
        self._reader.backoff.succeeded()

    async def _read_pieces(self, body: AsyncIterator[bytes]) -> None:
        self._expect_more()
        async for piece in body:
            await self._take_piece(piece)
            self._expect_more()

    def _parameters(self) -> dict[str, str]:
        times = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(int(self._seconds))}
        version = self._reader.ledger.version
        if self._listing is not None:
            start = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", **self._reader.ledger.floor}
        else:
            start = {"resourceVersion": version} if version else {}
        return {**self._reader.progress.resource.selectors, **times, **start}

    def _expect_more(self) -> None:
        """Silence is normal in a watch that may end only as a whole, but not among its initial events."""
        if self._listing is not None:
            silence = asyncio.get_running_loop().time() + INITIAL_SILENCE
            self._limit.reschedule(min(silence, self._began + INITIAL_DEADLINE))

    async def _take_piece(self, piece: bytes) -> None:
        async with self._reader.company.turns.take() as turn:
            for line in self._lines.feed(piece):
                item = read_watch_line(self._reader.progress.resource.kind, line)
                if isinstance(item, Refusal):
                    if item.status == _GONE:
                        self._reader.answered()  # what it says is true: there is no trouble on its side
                    raise ApiError(item.status, item.problem, item.retry_after)
                await self._take_item(item, turn)
                if self._listing is not None:
                    self._reader.heard()
                elif self._is_useful():
                    self._reader.answered()
                await turn.breathe()

    def _stand(self) -> None:
        """Where no list is awaited, to be granted is all that a watch can be asked for."""
        if self._listing is None:
            self._reader.answered()

    async def _take_item(self, item: Event | Bookmark | Undecodable, turn: Turn) -> None:
        if self._listing is None:
            self._take_news(item)
        elif not isinstance(item, Bookmark):
            self._fruitful = True
            self._reader.ledger.collect(self._listing, item)
        elif item.initial_events_end:
            listing, self._listing = self._listing, None
            self._limit.reschedule(self._began + self._seconds + OVERDUE)
            await self._reader.believe(listing, item.version, turn)
            self._fruitful = True

    def _take_news(self, item: Event | Bookmark | Undecodable) -> None:
        """A bookmark, or an event that was there before, is no sign that the next watch will bring more."""
        before = self._reader.ledger.version
        self._reader.ledger.take(item)
        if isinstance(item, Event) and self._reader.ledger.version != before:
            self._fruitful = True
        if self._is_useful():
            self._reader.backoff.succeeded()

    def _is_useful(self) -> bool:
        """Whether the server is well: it has told something new, or at least keeps the watch standing."""
        return self._fruitful or asyncio.get_running_loop().time() - self._began >= SHORT_WATCH


def _is_loss(status: int) -> bool:
    """Whether the server was away, as it or somebody in between said, or nobody did."""
    return status in (_NO_RESPONSE, _TOO_MANY_REQUESTS) or status >= _SERVER_ERROR
