"""`rewrite name`: what the steps below are asked, and what the client finds in the answer."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.query_builders import client
from tests.support.rewrite_directives import Setup, asked, line, question, resolve, response, rrset, rules
from topodns.dns.message import Response
from topodns.dns.name import name_text, name_wire, parse_name, wire_labels
from topodns.plugins.rewrite.handler import Rewriter
from topodns.query.plugin import Resolution, Scope


class Case(NamedTuple):
    """@ is the name of the query: below, the rewritten one; above, the client's own as it spelled it."""

    lines: str
    question: str
    below: str
    answer: str = "@ 5 A 10.0.0.1"
    sees: str = "@ 5 A 10.0.0.1"


UNREVERTED = "svc.consul. 5 A 10.0.0.1"

QUERIES = {
    "exact is the default": Case("rewrite name a.com b.org", "a.com. A", "b.org. A"),
    "case means nothing": Case("rewrite name exact A.com B.org", "a.COM. A", "b.org. A"),
    "exact is not for names below": Case("rewrite name a.com b.org", "x.a.com. A", "x.a.com. A"),
    "the final dot means nothing": Case("rewrite stop name a.com. b.org.", "a.com. A", "b.org. A"),
    "the root is a name": Case("rewrite name . b.org", ". A", "b.org. A"),
    "a prefix ends with a dot": Case(
        "rewrite name prefix foo bar answer auto", "foo.example.com. A", "bar.example.com. A"
    ),
    "so it is not that of a longer label": Case(
        "rewrite name prefix foo bar", "foot.example.com. A", "foot.example.com. A"
    ),
    "a suffix may begin inside a label": Case(
        "rewrite name suffix com org answer auto", "foo.telecom. A", "foo.teleorg. A"
    ),
    "or before its dot": Case(
        "rewrite name suffix .schmoogle.com. .google.com. answer auto", "a.schmoogle.com. A", "a.google.com. A"
    ),
    "and then there is something before it": Case(
        "rewrite name suffix .schmoogle.com. .google.com.", "schmoogle.com. A", "schmoogle.com. A"
    ),
    "substring": Case("rewrite name substring svc.one svc.two answer auto", "a.svc.one. AAAA", "a.svc.two. AAAA"),
    "every substring is replaced": Case("rewrite name substring b. c. answer auto", "ab.b.com. A", "ac.c.com. A"),
    "regex with groups": Case(
        r"rewrite name regex (.*)-(us-west-1)\.example\.org {1}.service.{2}.consul answer auto",
        "ftp-us-west-1.example.org. A",
        "ftp.service.us-west-1.consul. A",
    ),
    "group 0 is all that was found": Case(
        r"rewrite name regex (.*)\.one {0}.{1}.two answer auto", "a.one. A", "a.one.a.two. A"
    ),
    "a group that took no part is empty": Case(
        r"rewrite name regex ^(a)?(.*)\.one\.$ x{1}y{2}.two answer auto", "b.one. A", "xyb.two. A"
    ),
    "what a group found is not filled in again": Case(
        r"rewrite name regex (.*)\.one\.(.*)\. {1}{2}.two answer auto", "{2}.one.x. A", "{2}x.two. A"
    ),
    "a regex is found anywhere and the whole name replaced": Case(
        r"rewrite name regex one two answer auto", "a.one.b. A", "two. A"
    ),
}


@pytest.mark.parametrize("case", QUERIES.values(), ids=QUERIES)
def test_the_steps_below_are_asked_another_name_and_the_client_sees_its_own(case: Case) -> None:
    _check(case)


