"""The `rewrite` directive: its forms, the words of one rule, and the problems of others."""

import pytest

from tests.support.rewrite_directives import directives, problem_of, rules
from topodns.plugins.context import Context
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
from topodns.plugins.rewrite.setup import parse_rewrite

EXACT, PREFIX, SUFFIX, SUBSTRING, REGEX = Comparison

A_COM = NameMatch(EXACT, "a.com.")


@pytest.mark.parametrize(
    ("lines", "continues"),
    [
        ("rewrite name a.com b.org", False),
        ("rewrite stop name a.com b.org", False),
        ("rewrite Continue name a.com b.org", True),
        ("rewrite continue {\n name a.com b.org\n}", True),
        ("rewrite {\n stop name a.com b.org\n}", False),
        ("rewrite {\n name exact\n a.com\n b.org\n}", False),
        ("rewrite name {\n exact a.com b.org\n}", False),
    ],
)
def test_words_in_a_body_are_as_good_as_on_the_line(lines: str, continues: bool) -> None:
    assert rules(lines) == (RewriteRule(NameRule(A_COM, "b.org."), continues),)


def test_rules_stay_in_their_order() -> None:
    assert rules("rewrite type A AAAA\nrewrite type MX A") == (
        RewriteRule(TypeRule(1, 28)),
        RewriteRule(TypeRule(15, 1)),
    )


KINDS = "exact, prefix, suffix, substring or regex"


TTL_FORMS = "expected seconds, MIN-MAX, MIN- or -MAX, up to 2147483647"


