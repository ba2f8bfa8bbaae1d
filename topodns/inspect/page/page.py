"""The topology page of the process: its counts over time, and its routes for each generation."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from topodns.inspect.job_queue import JobQueue
from topodns.inspect.page.html import html_page
from topodns.inspect.page.recent_misses import EVERY, RecentCounts, totals_of
from topodns.inspect.page.routes import PageRoutes
from topodns.inspect.page.snapshot import ClusterNotes, unknown_of
from topodns.net.http_server.messages import Route
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.topology.settings import PageSettings
from topodns.query.counters import QueryCounters

PAUSE: Final = (
    0.001  # seconds after each slice: the page takes at most a third of the time, however much there is to do
)


class TopologyPage:
    """The pages of all addresses. It outlives a reload, because the misses of the last minutes do."""

    def __init__(self, all_counters: Callable[[], Iterable[QueryCounters]]) -> None:
        """Begins to sample the counters."""
        self.rejects: Counter[str] = Counter()  # requests answered with 503, by `queue` or `streams`: what was full
        self._all_counters = all_counters
        self._misses, self._prefixes = RecentCounts(), RecentCounts()
        self._html = html_page()
        self._queue = JobQueue("the topology page", PAUSE)
        self._routes: list[PageRoutes] = []
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._sample)

    def routes(self, clusters: Iterable[Cluster], settings: PageSettings) -> Mapping[str, Route]:
        """The routes of a page with these settings over these clusters, those without `topology` left out."""
        shown = [cluster for cluster in clusters if cluster.topology is not None]

        def notes(cluster: Cluster) -> ClusterNotes:
            return self._notes(cluster, settings)

        made = PageRoutes(shown, settings, notes, self._html, self._queue, self.rejects)
        self._routes.append(made)
        return made.by_path

    def begin(self) -> None:
        """Before the routes of another generation: end the streams of the one before; browsers connect again."""
        for routes in self._routes:
            routes.close()
        self._routes.clear()

    def close(self) -> None:
        self.begin()
        self._timer.cancel()

    def _sample(self) -> None:
        misses, prefixes = totals_of(self._all_counters())
        self._misses.sample(misses)
        self._prefixes.sample(prefixes)
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._sample)

    def _notes(self, cluster: Cluster, settings: PageSettings) -> ClusterNotes:
        misses, prefixes = totals_of(self._all_counters())
        return ClusterNotes(
            self._misses.recent(misses),
            self._prefixes.recent(prefixes) if settings.queries else {},
            unknown_of(cluster),
        )
