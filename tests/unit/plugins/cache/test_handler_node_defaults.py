"""N4: a `cache` as a node has it by default, which outlasts its upstreams."""

import pytest

from tests.support.cache_with_upstream import CLIENT, Story, denied, failed, positive, question
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Response
from topodns.dns.rrtype import Rcode
from topodns.memory.budget import SERVER, MemoryLimits
from topodns.nodecache.corefile import NODE_CACHE
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.store import room_of
from topodns.query.answer_detail import CacheHit
from topodns.query.deferred import pursue
from topodns.query.plugin import Resolution, settled

HOUR = 3600


def stale(was: Response | None = None, says: Response | None = None, age: float = 400) -> Story:
    """A story whose www.example. was asked for once, long ago, and whose upstream says something else by now."""
    story = Story(NODE_CACHE, was or positive())
    story.ask()
    story.upstream.says = says
    story.timers.advance(age)
    return story


def test_n04_a_silent_upstream_is_tried_for_1_8_s_then_the_answer_is_the_last_known() -> None:
    story = stale()
    assert story.ask() == ""
    story.timers.advance(1.7)
    assert len(story.answers) == 1
    story.timers.advance(0.1)
    assert story.answers[1:] == ["192.0.2.1 30 stale"]


@pytest.mark.parametrize(("age", "by"), [(300 + 24 * HOUR - 1, "192.0.2.1 30 stale"), (300 + 24 * HOUR, "SERVFAIL")])
def test_n04_for_a_day_beyond_its_ttl(age: float, by: str) -> None:
    assert stale(says=failed(), age=age).ask().startswith(by)


@pytest.mark.parametrize("failing", [failed(), failed(Rcode.REFUSED), failed(Rcode.NOTIMP)])
def test_n04_a_failure_is_tried_again_after_30_s(failing: Response) -> None:
    story = stale(says=failing)
    assert [story.ask() for _ in range(9)] == ["192.0.2.1 30 stale"] * 9
    assert story.after(29.9) == "192.0.2.1 30 stale"
    assert story.times_asked == 2
    story.upstream.says = positive(60, "192.0.2.2")
    assert story.after(0.1) == "192.0.2.2 60 upstream"


DENIALS = pytest.mark.parametrize("denial", [denied(ttl=5), denied(Rcode.NOERROR, ttl=5), Response(Rcode.NXDOMAIN)])


@DENIALS
def test_a_fresh_denial_is_the_answer_at_once(denial: Response) -> None:
    """RFC 8767 section 4: a definitive answer replaces the cached one, so that a deleted name does not live on."""
    story = stale(says=denial)
    assert story.ask().startswith(("NXDOMAIN", "NODATA"))
    assert (story.cache.counts.served_stale, story.times_asked) == (0, 2)


@DENIALS
def test_a_fresh_denial_replaces_the_stale_copy_for_good(denial: Response) -> None:
    story = stale(says=denial)
    story.ask()
    story.upstream.says = failed()
    assert story.after(60).startswith(("NXDOMAIN", "NODATA", "SERVFAIL"))
    story.upstream.says = None
    story.ask()
    story.timers.advance(1.8)
    assert not any(answer.startswith("192.0.2.1") for answer in story.answers[1:])


@DENIALS
def test_a_denial_after_a_time_of_stale_answers_counts_at_once_as_well(denial: Response) -> None:
    story = stale(says=failed())
    assert story.ask() == "192.0.2.1 30 stale"
    story.upstream.says = denial
    assert story.after(30).startswith(("NXDOMAIN", "NODATA"))


def test_a_denial_of_another_kind_replaces_a_denial() -> None:
    assert stale(denied(ttl=5), denied(Rcode.NOERROR, ttl=5), age=6).ask() == "NODATA 5 upstream"


