"""The HTTP routes about the state of clusters: /explain, /who, /top and /audit beside /ready, and the topology page.

A node cache loads this module, but none of those about clusters, which are 6 MB: they are imported on first use, after
a request was accepted.
"""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from topodns.app.generation import Generation
from topodns.app.hooks import AllCounters, MoreRoutes
from topodns.corefile.arguments import Address
from topodns.inspect.errors import Refused
from topodns.inspect.http import MAX_WAITING, SEPARATOR, JobQueue, guarded, json_reply
from topodns.metrics.registry import Reading
from topodns.net.http_server.messages import HttpReply, HttpRequest, Route
from topodns.plugins.health import PLUGIN as HEALTH
from topodns.plugins.prometheus import PLUGIN as PROMETHEUS
from topodns.plugins.ready import PLUGIN as READY
from topodns.query.query_sample import QuerySample
from topodns.time_slices import Job

if TYPE_CHECKING:
    from topodns.inspect.page.page import TopologyPage
    from topodns.plugins.kubernetes.clusters import Cluster

REUSED: Final = 1.0  # seconds for which the last audit answers further requests of the same what-if

_PATHS: Final = ("/explain", "/who", "/top", "/audit")

Changes = tuple[str, ...]


def inspection(all_counters: AllCounters, sample: QuerySample | None = None) -> MoreRoutes:
    """The routes of one server. For the topology page: its query counters, and the sample of its queries."""
    routes = _Inspection(all_counters, sample or QuerySample())
    return MoreRoutes(routes.of, routes.readings, routes.close)


def explain_route(clusters: "Collection[Cluster]") -> Route:
    """The handler of /explain for these clusters: replies with an `Explanation` in JSON.

    The text of an answer of thousands of records is made in slices of time between queries, one answer at a time.
    Status 403 for a refused request, 400 for a question that makes no sense, 503 if too many wait.
    """
    queue = JobQueue("the explanation")

    def job(request: HttpRequest) -> Job[bytes]:
        from topodns.inspect.explain import explanation_json_steps

        return (yield from explanation_json_steps(clusters, request.arguments))

    return guarded(lambda request: queue.begin(job(request), "explain", "too many explanations at once"))


def who_route(clusters: "Collection[Cluster]") -> Route:
    """The handler of /who for these clusters: replies with the location of an address in each, in JSON."""

    def who(request: HttpRequest) -> HttpReply:
        from topodns.inspect.who import who_reply

        return json_reply(json.dumps(who_reply(clusters, request.arguments)).encode())

    return guarded(who)


def top_route(clusters: "Collection[Cluster]", sample: QuerySample) -> Route:
    """The handler of /top: replies with the `TopDocument` of the sampled queries in JSON.

    Status 403 for a refused request, 400 for an argument `by` that makes no sense, 503 if too many wait.
    """
    queue = JobQueue("the list of queries")

    def job(request: HttpRequest) -> Job[bytes]:
        from topodns.inspect.top import top_steps

        return (yield from top_steps(clusters, sample, request.arguments))

    return guarded(lambda request: queue.begin(job(request), "top", "too many lists of queries at once"))


def audit_route(clusters: "Collection[Cluster]", clock: Callable[[], float] = time.monotonic) -> Route:
    """The handler of /audit for these clusters: replies with the document of an audit (`inspect.audit`).

    The argument `what-if` has changes, separated by `;`. Status 403 for a refused request, 400 for changes that make no
    sense, 503 if too many audits wait. `clock` is monotonic, in seconds.
    """
    audits = Audits(clusters, clock)

    def audit(request: HttpRequest) -> HttpReply | asyncio.Future[HttpReply]:
        return audits.reply(tuple(filter(None, request.arguments.get("what-if", "").split(SEPARATOR))))

    return guarded(audit)


