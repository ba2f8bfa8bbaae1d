"""Which answers are kept, for which questions, what of them, and which are refreshed before their TTL is over."""

import tracemalloc

import pytest

from tests.support.cache_with_upstream import CLIENT, Story, addresses, denied, failed, positive, question, soa, wire
from tests.support.dns_messages import RD
from topodns.dependency import service_fact
from topodns.dns.message import Ede, Flag, Query, Response, RRset
from topodns.dns.name import parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.cache.counts import CacheCounts
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.settings import Cache, Prefetch, Share
from topodns.query.counters import CacheHit
from topodns.query.plugin import Client, Resolution, Scope


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        pytest.param({}, {}, True, id="the same question"),
        pytest.param({}, {"text": "WWW.Example. A"}, True, id="another spelling"),
        pytest.param({}, {"flags": 0}, True, id="RD clear"),
        pytest.param({}, {"flags": RD | Flag.AD}, True, id="AD set"),
        pytest.param({}, {"text": "ww.example. A"}, False, id="another name"),
        pytest.param({}, {"text": "www.example. AAAA"}, False, id="another type"),
        pytest.param({}, {"text": "www.example. CH A"}, False, id="another class"),
        pytest.param({}, {"dnssec": True}, False, id="DO"),
        pytest.param({}, {"flags": RD | Flag.CD}, False, id="CD"),
        pytest.param({"flags": RD | Flag.CD}, {"dnssec": True}, False, id="DO, and not CD"),
    ],
)
def test_clients_that_share_a_cached_answer(first: dict[str, str], second: dict[str, str], shared: bool) -> None:
    story = Story(says=positive())
    story.ask(**first)  # type: ignore[arg-type]
    story.ask(**second)  # type: ignore[arg-type]
    assert story.times_asked == (1 if shared else 2)


def test_an_answer_to_a_query_without_rd_is_not_given_to_others() -> None:
    story = Story(says=positive())
    assert [story.ask(flags=0), story.ask()] == ["192.0.2.1 300 upstream"] * 2
    assert story.ask(flags=0) == "192.0.2.1 300 success"


@pytest.mark.parametrize(
    ("flags", "dnssec", "shown"),
    [(RD, False, False), (RD | Flag.AD, False, True), (RD, True, True)],
)
def test_ad_is_set_for_clients_that_ask_for_it(flags: int, dnssec: bool, shown: bool) -> None:
    said = positive()
    said.flags = Flag.RA | Flag.AD
    story = Story(says=said)
    story.ask(dnssec=dnssec)  # by another one, for whom it is kept with AD
    for _ in range(2):
        story.ask(flags=flags, dnssec=dnssec)
        assert bool(story.last.response.flags & Flag.AD) == shown
    assert story.times_asked == 1
    assert story.upstream.asked[0][0].flags & Flag.AD  # RFC 6840 section 5.7


@pytest.mark.parametrize("said", [Flag.RA, Flag.RA | Flag.AA, 0])
def test_a_kept_answer_has_aa_and_the_ra_of_the_upstream(said: int) -> None:
    response = positive()
    response.flags = said
    story = Story(says=response)
    story.ask()
    story.ask()
    assert story.last.response.flags == Flag.AA | said & Flag.RA


def test_flags_that_were_cleared_on_the_way_stay_so() -> None:
    def below(query: Query, client: Client) -> Resolution:
        response = Response(answer=(addresses(60, "192.0.2.1"),), flags=Flag.RA, cleared=Flag.RA)
        return Resolution(response, "forward", Scope.CLIENT, upstream="192.0.2.53:53")

    cache = ResponseCache(Cache(), Story().timers)
    asked = question("www.example. A")
    cache(asked, CLIENT, below)
    hit = cache(asked, CLIENT, below)
    assert isinstance(hit, Resolution)
    assert (hit.plugin, hit.response.flags) == ("cache", Flag.AA)


def test_the_edns_of_an_answer_is_not_kept() -> None:
    story = Story()
    said = Response(answer=(addresses(60, "192.0.2.1"),), ede=Ede(0, "from upstream"), options=((3, b"ns1"),))
    story.upstream.says = said
    story.ask()
    story.ask()
    assert (story.last.response.ede, story.last.response.options) == (None, ())


def test_every_record_comes_back_as_it_was() -> None:
    said = Response(
        answer=(
            RRset(b"", RRType.CNAME, 60, (wire("t.test."),)),
            RRset(wire("T.test."), RRType.AAAA, 60, (bytes(16), bytes(15) + b"\1")),
            RRset(wire("t.test."), 46, 60, (b"\0\x1c" + bytes(20),)),
        ),
        authority=(RRset(wire("test."), RRType.NS, 60, (wire("ns.test."),)), soa(60, 60, "test.")),
        additional=(addresses(60, "192.0.2.53", owner=wire("ns.test.")),),
    )
    story = Story(says=said)
    story.ask("www.example. AAAA")
    assert story.ask("www.example. AAAA").endswith("success")
    kept = story.last.response
    assert (kept.answer, kept.authority, kept.additional) == (said.answer, said.authority, said.additional)


def test_each_asker_gets_a_response_of_its_own() -> None:
    story = Story(says=positive())
    for _ in range(3):
        story.ask()
        story.last.response.answer = ()  # as a wrapper may
        story.last.response.rcode = Rcode.REFUSED
    assert story.ask() == "192.0.2.1 300 success"


