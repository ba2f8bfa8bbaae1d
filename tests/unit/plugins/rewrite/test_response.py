"""The response to a rewritten query: its name, its properties and names in its records, at once or deferred."""

from dataclasses import replace
from struct import pack

import pytest

from tests.support.query_builders import ask, client
from tests.support.rewrite_directives import line, question, response, rules
from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import Rcode
from topodns.plugins.rewrite.handler import Rewriter
from topodns.plugins.rewrite.response import ResponseReverter, RewrittenResponse, TtlBounds, rename_value
from topodns.query.deferred import Outcome, pursue
from topodns.query.plugin import Client, Dropped, Resolution, Scope


def test_the_properties_of_the_answer_are_kept() -> None:
    given = Resolution(response(["@ 5 A 10.0.0.1"]), "forward", Scope.NODE, upstream="10.0.0.10:53", valid_until=7.0)

    def below(query: Query, client: Client) -> Resolution:
        return given

    seen = Rewriter(rules("rewrite name a.com b.org"))(question("a.com. A"), client(), below)
    assert isinstance(seen, Resolution)
    assert (seen.plugin, seen.scope, seen.upstream, seen.valid_until) == ("forward", Scope.NODE, "10.0.0.10:53", 7.0)


def test_an_answer_that_must_be_waited_for_is_turned_back_when_it_is_there() -> None:
    outcome: Outcome[Resolution] = Outcome()
    seen: list[Resolution] = []

    async def below(query: Query, client: Client) -> Resolution:
        return await outcome

    answered = Rewriter(rules("rewrite name suffix com org answer auto"))(question("a.com. A"), client(), below)
    assert not isinstance(answered, Resolution)
    pursue(answered, seen.append)
    assert seen == []
    outcome.settle(Resolution(response(["@ 5 CNAME x.org.", "x.org. 5 A 10.0.0.1"]), "forward"))
    assert list(map(line, seen[0].response.answer)) == ["@ 5 CNAME x.com.", "x.com. 5 A 10.0.0.1"]


def test_so_is_one_whose_names_are_none_any_more() -> None:
    labels = ".".join(["a" * 60] * 4 + ["b" * 5])

    async def below(query: Query, client: Client) -> Resolution:
        return Resolution(response([f"@ 5 CNAME {labels}.b."]), "forward")

    seen: list[Resolution] = []
    answered = Rewriter(rules("rewrite name suffix .cccc .b answer auto"))(question("x.cccc. A"), client(), below)
    assert not isinstance(answered, Resolution)
    pursue(answered, seen.append)
    assert seen[0].response.rcode == Rcode.SERVFAIL


def test_without_anything_to_turn_back_the_course_below_is_the_answer() -> None:
    async def below(query: Query, client: Client) -> Resolution:
        return Resolution(Response(), "forward")

    course = below(question("a.com. A"), client())
    rewriter = Rewriter(rules("rewrite type A AAAA"))
    assert rewriter(question("a.com. A"), client(), lambda query, client: course) is course
    course.close()


def test_a_query_that_is_dropped_below_stays_so() -> None:
    def below(query: Query, client: Client) -> Resolution:
        assert query.qname == parse_name("b.org")
        raise Dropped("acl")

    with pytest.raises(Dropped):
        Rewriter(rules("rewrite name a.com b.org"))(question("a.com. A"), client(), below)


def test_a_response_is_reverted_only_where_a_rule_calls_for_it() -> None:
    assert not reverter().needed
    assert all(reverter(**{name: True}).needed for name in ("renamed", "client_dependent", "subnet_forwarded"))
    assert reverter(amendments=[TtlBounds(5, 7)]).needed


def reverter(**properties: object) -> ResponseReverter:
    return ResponseReverter(ask("a.example"), client(), **properties)  # type: ignore[arg-type]  # its own fields


def test_a_change_is_of_the_records_of_all_sections() -> None:
    one = RRset(b"", 1, 5, (bytes(4),))
    response = Response(answer=(one,), authority=(one, one), additional=(one,))
    RewrittenResponse(Resolution(response, "forward")).replace(lambda rrset: rrset._replace(ttl=7))
    other = one._replace(ttl=7)
    assert response == replace(response, answer=(other,), authority=(other, other), additional=(other,))


@pytest.mark.parametrize(
    ("rtype", "before"),
    [
        pytest.param(2, b"", id="NS"),
        pytest.param(5, b"", id="CNAME"),
        pytest.param(12, b"", id="PTR"),
        pytest.param(39, b"", id="DNAME"),
        pytest.param(15, pack("!H", 10), id="MX"),
        pytest.param(33, pack("!HHH", 10, 20, 443), id="SRV"),
        pytest.param(35, pack("!HH", 1, 2) + b"\x01s" + b"\x03sip" + b"\x00", id="NAPTR"),
    ],
)
def test_the_name_in_rdata_is_found(rtype: int, before: bytes) -> None:
    renamed = rename_value(rtype, before + name_wire(("a", "com")), lambda name: "longer." + name)
    assert renamed == before + name_wire(("longer", "a", "com"))


def test_of_an_soa_only_the_primary_is_renamed() -> None:
    primary, rest = name_wire(("ns", "a")), name_wire(("mail", "a")) + bytes(20)
    assert rename_value(6, primary + rest, lambda name: "b.") == name_wire(("b",)) + rest
