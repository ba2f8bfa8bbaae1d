"""UDP on real loopback sockets: both ways of batching, both event loops."""

import asyncio
import contextlib
import math
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from tests.support import dns_messages
from tests.support.event_loops import PATIENCE, either_loop, eventually, needs_ipv6
from topodns.dnsserver.packet_cache.lookup import answer_batch
from topodns.dnsserver.packet_cache.table import OF_SPELLINGS, PacketCache
from topodns.net.mmsg import DATAGRAM, MMSG_AVAILABLE, SLOTS, MmsgBatch, PlainBatch
from topodns.net.sockets import open_udp
from topodns.net.udp import Lookup, UdpListener
from topodns.query.counters import Cell
from topodns.query.deferred import Outcome
from topodns.query.packet_entry import Entry
from topodns.query.query_sample import QuerySample

BATCHES: dict[str, Callable[[socket.socket], MmsgBatch | PlainBatch]] = {"mmsg": MmsgBatch, "plain": PlainBatch}

pytestmark = [
    either_loop,
    pytest.mark.parametrize(
        "kind",
        [
            pytest.param("mmsg", marks=pytest.mark.skipif(not MMSG_AVAILABLE, reason="this libc has no recvmmsg")),
            "plain",
        ],
    ),
]

LOCALHOST = b"\x7f\x00\x00\x01"


def empty_table() -> PacketCache:
    return PacketCache(lambda address: "", Random(0), time.monotonic)


@dataclass
class Seen:
    """The misses and batches that a listener reported; a miss is answered with the octets of its query, reversed."""

    misses: list[tuple[bytes, bytes, int]] = field(default_factory=list)
    batches: list[tuple[int, float, Cell | None]] = field(default_factory=list)
    awaited: list[Outcome[bytes | None]] = field(default_factory=list)  # of questions that end in "later", in order

    def miss(self, data: bytes, address: bytes, port: int) -> bytes | Outcome[bytes | None] | None:
        self.misses.append((data, address, port))
        if data.endswith(b"silence"):
            return None
        if data.endswith(b"later"):
            self.awaited.append(Outcome())
            return self.awaited[-1]
        return data[:2] + data[:1:-1]

    def batch_done(
        self, hits: int, seconds: float, last_cell: Cell | None, asked: Sequence[int], answered: Sequence[int]
    ) -> None:
        assert len(asked) == len(answered) == hits + answered.count(0)
        self.batches.append((hits, seconds, last_cell))


@dataclass
class Server:
    listener: UdpListener
    sample: QuerySample
    batch: MmsgBatch | PlainBatch
    table: PacketCache
    seen: Seen

    @property
    def lookup(self) -> Lookup:
        return partial(answer_batch, self.table)

    @property
    def port(self) -> int:
        return int(self.batch.sock.getsockname()[1])


@contextlib.asynccontextmanager
async def serving(kind: str, host: str = "127.0.0.1") -> AsyncIterator[Server]:
    (sock,) = open_udp(host, 0)
    batch, table, seen, sample = BATCHES[kind](sock), empty_table(), Seen(), QuerySample()
    listener = UdpListener(batch, partial(answer_batch, table), seen.miss, seen.batch_done, sample=sample)
    listener.start(asyncio.get_running_loop())
    try:
        yield Server(listener, sample, batch, table, seen)
    finally:
        await listener.close()


