"""`rewrite name`: what the steps below are asked, and what the client finds in the answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.query_builders import client
from tests.support.rewrite_directives import Setup, line, question, resolve, response, rrset, rules
from topodns.dns.message import Response
from topodns.dns.name import name_text, name_wire, parse_name, wire_labels
from topodns.plugins.rewrite.handler import Rewriter
from topodns.query.plugin import Resolution, Scope


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