@pytest.mark.parametrize(
    ("text", "cached"),
    [("www.example. A", True), ("example. A", True), ("www.test. A", False), ("anexample. A", False)],
)
def test_only_names_of_its_zones_are_kept(text: str, cached: bool) -> None:
    story = Story(Cache(origins=(parse_name("example."), parse_name("10.in-addr.arpa."))), positive(7200))
    assert story.ask(text) == f"192.0.2.1 {3600 if cached else 7200} upstream"
    assert story.ask(text).endswith("success" if cached else "upstream")


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (Cache(), {"a", "b", "x", "y"}),
        (Cache(success=Share(3600, disabled=(parse_name("a.test."),))), {"b", "x", "y"}),
        (Cache(denial=Share(1800, disabled=(parse_name("x.test."),))), {"a", "b", "y"}),
        (Cache(success=Share(3600, disabled=((),)), denial=Share(1800, disabled=((),))), set()),
    ],
)
def test_disable_is_for_a_sort_and_its_zones(settings: Cache, kept: set[str]) -> None:
    story = Story(settings)
    for name in ("a", "b", "x", "y"):
        story.upstream.says = positive() if name in "ab" else denied()
        story.ask(f"www.{name}.test. A")
    asked = story.times_asked
    found = {name for name in ("a", "b", "x", "y") if not story.ask(f"www.{name}.test. A").endswith("upstream")}
    assert (found, story.times_asked) == (kept, asked + 4 - len(kept))


def test_answers_from_memory_pass_through() -> None:
    story = Story(says=positive(5))
    story.upstream.name = ""
    assert [story.ask(), story.ask()] == ["192.0.2.1 5 upstream"] * 2
    assert (story.times_asked, story.cache.counts.misses) == (2, 0)


def test_their_ttls_are_capped_too() -> None:
    # As in CoreDNS, where they go through its cache.
    story = Story(Cache(success=Share(30), denial=Share(20)), positive(3600))
    story.upstream.name = ""
    assert story.ask() == "192.0.2.1 30 upstream"
    story.upstream.says = denied()
    assert story.ask() == "NXDOMAIN 20 upstream"


def test_an_answer_with_something_of_the_cluster_in_it_is_not_kept() -> None:
    given: list[Resolution] = []

    def below(query: Query, client: Client) -> Resolution:
        fact = service_fact("shop", "db")
        given.append(Resolution(positive(), "kubernetes", Scope.CLIENT, (fact,), upstream="192.0.2.53:53"))
        return given[-1]

    cache = ResponseCache(Cache(), Story().timers)
    for _ in range(3):
        assert cache(question("db.shop.svc.cluster.local. A"), CLIENT, below) is given[-1]
    assert len(given) == 3


def test_a_hit_has_its_kind_and_the_lifetime_of_its_copies() -> None:
    story = Story(says=positive(60))
    began = story.timers.time()
    story.ask()
    assert (story.last.plugin, story.last.valid_until) == ("forward", None)
    story.after(20.5)
    assert (story.last.plugin, story.last.detail, story.last.scope) == (
        "cache",
        CacheHit("success", "."),
        Scope.EVERYONE,
    )
    assert story.last.valid_until == began + 60


def test_an_upstream_is_counted_as_a_miss() -> None:
    story = Story(says=positive())
    for text in ("a. A", "b. A", "a. A", "a. A"):
        story.ask(text)
    assert (story.cache.counts.misses, story.times_asked) == (2, 2)
    assert (len(story.cache.memory.success), len(story.cache.memory.denial)) == (2, 0)


def test_the_servers_of_a_block_share_its_cache_and_count_apart() -> None:
    story, other = Story(says=positive()), CacheCounts()
    story.ask("a. A")
    story.cache = story.cache.counting(other)
    story.ask("a. A")
    assert (story.last.plugin, story.times_asked, other.misses) == ("cache", 1, 0)
    story.ask("b. A")
    assert (other.misses, len(story.cache.memory.success)) == (1, 2)


def test_a_hit_names_the_origins_of_the_cache() -> None:
    story = Story(Cache((parse_name("example."), parse_name("b.test."))), positive())
    story.ask()
    story.ask()
    assert story.last.detail == CacheHit("success", "example.,b.test.")


def test_a_message_larger_than_any_is_dropped() -> None:
    texts = tuple(b"\xff" + b"%255d" % number for number in range(300))
    story = Story(says=Response(answer=(RRset(b"", RRType.TXT, 60, texts),)))
    for _ in range(2):
        story.ask("www.example. TXT")
    assert (story.times_asked, story.cache.counts.drops, len(story.cache.memory.success)) == (2, 2, 0)


@pytest.mark.parametrize("said", [denied(), positive()])
def test_a_flood_of_random_names_takes_no_more_than_15_mb(said: Response) -> None:
    roomy = Cache(success=Share(3600, 5, 32_768), denial=Share(1800, 5, 32_768))
    story = Story(roomy)
    cache, asked = story.cache, question("a-random-name-of-thirty-octets.example. A")

    def below(query: Query, client: Client) -> Resolution:
        response = Response(said.rcode, said.answer, said.authority)
        return Resolution(response, "forward", Scope.CLIENT, upstream="192.0.2.53:53")

    tracemalloc.start()
    for number in range(20_000):
        spelling = b"\x1e%030d" % number + asked.spelling[31:]
        cache(asked._replace(spelling=spelling), CLIENT, below)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 15e6
    assert len(cache.memory.success) + len(cache.memory.denial) > 16_000


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
