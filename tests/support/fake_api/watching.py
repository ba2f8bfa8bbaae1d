"""Responses to watch requests: the existing objects, where asked for, then changes as they happen, and bookmarks."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from tests.support.fake_api.exchange import Response, encoded, refuse
from tests.support.fake_api.faults import Faults
from tests.support.fake_api.listing import send_pieces
from tests.support.fake_api.options import ReadOptions
from tests.support.fake_api.resources import Object, Resource
from tests.support.fake_api.statuses import Refusal, too_new, too_old
from tests.support.fake_api.store import Snapshot, Store, Watcher, watch_line

BOOKMARK_EVERY: Final = 60.0  # seconds
_BATCH: Final = 256  # lines that are sent together

_HOLLOW: Final[Mapping[str, Object]] = {  # what Go writes of an object that has nothing but a resourceVersion
    "Namespace": {"spec": {}, "status": {}},
    "Node": {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}}},
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "Pod": {"spec": {"containers": None}, "status": {}},
    "EndpointSlice": {"addressType": "", "endpoints": None, "ports": None},
}


async def respond_watch(store: Store, options: ReadOptions, faults: Faults, response: Response) -> None:
    """Serve one watch until its time is over, a fault ends it, or the client hangs up."""
    start = options.revision or 0
    from_now_on = options.initial_events or start == 0
    if start > store.revision and not store.deaf:
        await refuse(response, too_new(start, store.revision))
        return
    if not from_now_on and start < store.oldest:
        await _refuse_old(too_old(start, store.oldest), faults, response)
        return
    watcher = Watcher(options.selection, options.bookmarks, silent=start > store.revision)
    for event in () if from_now_on else store.events_since(start):
        watcher.offer(event)
    initial = store.snapshot(options.selection, newest=options.revision is None) if from_now_on else None
    store.watchers.add(watcher)
    try:
        async with response.on_hangup(watcher.hang_up):
            await _begin(store.resource, initial, options, response)
            await _follow(watcher, store, options, faults, response)
        if not watcher.hung_up:
            await response.end()
    finally:
        store.watchers.discard(watcher)


async def _refuse_old(refusal: Refusal, faults: Faults, response: Response) -> None:
    """As the watch cache does, inside a 200 response; or with the status, as without one."""
    if faults.gone_as_status:
        await refuse(response, refusal)
        return
    await response.begin()
    await response.write(watch_line("ERROR", encoded(refusal.status())))
    await response.end()


async def _begin(resource: Resource, initial: Snapshot | None, options: ReadOptions, response: Response) -> None:
    """The objects there are, and where these were asked for expressly the bookmark that ends them (KEP-3157)."""
    if initial is None:
        await response.begin()
        return

    def texts(given: Snapshot) -> Iterator[bytes]:
        yield from (watch_line("ADDED", one.body()) for one in given.objects)
        if options.initial_events and options.bookmarks:
            yield bookmark(resource, given.revision, {"k8s.io/initial-events-end": "true"})

    await send_pieces(response, texts(initial), compressible=False)


async def _follow(watcher: Watcher, store: Store, options: ReadOptions, faults: Faults, response: Response) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + options.seconds
    next_bookmark = loop.time() + BOOKMARK_EVERY
    while not watcher.hung_up:
        watcher.wake.clear()
        if watcher.garbled:
            watcher.garbled, watcher.silent = False, True
            await response.break_framing()
        if watcher.silent:
            await _wait_in_silence(watcher, store, end)
            if store.deaf and loop.time() >= end:
                return
            continue
        await _send_lines(watcher.lines, response)
        if watcher.over or loop.time() >= end:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(end, next_bookmark)):
                await watcher.wake.wait()
        if loop.time() >= min(end, next_bookmark) and not watcher.silent:
            next_bookmark = loop.time() + BOOKMARK_EVERY
            if watcher.bookmarks and faults.bookmarks:  # also the last word of a watch whose time is over
                watcher.send(bookmark(store.resource, store.last_revision))


async def _wait_in_silence(watcher: Watcher, store: Store, end: float) -> None:
    """A watch that is stalled waits for ever, one from the future until its time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(end if store.deaf else None):
            await watcher.wake.wait()


async def _send_lines(lines: deque[bytes], response: Response) -> None:
    while lines:
        await response.write(b"".join(lines.popleft() for _ in range(min(_BATCH, len(lines)))))


def bookmark(resource: Resource, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
    """The watch line that says how far the client has seen."""
    metadata: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    value = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return watch_line("BOOKMARK", encoded({**value, **_HOLLOW.get(resource.kind, {})}))
