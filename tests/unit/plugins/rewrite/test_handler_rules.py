"""Rules that change the type, the class, TTLs and the rcode, and `rewrite cname`.

That has another target, and the listener's records of it in place of those of the old one.
"""

import pytest

from tests.support.query_builders import ask, client
from tests.support.rewrite_directives import Setup, asked, line, question, resolve, response, rrset, rules
from topodns.dns.message import Edns, Flag, Query, Response
from topodns.dns.name import BadName
from topodns.dns.rrtype import Rcode
from topodns.plugins.rewrite.handler import Rewriter, RewrittenQuery
from topodns.query.deferred import Outcome, pursue
from topodns.query.plugin import Client, Dropped, Resolution, Scope

ANY, HINFO, CH, IN = 255, 13, 3, 1


@pytest.mark.parametrize(
    ("lines", "qtype", "below"),
    [
        ("rewrite type ANY HINFO", "ANY", "a.com. HINFO"),
        ("rewrite type ANY HINFO", "A", "a.com. A"),
        ("rewrite type A AAAA\nrewrite type AAAA MX", "A", "a.com. AAAA"),
        ("rewrite continue type A AAAA\nrewrite type AAAA MX", "A", "a.com. MX"),
    ],
)
def test_another_type_is_asked_for(lines: str, qtype: str, below: str) -> None:
    setup = Setup()
    resolve(lines, question(f"a.com. {qtype}"), setup)
    assert list(map(asked, setup.queries)) == [below]


@pytest.mark.parametrize(("qclass", "below"), [(CH, IN), (IN, IN), (4, 4)])
def test_another_class_is_asked_for(qclass: int, below: int) -> None:
    setup = Setup()
    resolve("rewrite class CH IN", question("a.com. A")._replace(qclass=qclass), setup)
    assert [query.qclass for query in setup.queries] == [below]


@pytest.mark.parametrize(
    ("rule", "name", "ttls"),
    [
        ("ttl a.com 30", "a.com.", [30, 30, 30]),
        ("ttl a.com 20-100", "a.com.", [20, 100, 60]),
        ("ttl a.com 50-", "a.com.", [50, 300, 60]),
        ("ttl a.com -100", "a.com.", [5, 100, 60]),
        ("ttl a.com 30", "x.a.com.", [5, 300, 60]),
        ("ttl prefix x 30", "x.a.com.", [30, 30, 30]),
        ("ttl prefix x 30", "xx.a.com.", [5, 300, 60]),
        ("ttl suffix a.com 30", "xa.com.", [30, 30, 30]),
        ("ttl substring b 30", "b.a.com.", [30, 30, 30]),
        (r"ttl regex ^.\.com\.$ 30", "b.com.", [30, 30, 30]),
        (r"ttl regex ^.\.com\.$ 30", "b.com.x.", [5, 300, 60]),
    ],
)
def test_ttls_of_all_sections_are_kept_within_bounds(rule: str, name: str, ttls: list[int]) -> None:
    setup = Setup(
        Response(
            answer=(rrset("@ 5 A 10.0.0.1"),),
            authority=(rrset("com. 300 NS ns.com."),),
            additional=(rrset("ns.com. 60 A 10.0.0.2"),),
        )
    )
    seen = resolve(f"rewrite {rule}", question(f"{name} A"), setup).response
    assert [each.ttl for each in (*seen.answer, *seen.authority, *seen.additional)] == ttls
    assert seen.answer[0].owner == b""


