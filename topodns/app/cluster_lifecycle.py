"""Lifecycle of the clusters of each generation: feeds kept over reloads, index warming, the log of problems.

It imports no cluster module at run time, only the types of `plugins.kubernetes.clusters`: a Corefile may have no
cluster.
"""

import asyncio
import ctypes
import gc
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from topodns.app.generation import Generation
from topodns.dependency import EVERYTHING, Fact
from topodns.logs import MAX_PER_SECOND
from topodns.memory.budget import cluster_octets, memory_limit
from topodns.plugins.multisocket import process_count
from topodns.time_slices import in_slices

if TYPE_CHECKING:
    from topodns.cluster.findings.finding import Finding
    from topodns.plugins.kubernetes.clusters import Cluster
    from topodns.plugins.kubernetes.feed import Feed

log = logging.getLogger(__name__)


# Net allocations before a garbage collection: objects of a query are freed without one. One takes some 20 ms. At 5,000
# they took 4 to 11 ms, and a run of `make bench-compare` had a p99 of 6.3 ms under 200 changes a second, not 0.8.
GARBAGE: Final = 20_000
REMIND_EVERY: Final = 0.5  # seconds between log lines while the start waits for the first sync, as CoreDNS

Work = Coroutine[None, None, None]


class Feeding:
    """The running feeds (cluster state and its source), each with its tasks. `start` creates a named task."""

    def __init__(self, start: Callable[[Work, str], asyncio.Task[None]]) -> None:
        self._start = start
        self.octets = cluster_octets(None, 1)  # that the objects of all clusters at API servers may take
        self._tasks: dict[Feed, list[asyncio.Task[None]]] = {}

    async def begin(self, feeds: "Iterable[Feed]") -> None:
        """Start those that do not run: read manifests or connection settings of API servers, then start the tasks.

        Raises NotKnown; `keep_only` cleans up after it.
        """
        fresh = [feed for feed in feeds if feed not in self._tasks]
        self._tasks.update((feed, []) for feed in fresh)
        self._share_octets()
        for feed in fresh:
            if problem := await feed.begin():
                raise NotKnown(problem)
        for feed in fresh:
            self._tasks[feed] += [self._start(work, name) for name, work in feed.works()]

    async def keep_only(self, feeds: "Collection[Feed]") -> None:
        """End the tasks of all other feeds and close their connections."""
        ending = {feed: self._tasks.pop(feed) for feed in list(self._tasks) if feed not in feeds}
        self._share_octets()
        await end_tasks([task for tasks in ending.values() for task in tasks])
        for feed in ending:
            await feed.close()  # a task that was cancelled before its first step has closed nothing

    def _share_octets(self) -> None:
        """Give each cluster at an API server an equal share; manifests are the operator's, and have no limit."""
        sharing = [feed for feed in self._tasks if feed.arrives_late]
        for feed in sharing:
            feed.budget.limit = self.octets // len(sharing)


