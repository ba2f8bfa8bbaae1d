"""Ready-made answers whose TTLs count down, and that end."""

import struct
from random import Random

import pytest

from tests.support.cache_with_upstream import Story, positive
from tests.support.dns_messages import DO, Opt, Reply
from tests.support.in_memory_server import dig
from tests.support.virtual_timers import VirtualTimers
from topodns.dependency import Fact, service_fact
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_reader import read_query
from topodns.dns.wire_writer import write_response
from topodns.dnsserver.packet_cache.table import MAX_STORED, PacketCache
from topodns.memory.budget import SERVER
from topodns.plugins.cache.settings import Cache, Prefetch
from topodns.query.counters import Cell
from topodns.query.plugin import Resolution

QUESTION = dig("www.example. A", ident=7)
CELL: Cell = [0, [0.0]]


def addresses(number: int, ttl: int = 60, owner: bytes = b"") -> RRset:
    return RRset(owner, RRType.A, ttl, tuple(struct.pack("!I", 0x0A000000 + each) for each in range(number)))


class Ageing:
    """A table and a clock; answers come from a cache that gives them for a time."""

    def __init__(self) -> None:
        self.timers = VirtualTimers()
        self.table = PacketCache(lambda address: "", Random(1), self.timers.time)

    def offer(
        self,
        response: Response,
        seconds: float = 60,
        data: bytes = QUESTION,
        rotate: bool = False,
        facts: tuple[Fact, ...] = (),
        limit: int = 512,
    ) -> bytes:
        """The reply; it is good for so many seconds from now on."""
        query = read_query(data)
        reply = write_response(query, response, limit, 1232)
        until = self.timers.time() + seconds
        resolution = Resolution(response, "cache", facts=facts, valid_until=until)
        self.table.offer(data, query, b"\x0a\0\0\1", reply, resolution, CELL, rotate)
        return reply

    def keep(self, response: Response, seconds: float = 60, data: bytes = QUESTION, rotate: bool = False) -> bytes:
        self.offer(response, seconds, data, rotate)
        return self.offer(response, seconds, data, rotate)

    def ready(self, data: bytes = QUESTION) -> bytes | None:
        """The reply that the UDP loop makes by itself; None where the steps are asked."""
        entry = self.table.common.get(data[2:])
        if entry is None:
            return None
        tail, _, make, _ = entry
        made = make() if make is not None else tail
        return None if made is None else data[:2] + made

    def after(self, seconds: float) -> Reply | None:
        self.timers.advance(seconds)
        wire = self.ready()
        return None if wire is None else Reply(wire)


def ttls(reply: Reply | None) -> list[int] | None:
    if reply is None:
        return None
    return [int(line.split()[1]) for line in (*reply.answer, *reply.authority, *reply.additional)]


def test_ttls_count_down_until_the_end() -> None:
    story = Ageing()
    reply = story.keep(Response(answer=(addresses(1),)))
    assert story.ready() == reply
    assert [ttls(story.after(step)) for step in (0.5, 0.5, 58, 0.9)] == [[60], [59], [1], [1]]
    assert story.after(0.1) is None
    assert story.after(1000) is None


@pytest.mark.parametrize("late", [0.25, 0.75])
def test_they_tick_when_those_of_the_cache_do(late: float) -> None:
    story = Ageing()
    response = Response(answer=(addresses(1, 60),))  # 60 seconds were left when it was made, a part of one ago
    story.keep(response, 60 - late)
    assert ttls(story.after(1 - late - 0.01)) == [60]
    assert ttls(story.after(0.01)) == [59]


def test_nothing_but_the_ttls_changes() -> None:
    story = Ageing()
    glue = b"\x02ns\x07example\0"
    response = Response(
        answer=(RRset(b"", RRType.CNAME, 60, (b"\x01t\x04test\0",)), addresses(2, 60, b"\x01t\x04test\0")),
        authority=(RRset(b"\x07example\0", RRType.NS, 60, (glue,)),),
        additional=(addresses(1, 60, glue),),
        flags=Flag.AA | Flag.RA | Flag.AD,
    )
    data = dig("www.example. A", Opt(1232, flags=DO), ident=7)
    reply = story.keep(response, 60, data)
    story.timers.advance(25)
    aged = story.ready(data)
    assert aged is not None
    younger = Response(
        answer=tuple(rrset._replace(ttl=35) for rrset in response.answer),
        authority=tuple(rrset._replace(ttl=35) for rrset in response.authority),
        additional=tuple(rrset._replace(ttl=35) for rrset in response.additional),
        flags=response.flags,
    )
    assert aged == write_response(read_query(data), younger, 512, 1232) != reply


