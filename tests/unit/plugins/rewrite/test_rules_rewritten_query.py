"""A query while rules rewrite it."""

import pytest

from tests.support.query_builders import ask, client
from topodns.dns.name import BadName
from topodns.plugins.rewrite.rules import RewrittenQuery


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
