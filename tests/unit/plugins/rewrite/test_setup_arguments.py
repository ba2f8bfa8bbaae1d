"""The words of one rule of `rewrite`."""

import pytest

from tests.support.rewrite_directives import rules
from topodns.plugins.rewrite.settings import (
    AnswerRule,
    Change,
    ClassRule,
    CnameRule,
    Comparison,
    NameMatch,
    NameRule,
    OptionAction,
    OptionRule,
    OptionVariable,
    Part,
    RcodeRule,
    RewriteRule,
    Subnet,
    TtlRule,
    TypeRule,
)

EXACT, PREFIX, SUFFIX, SUBSTRING, REGEX = Comparison


A_COM = NameMatch(EXACT, "a.com.")


@pytest.mark.parametrize(
    ("lines", "change"),
    [
        ("name a.com b.org", NameRule(A_COM, "b.org.")),
        ("NAME Exact A.com. b.ORG.", NameRule(A_COM, "b.org.")),
        ("name exact *.a.com x.*.org", NameRule(NameMatch(EXACT, "*.a.com."), "x.*.org.")),
        ("name prefix Foo bar", NameRule(NameMatch(PREFIX, "foo."), "bar.")),
        ("name suffix .a.com. .b.org", NameRule(NameMatch(SUFFIX, ".a.com."), ".b.org.")),
        ("name substring svc service", NameRule(NameMatch(SUBSTRING, "svc."), "service.")),
        (r"name regex (.*)\.A\.com {1}.B.org", NameRule(NameMatch(REGEX, r"(.*)\.A\.com"), "{1}.b.org.")),
        ("name regex a {0}.b", NameRule(NameMatch(REGEX, "a"), "{0}.b.")),
        ("name suffix a b answer auto", NameRule(NameMatch(SUFFIX, "a."), "b.", auto=True)),
        ("name suffix a b answer name auto", NameRule(NameMatch(SUFFIX, "a."), "b.", auto=True)),
        (
            "name suffix a b answer name auto x",
            NameRule(NameMatch(SUFFIX, "a."), "b.", False, (AnswerRule(Part.OWNER, "auto", "x."),)),
        ),
        (
            "name suffix a b answer auto value (c) {1}.d answer value e f",
            NameRule(
                NameMatch(SUFFIX, "a."),
                "b.",
                True,
                (AnswerRule(Part.VALUE, "(c)", "{1}.d."), AnswerRule(Part.VALUE, "e", "f.")),
            ),
        ),
        ("type ANY hinfo", TypeRule(255, 13)),
        ("type TYPE65 A", TypeRule(65, 1)),
        ("class CH in", ClassRule(3, 1)),
        ("ttl a.com 30", TtlRule(A_COM, 30, 30)),
        ("ttl a.com 30-300", TtlRule(A_COM, 30, 300)),
        ("ttl a.com 30-", TtlRule(A_COM, 30, 2**31 - 1)),
        ("ttl suffix a.com -30", TtlRule(NameMatch(SUFFIX, "a.com."), 0, 30)),
        ("ttl regex .* 0", TtlRule(NameMatch(REGEX, ".*"), 0, 0)),
        ("rcode a.com SERVFAIL noerror", RcodeRule(A_COM, 2, 0)),
        ("rcode substring a 3 23", RcodeRule(NameMatch(SUBSTRING, "a."), 3, 23)),
        ("rcode a.com NOTIMPL BADCOOKIE", RcodeRule(A_COM, 4, 23)),
        ("cname a.com b.org", CnameRule(A_COM, "b.org.")),
        ("cname exact a.com. b.org.", CnameRule(A_COM, "b.org.")),
        ("cname substring Cdn edge", CnameRule(NameMatch(SUBSTRING, "cdn"), "edge")),
        ("cname regex (.*).cdn. {1}.other", CnameRule(NameMatch(REGEX, "(.*).cdn."), "{1}.other")),
        ("edns0 local set 0xffee abcd", OptionRule(OptionAction.SET, 0xFFEE, b"abcd")),
        ("edns0 LOCAL Append 65001 0x61Ff", OptionRule(OptionAction.APPEND, 65001, b"a\xff")),
        ("edns0 local replace 0xffee abcd revert", OptionRule(OptionAction.REPLACE, 0xFFEE, b"abcd", True)),
        ("edns0 local set 9 {client_ip} revert", OptionRule(OptionAction.SET, 9, OptionVariable.CLIENT_IP, True)),
        ("edns0 local unset 0xffee", OptionRule(OptionAction.UNSET, 0xFFEE)),
        ("edns0 nsid set", OptionRule(OptionAction.SET, 3)),
        ("edns0 nsid append revert", OptionRule(OptionAction.APPEND, 3, revert=True)),
        ("edns0 nsid unset", OptionRule(OptionAction.UNSET, 3)),
        ("edns0 subnet set 24 56", OptionRule(OptionAction.SET, 8, Subnet(24, 56))),
        ("edns0 subnet replace 0 128 revert", OptionRule(OptionAction.REPLACE, 8, Subnet(0, 128), True)),
        ("edns0 subnet unset", OptionRule(OptionAction.UNSET, 8)),
    ],
)
def test_a_field(lines: str, change: Change) -> None:
    assert rules(f"rewrite {lines}") == (RewriteRule(change),)


@pytest.mark.parametrize("variable", OptionVariable)
def test_every_variable(variable: OptionVariable) -> None:
    (rule,) = rules(f"rewrite edns0 local set 1 {variable.value}")
    assert isinstance(rule.change, OptionRule)
    assert rule.change.data is variable
