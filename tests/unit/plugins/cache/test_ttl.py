"""Time passes, and entries grow old: RFC 1035, RFC 2308, and CoreDNS's one TTL for a whole answer."""

import pytest

from tests.support.cache_with_upstream import Story, addresses, alias, denied, failed, positive, soa, wire
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRType
from topodns.plugins.cache.settings import Cache, Share


def test_an_answer_counts_down_and_is_asked_for_anew_when_its_ttl_is_over() -> None:
    story = Story(says=positive(300))
    assert story.ask() == "192.0.2.1 300 upstream"
    assert story.ask() == "192.0.2.1 300 success"
    assert story.after(0.9) == "192.0.2.1 300 success"
    assert story.after(0.2) == "192.0.2.1 299 success"
    assert story.after(298.8) == "192.0.2.1 1 success"
    assert story.after(0.2) == "192.0.2.1 300 upstream"
    assert story.times_asked == 2


@pytest.mark.parametrize(
    ("ttl", "share", "given"),
    [
        (300, Share(3600), 300),
        (86_400, Share(3600), 3600),
        (300, Share(30), 30),
        (3, Share(3600), 5),
        (3, Share(3600, 0), 3),
        (3, Share(3600, 60), 60),
        (3, Share(30, 60), 30),  # the longest wins
    ],
)
def test_the_ttl_is_held_between_the_shortest_and_the_longest(ttl: int, share: Share, given: int) -> None:
    story = Story(Cache(success=share), positive(ttl))
    assert [story.ask(), story.ask()] == [f"192.0.2.1 {given} upstream", f"192.0.2.1 {given} success"]
    assert story.after(given) == f"192.0.2.1 {given} upstream"


def test_all_records_get_the_smallest_ttl_of_the_message() -> None:
    target = wire("target.example.")
    story = Story(
        says=Response(
            answer=(alias(300, "target.example."), addresses(200, "192.0.2.1", "192.0.2.2", owner=target)),
            authority=(RRset(wire("example."), RRType.NS, 100, (wire("ns.example."),)),),
            additional=(addresses(40, "192.0.2.53", owner=wire("ns.example.")),),
        )
    )
    assert story.ask() == "192.0.2.1 192.0.2.2 40 upstream"
    asked = story.last.response
    assert story.after(10) == "192.0.2.1 192.0.2.2 30 success"
    kept = story.last.response
    for section in ("answer", "authority", "additional"):
        assert getattr(kept, section) == tuple(rrset._replace(ttl=30) for rrset in getattr(asked, section))


@pytest.mark.parametrize("rcode", [Rcode.NXDOMAIN, Rcode.NOERROR])
@pytest.mark.parametrize(
    ("ttl", "minimum", "given"), [(300, 3600, 300), (3600, 300, 300), (86_400, 86_400, 1800), (900, 2, 5)]
)
def test_a_denial_lives_by_its_soa(rcode: int, ttl: int, minimum: int, given: int) -> None:
    story = Story(says=denied(rcode, ttl, minimum))
    shown = "NXDOMAIN" if rcode else "NODATA"
    assert [story.ask(), story.ask()] == [f"{shown} {given} upstream", f"{shown} {given} denial"]
    assert story.after(given - 0.5) == f"{shown} 1 denial"
    assert story.after(0.5) == f"{shown} {given} upstream"


def test_an_alias_of_a_name_without_such_records_is_a_denial() -> None:
    story = Story(says=Response(answer=(alias(600, "other.test."),), authority=(soa(400, 400),)))
    assert [story.ask(), story.ask()] == ["NODATA 400 upstream", "NODATA 400 denial"]


def test_an_alias_of_a_name_that_does_not_exist_is_a_denial() -> None:
    story = Story(says=Response(Rcode.NXDOMAIN, (alias(60, "other.test."),), (soa(400, 400),)))
    assert [story.ask(), story.ask()] == ["NXDOMAIN 60 upstream", "NXDOMAIN 60 denial"]


