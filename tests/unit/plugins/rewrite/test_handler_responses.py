"""`rewrite type`, `class`, `ttl` and `rcode`; and properties of all rules: the scope of the answer, and waiting."""

import pytest

from tests.support.query_builders import client
from tests.support.rewrite_directives import line, question, response, rules
from topodns.dns.message import Query, Response
from topodns.dns.name import parse_name
from topodns.dns.rrtype import Rcode
from topodns.plugins.rewrite.handler import Rewriter
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
