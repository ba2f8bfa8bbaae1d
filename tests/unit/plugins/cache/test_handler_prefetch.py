"""Popular answers are refreshed before their TTL is over."""

import pytest

from tests.support.cache_with_upstream import Story, denied, failed, positive
from topodns.dns.message import Flag, Response
from topodns.plugins.cache.settings import Cache, Prefetch
from topodns.query.plugin import Scope

THRICE = Cache(prefetch=Prefetch(3))


def popular(settings: Cache = THRICE, ttl: int = 100, hits: int = 3) -> Story:
    """A story in which www.example. was fetched, and asked for so often from then on."""
    story = Story(settings, positive(ttl))
    story.ask()
    for _ in range(hits):
        story.ask()
    story.upstream.says = None
    return story


def test_a_popular_answer_is_refreshed_once_in_the_last_tenth_of_its_ttl() -> None:
    story = popular()
    assert story.after(45) == "192.0.2.1 55 success"
    assert story.after(44.9) == "192.0.2.1 11 success"
    assert story.times_asked == 1
    assert [story.after(0.1), story.ask(), story.ask()] == ["192.0.2.1 10 success"] * 3
    assert (story.times_asked, story.cache.counts.prefetches) == (2, 1)
    story.upstream.reply(positive(100, "192.0.2.2"))
    assert story.ask() == "192.0.2.2 100 success"
    assert story.times_asked == 2


@pytest.mark.parametrize(("hits", "asked"), [(0, 1), (1, 1), (2, 2), (3, 2)])
def test_the_asking_in_the_last_tenth_counts_too(hits: int, asked: int) -> None:
    story = popular(Cache(prefetch=Prefetch(3, window=600)), hits=hits)
    assert story.after(95) == "192.0.2.1 5 success"
    assert story.times_asked == asked


def test_popularity_ends_with_a_gap() -> None:
    story = popular()
    story.after(61)  # counts as the first one again
    story.after(30)
    assert story.times_asked == 1
    story.ask()
    assert story.times_asked == 2


def test_popularity_outlives_a_refresh() -> None:
    story = popular()
    story.after(50)
    story.after(40)
    story.upstream.reply(positive(50, "192.0.2.2"))
    story.after(45)
    assert story.times_asked == 3


@pytest.mark.parametrize(("percentage", "ttl", "begins_at"), [(10, 100, 90), (90, 100, 10), (10, 5, 4), (25, 10, 7)])
def test_where_the_last_part_begins(percentage: int, ttl: int, begins_at: int) -> None:
    settings = Cache(prefetch=Prefetch(1, percentage=percentage))
    for age, asked in ((begins_at - 0.1, 1), (begins_at, 2)):
        story = popular(settings, ttl)
        story.timers.advance(min(age, 50))
        story.ask()
        story.after(age - min(age, 50))
        assert story.times_asked == asked


@pytest.mark.parametrize("news", [failed(), Response(flags=Flag.TC)])
def test_a_refresh_that_fails_leaves_the_answer_and_is_tried_again(news: Response) -> None:
    story = popular(ttl=10)
    story.upstream.says = news
    assert [story.after(9), story.ask()] == ["192.0.2.1 1 success"] * 2
    assert story.times_asked == 3
    assert story.after(1) != "192.0.2.1 1 success"


def test_a_refresh_may_bring_that_the_name_is_gone() -> None:
    story = popular(ttl=10)
    story.upstream.says = denied()
    story.after(9)
    assert story.ask() == "NXDOMAIN 300 denial"


def test_a_popular_answer_is_copied_to_the_packet_cache_until_a_refresh_is_due() -> None:
    story = Story(Cache(prefetch=Prefetch(2, window=60)), positive(100))
    story.ask()
    began = story.timers.time()
    story.ask()
    assert (story.last.scope, story.last.valid_until) == (Scope.CLIENT, None)  # to be seen asking again
    story.after(10.25)
    assert (story.last.scope, story.last.valid_until) == (Scope.EVERYONE, began + 10 + 30)  # half a window
    story.after(59.75)
    assert (story.last.scope, story.last.valid_until) == (Scope.EVERYONE, began + 90)
    story.upstream.says = None
    story.after(20)
    assert (story.last.scope, story.last.valid_until) == (Scope.CLIENT, None)  # a refresh is under way
