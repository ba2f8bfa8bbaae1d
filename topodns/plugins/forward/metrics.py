"""Metrics of forwarding: queries to upstreams, their replies and probes, and refused queries.

They have CoreDNS's present names, `coredns_proxy_*`, and its older ones, `coredns_forward_*`, which many dashboards and
alerts still read.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from topodns.metrics.registry import Distribution, Published, Reading
from topodns.plugins.forward.single_flight import ForwardShared
from topodns.plugins.forward.upstreams import ForwardCounts
from topodns.plugins.forward.waiting_limit import InFlight
from topodns.plugins.setup import MetricsSource
from topodns.query.histogram import Histogram

Labels = tuple[str, ...]
Rows = Iterable[tuple[Labels, float]]

_PROXY: Final = "forward"  # CoreDNS's label `proxy_name`


def readings(source: MetricsSource) -> Iterator[Published]:
    """The metrics of the counters that all `forward` directives share."""
    shared = source.shared.get(ForwardShared)
    yield from _replies(shared.counts)
    yield from _probes(shared.counts)
    yield from _connections(shared)
    yield from _limits(shared.counts, shared.in_flight)


def _replies(forward: ForwardCounts) -> Iterator[Published]:
    yield Distribution(
        "coredns_proxy_request_duration_seconds",
        "Time from a query to an upstream to its reply.",
        ("proxy_name", "to", "rcode"),
        lambda: [((_PROXY, *labels), durations) for labels, durations in _durations(forward)],
    )
    yield Distribution(
        "coredns_forward_request_duration_seconds",
        "Time from a query to an upstream to its reply, under its old name.",
        ("to", "rcode"),
        lambda: _durations(forward),
    )
    yield Reading(
        "coredns_forward_requests", "Queries that upstreams replied to.", "counter", ("to",), lambda: _asked(forward)
    )
    yield Reading(
        "coredns_forward_responses",
        "Replies of upstreams.",
        "counter",
        ("to", "rcode"),
        lambda: [(labels, durations.count()) for labels, durations in _durations(forward)],
    )


def _durations(forward: ForwardCounts) -> Iterator[tuple[Labels, Histogram]]:
    for to, counts in forward.upstreams.items():
        for rcode, durations in counts.durations.items():
            yield (to, rcode), durations


def _asked(forward: ForwardCounts) -> Rows:
    """Queries by upstream. As in CoreDNS, only those that got a reply count."""
    rows: dict[Labels, float] = {}
    for (to, _), durations in _durations(forward):
        rows[(to,)] = rows.get((to,), 0.0) + durations.count()
    return rows.items()


def _probes(forward: ForwardCounts) -> Iterator[Published]:
    yield Reading(
        "coredns_proxy_healthcheck_failures",
        "Probes that an upstream did not answer.",
        "counter",
        ("proxy_name", "to"),
        lambda: [((_PROXY, *labels), times) for labels, times in _failed_probes(forward)],
    )
    yield Reading(
        "coredns_forward_healthcheck_failures",
        "Probes that an upstream did not answer, under their old name.",
        "counter",
        ("to",),
        lambda: _failed_probes(forward),
    )
    yield Reading(
        "coredns_forward_healthcheck_broken",
        "Queries that found all upstreams down.",
        "counter",
        (),
        lambda: [((), forward.healthcheck_broken)],
    )


def _failed_probes(forward: ForwardCounts) -> Rows:
    return [((to,), counts.healthcheck_failures) for to, counts in forward.upstreams.items()]


def _connections(shared: ForwardShared) -> Iterator[Published]:
    for name, documentation, attribute in (
        ("coredns_proxy_conn_cache_hits", "Queries sent over a connection that was open.", "hits"),
        ("coredns_proxy_conn_cache_misses", "Queries sent over a connection or socket made for them.", "misses"),
    ):
        yield Reading(name, documentation, "counter", ("proxy_name", "to", "proto"), partial(_sent, shared, attribute))


def _sent(shared: ForwardShared, attribute: str) -> Rows:
    return [
        ((_PROXY, to, transport.value), getattr(counts, attribute))
        for to, transports in shared.connections.items()
        for transport, counts in transports.items()
    ]


def _limits(forward: ForwardCounts, in_flight: InFlight) -> Iterator[Published]:
    yield Reading(
        "coredns_forward_max_concurrent_rejects",
        "Queries refused because of max_concurrent.",
        "counter",
        (),
        lambda: [((), forward.max_concurrent_rejects)],
    )
    yield Reading(
        "topodns_forward_in_flight", "Queries that wait for upstreams.", "gauge", (), lambda: [((), in_flight.total)]
    )
    yield Reading(
        "topodns_forward_dropped",
        "Queries without a reply, because too many waited for upstreams already.",
        "counter",
        ("reason",),
        lambda: [
            (("total",), in_flight.dropped_in_total),
            (("client",), in_flight.dropped_by_client),
            (("preempted",), in_flight.preempted),
        ],
    )
