"""The file of `persist`: what a cache answered before a restart, it answers after it where upstreams do not."""

from io import BytesIO
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cache_with_push import WWW, Pushed
from tests.support.cache_with_upstream import CLIENT, Story, addresses, alias, denied, failed, positive, question, wire
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Option, Response, RRset
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.files.framed_file import FileKind, FrameWriter, UnusableFile
from topodns.memory.budget import MemoryLimits
from topodns.plugins.cache import answer_file
from topodns.plugins.cache.answer_file import KIND, FileHead, RestoredAnswers, restore_answers, write_answers
from topodns.plugins.cache.entry import AddressEntry, CacheEntry, Sort, address_entry_head, key_of, pack
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.pod_naming import PodNaming
from topodns.plugins.cache.settings import Cache, ServeStale
from topodns.plugins.cache.store import Memory, room_of
from topodns.query.client_scope import ClientScope, client_scope
from topodns.time_slices import do_at_once

DAY = 86_400.0
SETTINGS = Cache(serve_stale=ServeStale(DAY, verify=True))
OWNER = ("cluster.local.:53", "", "cluster.local.", "node-1", "", "")
WRITTEN = 1_700_000_000.0  # Unix seconds


def file_of(memory: Memory, timers: VirtualTimers, wall: float = WRITTEN, owner: tuple[str, ...] = OWNER) -> bytes:
    file = BytesIO()
    writer = FrameWriter(file, answer_file.KIND)
    do_at_once(write_answers(writer, memory, FileHead(wall, owner), timers.time()))
    writer.end()
    return file.getvalue()


def restore(content: bytes, story: Story, wall: float = WRITTEN, owner: tuple[str, ...] = OWNER) -> RestoredAnswers:
    now = story.timers.time()
    return do_at_once(restore_answers(BytesIO(content), story.cache.memory, FileHead(wall, owner), now))


def saved(story: Story) -> bytes:
    return file_of(story.cache.memory, story.timers)


def restarted(content: bytes, away: float = 0, settings: Cache = SETTINGS, says: Response | None = None) -> Story:
    """A cache that was started so many seconds after the file was written, by the clock of the host."""
    story = Story(settings, says or failed())
    restore(content, story, WRITTEN + away)
    return story


def with_www(response: Response | None = None, age: float = 0, settings: Cache = SETTINGS) -> bytes:
    """The file of a cache that got this answer for www.example. so many seconds ago; TTL 300."""
    story = Story(settings, response or positive(300, "192.0.2.1"))
    story.ask()
    story.timers.advance(age)
    return saved(story)


def test_an_answer_is_given_as_a_stale_one_where_upstreams_do_not_answer() -> None:
    story = restarted(with_www(), 10)
    assert story.ask() == "192.0.2.1 30 stale"
    assert story.last.response.ede is not None
    assert story.last.response.ede.code == 3  # RFC 8914 section 4.4
    assert restarted(with_www(denied())).ask() == "NXDOMAIN 30 stale"
    assert restarted(with_www(denied(Rcode.NOERROR))).ask() == "NODATA 30 stale"


def test_an_upstream_that_answers_is_heard_even_within_the_ttl() -> None:
    assert restarted(with_www(), says=positive(60, "192.0.2.2")).ask() == "192.0.2.2 60 upstream"
    assert restarted(with_www(), says=denied()).ask() == "NXDOMAIN 300 upstream"


def test_a_name_that_was_not_cached_is_the_upstream_s_failure() -> None:
    assert restarted(with_www()).ask("other.example. A") == "SERVFAIL upstream"
    assert restarted(with_www(failed())).ask() == "SERVFAIL upstream"


@pytest.mark.parametrize(
    ("age", "away", "shown"),
    [
        (0, 10, "192.0.2.1 30 stale"),
        (0, DAY + 299, "192.0.2.1 30 stale"),
        (0, DAY + 300, "SERVFAIL upstream"),
        (299, DAY, "192.0.2.1 30 stale"),
        (300, DAY, "SERVFAIL upstream"),
        (80_000, 6_699, "192.0.2.1 30 stale"),
        (80_000, 6_700, "SERVFAIL upstream"),
    ],
)
def test_n22_an_answer_ages_while_there_is_no_process(age: float, away: float, shown: str) -> None:
    assert restarted(with_www(age=age), away).ask() == shown


