"""Counters of `forward`, as plain numbers that are exported when the metrics are scraped."""

from bisect import bisect_left
from collections import defaultdict
from math import inf

from topodns.dns.rrtype import RCODE_LABELS
from topodns.net.upstream.address import Counts, UdpSockets
from topodns.net.upstream.client import Connections
from topodns.plugins.forward.limits import InFlight
from topodns.query.counters import DURATION_BUCKETS
from topodns.query.histogram import Histogram


class UpstreamCounts:
    """Counters of one upstream address, shared by all directives that forward to it.

    `durations`: reply times in seconds by label of the rcode (`RCODE_LABELS`).
    """

    __slots__ = ("checked", "durations", "healthcheck_failures", "reachable", "replies")

    def __init__(self) -> None:
        self.healthcheck_failures = 0
        self.reachable: bool | None = None  # by the latest reply or failed probe; None: neither so far
        self.replies = 0  # total at the latest `replied_since`
        self.checked = -inf  # time of the latest `replied_since`, in monotonic seconds
        self.durations: dict[str, Histogram] = {}

    def replied(self, rcode: int, seconds: float) -> None:
        """Count a reply with this rcode that took `seconds`."""
        label = RCODE_LABELS[rcode]
        durations = self.durations.get(label)
        if durations is None:
            durations = self.durations[label] = Histogram(DURATION_BUCKETS)
        # `Histogram.observe`, written out because each forwarded query is counted here.
        durations.counts[bisect_left(DURATION_BUCKETS, seconds)] += 1
        durations.sum += seconds

    def replied_since(self, now: float) -> bool:
        """Whether replies to any directive have arrived since the previous call by any. `now` becomes `checked`."""
        replies = sum(durations.count() for durations in self.durations.values())
        replied, self.replies, self.checked = replies != self.replies, replies, now
        return replied


class ForwardCounts:
    """Counters of all `forward` directives; one object per process, so that a reload keeps the counts."""

    __slots__ = ("healthcheck_broken", "max_concurrent_rejects", "upstreams")

    def __init__(self) -> None:
        self.healthcheck_broken = 0  # times that a query found all upstreams of its directive down
        self.max_concurrent_rejects = 0
        self.upstreams: dict[str, UpstreamCounts] = {}  # by name

    def upstream(self, name: str) -> UpstreamCounts:
        """The counters of this address, created at the first call."""
        return self.upstreams.setdefault(name, UpstreamCounts())


class ForwardShared:
    """Counters and limits of all `forward` directives of the process, which all generations share."""

    __slots__ = ("connections", "counts", "in_flight", "udp_sockets")

    def __init__(self) -> None:
        self.counts = ForwardCounts()
        self.in_flight = InFlight()
        self.udp_sockets = UdpSockets()  # of all upstreams
        self.connections: defaultdict[str, Connections] = defaultdict(lambda: defaultdict(Counts))  # by upstream

    def bound_udp_sockets(self, most: int) -> None:
        """Limit the UDP sockets to upstreams to `most`, and the queries in flight to two thirds of `most`.

        So each query gets a socket, and some may get a second one (`UdpSockets`).
        """
        self.udp_sockets.most = most
        self.in_flight.bound(self.udp_sockets.questions)