ANSWERS = {
    "without answer, the owner is the name that was looked up": Case(
        "rewrite name suffix .rocks .consul", "svc.rocks. A", "svc.consul. A", sees=UNREVERTED
    ),
    "auto turns it back": Case("rewrite name suffix .rocks .consul answer auto", "svc.rocks. A", "svc.consul. A"),
    "by suffix, that of any name": Case(
        "rewrite name suffix .rocks .consul answer auto",
        "svc.rocks. SRV",
        "svc.consul. SRV",
        "@ 5 CNAME A.other.CONSUL.",
        "@ 5 CNAME a.other.rocks.",
    ),
    "else that of the name and names below it": Case(
        "rewrite name a.com b.org",
        "a.com. A",
        "b.org. A",
        "@ 5 CNAME x.b.org.; x.b.org. 5 CNAME ab.org.; ab.org. 5 A 10.0.0.1",
        "@ 5 CNAME x.a.com.; x.a.com. 5 CNAME ab.org.; ab.org. 5 A 10.0.0.1",
    ),
    "answer name says itself what owners become": Case(
        r"rewrite name regex (.*)\.rocks {1}.maps answer name (.*)\.maps {1}.works",
        "a.rocks. A",
        "a.maps. A",
        sees="a.works. 5 A 10.0.0.1",
    ),
    "and leaves values alone": Case(
        "rewrite stop {\n name regex (.*)\\.rocks {1}.maps\n answer name (.*)\\.maps {1}.rocks\n}",
        "a.rocks. A",
        "a.maps. A",
        "@ 5 CNAME b.maps.; b.maps. 5 A 10.0.0.1",
        "@ 5 CNAME b.maps.; b.rocks. 5 A 10.0.0.1",
    ),
    "answer value renames what records point at": Case(
        "rewrite {\n name suffix .arpa .arpa\n answer name auto\n answer value (.*)\\.svc\\. {1}.rocks\n}",
        "1.0.10.in-addr.arpa. PTR",
        "1.0.10.in-addr.arpa. PTR",
        "@ 60 PTR ftp.svc.",
        "@ 60 PTR ftp.rocks.",
    ),
    "of several answer rules the last is first": Case(
        r"rewrite name exact a.com b.org answer value (.*)\.b\.org\. {1}.c.net. value (.*)\.x\. {1}.b.org.",
        "a.com. A",
        "b.org. A",
        "@ 5 CNAME t.x.",
        "@ 5 CNAME t.c.net.",
    ),
    "several rules are turned back in reverse": Case(
        "rewrite continue name suffix .one .two answer auto\nrewrite name exact a.two b.three",
        "a.one. A",
        "b.three. A",
        "@ 5 CNAME x.b.three.",
        "@ 5 CNAME x.a.one.",
    ),
    "the first match is the last without continue": Case(
        "rewrite name a.com b.org\nrewrite name b.org c.net", "a.com. A", "b.org. A"
    ),
    "rules that do not match stop nothing": Case(
        "rewrite continue name x.com b.org\nrewrite name a.com c.net", "a.com. A", "c.net. A"
    ),
    "the client's name in the answer is spelled as it spelled it": Case(
        "rewrite name a.com b.org",
        "A.com. A",
        "b.org. A",
        "@ 5 CNAME a.com.; a.com. 5 A 10.0.0.1",
        "@ 5 CNAME a.com.; @ 5 A 10.0.0.1",
    ),
}


@pytest.mark.parametrize("case", ANSWERS.values(), ids=ANSWERS)
def test_names_in_the_answer(case: Case) -> None:
    _check(case)


def _check(case: Case) -> None:
    setup = Setup(response(case.answer.split("; ")))
    resolution = resolve(case.lines, question(case.question), setup)
    assert list(map(asked, setup.queries)) == [case.below]
    assert "; ".join(map(line, resolution.response.answer)) == case.sees
    assert resolution.scope is Scope.EVERYONE


def test_authority_and_additional_are_renamed_too() -> None:
    setup = Setup(
        Response(authority=(rrset("consul. 5 NS ns.consul."),), additional=(rrset("ns.consul. 5 A 10.0.0.53"),))
    )
    renamed = resolve("rewrite name suffix consul-x consul answer auto", question("a.consul-x. A"), setup).response
    assert [*map(line, renamed.authority), *map(line, renamed.additional)] == [
        "consul-x. 5 NS ns.consul-x.",
        "ns.consul-x. 5 A 10.0.0.53",
    ]