@pytest.mark.parametrize("rcode", [Rcode.SERVFAIL, Rcode.NOTIMP])
@pytest.mark.parametrize(("servfail", "alive"), [(5, True), (60, True), (0, False)])
def test_a_failure_is_kept_as_long_as_servfail_says(rcode: int, servfail: int, alive: bool) -> None:
    story = Story(Cache(servfail=servfail), failed(rcode))
    assert story.ask() == f"{RCODE_NAMES[rcode]} upstream"
    assert story.ask() == f"{RCODE_NAMES[rcode]} {'denial' if alive else 'upstream'}"
    assert story.after(servfail) == f"{RCODE_NAMES[rcode]} upstream"


def test_a_failure_goes_when_there_is_an_answer() -> None:
    story = Story(says=None)
    story.ask()
    story.ask()  # both are on their way
    story.upstream.reply(failed(), positive())
    assert story.ask() == "192.0.2.1 300 success"


def test_a_failure_does_not_hide_a_good_answer() -> None:
    story = Story(says=None)
    story.ask()
    story.ask()
    story.upstream.reply(positive(), failed())
    assert story.ask() == "192.0.2.1 300 success"


def test_with_keepttl_the_ttl_stays_and_the_answer_still_goes() -> None:
    story = Story(Cache(keepttl=True), positive(60))
    story.ask()
    assert story.after(59.5) == "192.0.2.1 60 success"
    assert story.after(0.5) == "192.0.2.1 60 upstream"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param(positive(0), "192.0.2.1 0", id="a TTL of 0"),
        pytest.param(Response(flags=Flag.TC | Flag.RA, answer=positive().answer), "192.0.2.1 300", id="truncated"),
        pytest.param(failed(Rcode.REFUSED), "REFUSED", id="REFUSED"),
        pytest.param(failed(Rcode.FORMERR), "FORMERR", id="FORMERR"),
        pytest.param(Response(Rcode.NXDOMAIN), "NXDOMAIN", id="NXDOMAIN without an SOA"),
        pytest.param(Response(), "NODATA", id="NODATA without an SOA"),
        pytest.param(denied(ttl=0), "NXDOMAIN 0", id="an SOA with a TTL of 0"),
        pytest.param(denied(minimum=0), "NXDOMAIN 300", id="an SOA with a MINIMUM of 0"),
        pytest.param(
            Response(authority=(RRset(wire("example."), RRType.NS, 300, (wire("ns.example."),)),)),
            "NODATA 300",
            id="a referral",
        ),
        pytest.param(Response(answer=(alias(300, "other.test."),)), "NODATA 300", id="an alias of nothing"),
        pytest.param(
            Response(answer=(alias(300, "b.test."), alias(300, "www.example.", wire("b.test.")))),
            "NODATA 300",
            id="aliases in a circle",
        ),
        pytest.param(
            Response(
                answer=(alias(9, "b.test."), alias(9, "c.test."), addresses(9, "192.0.2.1", owner=wire("b.test.")))
            ),
            "192.0.2.1 9",
            id="two aliases of one name",
        ),
        pytest.param(
            Response(answer=(addresses(9, "192.0.2.1", owner=wire("b.test.")),)), "192.0.2.1 9", id="of another name"
        ),
    ],
)
def test_responses_that_answer_only_their_own_query(said: Response, shown: str) -> None:
    story = Story(says=said)
    assert [story.ask(), story.ask(), story.ask()] == [f"{shown} upstream"] * 3
    assert (len(story.cache.memory.success), len(story.cache.memory.denial)) == (0, 0)


def test_the_ttl_of_an_uncached_answer_is_capped_too() -> None:
    refused = Response(Rcode.REFUSED, answer=(addresses(86_400, "192.0.2.1"),), authority=(soa(60, 60),))
    story = Story(Cache(success=Share(30)), refused)
    assert [story.ask(), story.ask()] == ["192.0.2.1 30 upstream"] * 2
    assert {rrset.ttl for rrset in (*story.last.response.answer, *story.last.response.authority)} == {30}
