"""The controller: lists and watches Pods, Nodes and its own objects, and writes the locators that differ.

It runs only while this replica is the leader, and starts from new lists each time. Nothing is written before all lists
are complete, and a list with far fewer objects than before counts only when a second one confirms it.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from topodns.cluster.model import ObjectKey
from topodns.kube.client.contract import ApiError
from topodns.kube.client.official_client import (
    OfficialClient,
    create,
    delete,
    list_all,
    read_object,
    server_side_apply,
    watch,
)
from topodns.kube.informer.list_check import LEAST_SHARE, SMALL
from topodns.kube.informer.retry import Backoff
from topodns.locator.leader_election import REQUEST_SECONDS, Fence, LeaseLost
from topodns.locator.metrics import LocatorCounts
from topodns.locator.objects import (
    FIELD_MANAGER,
    LocatorKind,
    StoredLocator,
    is_older,
    locator_object,
    read_locator,
)
from topodns.locator.pending import LocatorWrite, PendingWrites
from topodns.locator.projection import Projection, key_of, placed_node, placed_pod
from topodns.locator.refusals import Refusals
from topodns.time_slices import in_slices

log = logging.getLogger(__name__)

PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"
PLACED: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="}
SILENCE: Final = 150.0  # seconds: longer than two bookmarks are apart, which come each minute or so
CONFIRM: Final = 2.0  # seconds until a list is repeated that is implausibly short
MAX_IN_FLIGHT: Final = 4  # writes; more of them only wait for one another in an API server that is busy
SLICE: Final = 0.005  # seconds of events in one turn of the loop, between which the Lease is renewed

_GONE, _CONFLICT, _NOT_FOUND, _TOO_MANY = 410, 409, 404, 429

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Collection:
    """A collection that is listed and watched. `replace` takes a list in steps, `change` one event."""

    name: str
    path: str
    query: Mapping[str, str]
    project: Callable[[Json], Any]
    replace: Callable[[list[Any], str], Iterable[object]]
    change: Callable[[Json, bool], None]  # the object, and whether it was deleted
    held: Callable[[], int]  # objects of the last list, or estimated from the locators


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
        self._label_keys = tuple(label_keys)
        self._counts, self._refusals = counts, refusals
        self._projection = Projection(kind)
        self._pending = PendingWrites(window, self._projection.locator)
        self._unlisted = {collection.name for collection in self._collections()}
        self._own_listed = asyncio.Event()
        self._newest = 0  # resourceVersion of a locator, when they were last asked for
        self._changed = asyncio.Event()
        self._pause = 0.0  # seconds for which no write is begun, after the API server was away
        self._backoff = Backoff(rng)
        self._in_flight: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled, or until a write finds the Lease lost. Raises only for a bug."""
        self._counts.follow(self._pending, self._projection, self._now)
        try:
            async with asyncio.TaskGroup() as tasks:
                for collection in self._collections():
                    tasks.create_task(self._follow(collection), name=f"watch {collection.name}")
                tasks.create_task(self._write_all(tasks), name="write locators")
        except* LeaseLost:
            pass
        finally:
            self._counts.unfollow()

    def _collections(self) -> Iterator[_Collection]:
        pending, projection, kind = self._pending, self._projection, self._kind
        yield _Collection(
            kind.plural, kind.collection, {}, lambda item: read_locator(kind, item), self._replace_own, self._see_own,
            lambda: 0,
        )  # fmt: skip
        yield _Collection(
            "pods", PODS, PLACED, _project_pod, self._replace_pods, self._see_pod,
            lambda: projection.pods or (pending.stored if kind.namespaced else pending.stored_addresses),
        )  # fmt: skip
        if not kind.namespaced:
            yield _Collection(
                "nodes", NODES, {}, self._project_node, self._replace_nodes, self._see_node,
                lambda: projection.nodes or pending.stored,
            )  # fmt: skip

    # Lists and watches.

    async def _follow(self, collection: _Collection) -> None:
        """List and watch one collection for ever. After a fault it is listed anew; so a restored etcd is noticed."""
        backoff = Backoff(self._rng, costly=True)
        version = ""
        if collection.name != self._kind.plural:
            await self._own_listed.wait()  # they show how many Pods and Nodes there were
        while True:
            try:
                version = version or await self._list(collection)
                version = await self._watch(collection, version, backoff)
                await self._check_for_rollback(collection, version)
                continue
            except TimeoutError:
                problem = ApiError(0, f"the watch of {collection.name} was silent for {SILENCE:g} s")
            except ApiError as error:
                problem = error
            version = ""
            self._counts.restarts[collection.name] += 1
            if problem.status != _GONE:
                await self._refusals.report(collection.name, self._client, problem)
            await asyncio.sleep(max(backoff.failed(self._now()), problem.retry_after or 0.0))

    async def _list(self, collection: _Collection) -> str:
        """List the collection; returns the resourceVersion. An implausibly short list must be confirmed."""
        if collection.name == self._kind.plural:
            self._newest = self._pending.newest
        for _ in range(2):
            listed, version = await list_all(self._client, collection.path, collection.query, collection.project)
            held = collection.held()
            if held <= SMALL or len(listed) >= held * LEAST_SHARE:
                break
            log.warning("locator: a list of %s has %d objects where there were %d", collection.name, len(listed), held)
            await asyncio.sleep(CONFIRM)
        await in_slices(collection.replace(listed, version))
        if collection.name == self._kind.plural:
            self._own_listed.set()
        if collection.name in self._unlisted:
            self._unlisted.discard(collection.name)
            log.info("locator: listed %d %s", len(listed), collection.name)
        self._changed.set()
        return version

    async def _watch(self, collection: _Collection, version: str, backoff: Backoff) -> str:
        """Take the events of one watch; returns the last version. Raises ApiError, TimeoutError."""
        until = self._now() + SLICE
        async with aclosing(watch(self._client, collection.path, version, collection.query)) as events:
            while True:
                async with asyncio.timeout(SILENCE):
                    event = await anext(events, None)
                if backoff.succeeded():
                    self._refusals.over(collection.name)
                if event is None:
                    return version
                item, kind = event["object"], event["type"]
                version = str(item.get("metadata", {}).get("resourceVersion", "")) or version
                if kind != "BOOKMARK":
                    collection.change(item, kind == "DELETED")
                    self._changed.set()
                if self._now() >= until:
                    await asyncio.sleep(0)
                    until = self._now() + SLICE

    async def _check_for_rollback(self, collection: _Collection, version: str) -> None:
        """After a watch that ended without a fault: a watch from a version of the future might have no events.

        Raises ApiError: 410 where the API server is at an older resourceVersion, as after etcd was restored.
        """
        page = await read_object(self._client, collection.path, {**collection.query, "limit": "1"})
        present = str(page.get("metadata", {}).get("resourceVersion", ""))
        if is_older(present, version):
            log.warning(
                "locator: %s: the API server went back from resourceVersion %s to %s: listed anew",
                collection.name, version, present,
            )  # fmt: skip
            raise ApiError(_GONE, f"resourceVersion {version} is of the future")

    def _replace_pods(self, listed: list[Any], _: str) -> Iterator[object]:
        return map(self._touch, self._projection.replace_pods(dict(listed)))

    def _replace_nodes(self, listed: list[Any], _: str) -> Iterator[object]:
        return map(self._touch, self._projection.replace_nodes(dict(listed)))

    def _replace_own(self, listed: list[Any], version: str) -> Iterator[object]:
        self._pending.replace_stored(dict(listed), version, self._now(), self._newest)
        yield None

    def _see_pod(self, item: Json, deleted: bool) -> None:
        place = None if deleted else placed_pod(item)
        self._touch(self._projection.set_pod(key_of(item), place))

    def _see_node(self, item: Json, deleted: bool) -> None:
        place = None if deleted else placed_node(item, self._label_keys)
        self._touch(self._projection.set_node(key_of(item).name, place))

    def _see_own(self, item: Json, deleted: bool) -> None:
        key, stored = read_locator(self._kind, item)
        self._pending.see(key, None if deleted else stored, stored.version, self._now())

    def _project_node(self, item: Json) -> Any:
        place = placed_node(item, self._label_keys)
        return (key_of(item).name, place) if place is not None else None

    def _touch(self, keys: set[ObjectKey]) -> None:
        if keys:
            self._pending.touch(keys, self._now())

    # Writes.

    async def _write_all(self, tasks: asyncio.TaskGroup) -> None:
        """Begin writes as they become due, at most MAX_IN_FLIGHT at a time."""
        while True:
            self._changed.clear()
            if not self._unlisted:
                if self._pause:
                    await asyncio.sleep(self._pause)
                    self._pause = 0.0
                self._begin_writes(tasks)
            idle = not self._unlisted and len(self._in_flight) < MAX_IN_FLIGHT
            wait = self._pending.wait(self._now()) if idle else math.inf
            with suppress(TimeoutError):
                async with asyncio.timeout(wait if wait < math.inf else None):
                    await self._changed.wait()

    def _begin_writes(self, tasks: asyncio.TaskGroup) -> None:
        while len(self._in_flight) < MAX_IN_FLIGHT and not self._pause:
            write = self._pending.take(self._now())
            if write is None:
                return
            task = tasks.create_task(self._write(write), name=f"write {write.key.name}")
            self._in_flight.add(task)
            task.add_done_callback(self._write_ended)

    def _write_ended(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self._changed.set()

    async def _write(self, write: LocatorWrite) -> None:
        try:
            stored = await self._request(write)
        except ApiError as problem:
            self._count(self._unsuccessful(write, problem))
            await self._refusals.report(f"writes of {self._kind.plural}", self._client, problem)
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
                    item = await server_side_apply(self._client, path, body, FIELD_MANAGER, True, REQUEST_SECONDS)
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
            self._pause = max(self._pause, self._backoff.failed(now), problem.retry_after or 0.0)
            return "failed"
        return "refused"

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _project_pod(item: Json) -> Any:
    place = placed_pod(item)
    return (key_of(item), place) if place is not None else None
