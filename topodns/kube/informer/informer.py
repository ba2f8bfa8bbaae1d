"""Keeps the cluster state in sync with one API server: the reflectors of all kinds, and their joint health.

Objects that are left out (`cluster.namespace_budget`) are requested again once there is room for them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from topodns.cluster.decode.stream import Listed, UnreadableReply, read_listed, read_page, read_uid
from topodns.cluster.model import Kind, ObjectKey, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.kube.client.contract import ApiError, KubeApi
from topodns.kube.informer.decode_turns import DecodeTurns
from topodns.kube.informer.lister import Lister, Pages, SharedState
from topodns.kube.informer.progress import Progress
from topodns.kube.informer.reflector import Reflector
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.retry import RetryGate
from topodns.kube.informer.state_writer import StateWriter
from topodns.query.histogram import Histogram

log = logging.getLogger(__name__)


REMIND_EVERY: Final = 60.0  # seconds between log lines while requests fail
IDENTIFY_AGAIN: Final = 10.0  # seconds between requests for the cluster's uid; less once another request succeeds


class ApiSource:
    """Runs one reflector per resource and keeps the state equal to the API server's."""

    def __init__(
        self,
        resources: Sequence[Resource],
        published: PublishingState,
        connect: Callable[[], Awaitable[KubeApi]],
        rng: Random,
        pod_labels: Collection[str] = (),
    ) -> None:
        """`pod_labels`: the keys of the labels that Pods keep."""
        self.progress: tuple[Progress, ...] = ()  # one per kind; empty before `connect`
        self.cluster_uid = ""  # of the Namespace kube-system; "" before `identify`
        self.snapshot_uid = ""  # that of the cluster of the snapshot whose objects the state has
        self.snapshot_since = 0.0  # loop seconds at which that snapshot was the API server's state
        self.turns = DecodeTurns()  # under its lock no list or event is applied
        self._gate = RetryGate()
        self._resources = resources
        self._writer = StateWriter(published, pod_labels)
        self._connect = connect
        self._rng = rng
        self._api: KubeApi | None = None
        self._reflectors: tuple[Reflector, ...] = ()

    async def connect(self) -> None:
        """Load address and credentials and create the reflectors; sends no request yet. Raises ApiError."""
        self._api = await self._connect()
        shared = SharedState(self._api, self._writer, self._gate, self.turns, self._rng)
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

    async def identify(self) -> None:
        """Request `cluster_uid` until the API server gives it. Call `connect` first."""
        resource = next(each for each in self._resources if each.kind == "Namespace")
        assert self._api is not None
        pages = Pages(self._api, resource.paths[0], resource, limit=1)
        while not self.cluster_uid:
            with suppress(ApiError, UnreadableReply):
                page = read_page("Namespace", await pages.body(_SYSTEM))
                self.cluster_uid = next(map(read_uid, page.items), "")
            if not self.cluster_uid:
                await self._gate.wait(IDENTIFY_AGAIN)

    def seen_version(self, kind: Kind) -> str:
        """The last resourceVersion seen of a watched kind; "" before its first list."""
        return next((each.lister.sync.seen for each in self._reflectors if each.progress.resource.kind == kind), "")

    def count_as_seen(self, kind: Kind, version: str) -> None:
        """Judge the first list of a kind as if this resourceVersion had been seen before it; "": no one."""
        for reflector in self._reflectors:
            if reflector.progress.resource.kind == kind and not reflector.progress.listed:
                reflector.lister.sync.seen = version

    @property
    def age(self) -> float:
        """Seconds since the server last sent anything, for the kind where that is longest ago; 0.0 before `connect`.

        Not less than `snapshot_age`.
        """
        now = asyncio.get_running_loop().time()
        silence = max((now - progress.last_received for progress in self.progress), default=0.0)
        return max(silence, self.snapshot_age or 0.0)

    @property
    def snapshot_age(self) -> float | None:
        """Seconds since the objects of a snapshot were the API server's; None where the state has none."""
        if self._writer.state.restored is None:
            return None
        return asyncio.get_running_loop().time() - self.snapshot_since

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
        state = self._writer.state
        if (snapshot_age := self.snapshot_age) is not None:
            restored = [progress for progress in self.progress if state.is_restored(progress.resource.kind)]
            yield f"answering from a snapshot, {snapshot_age:.0f} s old: {_described(restored)}"
        unsynced = state.unsynced
        never = [progress for progress in failing if not progress.listed]
        if missing := [each for each in never if each.resource.kind in set(unsynced) - state.known]:
            yield f"not known yet: {_described(missing)}"
        if denied := [progress for progress in never if progress.resource.kind not in unsynced]:
            yield f"doing without: {_described(denied)}"


