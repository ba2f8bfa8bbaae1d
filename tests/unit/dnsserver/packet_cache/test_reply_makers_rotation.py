"""The order of addresses in ready-made answers."""

from collections import Counter

import pytest

from tests.support.dns_messages import Opt, Reply
from tests.support.in_memory_server import dig
from tests.unit.dnsserver.packet_cache.scene import B1, ELSEWHERE, WEB, Table, addresses
from topodns.dns.message import Response, RRset
from topodns.dns.rrtype import RRType


@pytest.mark.parametrize("number", [2, 3, 8, 9, 25])
def test_each_address_is_first_equally_often(number: int) -> None:
    table = Table()
    question = dig("web.example. A")
    whole = Reply(table.asked(question, response=addresses(number), rotate=True, times=2))
    for _ in range(3):
        turn = [made(table, question) for _ in range(number)]
        assert Counter(reply.answer[0] for reply in turn) == Counter(whole.answer)
        for reply in turn:
            assert sorted(reply.answer) == sorted(whole.answer)
            assert reply.flags == whole.flags


def made(table: Table, question: bytes, address: bytes = ELSEWHERE) -> Reply:
    wire = table.ready(question, address)
    return Reply(wire)


def test_each_turn_has_an_order_of_its_own() -> None:
    # Or the neighbour of an endpoint that is gone would get all of its clients.
    table = Table()
    question = dig("web.example. A")
    table.asked(question, response=addresses(9), rotate=True, times=2)
    followers = {tuple(made(table, question).answer[:2]) for _ in range(9 * 20)}
    assert len(followers) > 9


@pytest.mark.parametrize(("opt", "limit", "fitting"), [(None, 512, 30), (Opt(), 512, 29), (Opt(), 1232, 74)])
def test_a_truncated_answer_keeps_its_size_and_gives_everyone_a_turn(opt: Opt | None, limit: int, fitting: int) -> None:
    table = Table()
    question = dig("example. A", opt)
    whole = Reply(table.asked(question, response=addresses(100), rotate=True, limit=limit, times=2))
    turn = [made(table, question) for _ in range(100)]
    assert len({reply.answer[0] for reply in turn}) == 100
    for reply in turn:
        assert len(reply.wire) == len(whole.wire)
        assert len(set(reply.answer)) == len(reply.answer) == fitting
        assert "tc" in reply.flag_names
        assert reply.options == whole.options


def test_records_after_the_addresses_stay_in_place() -> None:
    table = Table()
    question = dig("web.example. AAAA", Opt())
    rdatas = tuple(bytes(15) + bytes((number,)) for number in range(4))
    response = Response(
        answer=(RRset(b"", RRType.AAAA, 5, rdatas),),
        authority=(RRset(b"\x07example\0", RRType.NS, 5, (b"\x02ns\x07example\0",)),),
        additional=(RRset(b"\x02ns\x07example\0", RRType.A, 5, (B1,)),),
    )
    table.asked(question, response=response, rotate=True, times=2)
    for _ in range(5):
        reply = made(table, question)
        assert len(set(reply.answer)) == 4
        assert reply.authority == ["example. 5 IN NS ns.example."]
        assert reply.additional == ["ns.example. 5 IN A 10.240.2.1"]
        assert reply.options == {}


TARGETS = tuple(b"\0\0\0\1\0\x50\1" + letter + b"\0" for letter in (b"a", b"b"))


@pytest.mark.parametrize(
    ("response", "rotate"),
    [
        pytest.param(addresses(1), True, id="one address"),
        pytest.param(addresses(9), False, id="no loadbalance"),
        pytest.param(Response(answer=(RRset(b"", RRType.SRV, 5, TARGETS),)), True, id="SRV records"),
        pytest.param(Response(3), True, id="NXDOMAIN"),
    ],
)
def test_other_answers_keep_their_order(response: Response, rotate: bool) -> None:
    table = Table()
    question = dig("web.example. A")
    reply = table.asked(question, response=response, rotate=rotate, times=2)
    assert {table.ready(question) for _ in range(5)} == {reply}


ALIAS = RRset(b"", RRType.CNAME, 5, (b"\1b\0",))

BEHIND_IT = RRset(b"\1b\0", RRType.A, 5, addresses(5).answer[0].rdatas)


@pytest.mark.parametrize("limit", [512, 64])
def test_addresses_behind_a_cname_change_their_order_too(limit: int) -> None:
    table = Table()
    question = dig("web.example. A")
    whole = Reply(
        table.asked(question, response=Response(answer=(ALIAS, BEHIND_IT)), rotate=True, limit=limit, times=2)
    )
    first, *others = whole.answer
    assert len(others) == (5 if limit == 512 else 1)
    turn = [made(table, question) for _ in range(5)]
    assert {reply.answer[0] for reply in turn} == {first}
    assert len({reply.answer[1] for reply in turn}) == 5
    assert {len(set(reply.answer)) for reply in turn} == {len(whole.answer)}
    assert {len(reply.wire) for reply in turn} == {len(whole.wire)}


@pytest.mark.parametrize(
    ("answer", "limit"),
    [
        pytest.param((BEHIND_IT._replace(owner=b"\1c\0"), BEHIND_IT), 512, id="two sets of addresses"),
        pytest.param((ALIAS, BEHIND_IT), 50, id="no address fits"),
    ],
)
def test_an_answer_whose_order_should_change_and_cannot_is_not_kept(answer: tuple[RRset, ...], limit: int) -> None:
    for rotate, kept in ((True, 0), (False, 1)):
        table = Table()
        table.asked(dig("web.example. A"), response=Response(answer=answer), rotate=rotate, limit=limit, times=2)
        assert len(table) == kept


@pytest.mark.parametrize(("limit", "part"), [(1232, 256), (65535, 5000)])
def test_of_thousands_of_addresses_each_comes_first_as_often_as_any_other(limit: int, part: int) -> None:
    table = Table()
    question = dig("web.example. A")
    first = table.asked(question, response=addresses(5000), rotate=True, limit=limit, times=2)
    at = len(question) + 12
    seen: Counter[bytes] = Counter()
    for _ in range(2 * 5000 // part):
        turn = []
        for _ in range(part):
            reply = table.ready(question)
            assert reply is not None
            assert len(reply) == len(first)
            turn.append(reply[at : at + 4])
        assert len(set(turn)) == part
        seen.update(turn)
    assert len(seen) == 5000
    assert set(seen.values()) <= {1, 2}


def test_the_size_of_a_truncated_entry_does_not_grow_with_the_dropped_records() -> None:
    sizes = []
    for number in (1000, 5000):
        table = Table()
        answer = addresses(number)
        table.asked(dig("web.example. A"), facts=(WEB,), response=answer, rotate=True, limit=1232, times=2)
        sizes.append(table.octets)
    assert sizes[1] - sizes[0] == 8 * 4000  # the place of each address in the answer's tuple
    assert sizes[1] < 70_000
