"""What feeds clusters: started, kept or ended at a reload, and waited for until they are known. Part of the app."""

import asyncio
import gc
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import TYPE_CHECKING, Final

from topodns.cluster.facts import Fact

if TYPE_CHECKING:
    from topodns.clusters import Cluster, Feed

log = logging.getLogger(__name__)

REMIND_EVERY: Final = 0.5  # seconds between lines in the log while nothing is served yet, as CoreDNS

Work = Coroutine[None, None, None]


class Feeding:
    """The feeds that are at work, each with its tasks. `start` makes a task of some work, under this name."""

    def __init__(self, start: Callable[[Work, str], asyncio.Task[None]]) -> None:
        self._start = start
        self._tasks: dict[Feed, list[asyncio.Task[None]]] = {}

    async def begin(self, feeds: "Iterable[Feed]") -> None:
        """Set those to work that are not: read the manifests, find out how each API server is reached, follow both.

        Raises ApiError; `keep_only` tidies up then.
        """
        fresh = [feed for feed in feeds if feed not in self._tasks]
        self._tasks.update((feed, []) for feed in fresh)
        for feed in fresh:
            await feed.begin()
        for feed in fresh:
            self._tasks[feed] += [self._start(work, name) for name, work in feed.works()]

    async def keep_only(self, feeds: "Collection[Feed]") -> None:
        """End the work of all others, and their connections."""
        ending = {feed: self._tasks.pop(feed) for feed in list(self._tasks) if feed not in feeds}
        await end_tasks([task for tasks in ending.values() for task in tasks])
        for feed in ending:
            await feed.close()  # a task that was ended before its first step has not


async def end_tasks(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel them, and return when they are through."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def await_sync(clusters: "Iterable[Cluster]") -> None:
    """Return once all of these are known, or have had their `startup_timeout`.

    Their feeds are at work, and nobody is in charge of them: until this returns nobody is told of what they learn.
    """
    fed = [cluster for cluster in clusters if cluster.feed.arrives_late]
    if not fed:
        return
    synced = asyncio.Event()

    def look(_facts: frozenset[Fact]) -> None:
        if all(cluster.state.synced for cluster in fed):
            synced.set()

    for cluster in fed:
        cluster.feed.changed = look
    look(frozenset())  # it may be known already
    gc.disable()  # all that is made now stays, and looking at it would take longer than a query may
    try:
        await _wait(synced, fed)
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
