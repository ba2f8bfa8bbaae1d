import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.dns.name import ROOT
from topodns.dns.rrtype import RRType
from topodns.plugins.template.settings import ANY_CLASS, ANY_TYPE, Template

EXAMPLE = ("example",)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("template ANY ANY", Template(ANY_CLASS, ANY_TYPE, (ROOT,))),
        ("template IN AAAA {\n rcode NXDOMAIN\n}", Template(1, RRType.AAAA, (ROOT,), rcode=3)),
        ("template in a example a.test.", Template(1, RRType.A, (EXAMPLE, ("a", "test")))),
        ("template CH TYPE257 example {\n}", Template(3, 257, (EXAMPLE,))),
        (
            'template IN A {\n match ^a b$\n match "c d"\n fallthrough\n}',
            Template(1, RRType.A, (ROOT,), patterns=("^a", "b$", "c d"), fallthrough=(ROOT,)),
        ),
        (
            'template IN A {\n answer "x. NS ." "{{ .Name }} NS ."\n authority "{{ 1 }}"\n additional "y. NS ."\n}',
            Template(
                1,
                RRType.A,
                (ROOT,),
                answer=("x. NS .", "{{ .Name }} NS ."),
                authority=("{{ 1 }}",),
                additional=("y. NS .",),
            ),
        ),
        ("template IN A {\n ederror 21 blocked\n}", Template(1, RRType.A, (ROOT,), ede=(21, "blocked"))),
        ("template IN A {\n ederror 21\n upstream 8.8.8.8\n}", Template(1, RRType.A, (ROOT,), ede=(21, ""))),
        (
            "template IN A {\n fallthrough example 10.0.0.0/8\n}",
            Template(1, RRType.A, (ROOT,), fallthrough=(EXAMPLE, ("10", "in-addr", "arpa"))),
        ),
    ],
)
def test_template(lines: str, expected: Template) -> None:
    assert only_block(lines).settings.get("template") == (expected,)


def test_a_block_may_have_several_in_order() -> None:
    found = only_block("template IN A example\nwhoami\ntemplate IN AAAA test").settings["template"]
    assert [template.qtype for template in found] == [RRType.A, RRType.AAAA]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("template", "Corefile:2: 'template' has no argument, expected a class, a type"),
        ("template IN", "Corefile:2: 'template' has the arguments 'IN', expected a class, a type"),
        ("template X A", "Corefile:2: 'template' has 'X', expected IN, CS, CH, HS or ANY"),
        ("template IN AAA", "Corefile:2: unknown record type 'AAA', did you mean 'AAAA'?"),
        (
            "template IN 7",
            "Corefile:2: unknown record type '7', expected a name such as AAAA or a number",
        ),
        ("template IN A {\n notavailable\n}", "Corefile:3: unknown option 'notavailable' of 'template'"),
        ("template IN A {\n expr true\n}", "Corefile:3: CoreDNS has the option 'expr' of 'template', topodns does not"),
        ("template IN A {\n match\n}", "Corefile:3: 'match' has no argument, expected one or more regular expressions"),
        ("template IN A {\n match (a\n}", "Corefile:3: '(a' is no regular expression: missing ): (a"),
        ("template IN A {\n answer\n}", "Corefile:3: 'answer' has no argument, expected a record, in double quotes"),
        ('template IN A {\n answer "{{"\n}', "Corefile:3: 'answer': {{: found the end of the text, expected }}"),
        (
            'template IN A {\n\n additional "x {{ notAFunction }}"\n}',
            "Corefile:4: 'additional': {{ notAFunction }}: unknown function 'notAFunction', expected one of and, eq",
        ),
        (
            'template IN A {\n authority "{{ .Var.ip }}"\n}',
            "Corefile:3: 'authority': {{ .Var.ip }}: unknown field '.Var', expected one of .Class, .Group",
        ),
        (
            'template IN A {\n answer "example.org A"\n}',
            "Corefile:3: 'answer': the text is no record: found 0 words of data for A, expected 1",
        ),
        (
            'template IN TXT {\n\n answer "{{ .Name }} 60 IN SPF"\n}',
            "Corefile:4: 'answer': the text is no record: found 0 words of data for SPF, expected at least 1",
        ),
        ("template IN A {\n rcode\n}", "Corefile:3: 'rcode' has no argument, expected a response code"),
        ("template IN A {\n rcode NXDOMAN\n}", "Corefile:3: 'rcode' has 'NXDOMAN', "),
        ("template IN A {\n ederror invalid\n}", "Corefile:3: 'ederror' has 'invalid', expected a whole number"),
        ("template IN A {\n ederror too many arguments\n}", "Corefile:3: 'ederror' has the arguments 'too many arg"),
    ],
)
def test_lines_that_template_refuses(lines: str, problem: str) -> None:
    assert block_problem(lines).startswith(problem)
