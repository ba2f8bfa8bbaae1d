"""The DNS sockets of the process and their handlers. Sockets stay open over reloads, so that no query is lost.

A reload is prepared first (new addresses are opened, which may fail) and then committed (which cannot).
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from topodns.app.generation import Generation
from topodns.corefile.zones import ListenAt
from topodns.dependency import Fact
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.lookup import answer_batch
from topodns.dnsserver.packet_cache.table import PacketCache, PacketCaches
from topodns.memory.budget import SERVER, MemoryLimits
from topodns.net.descriptors import Descriptors
from topodns.net.loop_timers import LoopTimers, boot_clock
from topodns.net.mmsg import DatagramCounts, open_batch
from topodns.net.reuseport import SETTLE, Binding, Instance, Sharing, leave_group, share
from topodns.net.sockets import ListenError, open_tcp, open_udp
from topodns.net.tcp import TcpListener
from topodns.net.tcp_limits import TcpCounts, TcpLimits, TcpSchedule
from topodns.net.udp import UdpListener
from topodns.plugins.block import ServerBlock, Settings
from topodns.plugins.setup import Shared
from topodns.plugins.timeouts import PLUGIN as TIMEOUTS
from topodns.query.counters import QueryCounters, server_label
from topodns.query.query_sample import QuerySample
from topodns.query.session import OpenSession

if TYPE_CHECKING:
    from topodns.dnsserver.push.publisher import Publisher

log = logging.getLogger(__name__)


_FEW_DESCRIPTORS: Final = (
    "Descriptors: the limit of %d (RLIMIT_NOFILE) allows %d TCP connections of clients on each of %d listeners, "
    "not %d; the rest is for upstreams, HTTP, API servers and files"
)
_FEW_SESSIONS: Final = (
    "Descriptors: the limit of %d (RLIMIT_NOFILE) allows %d sessions of 'push', not %d; the rest is for other clients"
)
_WILDCARDS: Final = {"": "", "0.0.0.0": "::", "::": "0.0.0.0"}  # hosts for all addresses, and that of the other family
_ATTEMPTS: Final = 8  # to open TCP on the port that the kernel chose for UDP


@dataclass(eq=False)
class _Site:
    """One socket with its listener and its present handler."""

    sock: socket.socket
    handler: Handler
    listener: UdpListener | TcpListener
    counts: DatagramCounts | TcpCounts
    publisher: "Publisher | None" = None  # of a TCP socket, once a block of the listener has `push`


@dataclass(eq=False)
class Prepared:
    """Sockets opened for a generation that is not active yet."""

    generation: Generation
    sockets: dict[ListenAt, list[socket.socket]] = field(default_factory=dict)

    def close(self) -> None:
        """Close the sockets, as the generation is rejected."""
        for opened in self.sockets.values():
            for sock in opened:
                sock.close()


class Listeners:
    """All listeners of the process. The query counters outlive the listeners, so that they never fall."""

    def __init__(
        self,
        rng: Random,
        instance: Instance | None = None,
        memory: MemoryLimits = SERVER,
        descriptors: Descriptors | None = None,
        shared: Shared | None = None,
        ports: Mapping[ListenAt, int] | None = None,
    ) -> None:
        """`memory`: for the packet caches, and for replies that TCP clients have not read.

        `instance`: the ports are shared with other instances. `descriptors`: None for no limit by RLIMIT_NOFILE.
        `shared`: the objects of the process, among them the counters of `push`. `ports`, read whenever sockets are
        opened: the ports in place of those of the Corefile, which may be 0.
        """
        self._ports: Mapping[ListenAt, int] = {} if ports is None else ports
        self._shared = shared or Shared()
        self._rng = rng
        self._instance = instance
        self._memory = memory
        self.packet_caches = PacketCaches(memory.ready_made)
        self._schedule = TcpSchedule()
        self.sample = QuerySample()
        self._descriptors = descriptors
        self._connections = TcpLimits().connections  # the limit of each TCP listener
        self._sessions: int | None = None  # the limit of `push` by the descriptors; None: no other than its own
        self._sites: dict[ListenAt, list[_Site]] = {}
        self._all_counters: dict[tuple[str, str, str], QueryCounters] = {}

    def prepare(self, generation: Generation) -> Prepared:
        """Open the addresses of this generation that are not open yet. Raises ListenError, with none left open."""
        prepared = Prepared(generation)
        try:
            for at in generation.tables:
                if at not in self._sites:
                    prepared.sockets[at] = []
                    binding = self._binding(at, prepared)
                    host, port = _opened_host(at, generation), self._ports.get(at, at.port)
                    _open(at._replace(host=host, port=port), binding, prepared.sockets[at])
        except BaseException:
            prepared.close()
            raise
        if self._instance is not None:
            self._instance.peers.opened(sock for opened in prepared.sockets.values() for sock in opened)
        return prepared

    def _binding(self, at: ListenAt, prepared: Prepared) -> Binding:
        """The binding for the sockets of `at`. Where a port is open on all addresses and also on some of them, their
        sockets share it, as in CoreDNS: the kernel takes the one of the packet's own address first. Two for all
        addresses do not: the kernel would choose one of them at random. Where a reload changes the transport of an
        address, its sockets share the port until the previous ones are closed.
        """
        binding = self._instance.binding(at.host) if self._instance is not None else Binding()
        opened = {**{other: [site.sock for site in sites] for other, sites in self._sites.items()}, **prepared.sockets}
        is_wildcard = at.host in _WILDCARDS
        beside = [
            other
            for other in opened
            if other.port == at.port
            and ((other.host in _WILDCARDS) is not is_wildcard or (other.host == at.host and other.tls is not at.tls))
        ]
        share(sock for other in beside for sock in opened[other])
        return binding._replace(sharing=Sharing.JOINED) if beside else binding

    async def commit(self, prepared: Prepared) -> None:
        """Let the new generation answer from now on; drain and close the listeners that it does not have."""
        generation = prepared.generation
        self._share_descriptors(prepared)
        for at in generation.tables:
            for site in self._sites.get(at, ()):
                self._swap(site, generation, at)
        for at, sockets in prepared.sockets.items():
            self._sites[at] = [await self._start(sock, generation, at) for sock in sockets]
        gone = [self._sites.pop(at) for at in [at for at in self._sites if at not in generation.tables]]
        await _close(site for sites in gone for site in sites)

    async def close(self) -> None:
        """Answer all queries received, then close. If another instance serves, later ones go to it and none is lost."""
        sites, self._sites = self._sites, {}
        stays = self._instance.peers.successor() if self._instance is not None else None
        if stays is not None:
            for site in (site for group in sites.values() for site in group):
                leave_group(site.sock, stays)
            await asyncio.sleep(SETTLE)
        await _close(site for group in sites.values() for site in group)

    def forget(self, facts: frozenset[Fact]) -> None:
        """Drop the packet cache entries that depend on these facts, and push the changes to subscribers, soon."""
        self.packet_caches.forget(facts)
        for site in self._all():
            if site.publisher is not None:
                site.publisher.touched(facts)

    def all_counters(self) -> Iterable[QueryCounters]:
        return self._all_counters.values()

    def hot_entries(self) -> int:
        return sum(len(site.handler.table) for site in self._all())

    def counts(self) -> Iterator[tuple[str, DatagramCounts | TcpCounts]]:
        """The counters of each socket, with its listen address as CoreDNS's label `server`."""
        for at, sites in self._sites.items():
            for site in sites:
                yield server_label(at), site.counts

    def sockets(self) -> list[socket.socket]:
        return [site.sock for site in self._all()]

    def ports(self) -> dict[ListenAt, int]:
        """The actual port of each listener, which differs where the Corefile has port 0."""
        return {at: sites[0].handler.local_port for at, sites in self._sites.items()}

    def _all(self) -> Iterator[_Site]:
        return (site for sites in self._sites.values() for site in sites)

    def _handler(self, sock: socket.socket, generation: Generation, at: ListenAt) -> Handler:
        transport = "udp" if sock.type == socket.SOCK_DGRAM else "tcp"
        family = "1" if sock.family == socket.AF_INET else "2"  # CoreDNS's label values
        key = (server_label(at), transport, family)
        socket_counters = self._all_counters.setdefault(key, QueryCounters(*key))
        port, name = sock.getsockname()[1], self._instance.name if self._instance is not None else None
        return Handler(
            blocks=generation.tables[at],
            table=self._table(generation),
            socket_counters=socket_counters,
            clock=boot_clock,
            local_port=port,
            own_name=name,
        )

    def _table(self, generation: Generation) -> PacketCache:
        # The clock of `LoopTimers`, too, in which each `valid_until` is given.
        return PacketCache(generation.view_key, self._rng, boot_clock, self.packet_caches)

    async def _start(self, sock: socket.socket, generation: Generation, at: ListenAt) -> _Site:
        handler = self._handler(sock, generation, at)
        loop = asyncio.get_running_loop()
        if sock.type == socket.SOCK_DGRAM:
            batch = open_batch(sock)
            lookup = partial(answer_batch, handler.table)
            udp = UdpListener(batch, lookup, handler.answer, handler.socket_counters.batch_done, sample=self.sample)
            udp.start(loop)
            return _Site(sock, handler, udp, batch.counts)
        publisher = self._publisher(handler, None)
        limits, open_session = self._tcp_limits(generation.settings, at), _opening(publisher)
        tcp = TcpListener(
            sock=sock,
            answer=handler.answer,
            limits=limits,
            schedule=self._schedule,
            open_session=open_session,
            sample=self.sample,
            tls=_tls(generation.settings, at),
        )
        await tcp.start(loop)
        return _Site(sock, handler, tcp, tcp.counts, publisher)

    def _swap(self, site: _Site, generation: Generation, at: ListenAt) -> None:
        handler = site.handler = site.handler.succeeded_by(generation.tables[at], self._table(generation))
        if isinstance(site.listener, UdpListener):
            site.listener.swap(partial(answer_batch, handler.table), handler.answer, handler.socket_counters.batch_done)
        else:
            publisher = site.publisher = self._publisher(handler, site.publisher)
            settings = generation.settings
            limits, tls = self._tcp_limits(settings, at), _tls(settings, at)
            site.listener.swap(handler.answer, limits, _opening(publisher), tls)

    def _publisher(self, handler: Handler, present: "Publisher | None") -> "Publisher | None":
        """The publisher of a TCP socket for the handler's server blocks: the present one, or a new one; None without
        `push`, where the sessions of the present one end.
        """
        limits = handler.blocks.push_limits
        if limits is not None and self._sessions is not None:
            limits = replace(limits, sessions=min(limits.sessions, self._sessions))
        if present is not None:
            present.swap(handler.blocks, limits)
            return present if limits is not None else None
        if limits is None:
            return None
        # Imported here, as few servers and no node cache have `push`.
        from topodns.dnsserver.push.clients import PushClients
        from topodns.dnsserver.push.publisher import Publisher
        from topodns.plugins.push import PushCounts

        counts = self._shared.get(PushCounts)
        return Publisher(
            blocks=handler.blocks,
            limits=limits,
            local_port=handler.local_port,
            timers=LoopTimers(),
            rng=self._rng,
            clients=self._shared.get(PushClients, make=lambda: PushClients(counts)),
        )

    def _share_descriptors(self, prepared: Prepared) -> None:
        """Set the connection limit of each TCP listener: an equal share of the descriptors for TCP, at least 1.

        At most the default, which also applies if descriptors are not limited. A new limit below it is logged. The
        sessions of `push` come before, but take half of the descriptors for TCP where these are too few for all.
        """
        if self._descriptors is None:
            return
        kept = [site.sock for at, sites in self._sites.items() if at in prepared.generation.tables for site in sites]
        sockets = [*kept, *(sock for opened in prepared.sockets.values() for sock in opened)]
        listeners = sum(sock.type == socket.SOCK_STREAM for sock in sockets)
        wanted = TcpLimits().connections
        descriptors = self._descriptors.tcp - self._share_sessions(prepared.generation, listeners * wanted)
        each = min(wanted, max(1, descriptors // max(1, listeners)))
        if each not in (wanted, self._connections):
            log.warning(_FEW_DESCRIPTORS, self._descriptors.limit, each, listeners, wanted)
        self._connections = each

    def _share_sessions(self, generation: Generation, connections: int) -> int:
        """Set the limit of sessions beside so many other connections, and return it. One below `push`'s is logged."""
        assert self._descriptors is not None
        pushes = (table.push_limits for table in generation.tables.values())
        wanted = max((limits.sessions for limits in pushes if limits is not None), default=0)
        tcp = self._descriptors.tcp
        sessions = wanted if wanted + connections <= tcp else min(wanted, tcp // 2)
        if sessions not in (wanted, self._sessions):
            log.warning(_FEW_SESSIONS, self._descriptors.limit, sessions, wanted)
        self._sessions = sessions
        return sessions

    def _tcp_limits(self, settings: Settings, at: ListenAt) -> TcpLimits:
        limits = _timeouts(settings, at).within(self._connections)
        return replace(limits, write_buffer=self._memory.unread_each, unread=self._memory.unread)


def _opening(publisher: "Publisher | None") -> OpenSession | None:
    if publisher is None:
        return None
    # Imported here, as `Publisher` is.
    from topodns.dnsserver.push.session import PushSession

    return partial(PushSession, publisher)


def _timeouts(settings: Settings, at: ListenAt) -> TcpLimits:
    """The limits by the `timeouts` of the first block at this listener that has the directive, else the defaults."""
    for timeouts in filter(None, map(TIMEOUTS.settings_of, _blocks_at(settings, at))):
        return TcpLimits(message=timeouts.read, write=timeouts.write, idle=timeouts.idle, queries=timeouts.max_queries)
    return TcpLimits()


def _tls(settings: Settings, at: ListenAt) -> ssl.SSLContext | None:
    """The context of a listener with TLS, whose blocks all have the same `tls` (`app.load.check_transports`)."""
    return next(_blocks_at(settings, at)).settings["tls"].context if at.tls else None


def _blocks_at(settings: Settings, at: ListenAt) -> Iterator[ServerBlock]:
    return (
        block
        for block in settings.blocks
        if any(key.at(host) == at for host in block.bound_hosts for key in block.keys)
    )


def _opened_host(at: ListenAt, generation: Generation) -> str:
    """The host whose sockets serve `at`: for 0.0.0.0 and :: "", both families, as Go listens on them, unless the other
    one has a listener of its own.
    """
    other = _WILDCARDS.get(at.host)
    return at.host if other is None or at._replace(host=other) in generation.tables else ""


def _open(at: ListenAt, binding: Binding, opened: list[socket.socket]) -> None:
    """Open TCP, and without TLS UDP on the same port, and add the sockets to `opened`. Raises ListenError, with nothing
    added.

    Port 0 is a port that the kernel finds free for UDP; if it is taken for TCP, another one, _ATTEMPTS at most.
    """
    host, port, tls = at
    if tls:
        opened += open_tcp(host, port, binding)
        return
    for attempt in range(1, _ATTEMPTS + 1):
        datagram = open_udp(host, port, binding)
        try:
            opened += [*datagram, *open_tcp(host, datagram[0].getsockname()[1], binding)]
        except ListenError as failed:
            for sock in datagram:
                sock.close()
            if port or not failed.in_use or attempt == _ATTEMPTS:
                raise
        else:
            return


async def _close(sites: Iterable[_Site]) -> None:
    await asyncio.gather(*(site.listener.close() for site in sites))
