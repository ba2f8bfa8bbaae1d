"""Answers past their TTL, while the upstream has nothing better: RFC 8767.

N4: a `cache` as a node has it by default, which outlasts its upstreams.
"""

import logging

import pytest

from tests.support.cache_with_upstream import CLIENT, Story, denied, failed, positive, question, shown
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Flag, Response
from topodns.dns.rrtype import Rcode
from topodns.memory.budget import SERVER, MemoryLimits
from topodns.nodecache.corefile import NODE_CACHE
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.settings import Cache, ServeStale, Share
from topodns.plugins.cache.store import room_of
from topodns.query.counters import CacheHit
from topodns.query.deferred import pursue
from topodns.query.plugin import Dropped, Resolution, Scope, settled

IMMEDIATE = Cache(serve_stale=ServeStale())
VERIFY = Cache(serve_stale=ServeStale(verify=True))
PREFER_POSITIVE = Cache(serve_stale=ServeStale(prefer_positive=True))


def stale(settings: Cache, was: Response | None = None, says: Response | None = None, age: float = 400) -> Story:
    """A story whose www.example. was asked for once, long ago, and whose upstream says something else by now."""
    story = Story(settings, was or positive())
    story.ask()
    story.upstream.says = says
    story.timers.advance(age)
    return story


def test_at_once_and_refreshed_behind() -> None:
    story = stale(IMMEDIATE)
    assert [story.ask() for _ in range(50)] == ["192.0.2.1 30 stale"] * 50
    assert story.times_asked == 2  # one refresh at a time
    story.upstream.reply(positive(60, "192.0.2.2"))
    assert story.ask() == "192.0.2.2 60 success"
    counts = story.cache.counts
    assert (counts.served_stale, counts.prefetches, counts.misses) == (50, 1, 1)


def test_a_stale_answer_is_for_one_client_and_says_so() -> None:
    story = stale(IMMEDIATE)
    story.ask()
    assert (story.last.plugin, story.last.detail) == ("cache", CacheHit("success", ".", stale=True))
    assert story.last.scope is Scope.CLIENT
    assert story.last.valid_until is None
    assert story.last.response.ede is not None
    assert story.last.response.ede.code == 3  # RFC 8914 section 4.4
    story = stale(IMMEDIATE, denied(), age=1000)
    story.ask()
    assert story.last.response.ede is not None
    assert story.last.response.ede.code == 19


@pytest.mark.parametrize("settings", [IMMEDIATE, VERIFY])
def test_not_after_its_time(settings: Cache) -> None:
    for age, by in ((300 + 3599, "192.0.2.1 30 stale"), (300 + 3600, "SERVFAIL upstream")):
        assert stale(settings, says=failed(), age=age).ask() == by


def test_without_the_option_there_is_nothing_stale() -> None:
    assert stale(Cache(), says=failed()).ask() == "SERVFAIL upstream"


def test_a_failure_is_never_served_stale() -> None:
    for was in (failed(), failed(Rcode.NOTIMP)):
        story = stale(IMMEDIATE, was, positive(), age=10)
        assert story.ask() == "192.0.2.1 300 upstream"


def test_a_denial_is_served_stale_as_well() -> None:
    assert stale(IMMEDIATE, denied(), failed()).ask() == "NXDOMAIN 30 stale"


@pytest.mark.parametrize(
    ("settings", "ttl"),
    [
        (Cache(serve_stale=ServeStale(ttl=5)), "5"),
        (Cache(serve_stale=ServeStale(ttl=0)), "0"),
        (Cache(serve_stale=ServeStale(ttl=5), keepttl=True), "5"),
        (Cache(serve_stale=ServeStale(ttl=0), keepttl=True), "300"),
    ],
)
def test_the_ttl_of_stale_answers(settings: Cache, ttl: str) -> None:
    assert stale(settings).ask() == f"192.0.2.1 {ttl} stale"


@pytest.mark.parametrize("failing", [failed(), failed(Rcode.REFUSED), Response(flags=Flag.TC)])
def test_a_failed_refresh_is_not_tried_again_for_a_while(failing: Response) -> None:
    story = stale(IMMEDIATE, says=failing)
    for _ in range(5):
        assert story.ask() == "192.0.2.1 30 stale"
    assert story.times_asked == 2
    assert story.after(29.9) == "192.0.2.1 30 stale"
    assert story.times_asked == 2
    story.upstream.says = positive(60, "192.0.2.2")
    assert story.after(0.1) == "192.0.2.1 30 stale"
    assert (story.times_asked, story.ask()) == (3, "192.0.2.2 60 success")


def test_with_no_recheck_time_it_is() -> None:
    story = stale(Cache(serve_stale=ServeStale(recheck=0)), says=failed())
    assert [story.ask() for _ in range(3)] == ["192.0.2.1 30 stale"] * 3
    assert story.times_asked == 4