@pytest.mark.parametrize(("ttl", "kept"), [(1, 1), (4, 4), (5, 5), (300, 300)])
def test_no_ttl_of_an_upstream_is_raised(ttl: int, kept: int) -> None:
    story = Story(NODE_CACHE, positive(ttl))
    assert [story.ask(), story.ask()] == [f"192.0.2.1 {kept} upstream", f"192.0.2.1 {kept} success"]
    story = Story(NODE_CACHE, denied(ttl=ttl))
    assert [story.ask(), story.ask()] == [f"NXDOMAIN {kept} upstream", f"NXDOMAIN {kept} denial"]


class Gone:
    """A cache of a thousand names whose TTL is over, and an upstream that never answers again."""

    NAMES = 1000

    def __init__(self) -> None:
        self.story = Story(NODE_CACHE, positive(30))
        self.upstreams_down = False
        self.story.cache = ResponseCache(NODE_CACHE, self.story.timers, upstreams_down=lambda: self.upstreams_down)
        self.waits: list[float] = []
        for number in range(self.NAMES):
            self.story.ask(f"n{number}.example. A")
        self.story.upstream.says = None
        self.story.timers.advance(60)

    def ask_all(self, per_second: int = 1000) -> list[float]:
        """How long each of them waits."""
        self.waits = []
        for number in range(self.NAMES):
            began = self.story.timers.time()

            def answered(resolution: Resolution, began: float = began) -> None:
                assert isinstance(resolution.detail, CacheHit)
                assert resolution.detail.stale
                self.waits.append(self.story.timers.time() - began)

            asked = question(f"n{number}.example. A")
            pursue(settled(self.story.cache(asked, CLIENT, self.story.upstream)), answered)
            self.story.timers.advance(1 / per_second)
        self.story.timers.advance(2)
        return self.waits


def test_all_upstreams_gone_each_of_a_thousand_names_is_answered_within_two_seconds() -> None:
    waits = Gone().ask_all()
    assert len(waits) == Gone.NAMES
    assert max(waits) < 1.9


def test_while_upstreams_are_known_to_be_down_no_client_waits() -> None:
    gone = Gone()
    gone.upstreams_down = True
    assert gone.ask_all() == [0.0] * Gone.NAMES
    assert gone.story.times_asked == 2 * Gone.NAMES  # refreshed behind, all the same
    assert gone.story.cache.counts.prefetches == Gone.NAMES


def test_once_one_is_back_its_word_is_waited_for() -> None:
    story = stale()
    story.cache = ResponseCache(NODE_CACHE, story.timers, upstreams_down=lambda: False)
    story.upstream.says = positive(5)
    story.ask()
    story.upstream.says = None
    assert story.after(6) == ""
    story.upstream.reply(positive(5, "192.0.2.2"))
    assert story.answers[-1] == "192.0.2.2 5 upstream"


def test_failures_push_out_nothing_that_may_be_served_stale() -> None:
    story = Story(NODE_CACHE, denied(ttl=30))
    for number in range(2000):
        story.ask(f"n{number}.example. A")
    story.upstream.says = failed()
    story.timers.advance(60)
    for number in range(30_000):
        story.ask(f"junk{number}.example. A")
    assert {story.ask(f"n{number}.example. A") for number in range(2000)} == {"NXDOMAIN 30 stale"}
    assert 1000 < len(story.cache.memory.failure) < SERVER.answers / 16 / 800


def test_failures_push_out_no_denials() -> None:
    """A flood of names of a domain whose servers are gone, and a cache full of others."""
    timers = VirtualTimers()
    cache = ResponseCache(NODE_CACHE, timers, room=room_of(MemoryLimits(1 << 20, 1 << 18, 0), timers.time))

    def fill(name: str, response: Response) -> None:
        for number in range(1000):
            asked = question(f"{name}{number}.example. A")
            got = Resolution(Response(response.rcode, (), response.authority), "forward", upstream="192.0.2.1:53")
            cache(asked, CLIENT, lambda query, client: got)  # noqa: B023

    fill("denied", denied())
    before = len(cache.memory.denial)
    fill("failed", failed())
    assert 50 < len(cache.memory.failure) < (1 << 20) / 16 / 800
    assert len(cache.memory.denial) == before > 100
