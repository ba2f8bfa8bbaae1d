"""The topology page of the process: its routes for each generation, and the misses of the last minutes by Service.

The query counters only grow: a ring of earlier totals has what they were.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from topodns.inspect.http import JobQueue
from topodns.inspect.page.html import html_page
from topodns.inspect.page.routes import PageRoutes
from topodns.inspect.page.snapshot import ClusterNotes, unknown_of
from topodns.net.http_server.messages import Route
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.topology.settings import PageSettings
from topodns.query.counters import QueryCounters
from topodns.query.query_sample import QuerySample

EVERY: Final = 15.0  # seconds between two samples
MINUTES: Final = 5
PAUSE: Final = (
    0.001  # seconds after each slice: the page takes at most a third of the time, however much there is to do
)
_SAMPLES: Final = round(MINUTES * 60 / EVERY) + 1


class TopologyPage:
    """The pages of all addresses. It outlives a reload, because the misses of the last minutes do."""

    def __init__(self, all_counters: Callable[[], Iterable[QueryCounters]], sample: QuerySample | None = None) -> None:
        """Begins to sample the counters."""
        self._queries = sample or QuerySample()
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

        made = PageRoutes(shown, settings, notes, self._html, self._queue, self.rejects, self._queries)
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


def totals_of(all_counters: Iterable[QueryCounters]) -> tuple[Counter[str], Counter[str]]:
    """(misses by Service, queries of unlocated clients by source prefix) since the start, as `LabelLimiters` names
    them: at most 101 values each.
    """
    misses: Counter[str] = Counter()
    prefixes: Counter[str] = Counter()
    for socket_counters in all_counters:
        for kind, times in socket_counters.kinds():
            if kind.missed:
                misses[kind.missed] += times
            if kind.prefix:
                prefixes[kind.prefix] += times
    return misses, prefixes


class RecentCounts:
    """Growth of totals over the last MINUTES; of a process that started later, since its start."""

    def __init__(self) -> None:
        self._samples: deque[Counter[str]] = deque([Counter()], maxlen=_SAMPLES)

    def sample(self, totals: Counter[str]) -> None:
        """Keep the totals of now; to be called once in EVERY."""
        self._samples.append(totals)

    def recent(self, totals: Counter[str]) -> Mapping[str, int]:
        """The growth of each total since the oldest sample, without totals that did not grow."""
        return totals - self._samples[0]