def test_it_goes_on_ageing_afterwards_and_over_further_restarts() -> None:
    story = restarted(with_www(age=100), DAY + 190)
    story.timers.advance(5)
    story = restarted(saved(story), 3)
    assert story.ask() == "192.0.2.1 30 stale"
    assert story.after(2) == "SERVFAIL denial"  # the failure of the question before


@pytest.mark.parametrize("back", [1, 3600, WRITTEN])
def test_n22_a_clock_that_was_set_back_makes_no_answer_younger_than_it_was(back: float) -> None:
    content = with_www(age=80_000)
    story = Story(SETTINGS, failed())
    assert restore(content, story, WRITTEN - back) == RestoredAnswers(1, 0)
    assert story.after(6_699) == "192.0.2.1 30 stale"
    assert story.after(1) == "SERVFAIL denial"


def test_an_answer_that_comes_during_a_long_writing_has_no_negative_age() -> None:
    story = Story(SETTINGS, positive())
    began = story.timers.time()
    story.timers.advance(5)
    story.ask()
    file = BytesIO()
    writer = FrameWriter(file, KIND)
    do_at_once(write_answers(writer, story.cache.memory, FileHead(WRITTEN, OWNER), began))
    writer.end()
    after = Story(SETTINGS, failed())
    restore(file.getvalue(), after, WRITTEN - 3600)
    assert [entry.ticks(after.timers.time()) for _, entry, _ in after.cache.memory.by_use()] == [0]


def test_n22_a_clock_that_was_set_ahead_makes_no_answer_fresh() -> None:
    assert restarted(with_www(), 3600).ask() == "192.0.2.1 30 stale"
    assert restarted(with_www(), 100 * DAY).ask() == "SERVFAIL upstream"


NAMES = st.sampled_from([f"{name}.example." for name in ("www", "a", "b")])
TYPES = st.sampled_from([(RRType.A, 4), (RRType.AAAA, 16)])
BITS = st.sampled_from([0, 0x0010, 0x8000, 0x8010])  # CD, DO
CLASSES = st.sampled_from([RRClass.IN, RRClass.CH])
OPTIONS = st.sampled_from([b"", b"\0\x08\0\x04\0\1\0\0", b"\0\x08\0\x04\0\1\x08\0"])  # two Client Subnets
RDATA = st.binary(min_size=1, max_size=40)
SECTION = st.lists(
    st.builds(RRset, st.sampled_from([b"", wire("x.example.")]), st.sampled_from([16, 5]), st.just(0),
              st.lists(RDATA, min_size=1, max_size=3).map(tuple), CLASSES),
    max_size=2,
).map(tuple)  # fmt: skip
RESPONSES = st.builds(
    Response, st.sampled_from([Rcode.NOERROR, Rcode.NXDOMAIN]), SECTION, SECTION, SECTION, st.sampled_from([0, 0x80])
)
AGES = st.integers(min_value=0, max_value=2000)


@st.composite
def entries(draw: st.DrawFn) -> tuple[bytes, CacheEntry]:
    """An entry of a cache whose clock says 1,000, and its key."""
    rtype, size = draw(TYPES)
    tail = b"".join(number.to_bytes(2, "big") for number in (rtype, draw(CLASSES), draw(BITS)))
    key = wire(draw(NAMES)) + tail + draw(OPTIONS)
    ttl, born = draw(st.integers(min_value=1, max_value=1000)), 1000.0 - draw(AGES)
    if draw(st.booleans()):
        packed = address_entry_head(0x80, rtype) + draw(st.binary(min_size=size, max_size=size))
        return key, AddressEntry(packed, Sort.SUCCESS, ttl, born)
    return key, CacheEntry(pack(draw(RESPONSES)), draw(st.sampled_from([Sort.SUCCESS, Sort.DENIAL])), ttl, born)


