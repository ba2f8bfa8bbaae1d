"""The durations of `timeouts`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.plugins.timeouts import Timeouts


@pytest.mark.parametrize(
    ("lines", "timeouts"),
    [
        ("read 5s", Timeouts(read=5.0)),
        ("write 10s\nidle 1h", Timeouts(write=10.0, idle=3600.0)),
        ("idle 7", Timeouts(idle=7.0)),
        ("maxtcpqueries 10", Timeouts(max_queries=10)),
        ("maxtcpqueries -1", Timeouts()),
    ],
)
def test_timeouts_of_tcp_connections(lines: str, timeouts: Timeouts) -> None:
    assert only_block(f"timeouts {{\n{lines}\n}}").settings.get("timeouts") == timeouts


@pytest.mark.parametrize(
    ("directive", "problem"),
    [
        ("timeouts", "'timeouts' has no line, expected read, write, idle or maxtcpqueries"),
        ("timeouts 5s {\nread 5s\n}", "'timeouts' has the arguments '5s', expected none"),
        ("timeouts {\nread 500ms\n}", "'read' has 500ms, expected a duration from 1s to 24h"),
        ("timeouts {\nidle 25h\n}", "'idle' has 25h, expected a duration from 1s to 24h"),
        ("timeouts {\nread soon\n}", "'read' has 'soon', expected a duration such as 5s, 1m30s or 500ms"),
        ("timeouts {\nmaxtcpqueries 0\n}", "'maxtcpqueries' has '0', expected a whole number from 1 to 2147483647"),
        ("timeouts {\nreads 5s\n}", "unknown option 'reads' of 'timeouts', did you mean 'read'?"),
    ],
)
def test_values_without_a_meaning_are_refused(directive: str, problem: str) -> None:
    assert problem in block_problem(directive)
