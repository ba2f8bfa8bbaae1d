"""What a server block has beside its settings, made once for all its zones and addresses: upstreams, caches, sources.

Nothing is opened when it is made; `start` and `close` are its generation's to call, `sources` its tasks to run. What
reads files that few Corefiles have is imported where it is made, as in `block_parts`.
"""

import asyncio
import logging
import secrets
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from topodns.cluster.facts import Fact
from topodns.counted import Connections, Counted, cache_labels, servers_of
from topodns.dns.bad_text import BadText
from topodns.dns.message import Option
from topodns.edge.upstream import Carrier, DnsUpstream, UpstreamLimits, open_upstream
from topodns.resolve.cache import ResponseCache, room_of
from topodns.resolve.course import Timers
from topodns.resolve.error_log import ErrorLog
from topodns.resolve.exchange import Came, Transport
from topodns.resolve.forward import DEADLINE, Forwarding, Options
from topodns.resolve.loadbalance import LoadBalancer
from topodns.resolve.loop import LoopGuard
from topodns.settings.forward import Forward, UpstreamAddress, UpstreamTransport
from topodns.settings.memory import SERVER, MemoryLimits
from topodns.settings.server import ServerBlock
from topodns.settings.steps import LoadbalancePolicy

if TYPE_CHECKING:
    from topodns.edge.hosts_source import HostsSource
    from topodns.edge.zone_file_source import ZoneFileSource
    from topodns.resolve.hosts import HostNames

log = logging.getLogger(__name__)

_SECRET: Final = 8  # octets of a label that nobody can guess
_LINGER: Final = 10.0  # seconds: twice as long as a question is asked anew, and autopath and dns64 ask two in a row
_DEFAULTS: Final = UpstreamLimits()

FILE_ERRORS: Final = (OSError, BadText)
"""What files raise that cannot be used; ssl.SSLError is an OSError."""


