"""Which Event is due, and when. Pure: `now` is in seconds of any clock that never goes back."""

import math
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from topodns.cluster.model import ObjectKey
from topodns.resolve.audit import Finding

REPEATED: Final = 3700.0  # seconds: kube-apiserver keeps an Event for an hour (--event-ttl) and at most a minute more
PER_MINUTE: Final = 10  # attempts, for all Services together
DENIED: Final = 3600.0  # seconds for which nothing is tried where it is not allowed

REASONS: Final = {"invalid": "TopologyPolicyInvalid", "misplaced": "TopologyPolicyMisplaced"}
"""The reason of an Event by the kind of finding; the other kinds are not worth one."""

_MINUTE: Final = 60.0


class Due(NamedTuple):
    """The next Event, and the first moment at which it may be written."""

    at: float
    finding: Finding


class Plan:
    """Remembers what was written: for a problem of a Service once an hour, while the problem lasts."""

    def __init__(self) -> None:
        self._wished: tuple[Finding, ...] = ()
        self._settled: dict[Finding, float] = {}
        self._denied: dict[str, float] = {}  # by namespace
        self._attempts: deque[float] = deque(maxlen=PER_MINUTE)

    def report(self, findings: Iterable[Finding], now: float) -> None:
        """All that is wrong now; what was reported before and is not among it has been put right."""
        self._wished = tuple(finding for finding in findings if finding.kind in REASONS)
        self._settled = {finding: at for finding, at in self._settled.items() if now - at < REPEATED}
        self._denied = {namespace: at for namespace, at in self._denied.items() if now - at < DENIED}

    def next(self, now: float) -> Due | None:
        """None while there is nothing to say.

        Of several that are due the one whose Service has waited longest, so that one with ever new mistakes does not
        keep the others from being told.
        """
        last: dict[ObjectKey, float] = {}
        for finding, at in self._settled.items():
            last[finding.service] = max(at, last.get(finding.service, -math.inf))
        ranked = (
            (max(now, self._due(finding)), last.get(finding.service, -math.inf), finding.service, finding.text, finding)
            for finding in self._wished
        )
        first = min(ranked, key=lambda rank: rank[:4], default=None)
        return Due(max(first[0], self._allowed()), first[-1]) if first is not None else None

    def attempted(self, now: float) -> None:
        """A request is made for one of them."""
        self._attempts.append(now)

    def settled(self, finding: Finding, now: float) -> None:
        """It is written, or cannot be: either way not to be tried again soon."""
        self._settled[finding] = now

    def denied(self, namespace: str, now: float) -> None:
        """Nothing may be written in this namespace."""
        self._denied[namespace] = now

    def _due(self, finding: Finding) -> float:
        again = self._settled.get(finding, -math.inf) + REPEATED
        return max(again, self._denied.get(finding.service.namespace, -math.inf) + DENIED)

    def _allowed(self) -> float:
        return self._attempts[0] + _MINUTE if len(self._attempts) == PER_MINUTE else -math.inf
