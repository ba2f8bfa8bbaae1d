"""A query while rules rewrite it, and its response while their amendments apply."""

from dataclasses import replace

import pytest

from tests.support.query_builders import ask, client
from topodns.dns.message import Edns, Response, RRset
from topodns.dns.name import BadName
from topodns.plugins.rewrite.transaction import Passage, Returning
from topodns.query.plugin import Resolution


def test_a_new_name_is_in_the_query_and_in_lower_case() -> None:
    passage = Passage(ask("A.example"), client(), "a.example.")
    passage.rename("B.example")
    assert (passage.name, passage.query.qname, passage.query.spelling) == (
        "b.example.",
        ("b", "example"),
        b"\1b\7example\0",
    )
    assert passage.renamed
    with pytest.raises(BadName):
        passage.rename("a..b")


def test_a_query_that_no_rule_changed_leaves_no_traces() -> None:
    passage = Passage(ask("a.example", edns=Edns(1232, 0, False)), client(), "a.example.")
    assert (passage.leaves_traces, passage.asked_with_edns) == (False, True)
    changed = ("renamed", "client_dependent", "subnet_changed")
    assert all(replace_flag(passage, name).leaves_traces for name in changed)
    passage.amendments.append(lambda returning: None)
    assert passage.leaves_traces


def replace_flag(passage: Passage, name: str) -> Passage:
    changed = Passage(passage.query, passage.client, passage.name)
    setattr(changed, name, True)
    return changed


def test_a_change_is_of_the_records_of_all_sections() -> None:
    one = RRset(b"", 1, 5, (bytes(4),))
    response = Response(answer=(one,), authority=(one, one), additional=(one,))
    Returning(Resolution(response, "forward")).replace(lambda rrset: rrset._replace(ttl=7))
    other = one._replace(ttl=7)
    assert response == replace(response, answer=(other,), authority=(other, other), additional=(other,))
