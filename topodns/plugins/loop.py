"""The `loop` plugin: detects that an upstream sends forwarded queries back to this server, and stops forwarding.

As in CoreDNS, a probe with a random name goes to the upstreams, once after the start; a query for that name from
outside means a loop. CoreDNS then ends the process. Here no packet may do that (CVE-2026-26018): every query to be
forwarded gets SERVFAIL, and a log line gives the reason, until a further probe does not come back.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from topodns.dns.message import Ede, EdeCode, Flag, Query, Response
from topodns.dns.name import Name, name_text, name_wire
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.metrics.registry import Published, Reading
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.forward.handler import Forwarding
from topodns.plugins.plugin import FastPath, Plugin, parse_flag
from topodns.plugins.setup import BlockSetup, Install, MetricsSource, everywhere
from topodns.query.deferred import Deferred, Timer, Timers, pursue
from topodns.query.plugin import ChainPart, Client, Dropped, Resolution, Scope, Step, Stepped

log = logging.getLogger(__name__)


FIRST_PROBE: Final = 1.0  # seconds after the start: the sockets have to be open
RECHECK: Final = 5.0  # seconds between probes during a loop; once it is gone, forwarding resumes within this time

_SECRET: Final = 8  # octets of an unguessable label
_PROBER: Final = Client(b"", 0, "udp")  # no other client has the empty address
_LOOPING: Final = Ede(EdeCode.OTHER, "forwarding would go round in a circle: an upstream sends queries back to us")


@dataclass(slots=True)
class LoopCounts:
    detected: int = 0  # probes that came back
    refused: int = 0  # queries that were not forwarded because of a loop


class LoopGuard:
    """The plugin before the `forward`s of a server block. Each call of `secret` returns a new, unguessable label."""

    def __init__(
        self, origin: Name, forwards: Sequence[Step], timers: Timers, secret: Callable[[], str], counts: LoopCounts
    ) -> None:
        self.counts = counts
        self._origin = origin
        self._forwards = forwards
        self._timers = timers
        self._secret = secret
        self._probe: Name | None = None  # the name of the probe under way
        self._came_back = False
        self.looping = False  # forwarding is stopped
        self._next: Timer | None = None
        self._closed = False

    def start(self) -> None:
        """Schedule the first probe, in FIRST_PROBE seconds. Only during a loop, others follow every RECHECK seconds."""
        self._next = self._timers.call_later(FIRST_PROBE, self._send_probe)

    def close(self) -> None:
        """Stop probing. The result of a probe under way does not count."""
        self._closed = True
        if self._next is not None:
            self._next.cancel()

    def __call__(self, query: Query, client: Client) -> Resolution | None:
        """SERVFAIL for a probe that came back and, during a loop, for every query; else None, and `forward` is next."""
        if query.qname == self._probe and query.qtype == RRType.HINFO:
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
        """Send the probe to the `forward`s directly, in order, until one answers or drops it.

        So this plugin sees the probe only if it comes back.
        """
        query = Query(
            id=0,
            flags=Flag.RD,
            qname=name,
            spelling=name_wire(name),
            qtype=RRType.HINFO,
            qclass=RRClass.IN,
            edns=None,
            size=0,
        )
        for step in self._forwards:
            try:
                if isinstance(await _result(step(query, _PROBER)), Resolution):
                    return
            except Dropped:
                return

    def _judge(self, _: None) -> None:
        if self._closed:
            return
        if self._came_back != self.looping:
            self.looping = self._came_back
            self._log_change()
        self._probe = None
        if self.looping:
            self._next = self._timers.call_later(RECHECK, self._send_probe)

    def _log_change(self) -> None:
        where = name_text(self._origin)
        if self.looping:
            log.error(
                "plugin/loop: Loop detected for %s: an upstream sends queries back to us; forwarding stops", where
            )
        else:
            log.warning("plugin/loop: No loop any more for %s: forwarding goes on", where)


async def _result(stepped: Stepped | Deferred[Stepped]) -> Stepped:
    return stepped if stepped is None or isinstance(stepped, tuple | Resolution) else await stepped


def _setup(settings: bool, block: BlockSetup) -> Install | None:
    forwards = block.provided(Forwarding)
    if not forwards:
        return None
    origin = block.block.keys[0].origin  # as CoreDNS: the first one only
    process = block.process
    guard = LoopGuard(
        origin=origin,
        forwards=forwards,
        timers=process.timers,
        secret=_secret_label,
        counts=process.shared.get(LoopCounts),
    )
    block.on_start(guard.start)
    block.on_close(guard.close)
    return everywhere(ChainPart(step=block.provide(guard)))


def _secret_label() -> str:
    return secrets.token_hex(_SECRET)


def _readings(source: MetricsSource) -> Iterator[Published]:
    counts = source.shared.get(LoopCounts)
    for name, documentation, attribute in (
        ("topodns_loop_detected", "Probes of loop that an upstream sent back.", "detected"),
        ("topodns_loop_refused", "Queries that were not forwarded because of a loop.", "refused"),
    ):
        yield Reading(name, documentation, "counter", (), partial(_count, counts, attribute))


def _count(counts: LoopCounts, attribute: str) -> list[tuple[tuple[str, ...], float]]:
    return [((), getattr(counts, attribute))]


PLUGIN: Final = Plugin(
    name="loop",
    coredns=differs(
        Effect.ANSWER,
        "a loop gets SERVFAIL until it is gone, and never ends the process; "
        "a block that is certain to forward to itself is refused",
    ),
    parse=parse_flag,
    setup=_setup,
    fast_path=FastPath.PASSED,
    unanswered=Rcode.SERVFAIL,
    metrics=_readings,
)
