"""What a server block has beside its settings, made once for all its zones and addresses: upstreams, caches, sources.

Nothing is opened when it is made; `start` and `close` are its generation's to call, `sources` its tasks to run.
"""

import asyncio
import secrets
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from topodns.cluster.model import Fact
from topodns.edge.hosts_source import HostsSource
from topodns.edge.upstream import DnsUpstream, UpstreamLimits, open_upstream
from topodns.edge.weight_source import WeightSource
from topodns.resolve.cache import ResponseCache
from topodns.resolve.course import Outcome, Timers
from topodns.resolve.error_log import ErrorLog
from topodns.resolve.exchange import Failure, Transport
from topodns.resolve.forward import ForwardCounts, Forwarding, InFlight
from topodns.resolve.hosts import HostNames
from topodns.resolve.loadbalance import LoadBalancer
from topodns.resolve.loop import LoopCounts, LoopGuard
from topodns.settings.forward import Forward, UpstreamAddress, UpstreamTransport
from topodns.settings.server import ServerBlock
from topodns.settings.steps import LoadbalancePolicy

_SECRET: Final = 8  # octets of a label that nobody can guess
_DEFAULTS: Final = UpstreamLimits()


@dataclass(eq=False)
class Counted:
    """The counts of the whole process, so that a reload keeps them."""

    forward: ForwardCounts = field(default_factory=ForwardCounts)
    in_flight: InFlight = field(default_factory=InFlight)
    loop: LoopCounts = field(default_factory=LoopCounts)


Source = HostsSource | WeightSource


@dataclass(eq=False)
class Workings:
    """What one server block works with."""

    settings: ServerBlock
    balancer: LoadBalancer | None = None
    cache: ResponseCache | None = None
    hosts: HostNames | None = None
    forwards: tuple[Forwarding, ...] = ()
    guard: LoopGuard | None = None
    errors: ErrorLog | None = None
    upstreams: list["LateUpstream"] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)

    def start(self, changed: Callable[[frozenset[Fact]], None]) -> None:
        """Its generation is in charge from now on; `changed` is told what a file changed."""
        for source in self.sources:
            if isinstance(source, HostsSource):
                source.changed = changed
        if self.guard is not None:
            self.guard.start()

    def close(self) -> None:
        """Another generation is in charge: what is on its way comes to its end, and nothing else begins."""
        if self.guard is not None:
            self.guard.close()
        for forward in self.forwards:
            forward.close()
        for upstream in self.upstreams:
            upstream.close()
        if self.errors is not None:
            self.errors.close()


class Workshop:
    """Makes workings. Raises what their files raise: OSError, BadWeights, ssl.SSLError."""

    def __init__(self, timers: Timers, rng: Random) -> None:
        self.counted = Counted()
        self._timers = timers
        self._rng = rng

    def make(self, block: ServerBlock) -> Workings:
        """The workings of a block, with its files read."""
        workings = Workings(block)
        workings.balancer = self._balancer(block, workings)
        workings.errors = ErrorLog(block.errors, self._timers) if block.errors is not None else None
        workings.cache = ResponseCache(block.cache, self._timers) if block.cache is not None else None
        workings.hosts = self._hosts(block, workings)
        workings.forwards = tuple(self._forwards(block, workings))
        workings.guard = self._guard(block, workings)
        return workings

    def _balancer(self, block: ServerBlock, workings: Workings) -> LoadBalancer | None:
        settings = block.loadbalance
        if settings is None:
            return None
        if settings.policy is not LoadbalancePolicy.WEIGHTED:
            return LoadBalancer(settings, self._rng)
        source = WeightSource(settings.weight_file, settings.reload)
        source.load()
        workings.sources.append(source)
        return LoadBalancer(settings, self._rng, source.weights)

    def _hosts(self, block: ServerBlock, workings: Workings) -> HostNames | None:
        if block.hosts is None:
            return None
        source = HostsSource(block.hosts)
        source.load()
        workings.sources.append(source)
        return HostNames(block.hosts, source.table)

    def _forwards(self, block: ServerBlock, workings: Workings) -> Iterator[Forwarding]:
        for number, settings in enumerate(block.forward, 1):
            upstreams = [LateUpstream(settings, address) for address in settings.upstreams]
            workings.upstreams += upstreams
            yield Forwarding(
                settings,
                upstreams,
                self._timers,
                self._rng,
                self.counted.in_flight,
                self.counted.forward,
                followed=number < len(block.forward),
            )

    def _guard(self, block: ServerBlock, workings: Workings) -> LoopGuard | None:
        if not block.loop or not workings.forwards:
            return None
        origin = block.keys[0].origin  # as CoreDNS: the first one only
        return LoopGuard(origin, workings.forwards, self._timers, _secret_label, self.counted.loop)


class LateUpstream:
    """An `Upstream` that is opened when it is first asked: only then is there a loop."""

    def __init__(self, settings: Forward, address: UpstreamAddress) -> None:
        self.name = address.name
        self._settings = settings
        self._address = address
        # Made now, so that a certificate that cannot be read is a problem of the Corefile.
        self._tls = _tls_context(settings) if address.transport is UpstreamTransport.TLS else None
        self.opened: DnsUpstream | None = None

    def exchange(self, message: bytes, transport: Transport, timeout: float) -> Outcome[bytes | Failure]:
        return (self.opened or self._open()).exchange(message, transport, timeout)

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()

    def _open(self) -> DnsUpstream:
        settings, address = self._settings, self._address
        self.opened = open_upstream(
            asyncio.get_running_loop(),
            address.host,
            address.port,
            tls=self._tls,
            server_name=address.server_name,
            source_address=settings.source_address,
            limits=UpstreamLimits(
                expire=settings.expire,
                max_age=settings.max_age or _DEFAULTS.max_age,
                max_idle_conns=settings.max_idle_conns,
            ),
        )
        return self.opened


def _tls_context(settings: Forward) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.tls.ca or None)
    if settings.tls.certificate:
        context.load_cert_chain(settings.tls.certificate, settings.tls.key)
    return context


def _secret_label() -> str:
    return secrets.token_hex(_SECRET)
