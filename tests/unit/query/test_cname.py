"""Answers that end in a CNAME, completed with the records of its target."""

from collections.abc import Callable

import pytest

from tests.support.deferred_results import at_once
from tests.support.query_builders import ask, client
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.name import Name, name_wire, parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.query.cname import MAX_TARGETS, follow, follow_each, owned
from topodns.query.plugin import Answered, Client, Dropped, Resolution, Scope

TARGET = parse_name("www.example.org")
CNAME = RRset(b"", RRType.CNAME, 5, (name_wire(TARGET),))
ADDRESS = RRset(b"", RRType.A, 30, (bytes(4),))
NS = RRset(b"\x01z\0", RRType.NS, 5, (b"\0",))
SOA = RRset(b"\x01z\0", RRType.SOA, 5, (bytes(22),))
OTHER_SOA = RRset(b"", RRType.SOA, 9, (bytes(21) + b"\7",))
QUERY = ask("a.cluster.local")


def resolution() -> Resolution:
    return Resolution(Response(answer=(CNAME,), authority=(NS,)), "file")


def there(name: Name, qtype: int, asker: Client) -> Answered:
    """The answer of another server block: truncated, with one address."""
    assert (name, qtype) == (TARGET, QUERY.qtype)
    return Resolution(Response(Rcode.NXDOMAIN, (ADDRESS,), flags=Flag.TC | Flag.AD), "forward")


async def later(name: Name, qtype: int, asker: Client) -> Resolution:
    answered = there(name, qtype, asker)
    assert isinstance(answered, Resolution)
    return answered


def test_the_records_of_the_target_follow_the_cname_and_the_answer_is_never_kept() -> None:
    for chase in (there, later):
        joined = at_once(follow(TARGET, resolution(), QUERY, client(), chase))
        assert joined.response.answer == (CNAME, ADDRESS._replace(owner=name_wire(TARGET)))
        assert (joined.response.rcode, joined.scope) == (Rcode.NOERROR, Scope.CLIENT)
        assert joined.response.flags == Flag.AA | Flag.TC


def dropping(name: Name, qtype: int, asker: Client) -> Answered:
    raise Dropped("acl")


async def dropping_later(name: Name, qtype: int, asker: Client) -> Resolution:
    raise Dropped("acl")


@pytest.mark.parametrize("chase", [dropping, dropping_later])
def test_where_a_filter_drops_the_target_the_cname_is_the_answer(chase: Callable[..., Answered]) -> None:
    joined = at_once(follow(TARGET, resolution(), QUERY, client(), chase))
    assert (joined.response.answer, joined.response.rcode) == ((CNAME,), Rcode.NOERROR)
    assert joined.scope is Scope.CLIENT


@pytest.mark.parametrize(("depth", "asked"), [(0, MAX_TARGETS), (1, 1), (7, 1)])
def test_of_many_targets_those_of_the_query_itself_are_followed_and_below_one_each(depth: int, asked: int) -> None:
    targets = [parse_name(f"h{number}.example.org") for number in range(MAX_TARGETS + 5)]
    found: list[Name] = []

    def chase(name: Name, qtype: int, asker: Client) -> Answered:
        found.append(name)
        return Resolution(Response(answer=(ADDRESS,)), "forward")

    at_once(follow_each(targets, resolution(), QUERY, client()._replace(depth=depth), chase))
    assert found == targets[:asked]


def followed(response: Response) -> Response:
    """A CNAME of a zone file, completed with this response for its target."""
    joined = follow(TARGET, resolution(), QUERY, client(), lambda *_: Resolution(response, "forward"), SOA)
    return at_once(joined).response


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (Rcode.NXDOMAIN, Rcode.NXDOMAIN),
        (Rcode.SERVFAIL, Rcode.SERVFAIL),
        (Rcode.REFUSED, Rcode.NOERROR),
        (Rcode.NOTIMP, Rcode.NOERROR),
    ],
)
def test_nxdomain_and_servfail_of_the_target_are_those_of_an_alias_in_a_zone(there: int, here: int) -> None:
    assert followed(Response(there)).rcode == here


DENIALS = {
    "no such name": Response(Rcode.NXDOMAIN, authority=(OTHER_SOA,)),
    "no such record": Response(authority=(OTHER_SOA,)),
    "no such record behind another alias": Response(answer=(CNAME,), authority=(OTHER_SOA,)),
}
NO_DENIALS = {
    "an address": Response(answer=(ADDRESS,), authority=(NS,)),
    "another alias alone": Response(answer=(CNAME,)),
    "a referral": Response(authority=(NS,)),
    "a truncated answer": Response(flags=Flag.TC),
    "a failure": Response(Rcode.SERVFAIL),
    "a refusal": Response(Rcode.REFUSED),
}


@pytest.mark.parametrize("denial", DENIALS.values(), ids=DENIALS)
def test_a_denial_behind_an_alias_of_a_zone_has_the_soa_of_the_denial(denial: Response) -> None:
    """With the negative TTL, here its MINIMUM."""
    assert followed(denial).authority == (OTHER_SOA._replace(owner=name_wire(TARGET), ttl=7),)


@pytest.mark.parametrize("rcode", [Rcode.NXDOMAIN, Rcode.NOERROR])
def test_a_denial_without_a_soa_gets_that_of_the_alias(rcode: int) -> None:
    assert followed(Response(rcode)).authority == (SOA,)


@pytest.mark.parametrize("response", NO_DENIALS.values(), ids=NO_DENIALS)
def test_the_authority_stays_that_of_the_zone_where_nothing_is_denied(response: Response) -> None:
    assert followed(response).authority == (NS,)


def test_without_a_block_for_the_target_the_cname_is_the_answer() -> None:
    given = resolution()
    assert follow(TARGET, given, QUERY, client(), None) is given
    assert follow(TARGET, given, QUERY, client(), lambda *_: None) is given
    assert given.scope is Scope.EVERYONE


def test_only_records_at_the_question_s_name_get_an_owner() -> None:
    other = ADDRESS._replace(owner=b"\1x\0")
    assert owned((ADDRESS, other), b"\1y\0") == (ADDRESS._replace(owner=b"\1y\0"), other)
