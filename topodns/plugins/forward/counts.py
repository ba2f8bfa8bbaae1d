"""What forwarding counts, as plain numbers that are published when somebody asks for the metrics."""

from bisect import bisect_left
from math import inf

from topodns.dns.message import RCODE_NAMES
from topodns.resolve.tally import DURATION_BUCKETS, Durations


class UpstreamCounts:
    """Of one upstream address, whichever directives forward to it.

    `durations`: rcode label -> how long the replies took: [sum of seconds, one count per bucket, count beyond them].
    """

    __slots__ = ("_by_rcode", "healthcheck_failures", "looked", "reachable", "replies")

    def __init__(self) -> None:
        self.healthcheck_failures = 0
        self.reachable: bool | None = None  # as the latest reply or failed probe says; None: nothing has come of it
        self.replies = 0  # until the last look at whether there are more
        self.looked = -inf  # when that was, in monotonic seconds
        self._by_rcode: dict[int, Durations] = {}

    def replied(self, rcode: int, seconds: float) -> None:
        """A reply with this rcode came after so long."""
        durations = self._by_rcode.get(rcode)
        if durations is None:
            durations = self._by_rcode[rcode] = [0.0] * (len(DURATION_BUCKETS) + 2)
        durations[0] += seconds
        durations[1 + bisect_left(DURATION_BUCKETS, seconds)] += 1

    def heard_since(self, now: float) -> bool:
        """Whether replies have come since this was asked last."""
        replies = sum(int(sum(slots)) for _, *slots in self._by_rcode.values())
        heard, self.replies, self.looked = replies != self.replies, replies, now
        return heard

    @property
    def durations(self) -> dict[str, Durations]:
        return {rcode_label(rcode): durations for rcode, durations in self._by_rcode.items()}


class ForwardCounts:
    """Of all `forward` directives together; one object for the whole process, so that a reload keeps the counts."""

    __slots__ = ("healthcheck_broken", "max_concurrent_rejects", "upstreams")

    def __init__(self) -> None:
        self.healthcheck_broken = 0  # times that all upstreams of a directive were down
        self.max_concurrent_rejects = 0
        self.upstreams: dict[str, UpstreamCounts] = {}  # by name

    def upstream(self, name: str) -> UpstreamCounts:
        """The counts of this address, new where it was never seen."""
        return self.upstreams.setdefault(name, UpstreamCounts())


def rcode_label(rcode: int) -> str:
    """CoreDNS's label value: the name, or the number where nobody has given it one."""
    return RCODE_NAMES.get(rcode) or str(rcode)