async def end_tasks(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel the tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def await_sync(clusters: "Iterable[Cluster]") -> None:
    """Return once all of these clusters with an API server are synced, or after their longest `startup_timeout`.

    Their feeds run, but their generation is not active: until `ClusterCare.activate`, a change invalidates no answers.
    Garbage collection is off while this waits.
    """
    fed = [cluster for cluster in clusters if cluster.feed.arrives_late]
    if not fed:
        return
    synced = asyncio.Event()

    def look(_facts: frozenset[Fact]) -> None:
        if all(cluster.state.synced for cluster in fed):
            synced.set()

    for cluster in fed:
        cluster.feed.subscribe(look)
    look(frozenset())  # the clusters may be synced already
    with _no_collections():
        await _wait(synced, fed)


@contextmanager
def _no_collections() -> Iterator[None]:
    """A context whose new objects stay alive: collecting them would delay queries for too long."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


async def _wait(synced: asyncio.Event, fed: "list[Cluster]") -> None:
    try:
        async with asyncio.timeout(max(cluster.kubernetes.startup_timeout for cluster in fed)):
            while not await _set_soon(synced):
                log.info("plugin/kubernetes: waiting for Kubernetes API before starting server")
    except TimeoutError:
        log.warning("plugin/kubernetes: starting server with unsynced Kubernetes API")


async def _set_soon(event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(REMIND_EVERY):
            return await event.wait()
    except TimeoutError:
        return False


WARMING_PAUSE: Final = 0.1  # seconds between two rounds: few for an index that changes often in a rollout


class Warmer:
    """Does all `idle_work` between queries: builds indexes before a query needs them, and checks EndpointSlices.

    It does so in small steps when `run` starts and soon after each `rouse`. `clock` is monotonic, in seconds.
    """

    def __init__(
        self, idle_work: Iterable[Callable[[], Iterator[None]]], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._idle_work = tuple(idle_work)
        self._clock = clock
        self._due = asyncio.Event()
        self._due.set()

    def rouse(self) -> None:
        """Have `run` do all work once more, as a state has changed."""
        self._due.set()

    async def run(self) -> None:
        """Do all work, then all of it again after each `rouse`, until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            for work in self._idle_work:
                await in_slices(work(), self._clock)
            await asyncio.sleep(WARMING_PAUSE)


Start = Callable[[Coroutine[None, None, None], str], asyncio.Task[None]]


class NotKnown(Exception):
    """The clusters of a Corefile cannot be used.

    Connection settings are unusable, or, at a reload, a kind of object that the replaced cluster has cannot be read.
    """


class ClusterCare:
    """Manages the clusters of the active generation.

    `start` creates a named task; `forget` drops stored answers that depend on changed facts.
    """

    def __init__(self, start: Start, forget: Callable[[frozenset[Fact]], None]) -> None:
        self._start = start
        self._feeding = Feeding(start)
        self._forget = forget
        self._clusters: list[Cluster] = []  # of the active generation
        self._warmer = Warmer(())
        self._problems = ProblemLog()

    @property
    def feeds(self) -> "list[Feed]":
        """The feeds of the active generation, which the next one may reuse."""
        return [cluster.feed for cluster in self._clusters]

    async def begin(self, generation: Generation) -> None:
        """Start the new feeds. Raises NotKnown; after that, or if `activate` does not follow, call `roll_back`."""
        self._feeding.octets = cluster_octets(memory_limit(), process_count(generation.settings))
        await self._feeding.begin(generation.feeds)

    async def await_known(self, generation: Generation) -> None:
        """Wait for the new clusters to sync, for `startup_timeout` at most; not for clusters whose feed is reused.

        Where the API server is away, a snapshot takes its place.

        Raises NotKnown if a new cluster lacks a kind that it needs and that the cluster it replaces has: the old one
        then stays, as its API server may be down for long. Also if clients that the old one locates need locators that
        do not exist yet.
        """
        fresh = self._fresh(generation)
        snapshots = [cluster.snapshot for cluster in fresh if cluster.snapshot is not None]
        comparing = [self._start(each.restorer.compare(), "compare snapshot") for each in snapshots]
        try:
            await await_sync(fresh)
            await self._restore(fresh)
        finally:
            await end_tasks(comparing)
        for old in self._clusters:
            if old.feed not in generation.feeds:
                for new in fresh:
                    if new.is_instead_of(old):
                        _refuse_to_forget(old, new)

    async def _restore(self, fresh: "Iterable[Cluster]") -> None:
        """Read the snapshots of those that are not synced; not of one that replaces another, which may have more."""
        for new in fresh:
            replaced = any(new.is_instead_of(old) for old in self._clusters)
            if new.snapshot is not None and not new.state.synced and not replaced:
                with _no_collections():
                    await new.snapshot.restorer.restore()

    async def roll_back(self, generation: Generation) -> None:
        """Roll back `begin`: stop the feeds that only the rejected generation has."""
        await self._feeding.keep_only(self.feeds)
        if self._fresh(generation):  # free the rejected state, once no traceback refers to it
            asyncio.get_running_loop().call_soon(settle_memory)

    def activate(self, generation: Generation) -> None:
        """Make this generation the active one: changes in its clusters invalidate answers from now on."""
        for cluster in self._fresh(generation):
            cluster.feed.subscribe(self._forget, self._schedule)
        self._clusters = generation.clusters
        self._warmer = Warmer(cluster.feed.idle_work for cluster in generation.clusters)
        self._problems.clusters = generation.clusters

    async def settle(self) -> None:
        """End the feeds that the active generation does not use."""
        await self._feeding.keep_only(self.feeds)

    def warm(self) -> Work:
        """The warming of the active generation, until cancelled."""
        return self._warmer.run()

    def log_problems(self) -> Work:
        """The log of the problems of the active generation, until cancelled."""
        return self._problems.run()

    def snapshots(self) -> Iterator[Work]:
        """The care of the snapshots of the active generation, until cancelled."""
        return (cluster.snapshot.run() for cluster in self._clusters if cluster.snapshot is not None)

    async def close(self) -> None:
        await self._feeding.keep_only(())

    def changed(self, facts: frozenset[Fact]) -> None:
        """Drop the answers that depend on these facts, and schedule warming and a look for problems."""
        self._forget(facts)
        self._schedule(facts)

    def _schedule(self, facts: frozenset[Fact]) -> None:
        self._warmer.rouse()
        self._problems.rouse()
        if EVERYTHING in facts:
            gc.freeze()  # objects of a list stay alive; collecting them again and again would delay queries

    def _fresh(self, generation: Generation) -> "Collection[Cluster]":
        known = self.feeds
        return [cluster for cluster in generation.clusters if cluster.feed not in known]


def _refuse_to_forget(old: "Cluster", new: "Cluster") -> None:
    forgotten = sorted((old.state.known & new.state.needed) - new.state.known)
    if forgotten:
        raise NotKnown(f"kubernetes: {', '.join(forgotten)}: known now, but could not be read anew")
    missing = new.missing_locators()
    if missing and old.locates_new_pods and not old.missing_locators():
        raise NotKnown(f"topology: clients that are located now would not be: {missing}")


_malloc_trim: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc


def settle_memory() -> None:
    """Free the previous generation, and exempt the active one from garbage collection.

    A full collection over the objects of a large cluster would delay queries by 100 ms and more.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    if _malloc_trim is not None:
        _malloc_trim(0)  # what reading the Corefile and building a generation took, 0.15 MB of a node cache


CHECK_AFTER: Final = 1.0  # seconds: once for a burst of changes, and as `logs.RateLimit` counts
SPARSE: Final = 100  # times as long as the last check took, so that checks of a large cluster take 1 % of a core
MOST_LINES: Final = MAX_PER_SECOND  # of one check; what is beyond is one line
LASTS: Final = 60.0  # seconds; Pods of a deleted Node, with their endpoints, are deleted after 40 to 60 (PodGC)


class ProblemLog:
    """Logs each problem of the clusters once, when it appears; a problem that was fixed and comes back is logged again.

    Of the new ones of a check MOST_LINES have a line each, and one line has the number of the others.
    One that the watches of several kinds may bring about for a moment (`Finding.may_pass`) counts from LASTS on.

    `run` makes a first check of all objects, and another one soon after each `rouse`, in slices of time between
    queries, as there may be thousands of problems. A change during a check calls `rouse`, so that a further check sees
    it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds, as that of the event loop."""
        self.clusters: Sequence[Cluster] = ()
        self._clock = clock
        self._due = asyncio.Event()
        self._checks = 0
        self._fresh = 0  # problems that the last check was the first to find
        self._lines: dict[str, int] = {}  # of present problems -> the number of the last check that found it
        # As `_lines`, when each was first found, and whether it counted in the last check.
        self._may_pass: dict[str, tuple[int, float, bool]] = {}

    def rouse(self) -> None:
        """Have `run` make another check, as a state has changed."""
        self._due.set()

    async def run(self) -> None:
        """Make checks until cancelled; without a `rouse` while EndpointSlices or locators are still to be compared."""
        self._due.set()
        took = 0.0  # seconds of CPU, with those of the queries that were answered between slices
        while True:
            await self._wait()
            await asyncio.sleep(max(CHECK_AFTER, SPARSE * took))
            self._due.clear()
            began = time.thread_time()
            await in_slices(self.check())
            took = time.thread_time() - began
            if any(cluster.feed.checking for cluster in self.clusters):
                self._due.set()

    async def _wait(self) -> None:
        """Wait until a check is due: for a `rouse`, or for a problem that has lasted."""
        first = min((since for _, since, counts in self._may_pass.values() if not counts), default=None)
        with suppress(TimeoutError):
            async with asyncio.timeout(first + LASTS - self._clock() if first is not None else None):
                await self._due.wait()

    def check(self) -> Iterator[None]:
        """Log the new problems of all clusters, and give all findings to the recorder of Events; in small steps."""
        self._checks += 1
        self._fresh = 0
        for cluster in self.clusters:
            findings: list[Finding] = []
            for found in cluster.findings():
                if found is not None and self._counts(found, cluster):
                    findings.append(found)
                    level = logging.INFO if found.severity == "info" else logging.WARNING
                    self._note(str(found), level, found.plugin, partial(cluster.place_of, found))
                yield
            for line in cluster.notices():
                self._note(line)
                yield
            if cluster.feed.event_recorder is not None:
                cluster.feed.event_recorder.report(findings)
        if self._fresh > MOST_LINES:
            further = self._fresh - MOST_LINES
            log.warning("plugin/topology: problems not logged: %d; `topodns audit` lists all", further)
        yield from self._forget_the_fixed()

    def _counts(self, found: "Finding", cluster: "Cluster") -> bool:
        """Whether this is a problem, and not one that may pass and has not lasted. Manifests are read as a whole."""
        if not found.may_pass or not cluster.feed.arrives_late:
            return True
        line = str(found)
        _, since, _ = self._may_pass.get(line, (0, self._clock(), False))
        counts = self._clock() - since >= LASTS
        self._may_pass[line] = self._checks, since, counts
        return counts

    def _note(
        self, line: str, level: int = logging.WARNING, plugin: str = "topology", place: Callable[[], str] = str
    ) -> None:
        """`place`, in front of a line, may change while the problem stays, and is looked for in all manifests."""
        if line not in self._lines:
            self._fresh += 1
            if self._fresh <= MOST_LINES:
                log.log(level, "plugin/%s: %s%s", plugin, place(), line)
        self._lines[line] = self._checks

    def _forget_the_fixed(self) -> Iterator[None]:
        """Forget the problems that this check did not find, so that they are logged when they come back."""
        for line in list(self._lines):
            if self._lines[line] != self._checks:
                del self._lines[line]
            yield
        for line, (check, _, _) in list(self._may_pass.items()):
            if check != self._checks:
                del self._may_pass[line]
            yield