def test_a_name_that_no_rule_is_for_goes_down_as_it_came() -> None:
    query, given = question("Other.com. A"), Resolution(Response(), "forward")
    setup = Setup()

    def below(*arguments: object) -> Resolution:
        assert arguments == (query, client())
        return given

    assert Rewriter(rules("rewrite name a.com b.org"))(query, client(), below) is given
    assert not setup.queries


LONG_LABEL = "a" * 60

LONG_NAME = ".".join(["a" * 60] * 4)


@pytest.mark.parametrize(
    ("lines", "name", "said"),
    [
        pytest.param("rewrite name prefix a. aaaaa", f"a.{LONG_LABEL}.", None, id="it fits"),
        pytest.param(
            r"rewrite name regex (.*)\.b\. {1}xxxx.c.",
            f"{LONG_LABEL}.b.",
            "label of more than 63 octets in",
            id="label",
        ),
        pytest.param(
            "rewrite name suffix .b. .bbbbbbbbbbbb.", f"{LONG_NAME}.b.", "name of more than 255 octets: ", id="name"
        ),
        pytest.param("rewrite name suffix b. .c.", "b.", "empty label in '.c.'", id="empty label"),
    ],
)
def test_a_rewritten_name_that_is_none_is_servfail(lines: str, name: str, said: str | None) -> None:
    setup = Setup()
    resolution = resolve(lines, question(f"{name} A"), setup)
    if said is None:
        assert len(setup.queries) == 1
        return
    _refused(resolution, said)
    assert setup.queries == []


@pytest.mark.parametrize("answer", ["@ 5 CNAME {}.b.", "{}.b. 5 A 10.0.0.1"])
def test_a_name_in_the_answer_that_is_none_any_more_is_servfail(answer: str) -> None:
    setup = Setup(response([answer.format(LONG_NAME)]))
    resolution = resolve("rewrite name suffix .cccccccccccccc .b answer auto", question("x.cccccccccccccc. A"), setup)
    _refused(resolution, "name of more than 255 octets: ")


def _refused(resolution: Resolution, said: str) -> None:
    ede = resolution.response.ede
    assert (resolution.response.rcode, resolution.response.flags, resolution.scope) == (2, 0, Scope.CLIENT)
    assert ede is not None
    assert ede.text.startswith(f"rewrite gives no valid name: {said}")


def test_octets_that_are_no_text_pass_through() -> None:
    query = question("a.com. A")._replace(qname=("\xff\x00.", "com"), spelling=b"\x03\xff\x00.\x03com\x00")
    setup = Setup()
    resolve("rewrite name suffix com org", query, setup)
    assert setup.queries[0].spelling == b"\x03\xff\x00.\x03org\x00"
    assert setup.queries[0].qname == ("\xff\x00.", "org")


RULES = (
    "rewrite continue name suffix 0. x.0. answer auto",
    "rewrite continue name substring 1. . answer auto",
    r"rewrite continue name regex ^(.*)\\.?(.*)$ {2}{1} answer auto",
)


@given(st.lists(st.binary(min_size=1, max_size=63), max_size=3), st.permutations(RULES))
@settings(max_examples=100, deadline=None)
def test_no_name_breaks_a_rule(labels: list[bytes], lines: list[str]) -> None:
    spelling = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    name = parse_name(name_text(wire_labels(spelling)))
    setup = Setup(response(["@ 5 CNAME x.0.", "x.0. 5 A 10.0.0.1"]))
    seen = resolve("\n".join(lines), question(". A")._replace(qname=name, spelling=spelling), setup)
    assert (len(setup.queries), len(seen.response.answer)) in ((1, 2), (1, 0), (0, 0))


def test_the_query_keeps_all_but_its_name() -> None:
    query = question("a.com. A")
    setup = Setup()
    resolve("rewrite name a.com b.org", query, setup)
    name = parse_name("b.org")
    assert setup.queries == [query._replace(qname=name, spelling=name_wire(name))]