class Audits:
    """Makes audits one after another; requests for the same one share it.

    An audit of a large cluster takes seconds. It is made in slices of time between queries.
    """

    def __init__(self, clusters: "Collection[Cluster]", clock: Callable[[], float]) -> None:
        self._clusters = clusters
        self._clock = clock
        self._queue = JobQueue("the audit")
        self._begun: dict[Changes, asyncio.Task[HttpReply]] = {}
        self._last: tuple[Changes, HttpReply, float] | None = None  # and when it was done

    def reply(self, changes: Changes) -> HttpReply | asyncio.Future[HttpReply]:
        """The reply with these changes, or a future that is the caller's own. Raises Refused if too many wait."""
        if self._last is not None and self._last[0] == changes and self._clock() - self._last[2] < REUSED:
            return self._last[1]
        task = self._begun.get(changes)
        if task is None:
            if len(self._begun) > MAX_WAITING:  # one is made
                raise Refused("too many audits at once", 503)
            task = self._begun[changes] = asyncio.create_task(self._make(changes), name="audit")
        return asyncio.shield(task)

    async def _make(self, changes: Changes) -> HttpReply:
        try:
            reply = await self._queue.reply(self._job(changes))
        finally:
            del self._begun[changes]
        self._last = changes, reply, self._clock()
        return reply

    def _job(self, changes: Changes) -> Job[bytes]:
        from topodns.inspect.audit import document_steps, subjects

        return (yield from document_steps(subjects(self._clusters), changes))


def _elsewhere(ready: Address) -> Route:
    """The handler of a path that is served at the address of `ready`, at another address of this server."""

    def refuse(request: HttpRequest) -> HttpReply:
        at = f"{ready.host}:{ready.port}" if ready.host else f"port {ready.port}"
        raise Refused(f"{request.path} is not at this address, but at that of `ready`: {at}", 404)

    return guarded(refuse)


class _Inspection:
    def __init__(self, all_counters: AllCounters, sample: QuerySample) -> None:
        self._all_counters = all_counters
        self._sample = sample
        self._page: TopologyPage | None = None  # None until a Corefile has the option `page`

    def of(self, generation: Generation) -> Iterator[tuple[Address, Mapping[str, Route]]]:
        """The routes by address; of two for one path at the same address, the later one counts."""
        clusters, blocks = generation.clusters, generation.settings.blocks
        ready = [settings.listen for block in blocks if (settings := READY.settings_of(block)) is not None]
        pages = list(self._pages(generation))
        others = [health.listen for block in blocks if (health := HEALTH.settings_of(block)) is not None]
        others += [metrics.listen for block in blocks if (metrics := PROMETHEUS.settings_of(block)) is not None]
        for address in (*others, *(address for address, _ in pages)):
            if ready:
                yield address, dict.fromkeys(_PATHS, _elsewhere(ready[0]))
        for address in ready:
            routes = (
                explain_route(clusters),
                who_route(clusters),
                top_route(clusters, self._sample),
                audit_route(clusters),
            )
            yield address, dict(zip(_PATHS, routes, strict=True))
        yield from pages

    def readings(self) -> Iterable[Reading]:
        yield Reading(
            "topodns_topology_page_rejects",
            "Requests for the topology page answered with 503, by what was full.",
            "counter",
            ("reason",),
            lambda: [
                ((reason,), self._page.rejects[reason] if self._page is not None else 0)
                for reason in ("queue", "streams")
            ],
        )

    def close(self) -> None:
        if self._page is not None:
            self._page.close()

    def _pages(self, generation: Generation) -> Iterator[tuple[Address, Mapping[str, Route]]]:
        """The routes of the topology pages. Each shows all clusters; at one address the first block decides."""
        pages = [cluster.topology.page for cluster in generation.clusters if cluster.topology is not None]
        by_address = {page.listen: page for page in reversed(pages) if page is not None}
        if self._page is not None:
            self._page.begin()
        elif by_address:
            # Imported here: a node cache has no cluster, and most servers have no page.
            from topodns.inspect.page.page import TopologyPage

            self._page = TopologyPage(self._all_counters, self._sample)
        for address, page in by_address.items():
            assert self._page is not None
            yield address, self._page.routes(generation.clusters, page)
