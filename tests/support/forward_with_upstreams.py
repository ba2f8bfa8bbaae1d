"""A `forward` directive with upstreams in memory, in virtual time."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.support.query_builders import client
from tests.support.scripted_upstream import Behaviour, ScriptedUpstream
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Query
from topodns.plugins.forward.handler import Forwarding, Options
from topodns.plugins.forward.settings import Forward, UpstreamAddress, UpstreamPolicy, UpstreamTransport
from topodns.plugins.forward.upstreams import ForwardCounts
from topodns.plugins.forward.waiting_limit import InFlight
from topodns.query.deferred import pursue
from topodns.query.plugin import Client, Resolution

CLIENT = client()


class Waiting:
    """The result of a question, once there is one: the resolution, None for "not mine"; and when."""

    def __init__(self, timers: VirtualTimers) -> None:
        self._timers = timers
        self._started = timers.time()
        self._resolution: Resolution | None = None
        self.seconds: float | None = None

    def arrive(self, resolution: Resolution | None) -> None:
        assert self.seconds is None, "answered twice"
        self._resolution = resolution
        self.seconds = round(self._timers.time() - self._started, 6)

    @property
    def arrived(self) -> bool:
        return self.seconds is not None

    @property
    def passed_on(self) -> bool:
        assert self.arrived
        return self._resolution is None

    @property
    def resolution(self) -> Resolution:
        assert self._resolution is not None
        return self._resolution

    @property
    def rcode(self) -> int:
        return self.resolution.response.rcode

    @property
    def ede(self) -> tuple[int, str] | None:
        return self.resolution.response.ede


class ForwardScene:
    """Upstreams 192.0.2.1, 192.0.2.2, ... with one behaviour each; asked in order unless another policy is given."""

    def __init__(
        self,
        *behaviours: Behaviour,
        in_flight: InFlight | None = None,
        tls: bool = False,
        followed: bool = False,
        options: Options = (),
        names_upstreams: bool = False,
        may_hedge: Callable[[], bool] = lambda: True,
        **settings: Any,
    ) -> None:
        self.timers = VirtualTimers()
        self.counts = ForwardCounts()
        self.in_flight = in_flight or InFlight()
        transport = UpstreamTransport.TLS if tls else UpstreamTransport.DNS
        addresses = tuple(UpstreamAddress(f"192.0.2.{n + 1}", 53, transport) for n in range(len(behaviours)))
        self.upstreams = [
            ScriptedUpstream(address.name, self.timers, behave)
            for address, behave in zip(addresses, behaviours, strict=True)
        ]
        chosen = replace(Forward(((),), addresses, policy=UpstreamPolicy.SEQUENTIAL), **settings)
        self.forwarding = Forwarding(
            chosen,
            self.upstreams,
            self.timers,
            Random(20261121),
            self.in_flight,
            self.counts,
            followed,
            options,
            names_upstreams=names_upstreams,
            may_hedge=may_hedge,
        )

    def ask(self, query: Query, asker: Client = CLIENT) -> Waiting:
        """The question is asked; no time passes. Raises Dropped."""
        waiting = Waiting(self.timers)
        stepped = self.forwarding(query, asker)
        if stepped is None or isinstance(stepped, Resolution):
            waiting.arrive(stepped)
        else:
            pursue(stepped, waiting.arrive)
        return waiting

    def asked_and_answered(self, query: Query, asker: Client = CLIENT, within: float = 4.0) -> Waiting:
        """Asked, and given so many seconds, after which there has to be an answer."""
        waiting = self.ask(query, asker)
        self.timers.advance(within)
        assert waiting.arrived, f"no answer within {within} s"
        return waiting

    @property
    def asked(self) -> list[int]:
        """How many questions each upstream got."""
        return [len(upstream.asked) for upstream in self.upstreams]
