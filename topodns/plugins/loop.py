"""The `loop` directive: notices that what is forwarded comes back to us, and breaks the circle.

As in CoreDNS a name that nobody can guess is sent to the upstreams; where it is asked of us again, there is a loop.
CoreDNS then ends the process. Nothing that a packet says may do that here (CVE-2026-26018): nothing more is forwarded,
with SERVFAIL and a log line that say why, until a probe has gone its way without coming back.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from topodns.dns.message import Ede, EdeCode, Flag, Query, Rcode, Response, RRClass, RRType
from topodns.dns.names import Name, name_text, name_wire
from topodns.resolve.course import Course, Timer, Timers, pursue
from topodns.resolve.step import Client, Dropped, Resolution, Scope, Step, Stepped

log = logging.getLogger(__name__)

FIRST_PROBE: Final = 1.0  # seconds after the start: the sockets have to be open
RECHECK: Final = 5.0  # seconds between probes while there is a loop: nothing is forwarded for as long after it is gone

_HINFO: Final = int(RRType.HINFO)
_PROBER: Final = Client(b"", 0, "udp")  # nobody else has no address
_LOOPING: Final = Ede(EdeCode.OTHER, "forwarding would go round in a circle: an upstream sends queries back to us")


@dataclass(slots=True)
class LoopCounts:
    detected: int = 0  # probes that came back
    refused: int = 0  # queries that were not forwarded because of that


class LoopGuard:
    """The step before the forwards of a block. `secret` gives a new label at each call, not to be guessed."""

    def __init__(
        self, origin: Name, forwards: Sequence[Step], timers: Timers, secret: Callable[[], str], counts: LoopCounts
    ) -> None:
        self.counts = counts
        self._origin = origin
        self._forwards = forwards
        self._timers = timers
        self._secret = secret
        self._probe: Name | None = None  # the one that is under way
        self._came_back = False
        self.looping = False  # nothing is forwarded now
        self._next: Timer | None = None

    def start(self) -> None:
        """Send the first probe soon."""
        self._next = self._timers.call_later(FIRST_PROBE, self._send_probe)

    def close(self) -> None:
        """Send no more probes."""
        if self._next is not None:
            self._next.cancel()

    def __call__(self, query: Query, client: Client) -> Resolution | None:
        """SERVFAIL for a probe that came back, and for whatever would be forwarded while there is a loop."""
        if query.qname == self._probe and query.qtype == _HINFO:
            self._came_back = True
            self.counts.detected += 1
        elif not self.looping:
            return None
        self.counts.refused += 1
        return Resolution(Response(Rcode.SERVFAIL, flags=Flag.RA, ede=_LOOPING), "loop", Scope.CLIENT)

    def _send_probe(self) -> None:
        self._probe, self._came_back = (self._secret(), self._secret(), *self._origin), False
        pursue(self._ask(self._probe), self._judge)

    async def _ask(self, name: Name) -> None:
        """Ask the forwards, not ourselves: it is by coming back that it is seen."""
        query = Query(0, Flag.RD, name, name_wire(name), _HINFO, RRClass.IN, None, 0)
        for step in self._forwards:
            try:
                if isinstance(await _result(step(query, _PROBER)), Resolution):
                    return
            except Dropped:
                return

    def _judge(self, _: None) -> None:
        if self._came_back != self.looping:
            self.looping = self._came_back
            self._tell()
        self._probe = None
        if self.looping:
            self._next = self._timers.call_later(RECHECK, self._send_probe)

    def _tell(self) -> None:
        where = name_text(self._origin)
        if self.looping:
            log.error(
                "plugin/loop: Loop detected for %s: an upstream sends queries back to us; forwarding stops", where
            )
        else:
            log.warning("plugin/loop: No loop any more for %s: forwarding goes on", where)


async def _result(stepped: Stepped | Course[Stepped]) -> Stepped:
    return stepped if stepped is None or isinstance(stepped, tuple | Resolution) else await stepped
