"""Storing and forgetting of replies in the packet cache, and its memory: one amount for all sockets of a process."""

import struct
from random import Random

import pytest

from tests.support.dns_messages import DO, RD, Opt
from tests.support.in_memory_server import dig, ready_made
from tests.support.model_builders import packed
from tests.unit.dnsserver.packet_cache.scene import (
    A1,
    A2,
    B1,
    CELL,
    DB,
    ELSEWHERE,
    NODE_A,
    NODES,
    POD,
    SHOP,
    WEB,
    Table,
    addresses,
)
from topodns.dependency import EVERYTHING, Fact, address_fact, cached_fact, node_fact, service_fact
from topodns.dns.message import Response, RRset
from topodns.dns.rrtype import RRType
from topodns.dns.wire_reader import read_query
from topodns.dns.wire_writer import write_response
from topodns.dnsserver.packet_cache.table import MAX_CLIENTS, MAX_STORED, PacketCache, PacketCaches
from topodns.memory.budget import SERVER
from topodns.query.plugin import Resolution, Scope


def test_an_answer_is_ready_from_its_second_asking_on() -> None:
    table = Table()
    question = dig("web.example. A")
    reply = table.asked(question)
    assert table.ready(question) is None
    table.asked(question)
    assert table.ready(question) == reply


def test_the_id_is_the_askers() -> None:
    table = Table()
    reply = table.asked(dig("web.example. A", ident=1), times=2)
    assert table.ready(dig("web.example. A", ident=0xABCD)) == b"\xab\xcd" + reply[2:]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(dig("web.example. AAAA"), id="type"),
        pytest.param(dig("web.example. CH A"), id="class"),
        pytest.param(dig("wed.example. A"), id="name"),
        pytest.param(dig("Web.example. A"), id="spelling"),
        pytest.param(dig("web.example. A", flags=0), id="RD"),
        pytest.param(dig("web.example. A", flags=RD | 0x10), id="CD"),
        pytest.param(dig("web.example. A", Opt()), id="EDNS"),
    ],
)
def test_a_question_that_differs_at_all_is_another_one(other: bytes) -> None:
    table = Table()
    table.asked(dig("web.example. A"), times=2)
    assert table.ready(other) is None


@pytest.mark.parametrize("other", [Opt(1232, (), 0, DO), Opt(4096), Opt(1232, [(10, b"8 octets")])])
def test_so_is_one_with_another_opt_record(other: Opt) -> None:
    table = Table()
    table.asked(dig("web.example. A", Opt(1232)), times=2)
    assert table.ready(dig("web.example. A", Opt(1232))) is not None
    assert table.ready(dig("web.example. A", other)) is None


def with_an_answer_record(data: bytes) -> bytes:
    return data[:6] + b"\0\1" + data[8:] + b"\xc0\x0c" + struct.pack("!HHIH", RRType.TXT, 1, 0, 300) + bytes(300)


@pytest.mark.parametrize(
    ("question", "scope"),
    [
        pytest.param(dig("weB.example. A"), Scope.EVERYONE, id="mixed case (0x20)"),
        pytest.param(dig("web.example. A", Opt(options=[(10, b"8 octets")])), Scope.EVERYONE, id="an EDNS option"),
        pytest.param(with_an_answer_record(dig("web.example. A")), Scope.EVERYONE, id="a record of its own"),
        pytest.param(dig("web.example. A"), Scope.CLIENT, id="an answer for this client only"),
    ],
)
def test_an_answer_that_hardly_repeats_is_not_cached(question: bytes, scope: Scope) -> None:
    table = Table()
    table.asked(question, scope=scope, times=5)
    assert len(table) == 0


def test_the_longest_name_with_a_plain_opt_record_is_kept() -> None:
    table = Table()
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    table.asked(dig(f"{longest} A", Opt()), times=2)
    assert len(table) == 1


def test_names_that_are_asked_for_once_fill_nothing() -> None:
    table = Table()
    for number in range(20_000):
        table.asked(dig(f"{number}.example. A"))
    assert len(table) < 200  # as good as none: a door's memory is one octet


def test_an_answer_for_everyone_is_ready_for_everyone() -> None:
    table = Table()
    reply = table.asked(dig("web.example. A", ident=7), A1, times=2)
    assert table.ready(dig("web.example. A", ident=7), B1) == reply
    assert table.located == []


def test_an_answer_for_a_node_is_ready_for_the_clients_seen_there() -> None:
    table = Table()
    question = dig("web.example. A")
    of_a = table.asked(question, A1, addresses(1), Scope.NODE, times=2)
    of_b = table.asked(question, B1, addresses(2), Scope.NODE)
    assert table.ready(question, A1) == of_a
    assert table.ready(question, B1) == of_b
    assert table.ready(question, A2) is None  # where it is was never asked
    table.asked(question, A2, addresses(1), Scope.NODE)
    assert table.ready(question, A2) == of_a
    assert len(table) == 2


def test_clients_without_a_location_share_their_answers() -> None:
    table = Table()
    question = dig("web.example. A")
    reply = table.asked(question, packed("192.0.2.1"), addresses(0), Scope.NODE, times=2)
    table.asked(question, packed("192.0.2.2"), addresses(0), Scope.NODE)
    assert table.ready(question, packed("192.0.2.2")) == reply
    assert len(table) == 1


def test_where_a_client_is_is_asked_once() -> None:
    table = Table()
    for name in ("web.example. A", "db.example. A"):
        table.asked(dig(name), A1, scope=Scope.NODE, times=3)
    assert table.located == [A1]