class FileSource(Protocol):
    """A file that was read, and is followed for as long as `run` runs."""

    async def run(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Identity:
    """Who tells the cluster DNS where its clients are: a node's cache, which asks for Pods of that node alone."""

    node_name: str  # "" unknown, and then nothing is told
    upstreams: frozenset[str]  # the addresses that are told, and no others


@dataclass(eq=False)
class Workings:
    """What one server block works with."""

    settings: ServerBlock
    balancer: LoadBalancer | None = None
    cache: ResponseCache | None = None
    hosts: "HostNames | None" = None
    hosts_source: "HostsSource | None" = None
    zone_files: "tuple[ZoneFileSource, ...]" = ()
    forwards: tuple[Forwarding, ...] = ()
    watches: bool = False  # whether upstreams can be reached is told, also when nobody asks them
    guard: LoopGuard | None = None
    errors: ErrorLog | None = None
    upstreams: list["LateUpstream"] = field(default_factory=list)
    sources: list[FileSource] = field(default_factory=list)

    def start(self, changed: Callable[[frozenset[Fact]], None]) -> None:
        """Its generation is in charge from now on; `changed` is told what a file changed."""
        if self.hosts_source is not None:
            self.hosts_source.changed = changed
        for source in self.zone_files:
            source.changed = changed
        if self.guard is not None:
            self.guard.start()
        if self.watches:
            for forward in self.forwards:
                forward.watch()

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
    """Makes workings. Raises one of FILE_ERRORS."""

    def __init__(
        self, timers: Timers, rng: Random, identity: Identity | None = None, memory: MemoryLimits = SERVER
    ) -> None:
        self.counted = Counted()
        self.room = room_of(memory)
        self._watches = identity is not None
        self._identity = identity or Identity("", frozenset())
        self._timers = timers
        self._rng = rng

    def make(self, block: ServerBlock) -> Workings:
        """The workings of a block, with its files read."""
        workings = Workings(block, watches=self._watches)
        workings.balancer = self._balancer(block, workings)
        workings.errors = ErrorLog(block.errors, self._timers) if block.errors is not None else None
        workings.hosts = self._hosts(block, workings)
        workings.zone_files = tuple(self._zone_files(block, workings))
        workings.forwards = tuple(self._forwards(block, workings))
        workings.cache = self._cache(block, workings.forwards)
        workings.guard = self._guard(block, workings)
        return workings

    def _cache(self, block: ServerBlock, forwards: tuple[Forwarding, ...]) -> ResponseCache | None:
        """One for all servers of the block; what does not fit into it is counted under the first of them."""
        if block.cache is None:
            return None
        labels = cache_labels(block, servers_of(block)[0])

        def hopeless() -> bool:
            return bool(forwards) and all(forward.all_down for forward in forwards)

        return ResponseCache(block.cache, self._timers, self.counted.caches[labels], self.room, hopeless)

    def _balancer(self, block: ServerBlock, workings: Workings) -> LoadBalancer | None:
        settings = block.loadbalance
        if settings is None:
            return None
        if settings.policy is not LoadbalancePolicy.WEIGHTED:
            return LoadBalancer(settings, self._rng)
        from topodns.edge.weight_source import WeightSource

        source = WeightSource(settings.weight_file, settings.reload)
        source.load()
        workings.sources.append(source)
        return LoadBalancer(settings, self._rng, source.weights)

    def _hosts(self, block: ServerBlock, workings: Workings) -> "HostNames | None":
        if block.hosts is None:
            return None
        from topodns.edge.hosts_source import HostsSource
        from topodns.resolve.hosts import HostNames

        source = workings.hosts_source = HostsSource(block.hosts)
        source.load()
        workings.sources.append(source)
        return HostNames(block.hosts, source.table)

    def _zone_files(self, block: ServerBlock, workings: Workings) -> "Iterator[ZoneFileSource]":
        if not block.file:
            return
        from topodns.edge.zone_file_source import ZoneFileSource

        for settings in block.file:
            source = ZoneFileSource(settings)
            source.load()
            workings.sources.append(source)
            yield source

    def _forwards(self, block: ServerBlock, workings: Workings) -> Iterator[Forwarding]:
        for number, settings in enumerate(block.forward, 1):
            upstreams = [
                LateUpstream(settings, address, self.counted.connections[address.name])
                for address in settings.upstreams
            ]
            workings.upstreams += upstreams
            yield Forwarding(
                settings,
                upstreams,
                self._timers,
                self._rng,
                self.counted.in_flight,
                self.counted.forward,
                followed=number < len(block.forward),
                options=self._options_for(settings),
                deadline=min(DEADLINE, block.cancel or DEADLINE),
            )

    def _options_for(self, settings: Forward) -> Options:
        """Our node's name for upstreams that are the cluster DNS, and for no others."""
        identity = self._identity
        told = [address.host in identity.upstreams for address in settings.upstreams]
        if not identity.node_name or not any(told):
            return ()
        if not all(told):
            names = ", ".join(address.name for address in settings.upstreams)
            log.warning("plugin/forward: %s are not all the cluster DNS, so none of them is told the node", names)
            return ()
        return ((int(Option.NODE_IDENTITY), identity.node_name.encode()),)

    def _guard(self, block: ServerBlock, workings: Workings) -> LoopGuard | None:
        if not block.loop or not workings.forwards:
            return None
        origin = block.keys[0].origin  # as CoreDNS: the first one only
        return LoopGuard(origin, workings.forwards, self._timers, _secret_label, self.counted.loop)


class LateUpstream:
    """An `Upstream` that is opened when it is first asked: only then is there a loop."""

    def __init__(self, settings: Forward, address: UpstreamAddress, counts: Connections) -> None:
        self.name = address.name
        self._settings = settings
        self._address = address
        self._counts = counts
        # Made now, so that a certificate that cannot be read is a problem of the Corefile.
        self._tls = _tls_context(settings) if address.transport is UpstreamTransport.TLS else None
        self.opened: DnsUpstream | None = None
        self._carriers: Mapping[Transport, Carrier] = {}

    def exchange(self, message: bytes, question: bytes, transport: Transport, timeout: float, came: Came) -> None:
        carrier = self._carriers.get(transport)
        if carrier is not None:
            carrier.exchange(message, question, timeout, came)
        else:
            (self.opened or self._open()).exchange(message, question, transport, timeout, came)

    def close(self) -> None:
        """Later: what is on its way may have to ask again, also one that nobody has asked so far."""
        asyncio.get_running_loop().call_later(_LINGER, self._close)

    def _close(self) -> None:
        self._carriers = {}
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
                max_age=_DEFAULTS.max_age if settings.max_age is None else settings.max_age,
                max_idle_conns=settings.max_idle_conns,
            ),
            counts=self._counts,
        )
        self._carriers = self.opened.carriers
        return self.opened


def _tls_context(settings: Forward) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.tls.ca or None)
    if settings.tls.certificate:
        context.load_cert_chain(settings.tls.certificate, settings.tls.key)
    return context


def _secret_label() -> str:
    return secrets.token_hex(_SECRET)
