"""The sockets of a process have one amount of memory for ready-made answers."""

from random import Random

from tests.support.in_memory_server import dig
from topodns.dns.message import Response, RRset
from topodns.dns.rrtype import RRType
from topodns.dns.wire_reader import read_query
from topodns.dns.wire_writer import write_response
from topodns.dnsserver.packet_cache.table import PacketCache, PacketCaches
from topodns.query.counters import QueryCounters, ReplyKind
from topodns.query.plugin import Resolution, Scope

CELL = QueryCounters("dns://:53", "udp", "1").cell(ReplyKind(".", "A", "NOERROR", "cache", False, "", "", 0, 0))
CLIENT = bytes((10, 244, 1, 1))
OCTETS = 256 << 10


def tables(caches: PacketCaches, number: int) -> list[PacketCache]:
    return [PacketCache(lambda address: "", Random(1), lambda: 0.0, caches) for _ in range(number)]


def offer(table: PacketCache, name: str, times: int = 2) -> None:
    data = dig(f"{name}. A")
    response = Response(answer=(RRset(b"", RRType.A, 5, (bytes(4),)),))
    for _ in range(times):
        query = read_query(data)
        reply = write_response(query, response, 512, 1232)
        table.offer(data, query, CLIENT, reply, Resolution(response, "cache", Scope.EVERYONE), CELL, False)


def test_however_many_sockets_there_are_they_keep_to_it_together() -> None:
    caches = PacketCaches(OCTETS)
    eight = tables(caches, 8)
    for number in range(5000):
        offer(eight[number * number % 8], f"n{number}.example")
        assert sum(table.octets for table in eight) <= OCTETS + 8 * 512  # and the one that comes in
    assert caches.budget.granted <= OCTETS
    assert sum(map(len, eight)) > 100


def test_one_socket_may_have_all_of_it_until_another_wants_some() -> None:
    busy, late = tables(PacketCaches(OCTETS), 2)
    while not busy.clears:
        most = busy.octets
        offer(busy, f"n{len(busy)}.example")
    assert most > 0.9 * OCTETS
    offer(late, "late.example")
    assert (len(late), late.limit > 0) == (1, True)


def test_a_client_that_asked_at_one_socket_is_known_at_the_other() -> None:
    udp, tcp = tables(PacketCaches(OCTETS), 2)
    offer(udp, "web.example", times=1)
    offer(tcp, "web.example", times=1)
    assert (len(udp), len(tcp)) == (0, 1)
