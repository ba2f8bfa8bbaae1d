"""The content of /metrics: the query counters, and the readings (metrics) of the rest of the process."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from topodns.dnsserver.metrics import readings_of_counters
from topodns.metrics.registry import Published, Reading
from topodns.metrics.scrapes import Scrapes
from topodns.net.http_server.messages import HttpReply, HttpRequest, Route
from topodns.query.counters import QueryCounters
from topodns.time_slices import Job, do_in_slices

if TYPE_CHECKING:
    from topodns.app.workers.pool import WorkerPool


class Metrics:
    """All metrics of the process. `all_counters`, the query counters, is called at each scrape.

    `now` is the wall clock, in seconds since the epoch.
    """

    def __init__(
        self,
        all_counters: Callable[[], Iterable[QueryCounters]],
        readings: Sequence[Published],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._all_counters = all_counters
        self._readings = list(readings)
        self._now = now
        self._route: Route | None = None
        self.others: WorkerPool | None = None  # those of `multisocket`
        self._counting: list[Callable[[], Job[None]]] = []

    def publish(self, readings: Iterable[Published]) -> None:
        """Add these metrics from now on."""
        self._readings += readings

    def count_first(self, steps: Callable[[], Job[None]]) -> None:
        """Do this job before each exposition from now on, in slices: it counts what a metric then shows."""
        self._counting.append(steps)

    async def count(self) -> None:
        """Do the jobs of `count_first`."""
        for steps in self._counting:
            await do_in_slices(steps())

    def published(self) -> Iterator[Published]:
        """All metrics but those of the interpreter and of /proc. One is the Unix time at which the iteration began."""
        began = [((), self._now())]
        yield Reading(
            "topodns_exposition_timestamp_seconds",
            "Unix time at which this exposition was begun.",
            "gauge",
            (),
            lambda: began,
            False,
        )
        yield from readings_of_counters(list(self._all_counters()))
        yield from list(self._readings)

    def route(self) -> Route:
        """The handler of /metrics. The first call imports prometheus_client, which blocks for 25 ms."""
        if self._route is None:
            self._route = metrics_route(self._totals, self._refresh)
        return self._route

    async def _refresh(self) -> None:
        await self.count()
        if self.others is not None:
            await self.others.refresh()

    def _totals(self) -> Iterator[Published]:
        own = self.published()
        return own if self.others is None else self.others.totals(own)


def metrics_route(
    published: Callable[[], Iterable[Published]], before: Callable[[], Awaitable[object]] | None = None
) -> Route:
    """The handler of /metrics for these metrics, those of the interpreter and of /proc.

    `before` is awaited before each exposition is made.
    """
    # Imported here: prometheus_client takes 25 ms and 4 MB, which a process without /metrics does not need.
    from topodns.metrics.exposition import Exposition, form_for

    scrapes = Scrapes(Exposition(published).pieces, before=before)

    def metrics(request: HttpRequest) -> asyncio.Future[HttpReply]:
        form = form_for(request.headers.get("accept", ""))
        return _reply(scrapes.latest(form.encode), form.content_type)

    return metrics


def _reply(exposition: asyncio.Future[bytes], content_type: str) -> asyncio.Future[HttpReply]:
    """The reply once the exposition is made, which several content types may share."""
    reply: asyncio.Future[HttpReply] = asyncio.get_running_loop().create_future()

    def made(done: asyncio.Future[bytes]) -> None:
        if done.cancelled():
            reply.cancel()
        elif (failure := done.exception()) is not None:
            reply.set_exception(failure)
        else:
            reply.set_result(HttpReply(200, done.result(), content_type))

    exposition.add_done_callback(made)
    return reply