@pytest.mark.parametrize(
    ("lines", "decided", "edns", "seen"),
    [
        ("rewrite rcode a.com SERVFAIL NOERROR", Rcode.SERVFAIL, None, 0),
        ("rewrite rcode a.com SERVFAIL NOERROR", Rcode.NXDOMAIN, None, 3),
        ("rewrite rcode suffix com 3 0", Rcode.NXDOMAIN, None, 0),
        ("rewrite rcode b.com 3 0", Rcode.NXDOMAIN, None, 3),
        pytest.param(
            "rewrite continue rcode a.com NXDOMAIN REFUSED\nrewrite rcode a.com SERVFAIL NXDOMAIN",
            Rcode.SERVFAIL, None, 5, id="the last rule is first",
        ),
        pytest.param(
            "rewrite rcode a.com NOERROR BADCOOKIE", 0, Edns(1232, 0, False), 23, id="an extended one by EDNS"
        ),
        pytest.param("rewrite rcode a.com NOERROR BADCOOKIE", 0, None, 0, id="not without it"),
        pytest.param(
            "rewrite continue edns0 nsid set\nrewrite rcode a.com NOERROR BADCOOKIE", 0, None, 0,
            id="which must be the client's",
        ),
    ],
)  # fmt: skip
def test_another_rcode_is_written(lines: str, decided: int, edns: Edns | None, seen: int) -> None:
    assert resolve(lines, question("a.com. A", edns), Setup(Response(decided))).response.rcode == seen


def known(*answer: str, flags: int = Flag.AA, rcode: int = 0) -> Resolution:
    found = response(answer)
    found.flags, found.rcode = flags, rcode
    return Resolution(found, "forward")


OLD = ("@ 200 CNAME my.example.", "my.example. 200 CNAME X.cdn.net.", "x.cdn.net. 300 A 20.2.0.1")


@pytest.mark.parametrize(
    ("rule", "answer", "chased", "sees"),
    [
        pytest.param(
            "cname x.cdn.net y.org",
            OLD,
            {"y.org. A": known("@ 100 A 30.3.1.2")},
            ["@ 200 CNAME my.example.", "my.example. 200 CNAME y.org.", "y.org. 100 A 30.3.1.2"],
            id="what precedes stays, what follows is replaced",
        ),
        pytest.param(
            "cname regex (.*)\\.cdn\\.net\\. {1}.other.com.",
            OLD,
            {"x.other.com. A": known("@ 1 CNAME z.com.", "z.com. 2 A 10.0.0.1")},
            ["@ 200 CNAME my.example.", "my.example. 200 CNAME x.other.com.", "x.other.com. 1 CNAME z.com.",
             "z.com. 2 A 10.0.0.1"],
            id="regex, and a CNAME behind the new target",
        ),
        pytest.param("cname prefix x. y.", OLD[1:], {"y.cdn.net. A": known()}, ["my.example. 200 CNAME y.cdn.net."],
                     id="prefix"),
        pytest.param("cname suffix cdn.net. b.", OLD[1:], {"x.b. A": known()}, ["my.example. 200 CNAME x.b."],
                     id="suffix"),
        pytest.param("cname substring dn.n dge.n", OLD[1:], {"x.cdge.net. A": known()},
                     ["my.example. 200 CNAME x.cdge.net."], id="substring"),
        pytest.param("cname suffix cdn.net b.", OLD[2:], {}, [OLD[2]], id="no CNAME, no change"),
        pytest.param("cname suffix my.example b.", OLD, {}, list(OLD), id="a suffix without the dot is none"),
        pytest.param("cname other.net b", OLD, {}, list(OLD), id="another target"),
        pytest.param("cname my.example b", OLD, {"b. A": None}, ["@ 200 CNAME b."], id="a target in no server block"),
        pytest.param(
            "cname my.example b", OLD, {"b. A": known(rcode=Rcode.NXDOMAIN)}, ["@ 200 CNAME b."],
            id="a target that does not exist",
        ),
    ],
)  # fmt: skip
def test_the_target_is_looked_up_anew(
    rule: str, answer: list[str], chased: dict[str, Resolution | None], sees: list[str]
) -> None:
    setup = Setup(response(answer), chased)
    resolution = resolve(f"rewrite {rule}", question("my-app.com. A"), setup, chase=setup.chase)
    assert list(map(line, resolution.response.answer)) == sees
    assert resolution.response.rcode == Rcode.NOERROR
    assert setup.chased == list(chased)


