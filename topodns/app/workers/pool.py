"""The workers of `multisocket`: started, given generations and changes, replaced when they end, and stopped."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from topodns.app.cluster_lifecycle import Start
from topodns.app.generation import Generation
from topodns.app.workers.copies import FeedJournal, TurnChanges, snapshot
from topodns.app.workers.link import WorkerLink, cpu_seconds, of_each_process, resident_bytes
from topodns.app.workers.messages import GenerationOrder, MessageType, message
from topodns.app.workers.metric_sums import Families, totals
from topodns.corefile.zones import ListenAt
from topodns.metrics.registry import Published, Reading
from topodns.query.counters import QueryCounters
from topodns.time_slices import SLICE

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.feed import Feed

log = logging.getLogger(__name__)


CHECK_EVERY: Final = 1.0  # seconds between the checks of each worker
REPORT_EVERY: Final = 15.0  # seconds between reports of metrics; a worker that is killed loses those since the last
REPORT_PATIENCE: Final = 0.5  # seconds that a scrape waits for reports; later ones are in the next scrape
LATE: Final = 1  # seconds that a worker may be behind while the server counts as ready
STOP_PATIENCE: Final = 12.0  # seconds for a worker to answer the queries it has got, when it is to end
RESTART_PAUSES: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)  # seconds before the next start of one that ends soon
LASTING: Final = 60.0  # seconds of life after which the pauses begin again
REQUESTS: Final = "coredns_dns_requests"
REASONS: Final = ("exited", "stuck", "behind")


@dataclass(eq=False)
class _Slot:
    """The place of one worker, and its present process."""

    number: int
    link: WorkerLink | None = None
    stopping: bool = False
    task: asyncio.Task[None] | None = None


@dataclass(eq=False)
class _Wait:
    """An action to call once these workers have acknowledged so many messages."""

    action: Callable[[], object]
    needed: dict[WorkerLink, int] = field(default_factory=dict)

    def is_over(self) -> bool:
        return all(link.acknowledged >= number or link.ended.done() for link, number in self.needed.items())


class WorkerPool:
    """The workers beside this process, which is the first one. `start` creates a task whose exception is a bug.

    `counters`: the query counters of this process.
    """

    def __init__(self, start: Start, counters: Callable[[], Iterable[QueryCounters]]) -> None:
        self._start = start
        self._counters = counters
        self._slots: list[_Slot] = []
        self._journals: dict[Feed, FeedJournal] = {}
        self._last_feed = 0
        self._turn = TurnChanges(self._send, self._copied)
        self._waits: list[_Wait] = []
        self._order: GenerationOrder | None = None
        self._announced = 0  # the number of the last generation that all workers serve
        self._renewed = asyncio.Event()
        self._past = Families()  # of workers that have ended
        self._replaced: Counter[str] = Counter()
        self._checking: asyncio.Task[None] | None = None

    def follow(self, generation: Generation, number: int, ports: Mapping[ListenAt, int]) -> None:
        """Let `number` - 1 workers serve this generation, as soon as they can; `ports` are the actual ones."""
        expanded = generation.settings.expanded
        assert expanded is not None or number == 1
        self._follow_feeds(generation.feeds if number > 1 else ())
        for slot in self._slots[max(0, number - 1) :]:
            _stop(slot)
        if expanded is not None:
            feeds = [self._journals[feed].number for feed in generation.feeds] if number > 1 else []
            previous = self._order.number if self._order is not None else 0
            self._order = GenerationOrder(previous + 1, expanded, feeds, dict(ports))
        self._renewed.set()
        self._renewed = asyncio.Event()
        for place in range(2 + len(self._slots), number + 1):
            slot = _Slot(place)
            self._slots.append(slot)
            slot.task = self._start(self._keep(slot), f"worker {place}")
        if self._checking is None:
            self._checking = self._start(self._check(), "check of workers")

    def waits_for(self) -> Iterator[str]:
        """Reasons for not being ready, a line each: workers that do not serve, or have not taken all changes."""
        for slot in self._slots:
            if slot.link is None or not slot.link.serving:
                yield f"multisocket: process {slot.number} of {len(self._slots) + 1} does not serve yet"
            elif slot.link.behind > LATE:
                yield f"multisocket: process {slot.number} has not taken changes for {slot.link.behind}s"

    async def shrink(self) -> bool:
        """Wait until the workers that are too many have ended. Returns whether there were any."""
        leaving = [slot.task for slot in self._slots if slot.stopping and slot.task is not None]
        await asyncio.gather(*leaving, return_exceptions=True)
        self._slots = [slot for slot in self._slots if not slot.stopping]
        return bool(leaving)

    async def close(self) -> None:
        """Let all workers answer the queries that they have got, and end; kill those that take too long."""
        for slot in self._slots:
            _stop(slot)
        self._renewed.set()
        await self.shrink()
        if self._checking is not None:  # until now: it ends the wait for one that does not read a snapshot
            self._checking.cancel()
        self._follow_feeds(())

    def kill(self) -> None:
        """End all workers at once."""
        for slot in self._slots:
            slot.stopping = True
            if slot.link is not None:
                slot.link.kill("exited")

    async def refresh(self) -> None:
        """Get the metrics of all workers, for REPORT_PATIENCE at most."""
        reports = [slot.link.ask_for_metrics() for slot in self._slots if slot.link is not None and slot.link.serving]
        if reports:
            await asyncio.wait(reports, timeout=REPORT_PATIENCE)

    def totals(self, own: Iterable[Published]) -> Iterator[Published]:
        """The metrics of this process with those of the workers added, as of the last `refresh`."""
        return totals(own, self._families())

    def missed(self) -> QueryCounters:
        """The workers' misses by Service, and their clients without a location by source prefix, as last reported.

        Each kind has only `missed` and `outcome`, or only `prefix`; all else is empty, durations and octets too.
        """
        return self._families().missed()

    def readings(self) -> Iterator[Reading]:
        """The metrics of the processes themselves."""
        yield Reading(
            "topodns_multisocket_resident_memory_bytes",
            "Resident memory of each process of multisocket.",
            "gauge",
            ("process",),
            lambda: of_each_process(self._links(), resident_bytes),
        )
        yield Reading(
            "topodns_multisocket_cpu_seconds",
            "CPU time of each process of multisocket; a replaced one begins at 0.",
            "counter",
            ("process",),
            lambda: of_each_process(self._links(), cpu_seconds),
        )
        yield Reading(
            "topodns_multisocket_processes",
            "Processes of multisocket, this one included, by whether they serve.",
            "gauge",
            ("state",),
            self._states,
        )
        yield Reading(
            "topodns_multisocket_requests",
            "Queries of each process of multisocket; a replaced one begins at 0.",
            "counter",
            ("process",),
            self._requests,
        )
        yield Reading(
            "topodns_multisocket_replaced",
            "Workers that ended and were replaced, by reason.",
            "counter",
            ("reason",),
            lambda: [((reason,), self._replaced[reason]) for reason in REASONS],
        )
        yield Reading(
            "topodns_multisocket_unacknowledged_seconds",
            "For how long a worker has not acknowledged the oldest change that it was sent.",
            "gauge",
            ("process",),
            lambda: [((str(link.number),), link.behind) for link in self._links()],
        )

    def _states(self) -> list[tuple[tuple[str, ...], float]]:
        serving = 1 + sum(1 for link in self._links() if link.serving)
        return [(("serving",), serving), (("starting",), 1 + len(self._slots) - serving)]

    def _requests(self) -> Iterator[tuple[tuple[str, ...], float]]:
        yield ("1",), sum(times for counters in self._counters() for _, times in counters.kinds())
        for link in self._links():
            yield (str(link.number),), sum(times for _, times in link.metrics.numbers(REQUESTS))

    def _links(self) -> Iterator[WorkerLink]:
        return (slot.link for slot in self._slots if slot.link is not None)

    def _families(self) -> Families:
        sum_of_all = Families()
        sum_of_all.add(self._past)
        for link in self._links():
            sum_of_all.add(link.metrics)
        return sum_of_all

    def _follow_feeds(self, feeds: "Sequence[Feed]") -> None:
        """Keep journals of these feeds, and of no others."""
        for gone in [feed for feed in self._journals if feed not in feeds]:
            del self._journals[gone]
            gone.state.journal = None
        for feed in feeds:
            if feed not in self._journals:
                self._last_feed += 1
                feed.state.journal = self._journals[feed] = FeedJournal(self._last_feed, feed.state, self._turn)

    def _send(self, octets: bytes) -> None:
        for link in self._links():
            link.send(octets)

    def _copied(self, actions: Sequence[Callable[[], object]]) -> None:
        needed = {link: link.sent for link in self._links() if link.serving}
        self._waits += [_Wait(action, needed) for action in actions]
        self._acknowledged()

    def _acknowledged(self) -> None:
        """Call the actions whose workers have acknowledged enough, in order."""
        number = self._order.number if self._order is not None else 0
        if number > self._announced and all(slot.link and slot.link.serving == number for slot in self._slots):
            self._announced = number
            log.info("plugin/multisocket: %d processes answer queries on the same ports", len(self._slots) + 1)
        done = 0
        for wait in self._waits:
            if not wait.is_over():
                break
            wait.action()
            done += 1
        del self._waits[:done]

    async def _check(self) -> None:
        report_at = time.monotonic() + REPORT_EVERY
        while True:
            await asyncio.sleep(CHECK_EVERY)
            for link in self._links():
                link.check()
            if time.monotonic() >= report_at:
                await self.refresh()
                report_at = time.monotonic() + REPORT_EVERY

    async def _keep(self, slot: _Slot) -> None:
        """Have a worker in this place until `stopping`."""
        failures = 0
        while not slot.stopping:
            began = time.monotonic()
            link = WorkerLink(slot.number, self._acknowledged)
            try:
                await link.start()
            except OSError as problem:
                log.error("plugin/multisocket: process %d cannot be started: %s", slot.number, problem)
            else:
                slot.link = link
                await self._run(slot, link)
                slot.link = None
                self._past.add(link.metrics, gauges=False)
            if slot.stopping:
                return
            failures = 0 if time.monotonic() - began > LASTING else failures
            pause = RESTART_PAUSES[min(failures, len(RESTART_PAUSES) - 1)]
            failures += 1
            self._replaced[link.why_ended] += 1
            log.warning("plugin/multisocket: process %d %s; another one takes its place", slot.number, _end_of(link))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._renewed.wait(), pause)

    async def _run(self, slot: _Slot, link: WorkerLink) -> None:
        """Give the worker each generation, until it ends."""
        try:
            known: set[int] = set()
            while not link.ended.done():
                order, renewed = self._order, self._renewed
                assert order is not None
                if slot.stopping:
                    if link.has_sockets:
                        link.send(message(MessageType.STOP))
                        with suppress(TimeoutError):
                            await asyncio.wait_for(asyncio.shield(link.ended), STOP_PATIENCE)
                    return
                self._turn.flush()
                link.send(message(MessageType.GENERATION, order))
                await self._send_snapshots(link, order, known)
                known = set(order.feeds)
                link.send(message(MessageType.ACTIVATE, order.number))
                link.activation = link.activation or link.sent
                await _first_of(link.ended, renewed)
        finally:
            link.kill(link.why_ended)
            await asyncio.shield(link.ended)

    async def _send_snapshots(self, link: WorkerLink, order: GenerationOrder, known: set[int]) -> None:
        """Send the states that the worker does not have yet, in slices, no faster than it reads them."""
        for feed, journal in list(self._journals.items()):
            if journal.number not in order.feeds or journal.number in known:
                continue
            steps = snapshot(journal.number, feed.state)
            until = time.perf_counter() + SLICE
            while not link.ended.done():
                self._turn.flush()  # first: the step has the objects as they are now, and no change comes after the end
                step = next(steps, None)
                if step is None:
                    break
                link.send(step)
                await link.room()
                if time.perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = time.perf_counter() + SLICE


def _stop(slot: _Slot) -> None:
    """Let the place stay empty once its worker has ended, now if it has no queries: nothing waits for its snapshot."""
    slot.stopping = True
    if slot.link is not None and not slot.link.has_sockets:
        slot.link.kill("exited")


async def _first_of(ended: asyncio.Future[int], renewed: asyncio.Event) -> None:
    """Return once the worker has ended, or there is a new generation."""
    waiting = asyncio.create_task(renewed.wait(), name="wait for a generation")
    ended.add_done_callback(lambda _: waiting.cancel())
    with suppress(asyncio.CancelledError):
        await waiting


def _end_of(link: WorkerLink) -> str:
    status = link.ended.result() if link.ended.done() else 0
    match link.why_ended:
        case "stuck":
            return "did not acknowledge changes and was killed"
        case "behind":
            return "did not read changes and was killed"
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