def client_of(server: Server, host: str = "127.0.0.1", source: str = "") -> socket.socket:
    """A socket that hears only replies from the very address it asked."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    if source:
        sock.bind((source, 0))
    sock.connect((host, server.port))
    return sock


async def ask(sock: socket.socket, *queries: bytes) -> list[bytes]:
    """As many replies as queries, in the order they come."""
    for query in queries:
        sock.send(query)
    return await replies(sock, len(queries))


async def replies(sock: socket.socket, count: int) -> list[bytes]:
    loop = asyncio.get_running_loop()
    return [await asyncio.wait_for(loop.sock_recv(sock, 65535), PATIENCE) for _ in range(count)]


def entry(tail: bytes | None, maker: Callable[[], bytes | None] | None = None) -> Entry:
    return tail, [0], maker, None


async def test_a_query_is_sampled_as_it_came_though_its_reply_overwrites_it(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.table.common[b"query"] = entry(b"the longer reply")
        with client_of(server, source="127.0.0.9") as sock:
            assert await ask(sock, b"idquery") == [b"idthe longer reply"]
        (taken,) = server.sample.recent(0.0)
        assert (taken.message, taken.address, taken.queries) == (b"idquery", bytes([127, 0, 0, 9]), 1)
        assert taken.rcode == b"idthe longer reply"[3] & 0xF


async def test_of_a_batch_those_are_sampled_whose_turn_it_is(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.sample.left, server.sample.until = 2, math.inf
        with client_of(server) as sock:
            await ask(sock, *(b"idquery%d" % at for at in range(5)))
        assert [each.message for each in server.sample.recent(0.0)] == [b"idquery%d" % at for at in range(1, 5)]


async def test_a_miss_gets_the_datagram_and_where_it_came_from(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        with client_of(server, source="127.0.0.9") as sock:
            assert await ask(sock, b"idquestion") == [b"idnoitseuq"]
            assert server.seen.misses == [(b"idquestion", bytes([127, 0, 0, 9]), sock.getsockname()[1])]
        assert server.seen.batches == []


async def test_a_ready_made_answer_is_sent_behind_the_id_and_counted(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.table.common[b"question"] = hot = entry(b"a longer answer than the question")
        with client_of(server) as sock:
            assert await ask(sock, b"\x00\x01question") == [b"\x00\x01a longer answer than the question"]
            assert await ask(sock, b"\xff\xfequestion") == [b"\xff\xfea longer answer than the question"]
        assert server.seen.misses == []
        assert hot[1] == [2]
        assert [(hits, cell) for hits, _, cell in server.seen.batches] == [(1, hot[1]), (1, hot[1])]
        assert all(seconds > 0 for _, seconds, _ in server.seen.batches)


async def test_a_variant_of_a_kept_question_is_answered_by_the_entry_made_for_it(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        kept, variant = dns_messages.query("www.example. A"), dns_messages.query("WWW.example. A")
        made: Entry = kept[2:], [0], None, OF_SPELLINGS
        server.table.views[LOCALHOST] = {kept[2:]: made}
        with client_of(server) as sock, client_of(server, source="127.0.0.9") as elsewhere:
            assert await ask(sock, variant) == [variant]
            assert await ask(elsewhere, variant) == [variant[:2] + variant[:1:-1]]
        assert (made[1], [hits for hits, _, _ in server.seen.batches]) == ([1], [1])


async def test_an_answer_that_rotates_is_made_anew_for_each_asking(loop_name: str, kind: str) -> None:
    orders = iter([b"ab", b"ba"])
    async with serving(kind) as server:
        server.table.common[b"q"] = entry(None, lambda: next(orders))
        with client_of(server) as sock:
            assert await ask(sock, b"01q", b"02q") == [b"01ab", b"02ba"]


async def test_an_answer_that_is_outlived_is_a_miss(loop_name: str, kind: str) -> None:
    tails = iter([b"young", None, None])
    async with serving(kind) as server:
        server.table.common[b"q"] = outlived = entry(None, lambda: next(tails))
        with client_of(server) as sock:
            assert await ask(sock, b"01q") == [b"01young"]
            assert await ask(sock, b"02q", b"03q") == [b"02q", b"03q"]  # reversed, as misses are answered here
        assert [data for data, _, _ in server.seen.misses] == [b"02q", b"03q"]
        assert (outlived[1], [hits for hits, _, _ in server.seen.batches]) == ([1], [1])


async def test_two_clients_get_the_answers_of_their_own_nodes(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.table.views[bytes([127, 0, 0, 2])] = {b"q": entry(b"here")}
        server.table.views[bytes([127, 0, 0, 3])] = {b"q": entry(b"there")}
        for source, reply in (("127.0.0.2", b"idhere"), ("127.0.0.3", b"idthere"), ("127.0.0.4", b"idq")):
            with client_of(server, source=source) as sock:
                assert await ask(sock, b"idq") == [reply]
        assert [address for _, address, _ in server.seen.misses] == [bytes([127, 0, 0, 4])]


@needs_ipv6
async def test_a_client_over_ipv6_is_known_by_its_16_octets(loop_name: str, kind: str) -> None:
    async with serving(kind, "::1") as server:
        server.table.views[bytes(15) + b"\x01"] = {b"hot": entry(b"ready")}
        with client_of(server, "::1") as sock:
            assert await ask(sock, b"idhot", b"idcold") == [b"idready", b"iddloc"]
            assert server.seen.misses == [(b"idcold", bytes(15) + b"\x01", sock.getsockname()[1])]


@needs_ipv6
async def test_an_ipv4_client_of_an_ipv6_socket_is_known_by_its_4_octets(loop_name: str, kind: str) -> None:
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    sock.bind(("::", 0))
    batch, table, seen = BATCHES[kind](sock), empty_table(), Seen()
    listener = UdpListener(batch, partial(answer_batch, table), seen.miss, seen.batch_done)
    listener.start(asyncio.get_running_loop())
    with client_of(Server(listener, QuerySample(), batch, table, seen), "127.0.0.8") as client:
        assert await ask(client, b"idq") == [b"idq"]
    assert [address for _, address, _ in seen.misses] == [LOCALHOST]
    await listener.close()


@pytest.mark.parametrize(
    ("wildcard", "asked"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.77"),
        ("0.0.0.0", "127.3.2.1"),
        pytest.param("::", "::1", marks=needs_ipv6),
    ],
)
async def test_a_wildcard_socket_answers_from_the_address_that_was_asked(
    loop_name: str, kind: str, wildcard: str, asked: str
) -> None:
    async with serving(kind, wildcard) as server:
        server.table.common[b"hot"] = entry(b"ready")
        with client_of(server, asked) as sock:
            assert await ask(sock, b"01hot", b"02cold") == [b"01ready", b"02dloc"]


async def test_more_datagrams_than_a_batch_holds_are_all_answered(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.table.common.update({b"hot%d" % n: entry(b"ready%d" % n) for n in range(0, 200, 2)})
        queries = [b"%02xhot%d" % (n % 256, n) for n in range(200)]
        with client_of(server) as sock:
            received = await ask(sock, *queries)
        ready = [b"%02xready%d" % (n % 256, n) for n in range(0, 200, 2)]
        made = [query[:2] + query[:1:-1] for query in queries[1::2]]
        assert sorted(received) == sorted(ready + made)
        assert sum(hits for hits, _, _ in server.seen.batches) == 100
        assert max(hits for hits, _, _ in server.seen.batches) <= SLOTS
        assert server.batch.counts.received == 200


async def test_silence_beside_answers_in_one_batch_leaves_each_client_with_its_own(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.table.common[b"hot"] = entry(b"ready")
        with client_of(server) as first, client_of(server) as second:
            for query in (b"01silence", b"02hot", b"03silence"):
                first.send(query)
            for query in (b"04cold", b"05silence", b"06hot"):
                second.send(query)
            first.send(b"07cold")
            assert set(await replies(first, 2)) == {b"02ready", b"07dloc"}
            assert set(await replies(second, 2)) == {b"04dloc", b"06ready"}


async def test_a_datagram_of_4096_octets_is_read_and_a_larger_one_dropped(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        with client_of(server) as sock:
            largest = b"id" + bytes(range(1, 255)) * 16 + bytes(30)
            assert len(largest) == DATAGRAM
            sock.send(bytes(DATAGRAM + 1))
            sock.send(bytes(60_000))
            assert await ask(sock, largest) == [largest[:2] + largest[:1:-1]]
        assert len(server.seen.misses) == 1
        assert server.batch.counts.dropped_oversize == 2


async def test_a_reply_that_does_not_fit_is_not_sent(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.listener.swap(server.lookup, lambda data, *_: data * 5000, server.seen.batch_done)
        with client_of(server) as sock:
            sock.send(b"large")
            await eventually(lambda: server.batch.counts.received == 1)
            server.listener.swap(server.lookup, server.seen.miss, server.seen.batch_done)
            assert await ask(sock, b"idq") == [b"idq"]


async def test_no_datagram_is_too_short_to_be_survived(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.listener.swap(server.lookup, lambda data, *_: b"re:" + data, server.seen.batch_done)
        server.table.common[b"hot"] = entry(b"ready")
        with client_of(server) as sock:
            sock.send(b"")  # silence: nothing to say to nothing
            assert set(await ask(sock, b"\x00", b"id", b"abc", b"idhot")) == {
                b"re:\x00",
                b"re:id",
                b"re:abc",
                b"idready",
            }


async def test_a_datagram_from_port_zero_is_dropped(loop_name: str, kind: str) -> None:
    """CVE-2024-2169: nothing can be answered there, so the sender of such a datagram wants something else."""
    async with serving(kind) as server:
        try:
            raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        except PermissionError:
            pytest.skip("no raw sockets here (CAP_NET_RAW): a datagram from port 0 is not tried")
        with raw, client_of(server) as sock:
            raw.sendto(struct.pack("!4H", 0, server.port, 8 + 3, 0) + b"idq", ("127.0.0.1", 0))
            assert await ask(sock, b"idq") == [b"idq"]
            assert server.seen.misses == [(b"idq", LOCALHOST, sock.getsockname()[1])]
        assert server.batch.counts.dropped_port_zero == 1


async def test_a_client_that_is_gone_disturbs_no_other_client(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        for _ in range(3):
            with client_of(server) as gone:
                gone.send(b"idq")
        with client_of(server) as sock:
            assert await ask(sock, b"idq") == [b"idq"]
            assert len(server.seen.misses) == 4


async def test_replies_that_the_kernel_refuses_are_counted_one_by_one(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        with contextlib.suppress(OSError):
            server.batch.sock.shutdown(socket.SHUT_WR)
        with client_of(server) as sock:
            for n in range(3):
                sock.send(b"0%dq" % n)
            await eventually(lambda: server.batch.counts.failed_sends == 3)
            assert len(server.seen.misses) == 3


async def test_a_reload_changes_the_answers_and_keeps_the_socket(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        server.table.common[b"q"] = entry(b"before")
        with client_of(server) as sock:
            assert await ask(sock, b"01q") == [b"01before"]
            after = Seen()
            table = empty_table()
            table.common[b"q"] = entry(b"after")
            server.listener.swap(partial(answer_batch, table), after.miss, after.batch_done)
            assert await ask(sock, b"02q", b"03p") == [b"02after", b"03p"]
            assert (len(after.batches), len(after.misses), len(server.seen.misses)) == (1, 1, 0)


async def test_a_query_that_arrived_before_the_close_is_answered(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        with client_of(server) as sock:
            for n in range(200):
                sock.send(b"%02xq" % n)
            await server.listener.close()
            assert len(server.seen.misses) == 200
            assert sorted(sock.recv(100) for _ in range(200)) == sorted(b"%02xq" % n for n in range(200))


async def test_a_listener_that_never_started_closes_its_socket(loop_name: str, kind: str) -> None:
    (sock,) = open_udp("127.0.0.1", 0)
    seen = Seen()
    await UdpListener(BATCHES[kind](sock), partial(answer_batch, empty_table()), seen.miss, seen.batch_done).close()
    assert sock.fileno() == -1


async def test_a_deferred_answer_goes_to_its_client_from_the_address_that_was_asked(loop_name: str, kind: str) -> None:
    async with serving(kind, host="0.0.0.0") as server:
        with client_of(server, "127.0.0.1") as one, client_of(server, "127.0.0.2") as two:
            one.send(b"01later")
            two.send(b"02later")
            await eventually(lambda: len(server.seen.awaited) == 2)
            assert await ask(one, b"03q") == [b"03q"]  # no other client waits for these
            sent_first = 0 if server.seen.misses[0][0] == b"01later" else 1
            for outcome, reply in zip(server.seen.awaited, (b"first", b"second"), strict=True):
                outcome.settle(reply)
            expected = [b"first", b"second"] if sent_first == 0 else [b"second", b"first"]
            assert [*await replies(one, 1), *await replies(two, 1)] == expected


async def test_more_late_answers_than_a_batch_has_slots_all_go_out(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        with client_of(server) as sock:
            for n in range(3 * SLOTS):
                sock.send(b"%03dlater" % n)
            await eventually(lambda: len(server.seen.awaited) == 3 * SLOTS)
            for n, outcome in enumerate(server.seen.awaited):
                outcome.settle(b"%03d" % n)
            assert await replies(sock, 3 * SLOTS) == [b"%03d" % n for n in range(3 * SLOTS)]


async def test_a_late_answer_of_silence_or_beyond_any_size_is_not_sent(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        with client_of(server) as sock:
            sock.send(b"01later")
            sock.send(b"02later")
            await eventually(lambda: len(server.seen.awaited) == 2)
            server.seen.awaited[0].settle(None)
            server.seen.awaited[1].settle(bytes(DATAGRAM + 1))
            assert await ask(sock, b"03q") == [b"03q"]


async def test_a_close_waits_for_the_answers_that_are_on_their_way(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        with client_of(server) as sock:
            sock.send(b"01later")
            await eventually(lambda: len(server.seen.awaited) == 1)
            closing = asyncio.create_task(server.listener.close())
            await asyncio.sleep(0)
            server.seen.awaited[0].settle(b"01there")
            await closing
            assert sock.recv(100) == b"01there"


async def test_a_query_that_arrives_during_a_waiting_close_is_answered(loop_name: str, kind: str) -> None:
    async with serving(kind) as server:
        with client_of(server) as sock:
            sock.send(b"01later")
            await eventually(lambda: len(server.seen.awaited) == 1)
            closing = asyncio.create_task(server.listener.close())
            await asyncio.sleep(0)
            assert await ask(sock, b"02q") == [b"02q"]
            server.seen.awaited[0].settle(b"01there")
            await closing
            assert sock.recv(100) == b"01there"
