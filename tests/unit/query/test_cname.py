"""Answers that end in a CNAME, completed with the records of its target."""

from tests.support.deferred_results import at_once
from tests.support.query_builders import ask, client
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.name import Name, name_wire, parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.query.cname import follow, owned
from topodns.query.plugin import Answered, Client, Resolution, Scope

TARGET = parse_name("www.example.org")
CNAME = RRset(b"", RRType.CNAME, 5, (name_wire(TARGET),))
ADDRESS = RRset(b"", RRType.A, 30, (bytes(4),))
QUERY = ask("a.cluster.local")


def resolution() -> Resolution:
    return Resolution(Response(answer=(CNAME,)), "file")


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


def test_the_rcode_of_the_target_is_taken_where_it_is_wanted() -> None:
    assert at_once(follow(TARGET, resolution(), QUERY, client(), there, rcode=True)).response.rcode == Rcode.NXDOMAIN


def test_without_a_block_for_the_target_the_cname_is_the_answer() -> None:
    given = resolution()
    assert follow(TARGET, given, QUERY, client(), None) is given
    assert follow(TARGET, given, QUERY, client(), lambda *_: None) is given
    assert given.scope is Scope.EVERYONE


def test_only_records_at_the_question_s_name_get_an_owner() -> None:
    other = ADDRESS._replace(owner=b"\1x\0")
    assert owned((ADDRESS, other), b"\1y\0") == (ADDRESS._replace(owner=b"\1y\0"), other)
