"""Keeps the cluster state in sync with one API server: the reflectors of all kinds, and their joint health."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Final

from topodns.cluster.publishing_state import PublishingState
from topodns.kube.client.contract import KubeApi
from topodns.kube.informer.decode_turns import DecodeTurns
from topodns.kube.informer.lister import SharedState
from topodns.kube.informer.progress import Progress
from topodns.kube.informer.reflector import Reflector
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.restorer import Restorer
from topodns.kube.informer.retry import RetryGate
from topodns.kube.informer.state_writer import StateWriter
from topodns.query.histogram import Histogram

log = logging.getLogger(__name__)


REMIND_EVERY: Final = 60.0  # seconds between log lines while requests fail


class ApiSource:
    """Runs one reflector per resource and keeps the state equal to the API server's."""

    def __init__(
        self,
        resources: Sequence[Resource],
        published: PublishingState,
        connect: Callable[[], Awaitable[KubeApi]],
        rng: Random,
    ) -> None:
        self.progress: tuple[Progress, ...] = ()  # one per kind; empty before `connect`
        self._resources = resources
        self._writer = StateWriter(published)
        self._connect = connect
        self._rng = rng
        self._api: KubeApi | None = None
        self._reflectors: tuple[Reflector, ...] = ()

    async def connect(self) -> None:
        """Load address and credentials and create the reflectors; sends no request yet. Raises ApiError."""
        self._api = await self._connect()
        shared = SharedState(self._api, self._writer, RetryGate(), DecodeTurns(), self._rng)
        self._reflectors = tuple(Reflector(resource, shared) for resource in self._resources)
        self.progress = tuple(reflector.progress for reflector in self._reflectors)

    async def run(self) -> None:
        """Run all reflectors until cancelled, then close the connection. Call `connect` first."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for resource, reflector in zip(self._resources, self._reflectors, strict=True):
                    tasks.create_task(reflector.follow(), name=f"follow {resource.name}")
                    tasks.create_task(reflector.verify(), name=f"verify {resource.name}")
                    restorer = Restorer(reflector.lister, self._writer.published)
                    tasks.create_task(restorer.run(), name=f"restore {resource.name}")
                tasks.create_task(self._remind(), name="remind")
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection of a source that is connected but not running; `run` closes it itself."""
        if self._api is not None:
            await self._api.close()

    @property
    def age(self) -> float:
        """Seconds since the server last sent anything, for the kind where that is longest ago; 0.0 before `connect`."""
        now = asyncio.get_running_loop().time()
        return max((now - progress.last_received for progress in self.progress), default=0.0)

    @property
    def latencies(self) -> Mapping[str, Histogram]:
        """DNS programming latencies in seconds by CoreDNS's label `service_kind`."""
        return self._writer.latency.by_kind

    @property
    def skipped(self) -> tuple[str, ...]:
        """A log line for each object that cannot be decoded, wholly or in part."""
        return tuple(line for reflector in self._reflectors for line in reflector.skipped)

    def waiting_for(self) -> tuple[str, ...]:
        """One line per kind that has no complete list yet."""
        unsynced = self._writer.state.unsynced
        return tuple(progress.describe() for progress in self.progress if progress.resource.kind in unsynced)

    def denied(self) -> Iterator[Progress]:
        """The optional kinds that answers do without: refused (403 or 404) before their first complete list."""
        held = self._writer.state.denied
        return (progress for progress in self.progress if progress.resource.kind in held)

    async def _remind(self) -> None:
        while True:
            await asyncio.sleep(REMIND_EVERY)
            for reminder in self._reminders():
                log.warning("plugin/kubernetes: %s", reminder)

    def _reminders(self) -> Iterator[str]:
        """Log lines on the effect of failing requests: answers are stale, or a kind is missing from them."""
        failing = [progress for progress in self.progress if progress.trouble is not None]
        stale = [progress for progress in failing if progress.listed]
        if stale:
            age = asyncio.get_running_loop().time() - min(progress.last_received for progress in stale)
            yield f"answering from memory, {age:.0f} s old: {_described(stale)}"
        unsynced = self._writer.state.unsynced
        never = [progress for progress in failing if not progress.listed]
        if missing := [progress for progress in never if progress.resource.kind in unsynced]:
            yield f"not known yet: {_described(missing)}"
        if denied := [progress for progress in never if progress.resource.kind not in unsynced]:
            yield f"doing without: {_described(denied)}"


def _described(kinds: Iterable[Progress]) -> str:
    return ", ".join(progress.describe() for progress in kinds)
