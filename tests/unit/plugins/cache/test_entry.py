"""An entry of the cache: an answer packed and unpacked, its key and its age."""

import pytest

from tests.support.query_builders import ask
from topodns.dns.message import Edns, Flag, Option, Query, Response, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.cache.entry import AddressEntry, CacheEntry, Sort, address_entry_head, address_rrset, key_of, pack
from topodns.query.forwarded_options import ForwardedOption

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