VARIABLES = "{qname}, {qtype}, {client_ip}, {client_port}, {protocol}, {server_ip} or {server_port}"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "'rewrite' has nothing in it, expected a field, such as name or ttl"),
        ("stop", "'rewrite' has nothing after 'stop', expected a field, such as name or ttl"),
        ("foo a b", "unknown field 'foo' of 'rewrite', expected name, type, class, ttl, cname, rcode or edns0"),
        ("nme a b", "unknown field 'nme' of 'rewrite', did you mean 'name'?"),
        ("answer name a b", "'answer' comes first, expected a rule for the name before it"),
        ("name", "'rewrite' has nothing after 'name', expected a name"),
        ("name a.com", "'rewrite' has nothing after 'a.com', expected a name"),
        ("name suffix a", "'rewrite' has nothing after 'a', expected the replacement"),
        ("name a..com b", "found empty label in 'a..com', expected a name"),
        ("name a.com bücher.de\u0142", "found 'ł' is not an octet in 'bücher.deł'; write IDNs in their A-label (xn--) "
         "form, expected a name"),
        (f"name a.com {'b' * 64}", f"found label of more than 63 octets in '{'b' * 64}', expected a name"),
        ("name suffix ü b", "found 'ü', expected ASCII; write IDNs in their A-label (xn--) form"),
        ("name a b c", f"found 'a' with 2 words after it, expected {KINDS}"),
        ("name a.com b.org answer auto", f"found 'a.com' with 3 words after it, expected {KINDS}"),
        ("name sufix a b", "found 'sufix' with 2 words after it, did you mean 'suffix'?"),
        ("name exact a b c", "found 'c' after 'b', expected nothing more"),
        ("name regex ([a] b", "found '([a]', expected a regular expression: missing ): ([a]"),
        (f"name regex {'a' * 10_001} b",
         f"found '{'a' * 299}…', expected a regular expression: 10001 characters, expected at most 10000"),
        ("name regex (a) {1}.{2}", "found {2} in '{1}.{2}', but '(a)' has no group 2"),
        ("name suffix a b answer", "'rewrite' has nothing after 'answer', expected auto, name or value"),
        ("name suffix a b answer ttl", "found 'ttl' after answer, expected auto, name or value"),
        ("name suffix a b answer auto x", "found 'x' after answer, expected auto, name or value"),
        ("name suffix a b answer name (", "found '(', expected a regular expression: missing ): ("),
        ("name suffix a b answer name c", "'rewrite' has nothing after 'c', expected the replacement"),
        ("name suffix a b answer value (c) {2}", "found {2} in '{2}', but '(c)' has no group 2"),
        ("name suffix a b answer auto name c d", "found both 'answer auto' and 'answer name', expected one of them"),
        ("type", "'rewrite' has nothing after 'type', expected two record types"),
        ("type A", "'rewrite' has nothing after 'A', expected two record types"),
        ("type A AAA", "unknown record type 'AAA', did you mean 'AAAA'?"),
        ("type A 1", "unknown record type '1', expected a name such as AAAA or a number such as TYPE65"),
        ("type A AAAA MX", "found 'MX' after 'AAAA', expected nothing more"),
        ("class CH", "'rewrite' has nothing after 'CH', expected two classes"),
        ("class XY IN", "unknown class 'XY', expected IN, CH or HS"),
        ("ttl a.com", "'rewrite' has nothing after 'a.com', expected the seconds, or MIN-MAX"),
        ("ttl a.com 30s", f"the TTL is '30s', {TTL_FORMS}"),
        ("ttl a.com -", f"the TTL is '-', {TTL_FORMS}"),
        ("ttl a.com 30-20", f"the TTL is '30-20', {TTL_FORMS}"),
        ("ttl a.com 1-2-3", f"the TTL is '1-2-3', {TTL_FORMS}"),
        ("ttl a.com 2147483648", f"the TTL is '2147483648', {TTL_FORMS}"),
        ("ttl a.com ٣", f"the TTL is '٣', {TTL_FORMS}"),
        ("ttl exact a.com 30 40", "found '40' after '30', expected nothing more"),
        ("rcode a.com NOERROR", "'rewrite' has nothing after 'NOERROR', expected two response codes"),
        ("rcode a.com NOERR 0", "unknown response code 'NOERR', expected a name such as NXDOMAIN, or 0 to 23"),
        ("rcode a.com 24 0", "unknown response code '24', expected a name such as NXDOMAIN, or 0 to 23"),
        ("cname", "'rewrite' has nothing after 'cname', expected a name"),
        ("cname regex (a) {3}", "found {3} in '{3}', but '(a)' has no group 3"),
        ("cname like a b", f"found 'like' with 2 words after it, expected {KINDS}"),
        ("edns0", "'rewrite' has nothing after 'edns0', expected local, nsid or subnet"),
        ("edns0 cookie set", "found 'cookie' after edns0, expected local, nsid or subnet"),
        ("edns0 local", "'rewrite' has nothing after 'local', expected set, append, replace or unset"),
        ("edns0 local put 1 a", "found 'put' after edns0 local, expected set, append, replace or unset"),
        ("edns0 local set", "'rewrite' has nothing after 'set', expected the code of an option"),
        ("edns0 local set 65536 a", "the option's code is '65536', expected 0 to 65535, or 0x0 to 0xffff"),
        ("edns0 local set 0x10000 a", "the option's code is '0x10000', expected 0 to 65535, or 0x0 to 0xffff"),
        ("edns0 local set -1 a", "the option's code is '-1', expected 0 to 65535, or 0x0 to 0xffff"),
        ("edns0 local set 1", "'rewrite' has nothing after '1', expected the data of the option"),
        ("edns0 local set 1 0xabc", "the option's data is '0xabc', expected pairs of hexadecimal digits"),
        (f"edns0 local set 1 {'a' * 513}", "the option's data has 513 octets, expected at most 512"),
        ("edns0 local set 1 a b", "found 'b' after 'a', expected nothing more"),
        ("edns0 local unset 1 revert", "found 'revert' after '1', expected nothing more"),
        ("edns0 local set 1 {clientip}", "unknown variable '{clientip}', did you mean '{client_ip}'?"),
        ("edns0 local set 1 {kubernetes/}", f"unknown variable '{{kubernetes/}}', expected {VARIABLES}"),
        ("edns0 nsid set junk", "found 'junk' after 'set', expected nothing more"),
        ("edns0 nsid unset revert", "found 'revert' after 'unset', expected nothing more"),
        ("edns0 subnet set 24", "'rewrite' has nothing after '24', expected the prefix length for IPv6"),
        ("edns0 subnet set 33 56", "the prefix length for IPv4 is '33', expected 0 to 32"),
        ("edns0 subnet set 24 129", "the prefix length for IPv6 is '129', expected 0 to 128"),
        ("edns0 subnet set -1 56", "the prefix length for IPv4 is '-1', expected 0 to 32"),
        ("edns0 subnet unset 24 56", "found '24' after 'unset', expected nothing more"),
    ],
)  # fmt: skip
def test_bad_input(words: str, problem: str) -> None:
    assert problem_of(f"rewrite {words}") == f"Corefile:2: {problem}"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param(
            "rewrite {\n name suffix a b\n answer ttl\n}",
            "Corefile:4: found 'ttl' after answer, expected auto, name or value",
            id="the line is that of the word",
        ),
        pytest.param(
            "rewrite name a {\n b\n}\n",
            "Corefile:3: found a body, expected all the words of the rule on the line or in the body",
            id="on the line or in the body",
        ),
        pytest.param(
            "rewrite stop {\n name a b {\n answer auto\n }\n}",
            "Corefile:4: found 'answer', but 'name' has no options",
            id="a body in the body",
        ),
    ],
)
def test_bad_bodies(lines: str, problem: str) -> None:
    assert problem_of(lines) == problem


@pytest.mark.parametrize(
    ("rule", "warned"),
    [
        (r"name regex (.*)\.test\.io {1}.shop.svc.cluster.local", True),
        ("name suffix .test.io .shop.svc.cluster.local answer value a b", True),
        ("continue name prefix a b", True),
        ("name substring a b answer auto", False),
        (r"name regex (.*)\.a {1}.b answer name (.*)\.b {1}.a", False),
        ("name exact a b", False),
        ("name a b", False),
        ("type A AAAA", False),
    ],
)
def test_a_rule_that_leaves_another_name_on_records_is_warned_of(rule: str, warned: bool) -> None:
    lines = list[str]()
    (directive,) = directives(f"rewrite {rule}")
    parse_rewrite(directive, Context((), warn=lines.append))
    expected = (
        "plugin/rewrite: records keep the new name, as in CoreDNS, and stub resolvers that compare names (glibc) "
        "ignore them; 'answer auto' gives them the client's (Corefile:2)"
    )
    assert lines == [expected] * warned


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