@pytest.mark.parametrize("settings", [IMMEDIATE, VERIFY])
@pytest.mark.parametrize(
    ("news", "shown"),
    [
        (denied(), "NXDOMAIN 300"),
        (denied(Rcode.NOERROR), "NODATA 300"),
        (Response(Rcode.NXDOMAIN), "NXDOMAIN"),  # without an SOA: not kept, and believed all the same
    ],
)
def test_nothing_stale_once_a_name_is_known_to_be_gone(settings: Cache, news: Response, shown: str) -> None:
    story = stale(settings, says=news)
    story.ask()
    assert story.ask().startswith(shown)
    story.upstream.says = failed()
    assert story.after(310).startswith(("NXDOMAIN", "NODATA", "SERVFAIL"))


@pytest.mark.parametrize("settings", [IMMEDIATE, VERIFY])
def test_an_answer_that_must_not_be_kept_replaces_a_stale_one(settings: Cache) -> None:
    story = stale(settings, says=positive(0, "192.0.2.2"))
    story.ask()
    story.upstream.says = positive(0, "192.0.2.3")
    assert story.ask() == "192.0.2.3 0 upstream"


def test_an_answer_of_another_plugin_ends_the_use_of_a_stale_one() -> None:
    story = stale(IMMEDIATE, says=positive(5, "192.0.2.9"))
    story.upstream.name = ""  # a name that some directive before `forward` answers by now
    assert story.ask() == "192.0.2.1 30 stale"
    assert story.ask() == "192.0.2.9 5 upstream"


def test_verified_first_where_the_upstream_answers() -> None:
    story = stale(VERIFY, says=positive(60, "192.0.2.2"))
    assert [story.ask(), story.ask()] == ["192.0.2.2 60 upstream", "192.0.2.2 60 success"]
    assert (story.cache.counts.served_stale, story.cache.counts.prefetches) == (0, 0)


def test_verified_first_and_stale_at_once_where_it_fails() -> None:
    story = stale(VERIFY, says=failed())
    assert [story.ask(), story.ask()] == ["192.0.2.1 30 stale"] * 2
    assert story.times_asked == 2


def test_a_silent_upstream_is_waited_for_once_and_not_for_long() -> None:
    story = stale(VERIFY)
    assert story.ask() == ""
    story.timers.advance(1.0)
    assert story.ask() == ""  # waits with the first one
    story.timers.advance(0.7)
    assert len(story.answers) == 1
    story.timers.advance(0.1)
    assert story.answers[1:] == ["192.0.2.1 30 stale"] * 2
    assert [story.ask() for _ in range(9)] == ["192.0.2.1 30 stale"] * 9  # at once
    assert (story.times_asked, story.timers.pending) == (2, 0)
    story.upstream.reply(positive(60, "192.0.2.2"))  # too late for them, not for others
    assert story.ask() == "192.0.2.2 60 success"


def test_a_client_that_has_waited_for_another_name_on_the_way_waits_that_much_less() -> None:
    """`autopath` asks one name after the other."""
    story = stale(VERIFY)
    waited = CLIENT._replace(asked=story.timers.time() - 1.0)
    pursue(settled(story.cache(question("www.example. A"), waited, story.upstream)), story.resolutions.append)
    story.timers.advance(0.7)
    assert len(story.resolutions) == 1
    story.timers.advance(0.2)
    assert shown(story.resolutions[-1]) == "192.0.2.1 30 stale"
    waited = CLIENT._replace(asked=story.timers.time() - 2.0)
    pursue(settled(story.cache(question("www.example. A"), waited, story.upstream)), story.resolutions.append)
    assert len(story.resolutions) == 3  # at once


def test_all_waiting_clients_get_the_fresh_answer_each_in_a_response_of_its_own() -> None:
    story = stale(VERIFY)
    for flags in (Flag.RD, Flag.RD | Flag.AD, Flag.RD):
        story.ask(flags=flags)
    news = positive(60, "192.0.2.2")
    news.flags |= Flag.AD
    story.upstream.reply(news)
    assert story.answers[1:] == ["192.0.2.2 60 upstream"] * 3
    assert [bool(each.response.flags & Flag.AD) for each in story.resolutions[1:]] == [False, True, False]
    assert (story.times_asked, story.timers.pending) == (2, 0)


def test_without_a_timeout_as_long_as_the_upstream_takes() -> None:
    story = stale(Cache(serve_stale=ServeStale(verify=True, verify_timeout=0)))
    assert story.after(100) == ""
    story.upstream.reply(failed())
    assert story.answers[-1] == "192.0.2.1 30 stale"


def test_a_refresh_asks_with_recursion_and_for_more_than_a_datagram() -> None:
    story = stale(IMMEDIATE)
    story.ask(flags=0)
    query, client = story.upstream.asked[-1]
    assert (query.flags, client.transport) == (Flag.RD | Flag.AD, "tcp")
    story.upstream.reply(positive(60, "192.0.2.2"))
    assert story.ask() == "192.0.2.2 60 success"


