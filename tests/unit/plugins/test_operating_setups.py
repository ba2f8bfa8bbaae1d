"""`timeouts`, `cancel`, `multisocket`, `pprof`, and the directives without arguments."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.arguments import Address
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
        ("cancel 0s", "'cancel' has 0s, expected a duration above 0"),
        ("cancel 1s 2s", "'cancel' has the arguments '1s 2s', expected one duration at most"),
        ("multisocket 0", "'multisocket' has '0', expected a whole number from 1 to 1024"),
        ("pprof 6053", "'pprof' has the arguments '6053', expected one address HOST:PORT or :PORT at most"),
        ("pprof {\nblock often\n}", "'block' has 'often', expected a whole number from 0 to 2147483647"),
        ("debug on", "'debug' has the arguments 'on', expected none"),
        ("metadata a..b", "found no zone's name: empty label in 'a..b'"),
        ("loop 5s", "'loop' has the arguments '5s', expected none"),
    ],
)
def test_values_without_a_meaning_are_refused(directive: str, problem: str) -> None:
    assert problem in block_problem(directive)


def test_a_query_is_cancelled_after_five_seconds_unless_said_otherwise() -> None:
    assert only_block("cancel").settings.get("cancel") == 5.001
    assert only_block("cancel 2s").settings.get("cancel") == 2.0


def test_sockets_profiles_and_directives_without_arguments() -> None:
    block = only_block("multisocket 4\npprof :6060 {\nblock 10\n}\ndebug\nmetadata\nloop")
    assert (block.settings.get("multisocket"), block.settings.get("pprof")) == (4, Address("", 6060))
    assert block.settings.get("debug")
    assert block.settings.get("metadata")
    assert block.settings.get("loop")
    assert only_block("multisocket\npprof\nmetadata example.org").settings.get("multisocket") == 0
