"""The lines of `header`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from tests.support.query_builders import ask, client
from topodns.dns.message import Flag, Response
from topodns.plugins.header import Header, HeaderFlags
from topodns.query.plugin import Resolution

AA, RA, RD = Flag.AA, Flag.RA, Flag.RD


def sent_flags(settings: Header, query_flags: int, decided: Response) -> int:
    """The response's flags as the wire rule has it: RD of the client's query copied, `flags` set, `cleared` last."""
    query = ask("example.", flags=query_flags)
    header = HeaderFlags(settings)
    response = header(header.alter_query(query), client(), Resolution(decided, "kubernetes")).response
    return (response.flags | (query.flags & RD)) & ~response.cleared


@pytest.mark.parametrize(
    ("settings", "altered"),
    [
        (Header(query_set=RD), RD | Flag.CD),
        (Header(query_set=RD | AA), RD | AA | Flag.CD),
        (Header(query_clear=Flag.CD), 0),
        (Header(response_set=RD), Flag.CD),
    ],
)
def test_the_query_goes_down_with_its_flags_set_and_cleared(settings: Header, altered: int) -> None:
    assert HeaderFlags(settings).alter_query(ask("example.", flags=Flag.CD)).flags == altered


@pytest.mark.parametrize(
    ("settings", "query_flags", "decided", "sent"),
    [
        pytest.param(Header(), RD, Response(), AA | RD, id="nothing to do"),
        pytest.param(Header(response_set=RA), 0, Response(), AA | RA, id="set"),
        pytest.param(Header(response_clear=AA), RD, Response(), RD, id="clear"),
        pytest.param(Header(response_clear=RD), RD, Response(), AA, id="clear the copied RD"),
        pytest.param(Header(response_set=RD), 0, Response(), AA | RD, id="set RD"),
        pytest.param(Header(query_set=RD), 0, Response(), AA | RD, id="RD of the altered query is copied"),
        pytest.param(Header(query_clear=RD), RD, Response(), AA, id="so is its absence"),
        pytest.param(Header(query_clear=RD, response_set=RD), RD, Response(), AA | RD, id="the response rule is last"),
        pytest.param(Header(query_set=RD, response_clear=RD), 0, Response(), AA, id="also when it clears"),
        pytest.param(Header(response_set=AA), 0, Response(flags=0, cleared=AA), AA, id="over what a step cleared"),
    ],
)
def test_the_response_comes_up_with_its_flags_set_and_cleared(
    settings: Header, query_flags: int, decided: Response, sent: int
) -> None:
    assert sent_flags(settings, query_flags, decided) == sent


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
