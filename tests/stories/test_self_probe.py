"""The results of self-probes over real sockets: this instance, another server, or no reply."""

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
from topodns.nodecache.self_probe import TRIES, ProbeResult, SelfProbe

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


async def probed(port: int, name: Name = OURS, tries: int = 1) -> frozenset[ProbeResult]:
    (results,) = await SelfProbe(name, port).send([HERE], PATIENCE, tries)
    return results


def test_a_server_gets_its_own_reply() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            assert await probed(port) == {ProbeResult.THIS_INSTANCE}

    run("uvloop", story())


def test_another_instance_is_distinguished_from_the_instance_itself() -> None:
    async def story() -> None:
        async with serving(("theirs",)) as port:
            assert await probed(port) == {ProbeResult.OTHER_SERVER}

    run("uvloop", story())


def test_so_is_a_server_without_a_name() -> None:
    async def story() -> None:
        async with serving(None) as port:
            assert await probed(port) == {ProbeResult.OTHER_SERVER}

    run("uvloop", story())


def test_a_port_without_a_listener_gives_no_reply() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            pass
        assert await probed(port) == {ProbeResult.NO_REPLY}

    run("uvloop", story())


async def gathered(port: int, name: Name) -> frozenset[ProbeResult]:
    """Some rounds: of one that all went to the same instance there is 1 in 256."""
    rounds = [await probed(port, name, TRIES) for _ in range(3)]
    return frozenset().union(*rounds)


def test_beside_another_instance_on_the_port_both_reply() -> None:
    async def story() -> None:
        async with serving(OURS) as port, serving(("theirs",), port, Sharing.JOINED):
            for name in (OURS, ("theirs",)):
                assert await gathered(port, name) == {ProbeResult.THIS_INSTANCE, ProbeResult.OTHER_SERVER}

    run("uvloop", story())


def test_beside_another_instance_that_hangs_some_probes_get_no_reply() -> None:
    """Some of what clients ask goes there."""

    async def story() -> None:
        async with serving(OURS) as port:
            (hanging,) = open_udp(str(HERE), port, Binding(Sharing.JOINED))
            with hanging:
                assert await gathered(port, OURS) == {ProbeResult.THIS_INSTANCE, ProbeResult.NO_REPLY}
            assert await probed(port, OURS, TRIES) == {ProbeResult.THIS_INSTANCE}

    run("uvloop", story())


def test_each_address_is_probed_separately() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            results = await SelfProbe(OURS, port).send([ip_address("127.0.0.2"), HERE], PATIENCE, 2)
            assert results == [{ProbeResult.NO_REPLY}, {ProbeResult.THIS_INSTANCE}]

    run("uvloop", story())
