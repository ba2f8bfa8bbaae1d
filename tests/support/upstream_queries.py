"""Queries through a real `Upstream`, from inside an event loop."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from typing import Final

from tests.support.dns_messages import Opt, Reply, query
from tests.support.event_loops import PATIENCE, eventually
from topodns.dns.wire_format import HEADER_SIZE
from topodns.net.loop_timers import boot_clock
from topodns.net.upstream.address import UpstreamLimits
from topodns.net.upstream.client import DnsUpstream, open_upstream
from topodns.net.upstream.https_transport import HttpsCarrier
from topodns.net.upstream.in_flight import Retransmission
from topodns.net.upstream.tcp_transport import TcpCarrier
from topodns.net.upstream.udp_transport import UdpCarrier
from topodns.query.deferred import Outcome
from topodns.query.upstream import Carrier, Failure, Transport, Upstream, UpstreamQuery

UDP, TCP, TLS, HTTPS = Transport.UDP, Transport.TCP, Transport.TLS, Transport.HTTPS

BRIEF: Final = 0.15  # seconds, for what is to time out

TIMED_OUT: Final = Failure("i/o timeout", timed_out=True)
REFUSED: Final = Failure("connection refused", timed_out=False)

QUICK: Final = UpstreamLimits(connect=BRIEF, sweep=0.01)


@contextlib.asynccontextmanager
async def upstream_at(
    port: int,
    limits: UpstreamLimits = QUICK,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    server_name: str = "",
    source_address: str = "",
    https: str = "",
) -> AsyncIterator[DnsUpstream]:
    """The upstream at a loopback port; afterwards it has to let go of everything."""
    loop = asyncio.get_running_loop()
    upstream = open_upstream(
        loop, host, port, tls=tls, server_name=server_name, source_address=source_address, limits=limits, https=https
    )
    try:
        yield upstream
    finally:
        upstream.close()
        await eventually(lambda: open_sockets(upstream) == in_flight(upstream) == 0)


def open_sockets(upstream: DnsUpstream) -> int:
    """Its sockets over UDP, and its connections."""
    return sum(
        len(carrier._queries) if isinstance(carrier, UdpCarrier) else open_connections(carrier)
        for carrier in upstream.carriers.values()
    )


def open_connections(carrier: Carrier) -> int:
    """The connections of a carrier over TCP, TLS or HTTPS, those that are closing included."""
    if isinstance(carrier, HttpsCarrier):
        return carrier._connections
    assert isinstance(carrier, TcpCarrier)
    holders = (carrier, carrier._isolated)
    return sum(len(holder._connections) + len(holder._leaving) for holder in holders)


def in_flight(upstream: DnsUpstream) -> int:
    """The number of queries without a reply yet, but for those that are sent a second time."""
    return sum(not isinstance(query, Retransmission) for query in upstream._deadlines.in_flight())


def ask(upstream: Upstream, transport: Transport, question: str = "www.Example.org A") -> Outcome[bytes | Failure]:
    """Ask, with all the time that a story has."""
    return ask_within(PATIENCE, upstream, transport, question)


def ask_briefly(
    upstream: Upstream, transport: Transport, question: str = "www.example.org A"
) -> Outcome[bytes | Failure]:
    return ask_within(BRIEF, upstream, transport, question)


class AnyQuery(UpstreamQuery):
    """A query whose result settles `outcome`."""

    __slots__ = ("outcome",)

    def __init__(self, question: str) -> None:
        self.message = query(question, Opt())[2:]
        self.question = query(question)[HEADER_SIZE:]
        self.carrier = self.twin = None
        self.outcome: Outcome[bytes | Failure] = Outcome()

    def on_reply(self, result: bytes | Failure) -> None:
        assert not self.outcome.settled, "two results"
        self.outcome.settle(result)


def ask_within(
    seconds: float, upstream: Upstream, transport: Transport, question: str = "www.example.org A"
) -> Outcome[bytes | Failure]:
    return send(seconds, upstream, transport, question).outcome


def send(seconds: float, upstream: Upstream, transport: Transport, question: str = "www.example.org A") -> AnyQuery:
    """The same, and the query, which may be cancelled."""
    asked = AnyQuery(question)
    upstream.exchange(asked, transport, seconds, boot_clock())
    return asked


async def result(outcome: Outcome[bytes | Failure]) -> bytes | Failure:
    """The result of it."""
    future: asyncio.Future[bytes | Failure] = asyncio.get_running_loop().create_future()
    outcome.then(lambda value: None if future.done() else future.set_result(value))
    return await asyncio.wait_for(future, PATIENCE)


async def reply(outcome: Outcome[bytes | Failure]) -> Reply:
    on_reply = await result(outcome)
    assert isinstance(on_reply, bytes), on_reply
    return Reply(on_reply)


async def addresses(outcome: Outcome[bytes | Failure]) -> list[str]:
    """The data of the answer section."""
    return (await reply(outcome)).data


def open_files() -> int:
    """File descriptors of this process, but for the /dev/null that uvloop opens with its first connection."""
    return sum(_target(descriptor) not in ("", os.devnull) for descriptor in os.listdir("/proc/self/fd"))


def _target(descriptor: str) -> str:
    """The target of a descriptor; "" for one that is closed by now, such as that of the list itself."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return ""
