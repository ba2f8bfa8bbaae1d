"""`rewrite cname`: another target, and the listener's records of it in place of those of the old one."""

import pytest

from tests.support.query_builders import client
from tests.support.rewrite_directives import Setup, line, question, resolve, response, rules
from topodns.dns.message import Flag, Query, Response
from topodns.dns.rrtype import Rcode
from topodns.plugins.rewrite.handler import Rewriter
from topodns.query.deferred import Outcome, pursue
from topodns.query.plugin import Client, Dropped, Resolution, Scope


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
        pytest.param("cname my.example b", OLD, {"b. A": None}, list(OLD), id="nobody to ask about the target"),
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