def test_an_answer_may_end_before_its_ttl() -> None:
    story = Ageing()
    story.keep(Response(answer=(addresses(1, 300),)), 30)
    assert ttls(story.after(29)) == [271]
    assert story.after(1) is None


def test_an_answer_ends_with_the_first_of_its_ttls() -> None:
    # An alias in the cluster, with its own TTL, of a name outside.
    story = Ageing()
    alias = RRset(b"", RRType.CNAME, 5, (b"\x01t\x04test\0",))
    story.keep(Response(answer=(alias, addresses(1, 300, b"\x01t\x04test\0"))), 300)
    assert ttls(story.after(4)) == [1, 296]
    assert story.after(1) is None


def test_an_answer_without_records_ends_too() -> None:
    story = Ageing()
    reply = story.keep(Response(Rcode.SERVFAIL), 5)
    story.timers.advance(4.9)
    assert story.ready() == reply
    assert story.after(0.1) is None


def test_an_expired_entry_is_replaced_by_the_next_offer() -> None:
    story = Ageing()
    story.keep(Response(answer=(addresses(1),)))
    assert story.after(61) is None
    reply = story.offer(Response(answer=(addresses(2),)))
    assert story.ready() == reply
    story.offer(Response(answer=(addresses(3),)))  # the other one is still good
    assert story.ready() == reply


def test_one_that_was_offered_too_late_is_replaced_as_well() -> None:
    story = Ageing()
    story.keep(Response(answer=(addresses(1),)), -0.5)
    assert story.ready() is None
    assert story.ready() is None
    reply = story.offer(Response(answer=(addresses(2),)))
    assert story.ready() == reply


def test_replacing_does_not_fill_the_table() -> None:
    story = Ageing()
    story.keep(Response(answer=(addresses(1),)), 5)
    for _ in range(MAX_STORED + 1):
        story.timers.advance(5)
        story.offer(Response(answer=(addresses(1, 5),)), 5)
    assert (len(story.table), story.table.clears) == (1, 0)


def test_the_octets_of_ageing_answers_are_bounded() -> None:
    story, most = Ageing(), 0
    while not story.table.clears:
        most = len(story.table)
        data = dig(f"{most}.example. A")
        for _ in range(2):
            story.offer(Response(answer=(addresses(1000),)), 60, data, limit=65_535)
    assert 3 * 16 * 1000 < SERVER.ready_made // most < 40 * 16 * 1000


def test_an_ageing_answer_goes_with_the_facts_it_rests_on() -> None:
    story, fact = Ageing(), service_fact("shop", "db")
    for _ in range(3):
        for _ in range(2):
            story.offer(Response(answer=(addresses(1),)), 60, facts=(fact,))
        assert story.ready() is not None
        story.timers.advance(60)
    story.offer(Response(answer=(addresses(1),)), 60, facts=(fact,))
    story.table.forget([fact])
    assert len(story.table) == 0


@pytest.mark.parametrize("before", [(), (RRset(b"", RRType.CNAME, 60, (b"\x01t\x04test\0",)),)])
def test_an_answer_that_ages_moves_the_order_of_its_addresses_on(before: tuple[RRset, ...]) -> None:
    story = Ageing()
    owner = b"\x01t\x04test\0" if before else b""
    whole = Reply(story.keep(Response(answer=(*before, addresses(5, 60, owner))), rotate=True))
    for left in (60, 59, 58):
        turn = [story.after(0) for _ in range(5)]
        firsts = {reply.answer[len(before)] for reply in turn if reply is not None}
        assert len(firsts) == 5
        for reply in turn:
            assert reply is not None
            assert (ttls(reply), reply.data) == ([left] * len(whole.answer), whole.data)
        story.timers.advance(1)
    assert story.after(60) is None


@pytest.mark.parametrize("settings", [Cache(), Cache(prefetch=Prefetch(1, 20.0, 50))])
def test_at_any_time_a_ready_made_reply_equals_the_cache_plugin_s(settings: Cache) -> None:
    story = Story(settings, positive(30))
    table = PacketCache(lambda address: "", Random(1), story.timers.time)
    story.ask()
    query = read_query(QUESTION)
    ready = 0
    for _ in range(200):
        story.timers.advance(0.17)
        entry = table.common.get(QUESTION[2:])
        made = entry[2]() if entry is not None and entry[2] is not None else None
        story.ask()
        reply = write_response(query, story.last.response, 512, 1232)
        ready += made is not None
        assert made in (None, reply[2:])
        table.offer(QUESTION, query, b"\x0a\0\0\1", reply, story.last, CELL, False)
    assert ready > 100
