"""The metrics of CoreDNS's server, of the decisions of `topology` and of `local`, from the query counters of sockets.

Each server has those of the two directives, too, as 0 if no server block has the directive: alerts and dashboards find
them everywhere. All other metrics of a plugin stand beside it, those that are read from the query counters as well.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Literal

from topodns.metrics.registry import Distribution, Published, Reading
from topodns.query.counters import DURATION_BUCKETS, SIZE_BUCKETS, LocalhostAnswer, QueryCounters, ReplyKind
from topodns.query.histogram import Histogram

PACE: Final = 64  # cells between two parts without samples, at which the consumer may pause


def readings_of_counters(all_counters: Sequence[QueryCounters]) -> Iterator[Published]:
    """The metrics of these counters; the samples of each are fixed when it is yielded.

    Cells are summed up in steps of PACE; before each, a metric without samples is yielded, so that the consumer can
    pause.
    """
    counted = [
        (socket_counters, kind, times) for socket_counters in all_counters for kind, times in socket_counters.kinds()
    ]
    yield from _counters(counted)
    yield from _sizes("request", counted, all_counters)
    yield from _sizes("response", counted, all_counters)
    yield _durations(all_counters)
    panics = sum(socket_counters.panics for socket_counters in all_counters)
    yield _family("coredns_panics", "Bugs met while answering.", (), Counter({(): panics}))


Counted = Sequence[tuple[QueryCounters, ReplyKind, int]]
_OURS: tuple[str, ...] = ("server", "zone", "view")
_REQUESTS: Final = ("coredns_dns_requests", "Queries.", (*_OURS, "proto", "family", "type"))
_SIZE_LABELS: Final = (*_OURS, "proto")


def _counters(counted: Counted) -> Iterator[Published]:
    requests: Counter[tuple[str, ...]] = Counter()
    responses: Counter[tuple[str, ...]] = Counter()
    secure: Counter[tuple[str, ...]] = Counter()
    selections: Counter[tuple[str, ...]] = Counter()
    misses: Counter[tuple[str, ...]] = Counter()
    sources: Counter[tuple[str, ...]] = Counter()
    for number, (socket_counters, kind, times) in enumerate(counted):
        if not number % PACE:
            yield _family(*_REQUESTS, Counter())
        place = (socket_counters.server, kind.origin, kind.view)
        requests[(*place, socket_counters.transport, socket_counters.family, kind.qtype)] += times
        if kind.rcode:
            responses[(*place, kind.rcode, kind.plugin)] += times
        if kind.dnssec_ok:
            secure[place] += times
        if kind.plugin == "kubernetes" and kind.outcome:
            selections[(kind.outcome, kind.topology_key)] += times
        if kind.missed:
            misses[(kind.missed, kind.outcome)] += times
        if kind.prefix:
            sources[(kind.prefix,)] += times
    yield _family(*_REQUESTS, requests)
    yield _family("coredns_dns_responses", "Responses.", (*_OURS, "rcode", "plugin"), responses)
    yield _family("coredns_dns_do_requests", "Queries with the DO bit.", _OURS, secure)
    yield _family(
        "topodns_selections", "Topology decisions, by outcome and deciding key.", ("outcome", "key"), selections
    )
    unlocated: Counter[tuple[str, ...]] = Counter()
    unlocated[()] = sum(times for (outcome, _), times in selections.items() if outcome.startswith("unknown_client"))
    yield _family(
        "topodns_unlocated_queries",
        "Queries for Services with topology keys by clients whose Node is unknown.",
        (),
        unlocated,
    )
    yield _family(
        "topodns_misses", "Answers without endpoints because of topology keys, by Service.", ("name", "outcome"), misses
    )
    yield _family(
        "topodns_unlocated_sources",
        "Queries by clients whose Node is unknown, by the network of the client.",
        ("prefix",),
        sources,
    )
    localhost: Counter[tuple[str, ...]] = Counter()
    localhost[()] = sum(times for _, kind, times in counted if isinstance(kind.detail, LocalhostAnswer))
    yield _family("coredns_local_localhost_requests", "Queries for localhost.<anything>.", (), localhost)


def _family(name: str, documentation: str, labels: tuple[str, ...], counts: Counter[tuple[str, ...]]) -> Reading:
    return Reading(name, documentation, "counter", labels, counts.items)


def _sizes(
    which: Literal["request", "response"], counted: Counted, all_counters: Sequence[QueryCounters]
) -> Iterator[Published]:
    """The size histogram of queries or responses: cells have the counts per bucket, counters have the sums.

    Before it, one without samples for every PACE cells.
    """
    answers = which == "response"
    sizes: dict[tuple[str, ...], Histogram] = {}
    family = partial(Distribution, f"coredns_dns_{which}_size_bytes", f"Size of the {which} in octets.", _SIZE_LABELS)
    for number, (socket_counters, kind, times) in enumerate(counted):
        if not number % PACE:
            yield family(tuple)
        bucket = kind.response_bucket if answers else kind.query_bucket
        if not bucket:
            continue  # no reply was sent
        place = (socket_counters.server, kind.origin, kind.view, socket_counters.transport)
        if place not in sizes:
            sizes[place] = Histogram(SIZE_BUCKETS)
        sizes[place].counts[bucket] += times
    for socket_counters in all_counters:
        for (origin, view), octets in socket_counters.octets.items():
            place = (socket_counters.server, origin, view, socket_counters.transport)
            if place in sizes:
                sizes[place].sum += octets[answers]
    yield family(sizes.items)


def _durations(all_counters: Iterable[QueryCounters]) -> Distribution:
    totals: dict[tuple[str, ...], Histogram] = {}
    for socket_counters in all_counters:
        for labels, durations in socket_counters.durations.items():
            total = totals.setdefault((socket_counters.server, *labels), Histogram(DURATION_BUCKETS))
            total.add(durations)
    documentation = "Time from query read to response written."
    return Distribution("coredns_dns_request_duration_seconds", documentation, _OURS, totals.items)