@given(st.lists(entries(), max_size=12))
def test_all_that_may_be_stale_is_read_as_it_was_under_its_own_key_and_nothing_else(
    given_entries: list[tuple[bytes, CacheEntry]],
) -> None:
    settings = Cache(serve_stale=ServeStale(1000))
    before, after = Story(settings), Story(settings)
    for key, entry in given_entries:
        before.cache.memory.forget(key)
        (before.cache.memory.success if entry.sort is Sort.SUCCESS else before.cache.memory.denial).insert(key, entry)
    restore(saved(before), after)
    for key, _ in given_entries:
        known, found = (story.cache.memory.find(key, b"") for story in (before, after))
        assert (known is None) == (found is None)
        if known is not None and found is not None:
            assert (found.sort, type(found), found.born) == (known.sort, type(known), known.born)
            assert found.response(7) == known.response(7)
            assert found.left(1000.0) <= 0
    memory = before.cache.memory
    assert len(after.cache.memory.success) + len(after.cache.memory.denial) == sum(
        memory.is_servable(entry) for _, entry, _ in memory.by_use()
    )


@pytest.mark.parametrize("other", ["www.example. AAAA", "www.example. CH A", "a.www.example. A"])
def test_another_question_is_another_one(other: str) -> None:
    assert restarted(with_www()).ask(other) == "SERVFAIL upstream"


def test_a_question_with_do_or_cd_is_another_one() -> None:
    story = restarted(with_www())
    assert story.ask(dnssec=True) == story.ask(flags=0x0110) == "SERVFAIL upstream"


@pytest.mark.parametrize(
    ("scope", "namespace", "is_kept"),
    [(ClientScope.NODE, "", True), (ClientScope.NAMESPACE, "shop", False), (ClientScope.CLIENT, "", False)],
)
def test_n22_answers_for_one_namespace_or_client_are_never_written(
    scope: ClientScope, namespace: str, is_kept: bool
) -> None:
    story = Story(SETTINGS)
    query, response = question("www.example. A"), positive()
    response.options = (client_scope(scope, namespace),)
    key = PodNaming(story.timers).key_for(key_of(query), CLIENT, response)
    assert key is not None
    assert story.cache.memory.learn(key, query, response, CLIENT.address) is not None
    after = restarted(saved(story))
    assert [found for found, _, _ in after.cache.memory.by_use()] == [key] * is_kept


def test_an_option_of_the_question_alone_is_no_scope() -> None:
    """Client Subnet, say, that `rewrite edns0` adds: it is a part of the question."""
    story = Story(SETTINGS)
    key = key_of(question("www.example. A")) + bytes((0, Option.CLIENT_SUBNET, 0, 4, 0, 1, 24, 0))
    story.cache.memory.learn(key, question("www.example. A"), positive(), b"")
    after = restarted(saved(story))
    assert after.ask() == "SERVFAIL upstream"
    assert [found for found, _, _ in after.cache.memory.by_use()] == [key]


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, "example.org.:53"), (1, "internal"), (2, "example.org."), (3, "node-2"), (4, "corp.example."), (5, ".")],
    ids=["block", "view", "zones", "node", "without-success", "without-denial"],
)
def test_n22_the_file_of_another_cache_or_node_is_not_used(place: int, value: str) -> None:
    other = (*OWNER[:place], value, *OWNER[place + 1 :])
    story = Story(SETTINGS, failed())
    with pytest.raises(UnusableFile, match="is of the cache"):
        restore(with_www(), story, owner=other)
    assert story.ask() == "SERVFAIL upstream"


def test_an_answer_that_has_come_since_the_start_is_newer() -> None:
    for settings in (SETTINGS, Cache(serve_stale=ServeStale(DAY, verify=True, prefer_positive=True))):
        story = Story(settings, denied())
        story.ask()
        restore(with_www(), story)
        assert story.ask() == "NXDOMAIN 300 denial"


def test_answers_that_a_push_may_change_are_ordinary_ones_after_a_restart() -> None:
    before = Pushed(SETTINGS)
    before.subscribe()
    assert before.push.live == 1
    after = Pushed(SETTINGS)
    restore(file_of(before.story.cache.memory, before.story.timers), after.story)
    assert (after.push.active, after.wires) == (False, [])
    assert after.ask() == "192.0.2.1 300 upstream"
    after.story.upstream.says = failed()
    assert restarted(saved(after.story)).ask(WWW) == "192.0.2.1 30 stale"


