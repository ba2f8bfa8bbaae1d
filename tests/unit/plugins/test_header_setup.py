"""The lines of `header`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.dns.message import Flag
from topodns.plugins.header import Header


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("response set ra aa", Header(response_set=Flag.RA | Flag.AA)),
        ("response set ra aa\nresponse clear rd", Header(response_set=Flag.RA | Flag.AA, response_clear=Flag.RD)),
        ("query set rd", Header(query_set=Flag.RD)),
        ("Query Clear RD", Header(query_clear=Flag.RD)),
        ("response set ra\nresponse clear ra", Header(response_clear=Flag.RA)),
        ("response clear aa\nresponse set aa\nquery set rd", Header(query_set=Flag.RD, response_set=Flag.AA)),
    ],
)
def test_header(lines: str, expected: Header) -> None:
    assert only_block(f"header {{\n{lines}\n}}").settings.get("header") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("header", "2: 'header' has no line, expected query or response, set or clear, and flags"),
        ("header x {\n query set rd\n}", "2: 'header' has the arguments 'x', expected none"),
        ("header {\n set ra\n}", "3: unknown option 'set' of 'header', expected query or response"),
        ("header {\n query\n}", "3: 'query' has no argument, expected set or clear, and then flags: aa, ra or rd"),
        (
            "header {\n query set\n}",
            "3: 'query' has the arguments 'set', expected set or clear, and then flags: aa, ra or rd",
        ),
        ("header {\n query toggle rd\n}", "3: 'query' has 'toggle', expected set or clear"),
        ("header {\n response set tc\n}", "3: 'response' has 'tc', expected aa, ra or rd"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
