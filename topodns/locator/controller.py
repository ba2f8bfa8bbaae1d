"""The controller: reflectors of Pods, Nodes, topology keys and locators fill its store; it writes those that differ.

Each change puts the keys of locators in a queue (`pending`); `_reconcile` makes one of them what it should be. It runs
only while this replica is the leader, and starts from new lists each time. Nothing is written before all lists are
complete.
"""

import asyncio
import logging
import math
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Final

from topodns.cluster.model import Kind
from topodns.kube.client.contract import ApiError
from topodns.kube.client.official_client import OfficialClient, create, delete, server_side_apply
from topodns.kube.informer.decode_turns import DecodeTurns
from topodns.kube.informer.lister import SharedState
from topodns.kube.informer.reflector import Reflector
from topodns.kube.informer.retry import Backoff, RetryGate
from topodns.locator.leader_election import REQUEST_SECONDS, Fence, LeaseLost
from topodns.locator.metrics import LocatorCounts
from topodns.locator.objects import FIELD_MANAGER, LocatorKind, StoredLocator, locator_object
from topodns.locator.pending import LocatorWrite, PendingWrites
from topodns.locator.projection import Projection
from topodns.locator.refusals import Refusals
from topodns.locator.store import LocatorStore, resources

log = logging.getLogger(__name__)

SILENCE: Final = 150.0  # seconds: longer than two bookmarks are apart, which come each minute or so
MAX_IN_FLIGHT: Final = 4  # writes; more of them only wait for one another in an API server that is busy

_CONFLICT, _NOT_FOUND, _TOO_MANY = 409, 404, 429


class LocatorController:
    """One term of the leader, which writes while the fence is open. `window` in seconds is that of `PendingWrites`."""

    def __init__(
        self,
        client: OfficialClient,
        kind: LocatorKind,
        label_keys: Iterable[str],
        window: float,
        fence: Fence,
        counts: LocatorCounts,
        refusals: Refusals,
        rng: Random,
    ) -> None:
        self._client, self._kind, self._fence, self._rng = client, kind, fence, rng
        self._counts, self._refusals = counts, refusals
        projection = Projection(kind, label_keys)
        self._pending = PendingWrites(window, projection.locator)
        self._changed = asyncio.Event()
        self._store = LocatorStore(kind, projection, self._pending, self._now, self._changed.set, self._listed)
        self._resources = {resource.kind: resource for resource in resources(kind)}
        self._unlisted = set(self._resources)
        self._own_listed = asyncio.Event()
        self._paused_until = 0.0  # no write is begun before, as the API server was away or asked for it
        self._backoff = Backoff(rng)

    async def run(self) -> None:
        """Until cancelled, or until a write finds the Lease lost. Raises only for a bug."""
        shared = SharedState(
            self._client.reader,
            self._store,
            RetryGate(),
            DecodeTurns(),
            self._rng,
            self._refusals,
            consistent_lists=True,
            checks_each_watch=True,
            silence=SILENCE,
        )
        self._counts.follow(self._store)
        try:
            async with asyncio.TaskGroup() as tasks:
                for resource in self._resources.values():
                    follow = self._follow(Reflector(resource, shared))
                    tasks.create_task(follow, name=f"watch {resource.plural}")
                for number in range(MAX_IN_FLIGHT):
                    tasks.create_task(self._work(), name=f"write locators {number}")
        except* LeaseLost:
            pass
        finally:
            self._counts.follow(None)

    async def _follow(self, reflector: Reflector) -> None:
        """List and watch until cancelled; the locators first, which show how many Pods and Nodes there were."""
        if reflector.progress.resource.kind != self._kind.kind:
            await self._own_listed.wait()
        await reflector.follow()

    def _listed(self, kind: Kind, objects: int) -> None:
        if kind == self._kind.kind:
            self._own_listed.set()
        if kind in self._unlisted:
            self._unlisted.discard(kind)
            log.info("locator: listed %d %s", objects, self._resources[kind].plural)
        self._changed.set()

    async def _work(self) -> None:
        """Reconcile one locator after another, as they become due: one of MAX_IN_FLIGHT workers."""
        while True:
            now = self._now()
            wait = max(self._pending.wait(now), self._paused_until - now) if not self._unlisted else math.inf
            if wait <= 0 and (write := self._pending.take(now)) is not None:
                await self._reconcile(write)
                self._changed.set()  # others may wait for an address that this one had
            elif wait > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait if wait < math.inf else None):
                        await self._changed.wait()

    async def _reconcile(self, write: LocatorWrite) -> None:
        """Write one locator; `pending` gets the outcome, and repeats the key where that is not as it should be."""
        try:
            stored = await self._request(write)
        except ApiError as problem:
            self._count(self._unsuccessful(write, problem))
            await self._refusals.report(f"writes of {self._kind.plural}", problem)
            return
        self._pending.succeeded(write, stored, self._now())
        self._count("applied" if write.content is not None else "deleted")
        self._succeeded(write)

    def _count(self, result: str) -> None:
        self._counts.writes[self._kind.word, result] += 1

    async def _request(self, write: LocatorWrite) -> StoredLocator | None:
        """Send one write; returns what is stored then. Raises ApiError; LeaseLost where this replica may not write."""
        self._fence.check()
        path, stored = self._kind.path(write.key), write.stored
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                if write.content is None:
                    uid, version = (stored.uid, stored.version) if stored is not None else ("", "")
                    await delete(self._client, path, uid, version, REQUEST_SECONDS)
                    return None
                body = locator_object(self._kind, write.content, stored)
                if stored is None:
                    collection = self._kind.collection_of(write.key)
                    item = await create(self._client, collection, body, FIELD_MANAGER, REQUEST_SECONDS)
                else:
                    item = await server_side_apply(self._client, path, body, FIELD_MANAGER, REQUEST_SECONDS)
        except TimeoutError:
            raise ApiError(0, f"no response within {REQUEST_SECONDS:g} s") from None
        except ApiError as problem:
            if problem.status == _NOT_FOUND and write.content is None:
                return None
            raise
        metadata = item.get("metadata", {})
        version, uid = str(metadata.get("resourceVersion", "")), str(metadata.get("uid", ""))
        return StoredLocator(uid, version, write.content.ips, write.content, frozenset((write.content.owner_uid,)))

    def _succeeded(self, write: LocatorWrite) -> None:
        self._backoff.succeeded()
        self._refusals.over(f"writes of {self._kind.plural}")
        left_out = write.content.left_out if write.content is not None else 0
        if self._counts.set_left_out(write.key, left_out):
            log.warning(
                "locator: %s %s has no room for %d addresses, the limit of its schema",
                self._kind.kind, write.key.name, left_out,
            )  # fmt: skip

    def _unsuccessful(self, write: LocatorWrite, problem: ApiError) -> str:
        """Have the write repeated; returns its result for the metric."""
        now = self._now()
        if 400 <= problem.status < 500:
            self._pending.refused(write, now)
        else:
            self._pending.failed(write, now)
        if problem.status == _CONFLICT:
            return "conflict"  # another version is stored: its watch event comes
        if not 400 <= problem.status < 500 or problem.status == _TOO_MANY:
            self._paused_until = max(
                self._paused_until, now + max(self._backoff.failed(now), problem.retry_after or 0.0)
            )
            return "failed"
        return "refused"

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