def ranked(story: Story) -> list[str]:
    return [key[1 : 1 + key[0]].decode() for key, _, _ in story.cache.memory.by_use()]


def asked(*names: str) -> Story:
    story = Story(SETTINGS, positive())
    for name in names:
        story.ask(f"{name}.example. A")
    return story


def test_the_most_used_come_first_and_a_restart_keeps_their_order() -> None:
    story = asked("once", "often", "then", "often", "later", "twice", "twice")
    assert ranked(story) == ["twice", "often", "later", "then", "once"]
    again = restarted(saved(story))
    assert ranked(again) == ranked(story)
    assert ranked(restarted(saved(again))) == ranked(story)


def test_a_full_file_leaves_out_the_least_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_file, "_AT_ONCE", 1)
    story = asked(*(f"n{number}" for number in range(100)), "n7", "n3")
    content = saved(story)
    for limit in (len(content) // 2, len(content) - 1):
        monkeypatch.setattr(answer_file, "KIND", KIND._replace(limit=limit))
        found = ranked(restarted(saved(story)))
        assert len(saved(story)) <= limit
        assert len(found) < 100
        assert found == ranked(story)[: len(found)]


def test_a_file_has_eight_megabytes_at_most() -> None:
    story = Story(SETTINGS)
    for number in range(200):
        entry = CacheEntry(
            pack(Response(answer=(RRset(b"", RRType.TXT, 0, (bytes(60_000),)),))), Sort.SUCCESS, 60, 1000.0
        )
        story.cache.memory.success.insert(key_of(question(f"n{number}. TXT")), entry)
    assert 7_900_000 < len(saved(story)) <= 8_000_000
    assert restore(saved(story), Story(SETTINGS)).answers > 130


def test_a_smaller_cache_keeps_the_most_used() -> None:
    story = asked(*(f"n{number}" for number in range(50)))
    after = Story(SETTINGS, failed())
    room = room_of(MemoryLimits(10_000, 10_000, 1), after.timers.time)
    after.cache = ResponseCache(SETTINGS, after.timers, room=room)
    restore(saved(story), after)
    kept = ranked(after)
    assert 10 < len(kept) < 30
    assert kept == ranked(story)[: len(kept)]


SMALL = with_www(
    Response(answer=(alias(300, "a.example."), addresses(300, "192.0.2.1", owner=wire("a.example."))), flags=0x80)
)


def is_refused(content: bytes) -> bool:
    story = Story(SETTINGS, failed())
    with pytest.raises(UnusableFile):
        restore(content, story)
    return len(story.cache.memory.success) + len(story.cache.memory.denial) == 0


def test_n23_a_file_that_ends_anywhere_before_its_end_gives_no_answer() -> None:
    assert restarted(SMALL).ask() == "192.0.2.1 30 stale"
    assert all(is_refused(SMALL[:end]) for end in range(len(SMALL)))


def test_n23_flipped_bits_give_no_answer() -> None:
    story = asked(*(f"n{number}" for number in range(40)))
    content, chance = saved(story), Random(1)
    for _ in range(1000):
        flipped = bytearray(content)
        for bit in chance.sample(range(8 * len(content)), chance.choice([1, 1, 2, 20])):
            flipped[bit // 8] ^= 1 << bit % 8
        assert is_refused(bytes(flipped))


def test_a_newer_version_is_named() -> None:
    file = BytesIO()
    FrameWriter(file, FileKind(KIND.magic, KIND.version + 1)).end()
    with pytest.raises(UnusableFile, match="has format 2, expected 1"):
        restore(file.getvalue(), Story(SETTINGS))


@pytest.mark.parametrize("frames", [[], [b"\xc1"], [b"\x92\x01\x02"], [b"\x92\xcb\0\0\0\0\0\0\0\0\x90" + b"x"]])
def test_whole_frames_with_other_values_than_expected_are_refused(frames: list[bytes]) -> None:
    file = BytesIO()
    writer = FrameWriter(file, KIND)
    for frame in frames:
        writer.write(frame)
    writer.end()
    assert is_refused(file.getvalue())
