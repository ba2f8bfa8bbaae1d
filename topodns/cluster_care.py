"""What the app does for the clusters of its generations: feeds over reloads, warming, audits. Nothing, where none is.

It sees of a cluster what `clusters` says of it, and imports none of it itself.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Final

from topodns.assembly import Generation
from topodns.cluster.facts import EVERYTHING, Fact
from topodns.cluster_sources import Feeding, await_sync
from topodns.edge.warmer import Warmer

if TYPE_CHECKING:
    from topodns.clusters import Cluster, Feed

log = logging.getLogger(__name__)

AUDIT_AFTER: Final = 0.5  # seconds: a burst of changes is looked at once

Start = Callable[[Coroutine[None, None, None], str], asyncio.Task[None]]


class NotKnown(Exception):
    """A new Corefile's clusters could not be read in time; says what is waited for."""


class ClusterCare:
    """`start` makes a task of some work, under this name; `forget` takes out what rests on facts that changed."""

    def __init__(self, start: Start, forget: Callable[[frozenset[Fact]], None]) -> None:
        self._feeding = Feeding(start)
        self._forget = forget
        self._clusters: list[Cluster] = []  # of the generation in charge
        self._warmer = Warmer(())
        self._audit_due: asyncio.TimerHandle | None = None
        self._found: frozenset[str] = frozenset()

    @property
    def feeds(self) -> "list[Feed]":
        """Those of the generation in charge, which the next one may go on with."""
        return [cluster.feed for cluster in self._clusters]

    async def begin(self, generation: Generation) -> None:
        """Set the feeds to work that are new. Raises ApiError; then, and where it is not taken over, `give_up`."""
        await self._feeding.begin(generation.feeds)

    async def await_known(self, generation: Generation) -> None:
        """Wait for what is new, as long as its `startup_timeout` says.

        Raises NotKnown where less would be known than now: an API server may be gone for a day.
        """
        fresh = self._fresh(generation)
        await await_sync(fresh)
        for old in self._clusters:
            if old.feed not in generation.feeds:
                for new in fresh:
                    _refuse_to_forget(old, new)

    async def give_up(self, generation: Generation) -> None:
        """Be as before `begin`: this generation comes to nothing."""
        await self._feeding.keep_only(self.feeds)
        if self._fresh(generation):  # what was read for nothing, once no traceback holds it any more
            asyncio.get_running_loop().call_soon(settle_memory)

    def take_over(self, generation: Generation) -> None:
        """It is in charge: what changes in its clusters is told from now on."""
        for cluster in self._fresh(generation):
            cluster.feed.changed = self.changed
        self._clusters = generation.clusters
        self._warmer = Warmer(cluster.state for cluster in generation.clusters)

    async def settle(self) -> None:
        """End the feeds that the generation in charge does without."""
        await self._feeding.keep_only(self.feeds)
        self._schedule_audit()

    def work(self) -> Coroutine[None, None, None]:
        """What goes on in the background, anew for each generation."""
        return self._warmer.run()

    async def close(self) -> None:
        await self._feeding.keep_only(())

    def changed(self, facts: frozenset[Fact]) -> None:
        """Something that answers rest on is different now."""
        self._forget(facts)
        self._warmer.rouse()
        self._schedule_audit()
        if EVERYTHING in facts:
            gc.freeze()  # a list was taken in, and stays: going through it again and again would make queries wait

    def _fresh(self, generation: Generation) -> "Collection[Cluster]":
        known = self.feeds
        return [cluster for cluster in generation.clusters if cluster.feed not in known]

    def _schedule_audit(self) -> None:
        if self._audit_due is None:
            self._audit_due = asyncio.get_running_loop().call_later(AUDIT_AFTER, self._audit)

    def _audit(self) -> None:
        """Log what is wrong with the cluster's topology wishes now and was not at the last look; Events say it too."""
        self._audit_due = None
        found: set[str] = set()
        for cluster in self._clusters:
            findings = list(cluster.audit())
            found.update(map(str, findings))
            if cluster.feed.event_writer is not None:
                cluster.feed.event_writer.report(findings)
        for line in sorted(found - self._found):
            log.warning("plugin/topology: %s", line)
        self._found = frozenset(found)


def _refuse_to_forget(old: "Cluster", new: "Cluster") -> None:
    forgotten = sorted((old.state.known & new.state.needed) - new.state.known)
    if forgotten and new.is_instead_of(old):
        raise NotKnown(f"kubernetes: {', '.join(forgotten)}: known now, but could not be read anew")


def settle_memory() -> None:
    """Let go of the generation before, and keep the collector from this one, which stays.

    A full collection over the objects of a large cluster would keep queries waiting for 100 ms and more.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
