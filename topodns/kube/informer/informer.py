"""One cluster's API server as the source of its state: the reflectors, and how they are doing together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Final, Protocol

from topodns.cluster.facts import Fact
from topodns.cluster.state import ClusterState
from topodns.edge.api_source.company import Company, ListWatch
from topodns.edge.api_source.intake import Intake
from topodns.edge.api_source.programming_latency import Latencies
from topodns.edge.api_source.progress import Progress
from topodns.edge.api_source.reflector import Reflector
from topodns.edge.api_source.resources import Resource
from topodns.edge.api_source.retry_gate import RetryGate
from topodns.edge.api_source.turns import Turns

log = logging.getLogger(__name__)

REMIND_EVERY: Final = 60.0  # seconds between lines in the log while there is trouble


class Api(ListWatch, Protocol):
    """A connection that can be closed."""

    async def close(self) -> None: ...


class ApiSource:
    """Keeps `state` as the API server has it. `publish` is told, in the same turn of the loop, what was touched."""

    def __init__(
        self,
        resources: Sequence[Resource],
        state: ClusterState,
        publish: Callable[[frozenset[Fact]], None],
        connect: Callable[[], Awaitable[Api]],
        rng: Random,
    ) -> None:
        self.progress: tuple[Progress, ...] = ()  # of each kind, once connected
        self._resources = resources
        self._intake = Intake(state, publish)
        self._connect = connect
        self._rng = rng
        self._api: Api | None = None
        self._reflectors: tuple[Reflector, ...] = ()

    async def connect(self) -> None:
        """Find out how the server is reached; nothing is asked of it yet. Raises ApiError."""
        self._api = await self._connect()
        company = Company(self._api, self._intake, RetryGate(), Turns(), self._rng)
        self._reflectors = tuple(Reflector(resource, company) for resource in self._resources)
        self.progress = tuple(reflector.progress for reflector in self._reflectors)

    async def run(self) -> None:
        """Follow the server for ever; the connection ends with it. `connect` comes first."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for resource, reflector in zip(self._resources, self._reflectors, strict=True):
                    tasks.create_task(reflector.follow(), name=f"follow {resource.name}")
                    tasks.create_task(reflector.verify(), name=f"verify {resource.name}")
                tasks.create_task(self._remind(), name="remind")
        finally:
            await self.close()

    async def close(self) -> None:
        """End the connection of a source that is connected and does not run; `run` does it by itself."""
        if self._api is not None:
            await self._api.close()

    @property
    def age(self) -> float:
        """Seconds since the server was last heard of the kind that it has been silent about for longest."""
        now = asyncio.get_running_loop().time()
        return max((now - progress.heard for progress in self.progress), default=0.0)

    @property
    def latencies(self) -> Mapping[str, Latencies]:
        """How long changes took to get here, by CoreDNS's `service_kind`."""
        return self._intake.latencies

    def waiting_for(self) -> tuple[str, ...]:
        """A line for each kind that is not known yet."""
        unsynced = self._intake.state.unsynced
        return tuple(progress.describe() for progress in self.progress if progress.resource.kind in unsynced)

    async def _remind(self) -> None:
        while True:
            await asyncio.sleep(REMIND_EVERY)
            for reminder in self._reminders():
                log.warning("plugin/kubernetes: %s", reminder)

    def _reminders(self) -> Iterator[str]:
        """What trouble means for answers: they come from memory, or a kind is not there for them at all."""
        troubled = [progress for progress in self.progress if progress.trouble is not None]
        remembered = [progress for progress in troubled if progress.listed]
        if remembered:
            age = asyncio.get_running_loop().time() - min(progress.heard for progress in remembered)
            yield f"answering from memory, {age:.0f} s old: {_described(remembered)}"
        unsynced = self._intake.state.unsynced
        never = [progress for progress in troubled if not progress.listed]
        if missing := [progress for progress in never if progress.resource.kind in unsynced]:
            yield f"not known yet: {_described(missing)}"
        if spared := [progress for progress in never if progress.resource.kind not in unsynced]:
            yield f"doing without: {_described(spared)}"


def _described(kinds: Iterable[Progress]) -> str:
    return ", ".join(progress.describe() for progress in kinds)
