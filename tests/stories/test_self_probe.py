"""A server that asks itself knows whether it was itself that answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address

from tests.support import server
from tests.support.loops import run
from topodns.dns.names import Name
from topodns.edge.mmsg import open_batch
from topodns.edge.port_sharing import Binding, Sharing
from topodns.edge.self_probe import TRIES, SelfProbe
from topodns.edge.sockets import open_udp
from topodns.edge.udp import UdpListener

HERE = ip_address("127.0.0.1")
OURS: Name = ("ours",)
PATIENCE = 0.2  # seconds


@asynccontextmanager
async def serving(name: Name | None, port: int = 0, sharing: Sharing = Sharing.FIRST) -> AsyncIterator[int]:
    """A server of this name; its port."""
    (sock,) = open_udp(str(HERE), port, Binding(sharing))
    answering = server.handler(own_name=name)
    listener = UdpListener(open_batch(sock), answering.table, answering.answer, answering.tally.batch_done)
    listener.start(asyncio.get_running_loop())
    try:
        yield sock.getsockname()[1]
    finally:
        await listener.close()


def test_it_hears_itself() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            assert await SelfProbe(OURS, port).answered([HERE], PATIENCE)

    run("uvloop", story())


def test_the_answer_of_another_instance_is_none() -> None:
    async def story() -> None:
        async with serving(("theirs",)) as port:
            assert not await SelfProbe(OURS, port).answered([HERE], PATIENCE)

    run("uvloop", story())


def test_the_answer_of_a_server_without_a_name_is_none() -> None:
    async def story() -> None:
        async with serving(None) as port:
            assert not await SelfProbe(OURS, port).answered([HERE], PATIENCE)

    run("uvloop", story())


def test_where_nobody_listens_it_hears_nothing() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            pass
        assert not await SelfProbe(OURS, port).answered([HERE], PATIENCE)

    run("uvloop", story())


def test_beside_another_instance_on_the_port_each_hears_itself() -> None:
    async def story() -> None:
        async with serving(OURS) as port, serving(("theirs",), port, Sharing.JOINED):
            for name in (OURS, ("theirs",)):
                probe = SelfProbe(name, port)
                assert any([await probe.answered([HERE], PATIENCE, TRIES) for _ in range(3)])

    run("uvloop", story())


def test_one_of_several_addresses_is_enough() -> None:
    async def story() -> None:
        async with serving(OURS) as port:
            assert await SelfProbe(OURS, port).answered([ip_address("127.0.0.2"), HERE], PATIENCE)

    run("uvloop", story())


def test_beside_another_instance_that_hangs_it_is_not_enough_to_be_heard() -> None:
    """Some of what clients ask would go there."""

    async def story() -> None:
        async with serving(OURS) as port:
            (hanging,) = open_udp(str(HERE), port, Binding(Sharing.JOINED))
            with hanging:
                assert not any([await SelfProbe(OURS, port).answered([HERE], PATIENCE, TRIES) for _ in range(3)])
            assert await SelfProbe(OURS, port).answered([HERE], PATIENCE, TRIES)

    run("uvloop", story())
