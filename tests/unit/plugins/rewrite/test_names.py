"""Names that rules replace, in the query and back in the answer."""

from typing import NamedTuple

import pytest

from tests.support.rewrite_directives import Setup, asked, line, question, resolve, response
from topodns.query.plugin import Scope


class Case(NamedTuple):
    """@ is the name of the query: below, the rewritten one; above, the client's own as it spelled it."""

    lines: str
    question: str
    below: str
    answer: str = "@ 5 A 10.0.0.1"
    sees: str = "@ 5 A 10.0.0.1"


UNREVERTED = "svc.consul. 5 A 10.0.0.1"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case("rewrite name a.com b.org", "a.com. A", "b.org. A"), id="exact is the default"),
        pytest.param(Case("rewrite name exact A.com B.org", "a.COM. A", "b.org. A"), id="case means nothing"),
        pytest.param(Case("rewrite name a.com b.org", "x.a.com. A", "x.a.com. A"), id="exact is not for names below"),
        pytest.param(Case("rewrite stop name a.com. b.org.", "a.com. A", "b.org. A"), id="the final dot means nothing"),
        pytest.param(Case("rewrite name . b.org", ". A", "b.org. A"), id="the root is a name"),
        pytest.param(
            Case("rewrite name prefix foo bar answer auto", "foo.example.com. A", "bar.example.com. A"),
            id="a prefix ends with a dot",
        ),
        pytest.param(
            Case("rewrite name prefix foo bar", "foot.example.com. A", "foot.example.com. A"),
            id="so it is not that of a longer label",
        ),
        pytest.param(
            Case("rewrite name suffix com org answer auto", "foo.telecom. A", "foo.teleorg. A"),
            id="a suffix may begin inside a label",
        ),
        pytest.param(
            Case(
                "rewrite name suffix .schmoogle.com. .google.com. answer auto", "a.schmoogle.com. A", "a.google.com. A"
            ),
            id="or before its dot",
        ),
        pytest.param(
            Case("rewrite name suffix .schmoogle.com. .google.com.", "schmoogle.com. A", "schmoogle.com. A"),
            id="and then there is something before it",
        ),
        pytest.param(
            Case("rewrite name substring svc.one svc.two answer auto", "a.svc.one. AAAA", "a.svc.two. AAAA"),
            id="substring",
        ),
        pytest.param(
            Case("rewrite name substring b. c. answer auto", "ab.b.com. A", "ac.c.com. A"),
            id="every substring is replaced",
        ),
        pytest.param(
            Case(
                r"rewrite name regex (.*)-(us-west-1)\.example\.org {1}.service.{2}.consul answer auto",
                "ftp-us-west-1.example.org. A",
                "ftp.service.us-west-1.consul. A",
            ),
            id="regex with groups",
        ),
        pytest.param(
            Case(r"rewrite name regex (.*)\.one {0}.{1}.two answer auto", "a.one. A", "a.one.a.two. A"),
            id="group 0 is all that was found",
        ),
        pytest.param(
            Case(r"rewrite name regex ^(a)?(.*)\.one\.$ x{1}y{2}.two answer auto", "b.one. A", "xyb.two. A"),
            id="a group that took no part is empty",
        ),
        pytest.param(
            Case(r"rewrite name regex (.*)\.one\.(.*)\. {1}{2}.two answer auto", "{2}.one.x. A", "{2}x.two. A"),
            id="what a group found is not filled in again",
        ),
        pytest.param(
            Case(r"rewrite name regex one two answer auto", "a.one.b. A", "two. A"),
            id="a regex is found anywhere and the whole name replaced",
        ),
    ],
)
def test_the_steps_below_are_asked_another_name_and_the_client_sees_its_own(case: Case) -> None:
    _check(case)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            Case("rewrite name suffix .rocks .consul", "svc.rocks. A", "svc.consul. A", sees=UNREVERTED),
            id="without answer, the owner is the name that was looked up",
        ),
        pytest.param(
            Case("rewrite name suffix .rocks .consul answer auto", "svc.rocks. A", "svc.consul. A"),
            id="auto turns it back",
        ),
        pytest.param(
            Case(
                "rewrite name suffix .rocks .consul answer auto",
                "svc.rocks. SRV",
                "svc.consul. SRV",
                "@ 5 CNAME A.other.CONSUL.",
                "@ 5 CNAME a.other.rocks.",
            ),
            id="by suffix, that of any name",
        ),
        pytest.param(
            Case(
                "rewrite name a.com b.org",
                "a.com. A",
                "b.org. A",
                "@ 5 CNAME x.b.org.; x.b.org. 5 CNAME ab.org.; ab.org. 5 A 10.0.0.1",
                "@ 5 CNAME x.a.com.; x.a.com. 5 CNAME ab.org.; ab.org. 5 A 10.0.0.1",
            ),
            id="else that of the name and names below it",
        ),
        pytest.param(
            Case(
                r"rewrite name regex (.*)\.rocks {1}.maps answer name (.*)\.maps {1}.works",
                "a.rocks. A",
                "a.maps. A",
                sees="a.works. 5 A 10.0.0.1",
            ),
            id="answer name says itself what owners become",
        ),
        pytest.param(
            Case(
                "rewrite stop {\n name regex (.*)\\.rocks {1}.maps\n answer name (.*)\\.maps {1}.rocks\n}",
                "a.rocks. A",
                "a.maps. A",
                "@ 5 CNAME b.maps.; b.maps. 5 A 10.0.0.1",
                "@ 5 CNAME b.maps.; b.rocks. 5 A 10.0.0.1",
            ),
            id="and leaves values alone",
        ),
        pytest.param(
            Case(
                "rewrite {\n name suffix .arpa .arpa\n answer name auto\n answer value (.*)\\.svc\\. {1}.rocks\n}",
                "1.0.10.in-addr.arpa. PTR",
                "1.0.10.in-addr.arpa. PTR",
                "@ 60 PTR ftp.svc.",
                "@ 60 PTR ftp.rocks.",
            ),
            id="answer value renames what records point at",
        ),
        pytest.param(
            Case(
                r"rewrite name exact a.com b.org answer value (.*)\.b\.org\. {1}.c.net. value (.*)\.x\. {1}.b.org.",
                "a.com. A",
                "b.org. A",
                "@ 5 CNAME t.x.",
                "@ 5 CNAME t.c.net.",
            ),
            id="of several answer rules the last is first",
        ),
        pytest.param(
            Case(
                "rewrite continue name suffix .one .two answer auto\nrewrite name exact a.two b.three",
                "a.one. A",
                "b.three. A",
                "@ 5 CNAME x.b.three.",
                "@ 5 CNAME x.a.one.",
            ),
            id="several rules are turned back in reverse",
        ),
        pytest.param(
            Case("rewrite name a.com b.org\nrewrite name b.org c.net", "a.com. A", "b.org. A"),
            id="the first match is the last without continue",
        ),
        pytest.param(
            Case("rewrite continue name x.com b.org\nrewrite name a.com c.net", "a.com. A", "c.net. A"),
            id="rules that do not match stop nothing",
        ),
        pytest.param(
            Case("rewrite name a.com b.org", "A.com. A", "b.org. A", "@ 5 CNAME a.com.; a.com. 5 A 10.0.0.1",
                 "@ 5 CNAME a.com.; @ 5 A 10.0.0.1"),
            id="the client's name in the answer is spelled as it spelled it",
        ),
    ],
)  # fmt: skip
def test_names_in_the_answer(case: Case) -> None:
    _check(case)


def _check(case: Case) -> None:
    setup = Setup(response(case.answer.split("; ")))
    resolution = resolve(case.lines, question(case.question), setup)
    assert list(map(asked, setup.queries)) == [case.below]
    assert "; ".join(map(line, resolution.response.answer)) == case.sees
    assert resolution.scope is Scope.EVERYONE
