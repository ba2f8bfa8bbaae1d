"""A server that asks itself knows whether it was itself that answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address

from tests.support import in_memory_server
from tests.support.event_loops import run
from topodns.dns.name import Name
from topodns.dnsserver.packet_cache.lookup import answer_batch
from topodns.net.mmsg import open_batch
from topodns.net.reuseport import Binding, Sharing
from topodns.net.sockets import open_udp
from topodns.net.udp import UdpListener
from topodns.nodecache.self_probe import TRIES, Heard, SelfProbe

HERE = ip_address("127.0.0.1")
OURS: Name = ("ours",)
PATIENCE = 0.2  # seconds


@asynccontextmanager
async def serving(name: Name | None, port: int = 0, sharing: Sharing = Sharing.FIRST) -> AsyncIterator[int]:
    """A server of this name; its port."""
    (sock,) = open_udp(str(HERE), port, Binding(sharing))
    answering = in_memory_server.handler(own_name=name)
    lookup = partial(answer_batch, answering.table)
    listener = UdpListener(open_batch(sock), lookup, answering.answer, answering.socket_counters.batch_done)
    listener.start(asyncio.get_running_loop())
    try:
        yield sock.getsockname()[1]
    finally:
        await listener.close()


async def heard(port: int, name: Name = OURS, tries: int = 1) -> frozenset[Heard]:
    (there,) = await SelfProbe(name, port).hear([HERE], PATIENCE, tries)
    return there


def test_it_hears_itself() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            assert await heard(port) == {Heard.US}

    run("uvloop", story())


def test_another_instance_is_distinguished_from_the_instance_itself() -> None:
    async def story() -> None:
        async with serving(("theirs",)) as port:
            assert await heard(port) == {Heard.ANOTHER}

    run("uvloop", story())


def test_so_is_a_server_without_a_name() -> None:
    async def story() -> None:
        async with serving(None) as port:
            assert await heard(port) == {Heard.ANOTHER}

    run("uvloop", story())


def test_a_port_without_a_listener_is_heard_as_silence() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            pass
        assert await heard(port) == {Heard.NOTHING}

    run("uvloop", story())


async def gathered(port: int, name: Name) -> frozenset[Heard]:
    """Some rounds: of one that all went to the same instance there is 1 in 256."""
    rounds = [await heard(port, name, TRIES) for _ in range(3)]
    return frozenset().union(*rounds)


def test_beside_another_instance_on_the_port_both_are_heard() -> None:
    async def story() -> None:
        async with serving(OURS) as port, serving(("theirs",), port, Sharing.JOINED):
            for name in (OURS, ("theirs",)):
                assert await gathered(port, name) == {Heard.US, Heard.ANOTHER}

    run("uvloop", story())


def test_beside_another_instance_that_hangs_a_silence_is_heard() -> None:
    """Some of what clients ask goes there."""

    async def story() -> None:
        async with serving(OURS) as port:
            (hanging,) = open_udp(str(HERE), port, Binding(Sharing.JOINED))
            with hanging:
                assert await gathered(port, OURS) == {Heard.US, Heard.NOTHING}
            assert await heard(port, OURS, TRIES) == {Heard.US}

    run("uvloop", story())


def test_each_address_is_probed_separately() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            there = await SelfProbe(OURS, port).hear([ip_address("127.0.0.2"), HERE], PATIENCE, 2)
            assert there == [{Heard.NOTHING}, {Heard.US}]

    run("uvloop", story())
