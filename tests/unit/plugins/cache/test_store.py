"""The tables of one cache: answers, denials and failures, and which of them is served."""

import pytest

from tests.support.query_builders import ask
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Response, RRset
from topodns.dns.name import ROOT, name_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import soa_rrset
from topodns.memory.budget import MemoryLimits
from topodns.plugins.cache.counts import CacheCounts
from topodns.plugins.cache.entry import Sort, key_of
from topodns.plugins.cache.settings import Cache, ServeStale
from topodns.plugins.cache.store import Memory, room_of

QUERY = ask("www.example.org")
KEY = key_of(QUERY)
CLIENT = bytes(4)


class Store:
    """One cache in virtual time. Each answer has a TTL of 60 seconds."""

    def __init__(self, settings: Cache) -> None:
        self.timers = VirtualTimers()
        room = room_of(MemoryLimits(1 << 20, 1 << 20, 1 << 20), self.timers.time)
        self.memory = Memory(settings, self.timers, CacheCounts(), room)

    def learn(self, sort: Sort, flags: int = QUERY.flags) -> bool:
        soa = soa_rrset(name_wire(ROOT), 1, 60)
        response = {
            Sort.SUCCESS: Response(answer=(RRset(b"", RRType.A, 60, (bytes(4),)),)),
            Sort.DENIAL: Response(Rcode.NXDOMAIN, authority=(soa,)),
            Sort.FAILURE: Response(Rcode.SERVFAIL),
        }[sort]
        return self.memory.learn(KEY, QUERY._replace(flags=flags), response, CLIENT) is not None

    @property
    def served(self) -> Sort | None:
        entry = self.memory.find(KEY, CLIENT)
        return entry.sort if entry is not None else None


@pytest.mark.parametrize(
    ("learned", "served"),
    [
        ([], None),
        ([Sort.SUCCESS, Sort.DENIAL], Sort.DENIAL),
        ([Sort.DENIAL, Sort.SUCCESS], Sort.SUCCESS),
        ([Sort.SUCCESS, Sort.FAILURE], Sort.SUCCESS),
        ([Sort.FAILURE, Sort.DENIAL], Sort.DENIAL),
        ([Sort.FAILURE], Sort.FAILURE),
    ],
)
def test_the_last_answer_or_denial_is_served_and_a_failure_only_without_them(
    learned: list[Sort], served: Sort | None
) -> None:
    store = Store(Cache((ROOT,)))
    assert all(store.learn(sort) for sort in learned)
    assert store.served is served
    assert store.memory.knows(KEY) is bool(learned)


def test_an_answer_is_served_beyond_its_ttl_only_as_long_as_stale_answers_are() -> None:
    store = Store(Cache((ROOT,), serve_stale=ServeStale(max_age=100.0)))
    store.learn(Sort.SUCCESS)
    store.timers.advance(159)
    assert store.served is Sort.SUCCESS
    store.timers.advance(1)
    assert store.served is None
    assert not store.memory.knows(KEY)


def test_a_failure_is_never_served_stale() -> None:
    store = Store(Cache((ROOT,), serve_stale=ServeStale(max_age=100.0)))
    store.learn(Sort.FAILURE)
    store.timers.advance(60)
    assert store.served is None


def test_answers_to_queries_without_rd_are_not_cached() -> None:
    store = Store(Cache((ROOT,)))
    assert not store.learn(Sort.SUCCESS, flags=0)
    assert store.served is None


def test_a_forgotten_name_is_asked_anew() -> None:
    store = Store(Cache((ROOT,)))
    store.learn(Sort.SUCCESS)
    store.memory.forget(KEY)
    assert store.served is None


def test_failures_have_a_part_of_the_memory_for_answers() -> None:
    room = room_of(MemoryLimits(1600, 100, 1), VirtualTimers().time)
    assert (room.success.octets, room.failure.limit, room.denial.octets) == (1500, 100, 100)


def test_failures_that_could_take_long_to_expire_together_get_no_more_room() -> None:
    limits = MemoryLimits(1 << 30, 100, 1)
    room = room_of(limits, VirtualTimers().time)
    assert room.failure.limit == 3 << 19
    assert room.success.octets == limits.answers - (3 << 19)
