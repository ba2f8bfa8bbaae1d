"""`errors`, `log`, `health`, `ready` and `prometheus`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.arguments import Address
from topodns.plugins.errors import Consolidation, Errors
from topodns.plugins.health import Health
from topodns.plugins.log import LogRule
from topodns.plugins.prometheus import Prometheus
from topodns.plugins.ready import Ready

COMMON = (
    '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" '
    "{rcode} {>rflags} {rsize} {duration}"
)
COMBINED = COMMON + ' "{>opcode}"'
ALL = frozenset({"all"})


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("errors", Errors()),
        ("errors stdout", Errors()),
        ("errors {\n}", Errors()),
        ("errors {\n stacktrace\n}", Errors()),
        ('errors {\n consolidate 5m ".* timeout$"\n}', Errors((Consolidation(300.0, "5m", ".* timeout$"),))),
        (
            "errors {\n consolidate 30s a warning show_first\n consolidate 1s b\n}",
            Errors((Consolidation(30.0, "30s", "a", "warning", True), Consolidation(1.0, "1s", "b"))),
        ),
    ],
)
def test_errors(lines: str, expected: Errors) -> None:
    block = only_block(lines)
    assert block.settings.get("errors") == expected


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ("log", LogRule(((),), COMMON, ALL)),
        ("log example.org", LogRule((("example", "org"),), COMMON, ALL)),
        ("log a.org B.org", LogRule((("a", "org"), ("b", "org")), COMMON, ALL)),
        ("log . {common}", LogRule(((),), COMMON, ALL)),
        ("log . {combined}", LogRule(((),), COMBINED, ALL)),
        ('log a.org b.org "{type} \\"{name}\\""', LogRule((("a", "org"), ("b", "org")), '{type} "{name}"', ALL)),
        ('log . "{combined} {/kubernetes/endpoint}"', LogRule(((),), COMBINED + " {/kubernetes/endpoint}", ALL)),
        ("log {\n class denial error\n}", LogRule(((),), COMMON, frozenset({"denial", "error"}))),
        ("log {\n class denial\n class success\n}", LogRule(((),), COMMON, frozenset({"denial", "success"}))),
        ("log . {combined} {\n class all\n}", LogRule(((),), COMBINED, ALL)),
    ],
)
def test_log(lines: str, rule: LogRule) -> None:
    assert only_block(lines).settings.get("log") == (rule,)


def test_several_logs_add_up_in_order() -> None:
    rules = only_block("log a.org\nerrors\nlog b.org {\n class error\n}").settings["log"]
    assert [rule.origins for rule in rules] == [(("a", "org"),), (("b", "org"),)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("health", Health(Address("", 8080), 0.0)),
        ("health :8081", Health(Address("", 8081))),
        ("health localhost:8081", Health(Address("localhost", 8081))),
        ("health [::1]:8081", Health(Address("::1", 8081))),
        ("health {\n lameduck 5s\n}", Health(lameduck=5.0)),
    ],
)
def test_health(lines: str, expected: Health) -> None:
    assert only_block(lines).settings.get("health") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("ready", Ready(Address("", 8181), continuously=False)),
        ("ready 127.0.0.1:1", Ready(Address("127.0.0.1", 1))),
        ("ready {\n monitor until-ready\n}", Ready()),
        ("ready {\n monitor continuously\n}", Ready(continuously=True)),
    ],
)
def test_ready(lines: str, expected: Ready) -> None:
    assert only_block(lines).settings.get("ready") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("prometheus", Prometheus(Address("localhost", 9153))),
        ("prometheus :9153", Prometheus(Address("", 9153))),
        ("prometheus 0.0.0.0:9253", Prometheus(Address("0.0.0.0", 9253))),
    ],
)
def test_prometheus(lines: str, expected: Prometheus) -> None:
    assert only_block(lines).settings.get("prometheus") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("errors stderr", "2: 'errors' has the arguments 'stderr', expected none"),
        ("errors {\n stacktrace on\n}", "3: 'stacktrace' has the arguments 'on', expected none"),
        (
            "errors {\n consolidate 5m\n}",
            "3: 'consolidate' has the arguments '5m', expected a duration and a regular expression",
        ),
        ("errors {\n consolidate 5m (\n}", "3: 'consolidate' has the regular expression '(': missing ): ("),
        (
            "errors {\n consolidate 5m a loud\n}",
            "3: 'consolidate' has 'loud', expected debug, info, warning or error, then show_first",
        ),
        (
            "errors {\n consolidate 5m a show_first info\n}",
            "3: 'consolidate' has 'show_first info', expected debug, info, warning or error, then show_first",
        ),
        ("errors {\n stacktraces\n}", "3: unknown option 'stacktraces' of 'errors', did you mean 'stacktrace'?"),
        ("log {combined}", "2: 'log' has '{combined}', expected names and then one format: log . '{combined}'"),
        (
            "log {type} . {name}",
            "2: 'log' has '{type}', expected names and then one format: log . '{type}'",
        ),
        ("log a..b", "2: found no zone's name: empty label in 'a..b'"),
        ("log {\n class\n}", "3: 'class' has no argument, expected success, denial, error or all"),
        ("log {\n class errors\n}", "3: 'class' has 'errors', did you mean 'error'?"),
        ("log {\n clas all\n}", "3: unknown option 'clas' of 'log', did you mean 'class'?"),
        (
            "health 8080",
            "2: 'health' has the arguments '8080', expected one address HOST:PORT or :PORT at most; "
            "did you mean ':8080'?",
        ),
        ("health 8080 1", "2: 'health' has the arguments '8080 1', expected one address HOST:PORT or :PORT at most"),
        ("health :65536", "2: 'health' has the arguments ':65536', expected one address HOST:PORT or :PORT at most"),
        ("health ::1:80", "2: 'health' has the arguments '::1:80', expected one address HOST:PORT or :PORT at most"),
        ("health :1 :2", "2: 'health' has the arguments ':1 :2', expected one address HOST:PORT or :PORT at most"),
        ("health {\n lameduck\n}", "3: 'lameduck' has no argument, expected a duration"),
        ("health {\n lameduck 5\n}", "3: 'lameduck' has '5', expected a duration such as 5s, 1m30s or 500ms"),
        ("health {\n lameduk 5s\n}", "3: unknown option 'lameduk' of 'health', did you mean 'lameduck'?"),
        (
            "ready localhost",
            "2: 'ready' has the arguments 'localhost', expected one address HOST:PORT or :PORT at most",
        ),
        ("ready {\n monitor always\n}", "3: 'monitor' has 'always', expected until-ready or continuously"),
        ("ready {\n watch\n}", "3: unknown option 'watch' of 'ready', expected monitor"),
        ("prometheus {\n tls web.yml\n}", "3: CoreDNS has the option 'tls' of 'prometheus', topodns does not"),
        ("prometheus {\n path /m\n}", "3: unknown option 'path' of 'prometheus', expected none"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