def _described(kinds: Iterable[Progress]) -> str:
    return ", ".join(progress.describe() for progress in kinds)


_SYSTEM: Final = {"fieldSelector": "metadata.name=kube-system"}  # the cluster's own Namespace: its uid is the cluster's

EVERY: Final = 2.0  # seconds between two looks for room


AT_ONCE: Final = 100  # objects that are requested between two looks, each by a request of its own


CUT_EVERY: Final = 60.0  # seconds between two lists of all objects of a namespace


_SHARE: Final = 16  # of the budget, that must be free for such a list


class Restorer:
    """Restores objects of the kind of `lister` to a cluster's state.

    Only lists are requested: the ClusterRole has no `get`.
    """

    def __init__(self, lister: Lister, published: PublishingState) -> None:
        self._lister = lister
        self._published = published
        self._resource = lister.progress.resource
        self._kind = lister.progress.resource.kind
        self._cut_listed = 0.0  # time of the last list of a namespace, in seconds of the loop's clock

    async def run(self) -> None:
        """Look for room until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            if self._lister.sync.version is None or self._lister.progress.trouble is not None:
                continue
            try:
                await self._restore()
            except (ApiError, UnreadableReply):
                continue  # the watch reports what is wrong with the server

    async def _restore(self) -> None:
        for key in await self._returning():
            if self._published.budget.room_for(self._published.state.left_out.octets.get((self._kind, key), 0)):
                await self._list(key.namespace, {"fieldSelector": self._named(key)})
        budget, now = self._published.budget, asyncio.get_running_loop().time()
        if now - self._cut_listed < CUT_EVERY or not budget.room_for(budget.limit // _SHARE):
            return
        for namespace in [cut for kind, cut in budget.cut if kind == self._kind]:
            self._cut_listed = now
            budget.cut.discard((self._kind, namespace))
            try:
                await self._list(namespace, {})
            except BaseException:
                budget.cut.add((self._kind, namespace))
                raise
            self._published.settle(namespace)

    async def _returning(self) -> list[ObjectKey]:
        found: list[ObjectKey] = []
        async with self._lister.shared.turns.turn() as turn:
            for key in self._published.returning_steps(self._kind):
                if key is not None:
                    found.append(key)
                if len(found) == AT_ONCE:
                    break
                await turn.pause_if_due()
        return found

    def _named(self, key: ObjectKey) -> str:
        selectors = (self._resource.selectors.get("fieldSelector", ""), f"metadata.name={key.name}")
        return ",".join(filter(None, selectors))

    async def _list(self, namespace: str, parameters: Mapping[str, str]) -> None:
        """Take the objects of a namespace that have not changed since they were listed.

        Raises ApiError, UnreadableReply.
        """
        head, _, plural = self._lister.path.rpartition("/")
        pages = Pages(self._lister.shared.api, f"{head}/namespaces/{namespace}/{plural}", self._resource)
        changed, place = self._lister.sync.record_changes(), parameters
        try:
            while True:
                body = await pages.body(place)
                async with self._lister.shared.turns.turn() as turn:
                    page = read_page(self._kind, body)
                    for item in page.items:
                        listed = read_listed(self._kind, item)
                        if isinstance(listed, Listed) and listed.object.key not in changed:
                            self._published.apply(Upserted(listed.object))
                        await turn.pause_if_due()
                if not page.next_token:
                    return
                place = {**parameters, "continue": page.next_token}
        finally:
            self._lister.sync.stop_recording(changed)