def test_with_prefer_positive_the_last_good_answer_goes_before_a_denial() -> None:
    story = stale(PREFER_POSITIVE, says=denied())
    assert [story.ask(), story.ask()] == ["192.0.2.1 30 stale"] * 2
    assert len(story.cache.memory.denial) == 1
    story.upstream.says = positive(60, "192.0.2.2")
    story.after(30)
    assert (story.ask(), len(story.cache.memory.denial)) == ("192.0.2.2 60 success", 0)


def test_but_only_until_it_is_too_old() -> None:
    story = stale(PREFER_POSITIVE, says=denied(ttl=900))
    story.after(3200)
    assert story.ask() == "192.0.2.1 30 stale"
    assert story.after(301) == "NXDOMAIN 599 denial"


def test_with_prefer_positive_a_denial_alone_is_refreshed_as_ever() -> None:
    verify = Cache(serve_stale=ServeStale(verify=True, prefer_positive=True), denial=Share(60))
    story = stale(verify, denied(), denied(ttl=50))
    assert story.ask() == "NXDOMAIN 50 upstream"


@pytest.mark.parametrize("settings", [IMMEDIATE, VERIFY])
@pytest.mark.parametrize("raised", [Dropped("forward"), KeyError("a bug")])
def test_whatever_becomes_of_a_refresh_the_stale_answer_goes_out(
    settings: Cache, raised: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    story = stale(settings)
    story.upstream.raises = raised
    assert [story.ask(), story.ask()] == ["192.0.2.1 30 stale"] * 2
    bugs = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert bugs == ([] if isinstance(raised, Dropped) else ["bug: the refresh of www.example."] * 2)


HOUR = 3600


def test_n04_a_silent_upstream_is_tried_for_1_8_s_then_the_answer_is_the_last_known() -> None:
    story = stale(NODE_CACHE)
    assert story.ask() == ""
    story.timers.advance(1.7)
    assert len(story.answers) == 1
    story.timers.advance(0.1)
    assert story.answers[1:] == ["192.0.2.1 30 stale"]


@pytest.mark.parametrize(("age", "by"), [(300 + 24 * HOUR - 1, "192.0.2.1 30 stale"), (300 + 24 * HOUR, "SERVFAIL")])
def test_n04_for_a_day_beyond_its_ttl(age: float, by: str) -> None:
    assert stale(NODE_CACHE, says=failed(), age=age).ask().startswith(by)


@pytest.mark.parametrize("failing", [failed(), failed(Rcode.REFUSED), failed(Rcode.NOTIMP)])
def test_n04_a_failure_is_tried_again_after_30_s(failing: Response) -> None:
    story = stale(NODE_CACHE, says=failing)
    assert [story.ask() for _ in range(9)] == ["192.0.2.1 30 stale"] * 9
    assert story.after(29.9) == "192.0.2.1 30 stale"
    assert story.times_asked == 2
    story.upstream.says = positive(60, "192.0.2.2")
    assert story.after(0.1) == "192.0.2.2 60 upstream"


DENIALS = pytest.mark.parametrize("denial", [denied(ttl=5), denied(Rcode.NOERROR, ttl=5), Response(Rcode.NXDOMAIN)])


@DENIALS
def test_a_fresh_denial_is_the_answer_at_once(denial: Response) -> None:
    """RFC 8767 section 4: a definitive answer replaces the cached one, so that a deleted name does not live on."""
    story = stale(NODE_CACHE, says=denial)
    assert story.ask().startswith(("NXDOMAIN", "NODATA"))
    assert (story.cache.counts.served_stale, story.times_asked) == (0, 2)


@DENIALS
def test_a_fresh_denial_replaces_the_stale_copy_for_good(denial: Response) -> None:
    story = stale(NODE_CACHE, says=denial)
    story.ask()
    story.upstream.says = failed()
    assert story.after(60).startswith(("NXDOMAIN", "NODATA", "SERVFAIL"))
    story.upstream.says = None
    story.ask()
    story.timers.advance(1.8)
    assert not any(answer.startswith("192.0.2.1") for answer in story.answers[1:])


@DENIALS
def test_a_denial_after_a_time_of_stale_answers_counts_at_once_as_well(denial: Response) -> None:
    story = stale(NODE_CACHE, says=failed())
    assert story.ask() == "192.0.2.1 30 stale"
    story.upstream.says = denial
    assert story.after(30).startswith(("NXDOMAIN", "NODATA"))


def test_a_denial_of_another_kind_replaces_a_denial() -> None:
    assert stale(NODE_CACHE, denied(ttl=5), denied(Rcode.NOERROR, ttl=5), age=6).ask() == "NODATA 5 upstream"


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
    story = stale(NODE_CACHE)
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
    for number in range(10_000):
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
