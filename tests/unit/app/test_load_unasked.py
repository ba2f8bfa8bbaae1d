"""Warnings of a valid Corefile about names of which no query can reach a directive."""

import pytest

from topodns.app.load import settings_from_text

OUTSIDE = "it is outside the zones of the server block"
TAKEN = "the server block at Corefile:{} takes them"

B_ORG = "\nb.org {\n}"

CASES = [
    ("a zone outside of the block", "a.org {\nlog b.org\n}", "log: 'b.org.'", OUTSIDE),
    ("several", "a.org {\nkubernetes a.org b.org c.org d.org\n}", "kubernetes: 'b.org.' (and 2 more)", OUTSIDE),
    ("a zone of another block", ". {\nlog b.org\n}" + B_ORG, "log: 'b.org.'", TAKEN.format(4)),
    ("a zone below it", ". {\nacl a.b.org {\nallow\n}\n}" + B_ORG, "acl: 'a.b.org.'", TAKEN.format(6)),
    ("a name of another block", ". {\nrewrite name b.org c\n}" + B_ORG, "rewrite: 'b.org.'", TAKEN.format(4)),
    ("a zone of one label", "a.org {\ncache org\n}", "", ""),
    ("a zone around those of the block", "b.org a.org {\nlog org\n}", "", ""),
    ("a zone around that of another block", ". {\nlog org\n}" + B_ORG, "", ""),
    ("a zone of a block on another port", ". {\nlog b.org\n}\nb.org:54 {\n}", "", ""),
    ("a zone of a block on one port of two", ".:53 .:54 {\nlog b.org\n}\nb.org:54 {\n}", "", ""),
    ("a zone of a block on another address", ". {\nlog b.org\n}\nb.org {\nbind 127.0.0.2\n}", "", ""),
    ("a zone of a block for some queries", ". {\nlog b.org\n}\nb.org {\nview v {\nexpr true\n}\n}", "", ""),
    ("a zone that a rewrite may give", ". {\nrewrite name a.org b.org\nlog b.org\n}" + B_ORG, "", ""),
    (
        "a name that an earlier rewrite may give",
        ". {\nrewrite continue name a.org b.org\nrewrite name b.org c.org\n}" + B_ORG,
        "",
        "",
    ),
    ("a suffix in the middle of a label", ". {\nrewrite name suffix b.org c.org\n}" + B_ORG, "", ""),
]


@pytest.mark.parametrize(("text", "found", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_line_about_names_that_are_never_asked_of_it_is_warned_of(text: str, found: str, why: str) -> None:
    warnings: list[str] = []
    settings_from_text(text, "Corefile", 53, {}, warnings.append)
    directive, _, names = found.partition(": ")
    expected = f"plugin/{directive}: no query for {names} comes here: {why} (Corefile:2)"
    assert [line for line in warnings if "no query for" in line] == [expected] * bool(found)


@pytest.mark.parametrize(
    ("word", "warned"), [("thirty", True), ("30s", True), ("thirty.", False), ("a.org", False), ("10.0.0.0/8", False)]
)
def test_a_zone_of_cache_that_may_be_meant_for_a_ttl_is_warned_of(word: str, warned: bool) -> None:
    warnings: list[str] = []
    settings_from_text(f". {{\ncache {word}\n}}", "Corefile", 53, {}, warnings.append)
    assert [line.startswith(f"plugin/cache: '{word}' is a zone, as in CoreDNS") for line in warnings] == [True] * warned
