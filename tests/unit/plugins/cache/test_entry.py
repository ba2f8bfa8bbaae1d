"""An entry of the cache: which answers make one, its TTL and age (RFC 1035, RFC 2308), its key, packed and unpacked."""

import pytest

from tests.support.cache_with_upstream import Story, addresses, alias, denied, failed, positive, soa, wire
from tests.support.query_builders import ask
from topodns.dns.message import Edns, Flag, Option, Query, Response, RRset
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRType
from topodns.plugins.cache.entry import AddressEntry, CacheEntry, Sort, address_entry_head, address_rrset, key_of, pack
from topodns.plugins.cache.settings import Cache, Share
from topodns.query.plugin import ForwardedOption

ADDRESS = RRset(b"", RRType.A, 300, (bytes(4), b"\1\2\3\4"))
AUTHORITY = RRset(b"\7example\0", RRType.NS, 7, (b"\2ns\0",))
ADDITIONAL = RRset(b"\2ns\0", RRType.AAAA, 9, (bytes(16),), 3)


def test_an_entry_gives_the_response_back_with_one_ttl_and_aa() -> None:
    given = Response(
        Rcode.NXDOMAIN,
        (ADDRESS,),
        (AUTHORITY,),
        (ADDITIONAL,),
        Flag.RA | Flag.AD | Flag.TC,
        cleared=Flag.AD,
        options=((Option.NSID, b"a"),),
    )
    assert CacheEntry(pack(given), Sort.DENIAL, 30, 0.0).response(12) == Response(
        Rcode.NXDOMAIN,
        (ADDRESS._replace(ttl=12),),
        (AUTHORITY._replace(ttl=12),),
        (ADDITIONAL._replace(ttl=12),),
        Flag.RA | Flag.AA,
    )


@pytest.mark.parametrize("flags", [0, Flag.RA, Flag.RA | Flag.AD, Flag.AA | Flag.RA | Flag.TC])
@pytest.mark.parametrize(
    "rrset",
    [
        RRset(b"", RRType.A, 300, (b"\1\2\3\4",)),
        RRset(b"", RRType.A, 300, (bytes(4), b"\1\2\3\4", bytes(4))),
        RRset(b"", RRType.AAAA, 300, (bytes(16), bytes(range(16)))),
    ],
)
def test_an_entry_of_addresses_gives_the_response_that_any_other_entry_gives(rrset: RRset, flags: int) -> None:
    packed = address_entry_head(flags, rrset.rtype) + b"".join(rrset.rdatas)
    general = CacheEntry(pack(Response(answer=(rrset,), flags=flags)), Sort.SUCCESS, 300, 0.0)
    assert AddressEntry(packed, Sort.SUCCESS, 300, 0.0).response(12) == general.response(12)
    assert address_rrset(packed, 300) == rrset


def test_age_and_remaining_ttl_are_in_whole_seconds() -> None:
    entry = CacheEntry(b"", Sort.SUCCESS, 5, 100.5)
    assert [(entry.ticks(now), entry.left(now)) for now in (100.5, 101.4, 101.5, 110.5)] == [
        (0, 5),
        (0, 5),
        (1, 4),
        (10, -5),
    ]


def test_a_new_entry_has_the_hits_of_the_one_before() -> None:
    before, after = (CacheEntry(b"", Sort.SUCCESS, 5, born) for born in (1.0, 2.0))
    before.history.hits = 3
    after.succeed(before)
    assert (after.history.hits, after.history.last_asked) == (3, 2.0)


KEY = key_of(ask("www.example.org"))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (ask("WWW.example.org"), True),
        (ask("www.example.org")._replace(flags=0), True),
        (ask("www.example.org")._replace(edns=Edns(512, 0, False)), True),
        (ask("www.example.org")._replace(flags=Flag.RD | Flag.CD), False),
        (ask("www.example.org")._replace(edns=Edns(512, 0, False, ((9, b"of the client"),))), True),
        (ask("www.example.org")._replace(edns=Edns(512, 0, False, (ForwardedOption(9, b""),))), False),
        (ask("www.example.org")._replace(edns=Edns(512, 0, True)), False),
        (ask("www.example.org")._replace(qtype=RRType.AAAA), False),
        (ask("www.example.org")._replace(qclass=3), False),
        (ask("ww.example.org"), False),
    ],
)
def test_queries_that_an_upstream_may_answer_differently_have_keys_of_their_own(other: Query, same: bool) -> None:
    assert (key_of(other) == KEY) is same


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