@pytest.mark.parametrize(
    ("facts", "left"),
    [
        ([WEB], {"db", "ptr"}),
        ([DB], {"web", "ptr"}),
        ([SHOP], {"ptr"}),
        ([NODE_A], {"db", "ptr"}),
        ([POD], {"web", "db"}),
        ([DB, POD], {"web"}),
        ([EVERYTHING], set()),
        ([], {"web", "db", "ptr"}),
        ([service_fact("shop", "other"), node_fact("node-c"), address_fact(B1)], {"web", "db", "ptr"}),
    ],
)
@pytest.mark.parametrize("scope", [Scope.EVERYONE, Scope.NODE])
def test_an_answer_is_forgotten_with_a_fact_it_rests_on(scope: Scope, facts: list[Fact], left: set[str]) -> None:
    table = Table()
    resting_on = {"web": (WEB, SHOP, NODE_A), "db": (SHOP, DB), "ptr": (POD,)}
    for name, reasons in resting_on.items():
        table.asked(dig(f"{name}. A"), A1, scope=scope, facts=reasons, times=2)
    table.forget(facts)
    assert len(table) == len(left)
    table.asked(dig("other. A"), A1, scope=Scope.NODE, times=2)  # by which the client is located anew, if it has to be
    assert {name for name in resting_on if table.ready(dig(f"{name}. A"), A1) is not None} == left


def test_a_forgotten_answer_is_cached_again_at_the_next_query() -> None:
    table = Table()
    question = dig("web.example. A")
    table.asked(question, facts=(WEB,), times=2)
    table.forget([WEB])
    reply = table.asked(question, response=addresses(3), facts=(WEB,))
    assert table.ready(question) == reply
    table.forget([WEB])
    assert table.ready(question) is None


@pytest.mark.parametrize("fact", [address_fact(A1), EVERYTHING])
def test_a_client_that_may_have_moved_is_located_anew(fact: Fact) -> None:
    nodes = dict(NODES)
    table = Table(nodes)
    question = dig("web.example. A")
    table.asked(question, A1, addresses(1), Scope.NODE, times=2)
    table.asked(question, B1, addresses(2), Scope.NODE, times=2)
    nodes[A1] = "node-b"
    table.forget([fact])
    assert table.ready(question, A1) is None
    of_b = table.asked(question, A1, addresses(2), Scope.NODE)
    assert table.ready(question, A1) == of_b


def test_a_client_that_has_not_moved_stays_where_it_is() -> None:
    table = Table()
    table.asked(dig("web.example. A"), A1, scope=Scope.NODE, times=2)
    table.forget([address_fact(A2), WEB])
    assert table.ready(dig("web.example. A"), A1) is not None


def test_a_table_that_is_full_of_answers_starts_over() -> None:
    table = Table()
    for number in range(MAX_STORED):
        table.asked(dig(f"{number}.example. A"), times=2)
    assert (len(table), table.clears) == (MAX_STORED, 0)
    table.asked(dig("one.more.example. A"), times=2)
    assert (len(table), table.clears) == (1, 1)


def test_so_does_one_that_is_full_of_octets() -> None:
    table = Table()
    most = 0
    while not table.clears:
        most = len(table)
        table.asked(dig(f"{most}.example. A"), response=addresses(4000), rotate=True, limit=65535, times=2)
    assert SERVER.ready_made // most > 3 * 4000 * 16  # a rotation has each record more than once
    assert len(table) == 1


def test_of_clients_no_more_are_remembered_than_allowed_and_one_more_costs_one_other() -> None:
    table = Table({})
    question = dig("web.example. A")
    clients = [struct.pack("!I", number) for number in range(MAX_CLIENTS + 1)]
    for number, client in enumerate(clients):
        if number == MAX_CLIENTS:
            table.asked(question, clients[0], scope=Scope.NODE)  # a miss of this client, so the next one is older
        table.asked(question, client, scope=Scope.NODE, times=1 if number else 2)
    assert len(table.views) == MAX_CLIENTS
    assert set(clients) - table.views.keys() == {clients[1]}
    assert table.ready(question, clients[1]) is None
    assert table.ready(question, clients[0]) is not None
    assert (len(table), table.clears) == (1, 0)


def test_a_copy_of_a_cached_answer_leaves_the_index_when_its_successor_replaces_it() -> None:
    now = 0.0
    table = PacketCache(lambda address: "", Random(1), lambda: now)
    fact = cached_fact(b"\3web\7example\0\0\1\0\1")
    data = dig("web.example. A")
    read, decided = read_query(data), addresses(1)
    reply = write_response(read, decided, 512, 1232)
    sizes = []
    for _ in range(50):
        resolution = Resolution(decided, "cache", Scope.EVERYONE, (fact,), valid_until=now + 5)
        for _ in range(2):
            table.offer(data, read, ELSEWHERE, reply, resolution, CELL, False)
        assert ready_made(table, data, ELSEWHERE) is not None
        sizes.append(table.octets)
        now += 5
    assert len(set(sizes)) == 1
    assert [len(dependents) for dependents in table._by_fact.values()] == [1]
    now -= 5
    table.forget([fact])
    assert (len(table), ready_made(table, data, ELSEWHERE)) == (0, None)


def test_addresses_of_a_cached_answer_count_as_memory_of_the_table() -> None:
    octets = []
    for fact in (WEB, cached_fact(b"\3web\0\0\1\0\1")):
        table = Table()
        table.asked(dig("web. A"), response=addresses(100), facts=(fact,), rotate=True, limit=65535, times=2)
        octets.append(table.octets)
    assert octets[1] > octets[0] + 100 * 48


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
