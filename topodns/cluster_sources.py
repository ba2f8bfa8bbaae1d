"""What feeds the clusters of a generation: started, and waited for until they are known. Part of the app."""

import asyncio
import gc
import logging
from collections.abc import Coroutine, Iterator
from typing import Final

from topodns.assembly import Cluster, Generation
from topodns.cluster.model import Fact
from topodns.edge.api_source import ApiSource
from topodns.edge.file_watch import watch_files

log = logging.getLogger(__name__)

REMIND_EVERY: Final = 0.5  # seconds between lines in the log while nothing is served yet, as CoreDNS


async def connect_sources(generation: Generation) -> None:
    """Read the manifests, and find out how every API server is reached. Raises ApiError."""
    for cluster in generation.clusters:
        if isinstance(cluster.source, ApiSource):
            await cluster.source.connect()
        else:
            await cluster.source.load_gently()


def source_work(generation: Generation) -> Iterator[tuple[str, Coroutine[None, None, None]]]:
    """What goes on in the background for each cluster, with a name for its task. `connect_sources` comes first."""
    for cluster in generation.clusters:
        if isinstance(cluster.source, ApiSource):
            yield "api", cluster.source.run()
            if cluster.event_writer is not None:
                yield "service events", cluster.event_writer.run()
        else:
            yield "manifests", cluster.source.run(watch_files(cluster.kubernetes.manifests))


async def await_sync(generation: Generation) -> None:
    """Return once all clusters are known, or have had their `startup_timeout`. Their sources are at work.

    Until then nobody is served by this generation, which `generation.changed` must not mind.
    """
    fed = [cluster for cluster in generation.clusters if isinstance(cluster.source, ApiSource)]
    if not fed:
        return
    synced = asyncio.Event()

    def look(_facts: frozenset[Fact]) -> None:
        if all(cluster.state.synced for cluster in fed):
            synced.set()

    generation.changed = look
    look(frozenset())  # it may be known already
    gc.disable()  # all that is made now stays, and looking at it would take longer than a query may
    try:
        await _wait(synced, fed)
    finally:
        gc.enable()
        gc.freeze()


async def _wait(synced: asyncio.Event, fed: list[Cluster]) -> None:
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
