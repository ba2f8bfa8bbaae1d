"""The message ids of a connection: none is drawn twice while it is in use."""

import asyncio
from typing import cast

from tests.unit.net.upstream.test_tcp_connection_silence import Loop
from topodns.net.upstream.address import Counts, UpstreamLimits, resolve_endpoint
from topodns.net.upstream.in_flight import Deadlines, RandomIds
from topodns.net.upstream.tcp_connection import UpstreamConnection
from topodns.net.upstream.tcp_transport import TcpCarrier


def connection_drawing(*idents: bytes) -> UpstreamConnection:
    loop = Loop()
    ids = RandomIds(lambda octets: b"".join(idents).ljust(octets, b"\xff"))
    limits = UpstreamLimits(max_age=0)
    endpoint = resolve_endpoint("192.0.2.1", 53, None, "", "")
    as_loop = cast(asyncio.AbstractEventLoop, loop)
    carrier = TcpCarrier(as_loop, endpoint, limits, Deadlines(loop.timers, limits.sweep), ids, Counts())
    return UpstreamConnection(carrier, as_loop, limits, ids, Counts(), 0)


def test_the_id_of_a_subscription_is_not_drawn_again_until_it_ends() -> None:
    connection = connection_drawing(b"aa", b"aa", b"bb", b"aa")
    first = connection.reserve()
    connection.keep(first)
    second = connection.reserve()
    connection.release(first)
    assert (first, second, connection.reserve()) == (b"aa", b"bb", b"aa")


def test_the_session_never_draws_the_id_of_unidirectional_messages() -> None:
    assert connection_drawing(b"\0\0", b"aa").reserve() == b"aa"
