"""`any`, and the directives without arguments: with it `whoami`, `local` and `minimal`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from tests.support.query_builders import ask, client
from topodns.dns.message import Response, RRset
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.any import answer_any
from topodns.query.plugin import Resolution


def test_any_is_answered_by_one_hinfo_that_points_to_rfc_8482() -> None:
    hinfo = b"\x0dANY obsoleted\x0cSee RFC 8482"
    response = Response(answer=(RRset(b"", RRType.HINFO, 8482, (hinfo,)),), flags=0)
    assert answer_any(ask("whatever.example.", RRType.ANY), client()) == Resolution(response, "any")


def test_every_other_question_passes() -> None:
    assert answer_any(ask("example.com.", RRType.A), client()) is None
    assert answer_any(ask("example.com.", RRType.ANY, RRClass.CH), client()) is None


@pytest.mark.parametrize("name", ["any", "whoami", "local", "minimal"])
def test_a_directive_that_is_only_its_name(name: str) -> None:
    assert (only_block(name).settings, only_block("").settings) == ({name: True}, {})
    assert block_problem(f"{name} x") == f"Corefile:2: '{name}' has the arguments 'x', expected none"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("any {\n x\n}", "3: found 'x', but 'any' has no options"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
