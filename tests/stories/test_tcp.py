"""TCP on real loopback sockets: pipelining, every split, and every limit, on both event loops."""

import asyncio
import contextlib
import gc
import math
import socket
import struct
import time
import weakref
from dataclasses import replace

import pytest

from tests.support.event_loops import PATIENCE, either_loop, eventually, needs_ipv6, run
from tests.support.tcp_listener import DSO, Seen, Server, Session, client_of, serving, socket_of
from topodns.dns.tcp_framing import frame
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.net.socket_memory import octets_to_read
from topodns.net.tcp import TcpListener
from topodns.net.tcp_limits import TcpLimits
from topodns.query.query_sample import QuerySample

pytestmark = either_loop

# Deadlines short enough to wait for, and looked at often.
QUICK = TcpLimits(idle=0.3, write=0.3, message=0.2, sweep=0.02)


async def all_read(server: Server) -> None:
    """Wait until the server has read all octets sent on its only connection, and handled them."""
    for _ in range(3):
        await asyncio.sleep(0)
    await eventually(lambda: octets_to_read(socket_of(server)) == 0)


async def test_a_question_comes_with_where_it_came_from(loop_name: str) -> None:
    async with serving() as server, client_of(server, "127.0.0.9") as client:
        assert await client.ask(b"question") == [b"noitseuq"]
        port = client.writer.get_extra_info("sockname")[1]
        assert server.seen.questions == [(b"question", bytes([127, 0, 0, 9]), port)]


@needs_ipv6
async def test_a_client_over_ipv6_is_known_by_its_16_octets(loop_name: str) -> None:
    async with serving(host="::1") as server, client_of(server) as client:
        assert await client.ask(b"abc") == [b"cba"]
        assert server.seen.questions[0][1] == bytes(15) + b"\x01"


@needs_ipv6
async def test_an_ipv4_client_of_an_ipv6_socket_is_known_by_its_4_octets(loop_name: str) -> None:
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", 0))
    seen, port = Seen(), sock.getsockname()[1]
    listener = TcpListener(sock, seen.answer)
    await listener.start(asyncio.get_running_loop())
    async with client_of(Server(listener, seen, ("127.0.0.1", port), QuerySample())) as client:
        assert await client.ask(b"abc") == [b"cba"]
    assert seen.questions[0][1] == b"\x7f\x00\x00\x01"
    await listener.close()


@pytest.mark.parametrize("questions", [[b"question"], [b"question", b"another", b"third"]])
async def test_questions_are_sampled(loop_name: str, questions: list[bytes]) -> None:
    async with serving() as server, client_of(server, source="127.0.0.9") as client:
        await client.ask(*questions)
        taken = list(server.sample.recent(0.0))
        assert [(each.message, each.rcode) for each in taken] == [(each, each[::-1][3] & 0xF) for each in questions]
        assert {(each.address, each.queries) for each in taken} == {(bytes([127, 0, 0, 9]), 1)}


