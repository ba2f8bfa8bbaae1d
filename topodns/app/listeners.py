"""The sockets of the process, and what answers behind each: kept open over reloads, so that no query is lost.

A reload is prepared first (new addresses are opened, which may fail) and then committed (which cannot).
"""

import asyncio
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from topodns.assembly import Generation, ListenAt
from topodns.cluster.facts import Fact
from topodns.edge.mmsg import DatagramCounts, open_batch
from topodns.edge.port_sharing import SETTLE, Binding, Instance, leave_group
from topodns.edge.sockets import ListenError, open_tcp, open_udp
from topodns.edge.tcp import TcpCounts, TcpLimits, TcpListener
from topodns.edge.udp import UdpListener
from topodns.resolve.handler import Handler
from topodns.resolve.hot import HotRoom, HotTable
from topodns.resolve.tally import Tally, server_label
from topodns.settings.memory import SERVER, MemoryLimits
from topodns.settings.server import Settings

_ATTEMPTS: Final = 8  # at a port that the kernel chose for UDP and that TCP may not have


@dataclass(eq=False)
class _Site:
    """One socket: its listener, and the handler that answers there now."""

    sock: socket.socket
    handler: Handler
    listener: UdpListener | TcpListener
    counts: DatagramCounts | TcpCounts


@dataclass(eq=False)
class Prepared:
    """Sockets opened for a generation that is not in charge yet."""

    generation: Generation
    sockets: dict[ListenAt, list[socket.socket]] = field(default_factory=dict)

    def close(self) -> None:
        """Give up: the generation will not be."""
        for opened in self.sockets.values():
            for sock in opened:
                sock.close()


class Listeners:
    """All listeners of the process. Tallies outlive what they count, so that counters never fall."""

    def __init__(self, rng: Random, instance: Instance | None = None, memory: MemoryLimits = SERVER) -> None:
        """`instance`: the ports are shared with other instances."""
        self._rng = rng
        self._instance = instance
        self._memory = memory
        self._room = HotRoom(memory.ready_made)
        self._sites: dict[ListenAt, list[_Site]] = {}
        self._tallies: dict[tuple[str, str, str], Tally] = {}

    def prepare(self, generation: Generation) -> Prepared:
        """Open what this generation listens on and is not open yet. Raises ListenError, with nothing left open."""
        prepared = Prepared(generation)
        try:
            for at in generation.tables:
                if at not in self._sites:
                    prepared.sockets[at] = []
                    binding = self._instance.binding(at[0]) if self._instance is not None else Binding()
                    _open_both(at, binding, prepared.sockets[at])
        except BaseException:
            prepared.close()
            raise
        return prepared

    async def commit(self, prepared: Prepared) -> None:
        """Answer by the new generation from now on, and close, drained, what it does not listen on."""
        generation = prepared.generation
        for at in generation.tables:
            for site in self._sites.get(at, ()):
                self._swap(site, generation, at)
        for at, sockets in prepared.sockets.items():
            self._sites[at] = [await self._start(sock, generation, at) for sock in sockets]
        gone = [self._sites.pop(at) for at in [at for at in self._sites if at not in generation.tables]]
        await _close(site for sites in gone for site in sites)

    async def close(self) -> None:
        """Answer all that has arrived, then close. Where another instance serves, nothing that arrives is lost."""
        sites, self._sites = self._sites, {}
        stays = self._instance.company.successor() if self._instance is not None else None
        if stays is not None:
            for site in (site for group in sites.values() for site in group):
                leave_group(site.sock, stays)
            await asyncio.sleep(SETTLE)
        await _close(site for group in sites.values() for site in group)

    def forget(self, facts: frozenset[Fact]) -> None:
        """What rests on these facts is answered anew."""
        for site in self._all():
            site.handler.table.forget(facts)

    def tallies(self) -> Iterable[Tally]:
        return self._tallies.values()

    def hot_entries(self) -> int:
        return sum(len(site.handler.table) for site in self._all())

    def counts(self) -> Iterator[tuple[str, DatagramCounts | TcpCounts]]:
        """What the sockets have seen, with the address that each listens on."""
        for at, sites in self._sites.items():
            for site in sites:
                yield server_label(at), site.counts

    def ports(self) -> dict[ListenAt, int]:
        """The port that each listener really has: another one where 0 was asked for."""
        return {at: sites[0].handler.local_port for at, sites in self._sites.items()}

    def _all(self) -> Iterator[_Site]:
        return (site for sites in self._sites.values() for site in sites)

    def _handler(self, sock: socket.socket, generation: Generation, at: ListenAt) -> Handler:
        transport = "udp" if sock.type == socket.SOCK_DGRAM else "tcp"
        family = "1" if sock.family == socket.AF_INET else "2"  # CoreDNS's label values
        key = (server_label(at), transport, family)
        tally = self._tallies.setdefault(key, Tally(*key))
        port, name = sock.getsockname()[1], self._instance.name if self._instance is not None else None
        return Handler(generation.tables[at], self._table(generation), tally, time.monotonic, port, name)

    def _table(self, generation: Generation) -> HotTable:
        # By the clock of `LoopTimers`, which is that of each `valid_until`.
        return HotTable(generation.view_name, self._rng, time.monotonic, self._room)

    async def _start(self, sock: socket.socket, generation: Generation, at: ListenAt) -> _Site:
        handler = self._handler(sock, generation, at)
        loop = asyncio.get_running_loop()
        if sock.type == socket.SOCK_DGRAM:
            batch = open_batch(sock)
            udp = UdpListener(batch, handler.table, handler.answer, handler.tally.batch_done)
            udp.start(loop)
            return _Site(sock, handler, udp, batch.counts)
        tcp = TcpListener(sock, handler.answer, self._tcp_limits(generation.settings, at))
        await tcp.start(loop)
        return _Site(sock, handler, tcp, tcp.counts)

    def _swap(self, site: _Site, generation: Generation, at: ListenAt) -> None:
        handler = site.handler = site.handler.succeeded_by(generation.tables[at], self._table(generation))
        if isinstance(site.listener, UdpListener):
            site.listener.swap(handler.table, handler.answer, handler.tally.batch_done)
        else:
            site.listener.swap(handler.answer, self._tcp_limits(generation.settings, at))

    def _tcp_limits(self, settings: Settings, at: ListenAt) -> TcpLimits:
        return replace(_timeouts(settings, at), write_buffer=self._memory.unread_each, unread=self._memory.unread)


def _timeouts(settings: Settings, at: ListenAt) -> TcpLimits:
    """By the `timeouts` of the first block that listens there and has any."""
    host, port = at
    for block in settings.blocks:
        here = host in (block.bind or ("",)) and any(key.port == port for key in block.keys)
        if here and (timeouts := block.timeouts) is not None:
            return TcpLimits(
                message=timeouts.read, write=timeouts.write, idle=timeouts.idle, queries=timeouts.max_queries
            )
    return TcpLimits()


def _open_both(at: ListenAt, binding: Binding, opened: list[socket.socket]) -> None:
    """UDP and TCP on the same port, also where the kernel chooses it: then until both are free."""
    host, port = at
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
