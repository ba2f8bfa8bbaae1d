"""The names, the format and the classes of `log`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.plugins.log import LogRule

COMMON = (
    '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" '
    "{rcode} {>rflags} {rsize} {duration}"
)


COMBINED = COMMON + ' "{>opcode}"'


ALL = frozenset({"all"})


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
        ("log {combined}", "2: 'log' has '{combined}', expected names and then one format: log . '{combined}'"),
        (
            "log {type} . {name}",
            "2: 'log' has '{type}', expected names and then one format: log . '{type}'",
        ),
        ("log a..b", "2: found no zone's name: empty label in 'a..b'"),
        ("log {\n class\n}", "3: 'class' has no argument, expected success, denial, error or all"),
        ("log {\n class errors\n}", "3: 'class' has 'errors', did you mean 'error'?"),
        ("log {\n clas all\n}", "3: unknown option 'clas' of 'log', did you mean 'class'?"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
