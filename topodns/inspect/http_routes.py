"""The HTTP routes about the state of clusters: /explain, /who and /audit beside /ready, and the topology page.

A node cache loads this module, but none of those about clusters, which are 6 MB: they are imported on first use.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from topodns.app.generation import Generation
from topodns.app.hooks import AllCounters, MoreRoutes
from topodns.corefile.arguments import Address
from topodns.inspect.audit.endpoint import audit_route
from topodns.inspect.explain.endpoint import explain_route, who_route
from topodns.metrics.registry import Reading
from topodns.net.http_server.messages import Route
from topodns.plugins.ready import PLUGIN as READY

if TYPE_CHECKING:
    from topodns.inspect.page.page import TopologyPage


def inspection(all_counters: AllCounters) -> MoreRoutes:
    """The routes of one server. `all_counters`: its query counters, for the misses on the topology page."""
    routes = _Inspection(all_counters)
    return MoreRoutes(routes.of, routes.readings, routes.close)


class _Inspection:
    def __init__(self, all_counters: AllCounters) -> None:
        self._all_counters = all_counters
        self._page: TopologyPage | None = None  # None until a Corefile has the option `page`

    def of(self, generation: Generation) -> Iterator[tuple[Address, Mapping[str, Route]]]:
        clusters = generation.clusters
        for block in generation.settings.blocks:
            if (ready := READY.settings_of(block)) is not None:
                yield (
                    ready.listen,
                    {
                        "/explain": explain_route(clusters),
                        "/who": who_route(clusters),
                        "/audit": audit_route(clusters),
                    },
                )
        yield from self._pages(generation)

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

            self._page = TopologyPage(self._all_counters)
        for address, page in by_address.items():
            assert self._page is not None
            yield address, self._page.routes(generation.clusters, page)