@pytest.mark.parametrize(("flags", "truncated"), [(Flag.TC, Flag.TC), (0, 0)])
def test_whether_it_is_truncated_is_the_word_on_the_new_target(flags: int, truncated: int) -> None:
    old = response(["@ 5 CNAME b."])
    old.flags = Flag.AA | (Flag.TC if not truncated else 0)
    setup = Setup(old, {"c. A": known("@ 5 A 10.0.0.1", flags=flags)})
    resolution = resolve("rewrite cname b c", question("a. A"), setup, chase=setup.chase)
    assert resolution.response.flags == Flag.AA | truncated
    assert resolution.scope is Scope.CLIENT


def test_names_that_another_rule_renamed_are_turned_back_around_it() -> None:
    setup = Setup(response(["@ 5 CNAME x.two.", "x.two. 5 A 10.0.0.1"]), {"y. A": known("@ 7 A 10.0.0.9")})
    lines = "rewrite continue name suffix .one .two answer auto\nrewrite cname x.two y"
    resolution = resolve(lines, question("a.one. A"), setup, chase=setup.chase)
    assert list(map(line, resolution.response.answer)) == ["@ 5 CNAME y.", "y. 7 A 10.0.0.9"]


def test_a_later_rule_has_turned_names_back_before_it() -> None:
    setup = Setup(response(["@ 5 CNAME x.two.", "x.two. 5 A 10.0.0.1"]), {"y. A": known("@ 7 A 10.0.0.9")})
    lines = "rewrite continue cname x.one y\nrewrite name suffix .one .two answer auto"
    resolution = resolve(lines, question("a.one. A"), setup, chase=setup.chase)
    assert list(map(line, resolution.response.answer)) == ["@ 5 CNAME y.", "y. 7 A 10.0.0.9"]


def test_without_a_listener_cnames_are_left_alone() -> None:
    setup = Setup(response(OLD))
    resolution = resolve("rewrite cname my.example b", question("my-app.com. A"), setup)
    assert list(map(line, resolution.response.answer)) == list(OLD)


def test_a_target_that_the_acl_drops_changes_nothing() -> None:
    def dropped(target: tuple[str, ...], qtype: int, who: Client) -> Resolution:
        raise Dropped("acl")

    resolution = resolve("rewrite cname my.example b", question("a. A"), Setup(response(OLD)), chase=dropped)
    assert list(map(line, resolution.response.answer)) == list(OLD)


def test_a_new_target_that_is_no_name_is_servfail() -> None:
    resolution = resolve(f"rewrite cname substring my. {'m' * 64}.", question("a. A"), Setup(response(OLD)))
    assert resolution.response.rcode == Rcode.SERVFAIL
    assert resolution.response.ede is not None
    assert resolution.response.ede.text.startswith("rewrite gives no valid name: label of more than 63 octets in 'mmm")


def test_the_listener_may_take_its_time() -> None:
    outcome: Outcome[Resolution] = Outcome()
    seen: list[Resolution] = []

    async def chase(target: tuple[str, ...], qtype: int, who: Client) -> Resolution:
        return await outcome

    def below(query: Query, who: Client) -> Resolution:
        return Resolution(Response(answer=response(["@ 5 CNAME b."]).answer), "forward")

    answered = Rewriter(rules("rewrite cname b c"), chase)(question("a. A"), client(), below)
    assert not isinstance(answered, Resolution)
    pursue(answered, seen.append)
    assert seen == []
    outcome.settle(known("@ 7 A 10.0.0.9"))
    assert list(map(line, seen[0].response.answer)) == ["@ 5 CNAME c.", "c. 7 A 10.0.0.9"]


def test_a_new_name_is_in_the_query_and_in_lower_case() -> None:
    rewritten = RewrittenQuery(ask("A.example"), client())
    assert not rewritten.reverter.renamed
    rewritten.rename("B.example")
    assert (rewritten.name, rewritten.query.qname, rewritten.query.spelling) == (
        "b.example.",
        ("b", "example"),
        b"\1b\7example\0",
    )
    assert rewritten.reverter.renamed
    with pytest.raises(BadName):
        rewritten.rename("a..b")


def test_the_client_s_own_query_stays_known() -> None:
    own = ask("A.example")
    rewritten = RewrittenQuery(own, client())
    assert rewritten.name == "a.example."
    rewritten.rename("B.example")
    assert rewritten.reverter.query is own