async def test_a_question_that_is_sampled_stands_for_those_passed_over(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        server.sample.left, server.sample.until = 3, math.inf
        await client.ask(b"question", b"another", b"third", b"fourth")
        assert [each.message for each in server.sample.recent(0.0)] == [b"third", b"fourth"]


async def test_pipelined_questions_are_all_answered(loop_name: str) -> None:
    """RFC 7766 section 6.2.1.1; more of them than one turn takes and than one read holds."""
    async with serving() as server, client_of(server) as client:
        questions = [b"question %d" % n for n in range(5000)]
        assert await client.ask(*questions) == [question[::-1] for question in questions]


async def test_one_client_does_not_keep_the_others_waiting(loop_name: str) -> None:
    """A turn takes `in_flight` questions of a connection; then the others have theirs."""
    async with (
        serving(TcpLimits(in_flight=10)) as server,
        client_of(server, "127.0.0.2") as greedy,
        client_of(server, "127.0.0.3") as modest,
    ):
        await greedy.ask(b"here")
        await modest.ask(b"here")
        greedy.writer.write(frame(b"x" * 12) * 1000)
        modest.writer.write(frame(b"y"))
        assert await modest.reply() == b"y"
        for _ in range(1000):
            assert await greedy.reply() == b"x" * 12
        sources = [address[3] for _, address, _ in server.seen.questions]
        assert sources.index(3, 2) < len(sources) - 1


async def test_silence_for_one_question_leaves_the_others_answered(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        client.writer.write(frame(b"silence"))
        assert await client.ask(b"ab") == [b"ba"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_a_message_may_arrive_in_any_pieces(loop_name: str, size: int) -> None:
    async with serving() as server, client_of(server) as client:
        client.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = frame(b"first question") + frame(b"second")
        for start in range(0, len(stream), size):
            client.writer.write(stream[start : start + size])
            await asyncio.sleep(0)
        assert await client.reply() == b"noitseuq tsrif"
        assert await client.reply() == b"dnoces"


async def test_the_longest_message_is_answered_however_it_is_split(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        longest = bytes(range(1, 256)) * 257
        assert len(longest) == MAX_MESSAGE
        assert await client.ask(longest) == [longest[::-1]]
        client.writer.write(frame(longest)[:40_000])
        await eventually(lambda: server.listener.clients.unfinished > 0)
        client.writer.write(frame(longest)[40_000:])
        assert await client.reply() == longest[::-1]
        assert server.listener.clients.unfinished == 0


async def test_unfinished_messages_share_a_bounded_memory(loop_name: str) -> None:
    async with serving(TcpLimits(unfinished=20_000)) as server:
        async with client_of(server) as first, client_of(server) as second:
            first.writer.write(frame(bytes(60_000))[:30_000])
            await eventually(lambda: server.listener.clients.unfinished > 10_000)
            second.writer.write(frame(bytes(60_000))[:30_000])
            assert await second.is_closed()
            assert server.listener.counts.over_memory == 1
            first.writer.write(frame(bytes(60_000))[30_000:34_000])
        await eventually(lambda: len(server.listener.clients.connections) == 0)
        assert server.listener.clients.unfinished == 0


async def test_a_connection_over_the_memory_of_unfinished_messages_takes_no_other_with_it(loop_name: str) -> None:
    """Not even those that are read in the same turn of the loop."""
    async with (
        serving(TcpLimits(unfinished=20_000)) as server,
        client_of(server) as first,
        client_of(server) as last,
    ):
        first.writer.write(frame(bytes(60_000))[:30_000])
        last.writer.write(frame(bytes(60_000))[:16_000])
        connections = server.listener.clients.connections
        await eventually(lambda: sum(each._intake.reader.pending for each in connections) == 46_000)
        async with client_of(server) as other:
            await other.ask(b"before")
            last.writer.write(bytes(8_000))
            other.writer.write(frame(b"one") + frame(b"two"))
            assert [await other.reply(), await other.reply()] == [b"eno", b"owt"]
            assert await last.is_closed()
        assert server.listener.counts.over_memory == 1


async def test_an_empty_message_ends_the_connection_after_the_answers_before_it(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        client.writer.write(frame(b"ab") + frame(b"") + frame(b"cd"))
        assert await client.reply() == b"ba"
        assert await client.is_closed()
        assert len(server.seen.questions) == 1


async def test_queries_after_an_empty_message_are_dropped_also_while_an_answer_is_awaited(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        client.writer.write(frame(b"later") + frame(b""))
        await eventually(lambda: len(server.seen.awaited) == 1)
        client.writer.write(frame(b"ab") + frame(b"cd")[:3])
        await all_read(server)
        server.seen.awaited[0].settle(b"there")
        assert await client.reply() == b"there"
        assert await client.is_closed()
        assert len(server.seen.questions) == 1


async def test_a_client_that_closed_its_half_gets_its_answers(loop_name: str) -> None:
    async with serving(TcpLimits(in_flight=3)) as server, client_of(server) as client:
        client.writer.write(b"".join(frame(b"%04d" % n) for n in range(500)) + b"\x00")
        client.writer.write_eof()
        assert [await client.reply() for _ in range(500)] == [(b"%04d" % n)[::-1] for n in range(500)]
        assert await client.is_closed()


async def test_a_reset_in_the_middle_disturbs_no_other_connection(loop_name: str) -> None:
    async with serving() as server, client_of(server) as other:
        for sent in (b"", b"\x00", frame(b"ab"), frame(b"ab") * 2000):
            async with client_of(server) as client:
                sock = client.writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.writer.write(sent)
                await asyncio.sleep(0)
        await eventually(lambda: len(server.listener.clients.connections) == 1)
        assert await other.ask(b"ab") == [b"ba"]


async def test_above_the_total_the_connection_used_least_lately_makes_room(loop_name: str) -> None:
    async with serving(TcpLimits(connections=2)) as server:
        async with client_of(server) as first, client_of(server) as second, client_of(server) as third:
            assert await first.is_closed()
            assert [await second.ask(b"ab"), await third.ask(b"ab")] == [[b"ba"], [b"ba"]]
            assert (server.listener.counts.evicted, server.listener.counts.refused) == (1, 0)
            assert len(server.listener.clients.connections) == 2
        await eventually(lambda: len(server.listener.clients.connections) == 0)
        async with client_of(server) as later:
            assert await later.ask(b"ab") == [b"ba"]


async def test_above_one_clients_share_its_own_connection_makes_room(loop_name: str) -> None:
    async with (
        serving(TcpLimits(per_address=1)) as server,
        client_of(server, "127.0.0.3") as other,
        client_of(server, "127.0.0.2") as first,
    ):
        assert [await first.ask(b"ab"), await other.ask(b"ab")] == [[b"ba"], [b"ba"]]
        async with client_of(server, "127.0.0.2") as second:
            assert await first.is_closed()
            assert [await second.ask(b"ab"), await other.ask(b"ab")] == [[b"ba"], [b"ba"]]
            assert server.listener.counts.evicted == 1


async def test_above_one_clients_share_a_connection_is_closed_where_all_others_are_being_answered(
    loop_name: str,
) -> None:
    async with serving(TcpLimits(per_address=1)) as server, client_of(server) as first:
        first.writer.write(frame(b"later"))
        await eventually(lambda: len(server.seen.awaited) == 1)
        async with client_of(server) as second:
            assert await second.is_closed()
            assert (server.listener.counts.evicted, server.listener.counts.refused) == (0, 1)
        server.seen.awaited[0].settle(b"there")
        assert await first.reply() == b"there"


async def test_a_connection_that_is_closed_by_its_client_is_open_until_its_answers_are_read(loop_name: str) -> None:
    """Octets that the kernel sends on by itself after a close would be in no account."""
    async with serving(replace(QUICK, idle=60.0)) as server, client_of(server) as client:
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # StreamReader reads by itself
        client.writer.write(frame(bytes(MAX_MESSAGE)) * 4)
        client.writer.write_eof()
        await eventually(lambda: len(server.seen.questions) == 4)
        written = 4 * len(frame(bytes(MAX_MESSAGE)))
        clients = server.listener.clients
        await eventually(lambda: 0 < clients.unread < written)  # it is measured: some has been taken
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]
        assert [await client.reply() for _ in range(4)] == [bytes(MAX_MESSAGE)] * 4
        assert await client.is_closed()
        await eventually(lambda: len(server.listener.clients.connections) == 0)


async def test_an_idle_connection_is_closed_and_a_busy_one_not(loop_name: str) -> None:
    async with serving(QUICK) as server, client_of(server) as idle, client_of(server) as busy:
        await idle.ask(b"ab")
        async with asyncio.timeout(PATIENCE):
            closed = asyncio.create_task(idle.is_closed())
            while not closed.done():
                assert await busy.ask(b"ab") == [b"ba"]
                await asyncio.sleep(0.01)
        assert closed.result()
        assert server.listener.counts.timed_out == 1


async def test_a_message_that_drips_is_cut_off_at_its_deadline(loop_name: str) -> None:
    """The time is the whole message's, so that an octet now and then gains nothing."""
    limits = replace(QUICK, idle=60.0)
    async with serving(limits) as server, client_of(server) as client:
        client.writer.write(b"\xff\xff")
        async with asyncio.timeout(PATIENCE):
            closed = asyncio.create_task(client.is_closed())
            while not closed.done():
                client.writer.write(b"x")
                await asyncio.sleep(0.01)
        assert closed.result()
        assert server.listener.counts.timed_out == 1


async def test_a_message_that_waits_for_a_busy_server_to_read_on_is_not_late(loop_name: str) -> None:
    """It has arrived as a whole: the server has read its beginning, and answers the messages before it first."""
    limits = replace(QUICK, idle=60.0, read_size=1000)
    async with serving(limits) as server, client_of(server) as client:
        server.seen.takes = limits.message / 8
        messages = [bytes(30 + number) for number in range(40)]  # in three reads, of which two end in a message
        assert await client.ask(*messages) == messages
        assert server.listener.counts.timed_out == 0


async def test_a_message_begun_behind_others_is_cut_off_when_those_are_answered_and_it_drips(loop_name: str) -> None:
    limits = replace(QUICK, idle=60.0)
    async with serving(limits) as server, client_of(server) as client:
        server.seen.takes = limits.message / 8
        client.writer.write(frame(b"one") * 9 + b"\xff\xff")
        assert [await client.reply() for _ in range(9)] == [b"eno"] * 9
        assert await client.is_closed()
        assert server.listener.counts.timed_out == 1


async def test_a_message_that_arrived_while_the_process_stood_still_is_not_late(loop_name: str) -> None:
    limits = replace(QUICK, idle=60.0)
    async with serving(limits) as server, client_of(server) as client:
        framed = frame(b"whole")
        client.writer.write(framed[:4])
        connections = server.listener.clients.connections
        await eventually(lambda: any(each._intake.reader.pending for each in connections))
        end = time.monotonic() + 2 * limits.message
        while time.monotonic() < end:
            pass
        client.writer.write(framed[4:])
        assert await client.reply() == b"elohw"
        assert server.listener.counts.timed_out == 0


async def test_a_client_that_does_not_read_is_not_read_either_and_then_cut_off(loop_name: str) -> None:
    limits = replace(QUICK, write_buffer=4096)
    async with serving(limits) as server:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(deaf, server.address)
            sending = asyncio.create_task(loop.sock_sendall(deaf, frame(bytes(60_000)) * 1000))
            await eventually(lambda: server.listener.counts.timed_out == 1)
            assert len(server.seen.questions) < 1000
            with contextlib.suppress(ConnectionError):
                await sending


async def test_a_slow_reader_gets_all_of_its_answers(loop_name: str) -> None:
    async with serving(TcpLimits(write_buffer=4096)) as server, client_of(server) as client:
        large = bytes(range(200)) * 300
        client.writer.write(frame(large) * 200)
        for _ in range(200):
            assert await client.reply() == large[::-1]
            await asyncio.sleep(0)


async def test_a_reload_changes_the_answers_of_open_connections(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        assert await client.ask(b"ab") == [b"ba"]
        server.listener.swap(lambda data, *_: data + b"!")
        assert await client.ask(b"ab") == [b"ab!"]


async def test_closing_answers_queries_that_have_arrived_and_ends_idle_connections(loop_name: str) -> None:
    async with serving() as server, client_of(server) as idle, client_of(server) as asking:
        await idle.ask(b"ab")
        await asking.ask(b"ab")
        asking.writer.write(frame(b"last"))
        await server.listener.close()
        assert await asking.reply() == b"tsal"
        assert await asking.is_closed()
        assert await idle.is_closed()
        with pytest.raises(ConnectionError):
            await asyncio.open_connection(*server.address)


async def test_closing_waits_for_a_message_begun_but_not_for_ever(loop_name: str) -> None:
    limits = replace(QUICK, idle=60.0)
    async with serving(limits) as server, client_of(server) as quick, client_of(server) as slow:
        for client in (quick, slow):
            await client.ask(b"ab")
            client.writer.write(b"\x00\x04la")
        closing = asyncio.create_task(server.listener.close())
        await asyncio.sleep(0)
        quick.writer.write(b"st" + frame(b"not this one")[:5])
        assert await quick.reply() == b"tsal"
        await closing
        assert await slow.is_closed()
        assert server.seen.questions[-1][0] == b"last"


async def test_queries_that_arrive_after_the_close_are_dropped(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        client.writer.write(frame(b"later") + frame(b"begun")[:4])
        await eventually(lambda: len(server.seen.awaited) == 1)
        closing = asyncio.create_task(server.listener.close())
        await eventually(lambda: next(iter(server.listener.clients.connections)).deadline.fixed)
        client.writer.write(frame(b"begun")[4:] + frame(b"ab") + frame(b"cd")[:3])
        assert await client.reply() == b"nugeb"
        client.writer.write(frame(b"cd")[3:] + frame(b"ef"))
        await all_read(server)
        server.seen.awaited[0].settle(b"there")
        assert await client.reply() == b"there"
        assert await client.is_closed()
        await closing
        assert [question for question, *_ in server.seen.questions] == [b"later", b"begun"]


async def test_queries_that_the_kernel_had_before_the_close_are_answered(loop_name: str) -> None:
    """It has them while the connection does not read, since it awaits as many answers as it may."""
    async with serving(TcpLimits(in_flight=1)) as server, client_of(server) as client:
        client.writer.write(frame(b"later"))
        await eventually(lambda: len(server.seen.awaited) == 1)
        client.writer.write(frame(b"ab") + frame(b"cd"))
        await eventually(lambda: octets_to_read(socket_of(server)) == 8)
        closing = asyncio.create_task(server.listener.close())
        await eventually(lambda: next(iter(server.listener.clients.connections)).deadline.fixed)
        client.writer.write(frame(b"ef"))
        await eventually(lambda: octets_to_read(socket_of(server)) == 12)
        server.seen.awaited[0].settle(b"there")
        assert [await client.reply() for _ in range(3)] == [b"there", b"ba", b"dc"]
        assert await client.is_closed()
        await closing
        assert len(server.seen.questions) == 3


@pytest.mark.parametrize("seed", range(5))
def test_no_stream_of_octets_raises(loop_name: str, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        noise = struct.pack("!40Q", *(pow(6364136223846793005, n + seed + 1, 1 << 64) for n in range(40)))
        async with serving(QUICK) as server:
            async with client_of(server) as client:
                client.writer.write(noise)
                client.writer.write_eof()
                async with asyncio.timeout(PATIENCE):
                    await client.reader.read()
            async with client_of(server) as client:
                assert await client.ask(b"ab") == [b"ba"]

    run(loop_name, story())
    assert not caplog.records


async def test_an_answer_from_elsewhere_does_not_hold_up_those_behind_it(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        client.writer.write(frame(b"one later") + frame(b"two later") + frame(b"abc"))
        assert await client.reply() == b"cba"
        server.seen.awaited[1].settle(b"two")
        assert await client.reply() == b"two"
        server.seen.awaited[0].settle(b"one")
        assert await client.reply() == b"one"


async def test_no_more_questions_of_a_connection_are_looked_at_than_may_be_in_flight(loop_name: str) -> None:
    async with serving(TcpLimits(in_flight=3)) as server, client_of(server) as client:
        client.writer.write(frame(b"later") * 5 + frame(b"abc"))
        await eventually(lambda: len(server.seen.awaited) == 3)
        server.seen.awaited[0].settle(b"1")
        assert await client.reply() == b"1"
        await eventually(lambda: len(server.seen.awaited) == 4)
        assert len(server.seen.questions) == 4
        for outcome in server.seen.awaited[1:]:
            outcome.settle(None)
        assert await client.reply() == b"cba"
        server.seen.awaited[4].settle(None)


async def test_a_client_that_closed_its_half_gets_the_answers_that_are_on_their_way(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        client.writer.write(frame(b"later"))
        client.writer.write_eof()
        await eventually(lambda: len(server.seen.awaited) == 1)
        server.seen.awaited[0].settle(b"there")
        assert await client.reply() == b"there"
        assert await client.is_closed()


async def test_an_answer_to_a_connection_that_is_gone_is_nobodys(loop_name: str) -> None:
    async with serving() as server:
        async with client_of(server) as client:
            client.writer.write(frame(b"later"))
            await eventually(lambda: len(server.seen.awaited) == 1)
        server.seen.awaited[0].settle(b"there")
        await eventually(lambda: len(server.listener.clients.connections) == 0)
        async with client_of(server) as other:
            assert await other.ask(b"abc") == [b"cba"]


async def test_a_close_waits_for_the_answers_that_are_on_their_way(loop_name: str) -> None:
    async with serving() as server, client_of(server) as client:
        client.writer.write(frame(b"later"))
        await eventually(lambda: len(server.seen.awaited) == 1)
        closing = asyncio.create_task(server.listener.close())
        server.seen.awaited[0].settle(b"there")
        assert await client.reply() == b"there"
        await closing


async def test_a_close_waits_longer_for_an_answer_than_for_the_rest_of_a_message(loop_name: str) -> None:
    limits = replace(QUICK, idle=60.0)
    async with serving(limits) as server, client_of(server) as client:
        client.writer.write(frame(b"later"))
        await eventually(lambda: len(server.seen.awaited) == 1)
        loop = asyncio.get_running_loop()
        closing, began = asyncio.create_task(server.listener.close()), loop.time()
        await eventually(lambda: loop.time() - began > 2 * limits.message)
        server.seen.awaited[0].settle(b"there")
        assert await client.reply() == b"there"
        await closing


async def test_a_connection_that_asked_as_much_as_it_may_is_answered_and_closed(loop_name: str) -> None:
    async with serving(TcpLimits(queries=3)) as server, client_of(server) as client:
        assert await client.ask(b"ab", b"cd") == [b"ba", b"dc"]
        client.writer.write(frame(b"ef") + frame(b"gh"))
        assert await client.reply() == b"fe"
        assert await client.is_closed()
        assert len(server.seen.questions) == 3


async def test_of_clients_that_do_not_read_the_slowest_have_to_go_when_there_is_no_more_room(loop_name: str) -> None:
    limits = TcpLimits(write_buffer=64 << 10, unread=256 << 10)
    async with serving(limits) as server, contextlib.AsyncExitStack() as stack:
        for _ in range(20):
            client = await stack.enter_async_context(client_of(server))
            client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # StreamReader reads by itself
            client.writer.write(frame(bytes(MAX_MESSAGE - 1)) * 80)
        await eventually(lambda: server.listener.counts.over_memory > 0)
        await eventually(lambda: server.listener.clients.unread <= limits.unread)
        assert server.listener.counts.over_memory < 20
        assert len(server.listener.clients.connections) > 0
        async with client_of(server) as other:
            assert await other.ask(b"abc") == [b"cba"]


async def test_a_client_that_does_not_read_its_late_answers_has_to_go_when_there_is_no_more_room(
    loop_name: str,
) -> None:
    """A question is small, and what an upstream answers may be a thousand times as much."""
    limits = TcpLimits(write_buffer=64 << 10, unread=1 << 20)
    async with serving(limits) as server, client_of(server) as client, client_of(server) as other:
        client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # StreamReader reads by itself
        client.writer.write(frame(b"later") * 100)
        await eventually(lambda: len(server.seen.awaited) == 100)
        for outcome in server.seen.awaited:
            outcome.settle(bytes(MAX_MESSAGE))
        await eventually(lambda: server.listener.counts.over_memory == 1)
        assert server.listener.clients.unread <= limits.unread
        assert await other.ask(b"abc") == [b"cba"]


async def test_a_connection_with_a_session_makes_no_room_and_counts_for_no_limit(loop_name: str) -> None:
    limits = TcpLimits(connections=2, per_prefix=2, per_address=2)
    async with serving(limits, sessions=[]) as server, client_of(server) as one, client_of(server) as two:
        for each in (one, two):
            assert await each.ask(DSO) == [DSO]
        async with client_of(server) as first, client_of(server) as second, client_of(server) as third:
            assert await third.ask(b"question") == [b"noitseuq"]
            assert await first.is_closed()
            for each in (one, two, second):
                assert await each.ask(b"question") == [b"noitseuq"]
        assert (server.listener.counts.evicted, server.listener.counts.refused) == (1, 0)


async def test_a_session_that_ends_says_farewell_and_its_connection_closes_and_counts_again_until_then(
    loop_name: str,
) -> None:
    sessions: list[Session] = []
    async with serving(TcpLimits(connections=1), sessions=sessions) as server, client_of(server) as one:
        assert await one.ask(DSO) == [DSO]
        one.writer.write(frame(b"later"))
        await eventually(lambda: len(server.seen.awaited) == 1)
        sessions[0].connection.finish()
        async with client_of(server) as other:
            assert await other.is_closed()
        server.seen.awaited[0].settle(b"reply")
        assert [await one.reply(), await one.reply()] == [b"reply", b"farewell"]
        assert await one.is_closed()
        await eventually(lambda: sessions[0].is_closed and not len(server.listener.clients.connections))


async def test_a_session_learns_of_queries_on_its_connection_and_of_replies_that_come_later(loop_name: str) -> None:
    sessions: list[Session] = []
    async with serving(sessions=sessions) as server, client_of(server) as one:
        replies = await one.ask(b"before the session", DSO, b"question")
        assert sorted(replies) == sorted([b"noisses eht erofeb", DSO, b"noitseuq"])
        assert sessions[0].exchanged == 1
        one.writer.write(frame(b"later"))
        await eventually(lambda: sessions[0].exchanged == 2)
        server.seen.awaited[0].settle(b"reply")
        assert await one.reply() == b"reply"
        assert sessions[0].exchanged == 3


def test_a_closed_connection_is_freed_with_its_session_without_the_garbage_collector(loop_name: str) -> None:
    """Which goes through nothing that was there at the last `gc.freeze`."""

    async def story() -> None:
        sessions: list[Session] = []
        async with serving(sessions=sessions) as server:
            async with client_of(server) as one:
                assert await one.ask(b"question", DSO) == [b"noitseuq", DSO]
                (connection,) = server.listener.clients.connections
                freed, session_freed = weakref.ref(connection), weakref.ref(sessions.pop())
                del connection
            await eventually(lambda: freed() is None and session_freed() is None)

    gc.disable()
    try:
        run(loop_name, story())
    finally:
        gc.enable()
