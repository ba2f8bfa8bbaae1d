"""Values of expressions, for one query from one client, and text that is no expression or uses unsupported parts."""

import pytest

from tests.support.dns_messages import DO, Opt
from tests.support.in_memory_server import dig
from tests.support.model_builders import packed
from topodns.dns.wire_reader import read_query
from topodns.plugins.view.expression import compile_expression
from topodns.plugins.view.functions import ViewQuery
from topodns.plugins.view.parser import BadExpression
from topodns.query.plugin import Client

CLIENT = Client(packed("10.244.1.7"), 40212, "udp", 5300)


def asked(
    question: str = "www.Example.com. A", client: Client = CLIENT, opt: Opt | None = None, flags: int = 0x0100
) -> ViewQuery:
    return ViewQuery(read_query(dig(question, opt, flags, 4711)), client, "192.0.2.53")


def holds(expression: str, question: ViewQuery | None = None) -> bool:
    return compile_expression(expression).holds(question or asked())


@pytest.mark.parametrize(
    "expression",
    [
        "type() == 'A'",
        "name() == 'www.example.com.'",  # lower-case, whatever the spelling
        "class() == 'IN'",
        "proto() == 'udp'",
        "size() == 33",
        "client_ip() == '10.244.1.7'",
        "port() == '40212'",
        "id() == 4711",
        "opcode() == 0",
        "do() == false",
        "bufsize() == 512",
        "server_ip() == '192.0.2.53'",
        "server_port() == '5300'",
        "incidr(client_ip(), '10.244.0.0/16')",
    ],
)
def test_the_functions_of_a_plain_query(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    ("question", "expression"),
    [
        (asked("www.example.com. TYPE65280"), "type() == 'TYPE65280'"),
        (asked("www.example.com. CAA"), "type() == 'CAA'"),
        (asked("www.example.com. SVCB"), "type() == 'SVCB'"),
        (asked("www.example.com. CH TXT"), "class() == 'CH'"),
        (asked(". NS"), "name() == '.'"),
        (asked("www.example.com. A", flags=0x2800), "opcode() == 5"),
        (asked(opt=Opt(1232, flags=DO)), "do() && bufsize() == 1232"),
        (asked(opt=Opt(100)), "!do() && bufsize() == 512"),
        (asked(client=CLIENT._replace(transport="tcp")), "proto() == 'tcp' && bufsize() == 65535"),
        (asked(client=CLIENT._replace(address=packed("2001:db8::1"))), "client_ip() == '2001:db8::1'"),
        (asked(client=CLIENT._replace(address=packed("2001:db8::1"))), "incidr(client_ip(), '2001:0DB8::/32')"),
    ],
)
def test_the_functions_of_other_queries(question: ViewQuery, expression: str) -> None:
    assert holds(expression, question)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [  # the README of CoreDNS's view, and what its issues and posts show
        ("incidr(client_ip(), '127.0.0.0/24')", False),
        ("type() in ['A', 'AAAA']", True),
        ("type() in ['MX', 'TXT',]", False),
        ("type() not in ['A', 'AAAA']", False),
        (r"name() matches '^abc\\..*\\.example\\.com\\.$'", False),
        (r"name() matches '^w+\\.example\\.com\\.$'", True),
        (r"name() matches `^w+\.example\.com\.$`", True),
        ("name() matches 'example'", True),  # anywhere
        ("name() not matches 'example'", False),
        ("(type() == 'A' && name() == 'example.com.') || client_ip() == '1.2.3.4'", False),
        ("name() endsWith '.example.com.'", True),
        ("not (name() endsWith '.example.com.')", False),
        ("name() not endsWith '.example.org.'", True),
        ("name() startsWith 'www' and name() contains 'amp'", True),
        ("incidr(client_ip(), '10.0.0.0/8') || incidr(client_ip(), '192.168.0.0/16')", True),
        ("!incidr(client_ip(), '10.0.0.0/8')", False),
        ("client_ip() not in ['10.244.1.7', '::1']", False),
    ],
)
def test_conditions_that_corefiles_have(expression: str, expected: bool) -> None:
    assert holds(expression) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "true or false and false",  # `and` binds closer
        "not false and true",
        "!true == false",
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "7 - 2 - 1 == 4",
        "-7 % 3 == -1",  # the sign of Go
        "7 % -3 == 1",
        "7 / 2 == 3.5",
        "+3 - -3 == 6",
        "'a' + 'b' + 'c' == 'abc'",
        "'b' > 'a' && 'a' <= 'a'",
        "0x10 + 0b11 + 0o17 == 34",
        "1_000 == 1e3",
        ".5 + 1.5 >= 2",
        "5 == 5.0",
        "1 in [1.0, 2]",
        "5 in [id() - 4706]",
        "nil == nil",
        "type() != nil",
        "'x' not in []",
        "true ? true : false",
        "type() == 'MX' ? false : type() == 'A' ? true : false",
        "(do() ? 'yes' : 'no') == 'no'",
        r"""'\x41\u0042\103\t\'"' == "ABC\t'\"" """,
        "true // the rest of the line",
        "true /* or */ && true",
    ],
)
def test_operators_and_literals_of_expr_lang(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    ("address", "network", "expected"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.4/30", False),
        ("10.1.2.3", "10.9.9.9/8", True),  # bits after the prefix are dropped
        ("::ffff:10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "::ffff:10.0.0.0/104", True),
        ("11.1.2.3", "::ffff:10.0.0.0/104", False),
        ("10.1.2.3", "::ffff:0:0/95", False),
        ("2001:db8::1", "2001:DB8::/32", True),
        ("2001:db8::1", "0.0.0.0/0", False),
        ("10.1.2.3", "::/0", False),
    ],
)
def test_incidr_takes_addresses_of_both_versions(address: str, network: str, expected: bool) -> None:
    assert holds(f"incidr('{address}', '{network}')") is expected


def test_incidr_takes_a_network_that_is_computed() -> None:
    assert holds("incidr('192.0.2.1', server_ip() + '/24')")
    assert not holds("incidr('192.0.3.1', server_ip() + '/24')")


@pytest.mark.parametrize(
    "expression",
    [
        "incidr('invalid', '1.2.3.0/24')",
        "not incidr('invalid', '1.2.3.0/24')",  # a failure is no value that could be negated
        "incidr('[::1]', '::/0') or true",
        "incidr('10.1.2.3/8', '10.0.0.0/8')",
        "not incidr(client_ip(), server_ip() + '/33')",
        "not incidr(client_ip(), server_ip())",
        "not incidr(client_ip(), server_ip() + '/255.255.255.0')",
        "1 / (opcode() + 0) > 0",
        "1 % opcode() == 0",
        "1e308 * 10 > 1 && size() / (id() - 4711) > 0",
    ],
)
def test_an_expression_that_cannot_be_computed_is_not_true(expression: str) -> None:
    assert not holds(expression)


@pytest.mark.parametrize(
    ("expression", "of_client"),
    [
        ("type() == 'A' && name() == 'a.' && do() && bufsize() > size()", False),
        ("proto() == 'udp' && server_ip() == '::' && server_port() == '53'", False),  # each socket keeps its own
        ("type() == 'A' && client_ip() == '10.0.0.1'", True),
        ("incidr(client_ip(), '10.0.0.0/8')", True),
        ("port() == '53'", True),
        ("id() % 2 == 0", True),
    ],
)
def test_an_expression_knows_whether_it_rests_on_the_client(expression: str, of_client: bool) -> None:
    assert compile_expression(expression).of_client is of_client


def problem(expression: str) -> str:
    with pytest.raises(BadExpression) as raised:
        compile_expression(expression)
    return str(raised.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("client() == ''", "unknown function 'client' at character 1, expected one of bufsize, class, client_ip, do,"),
        ("len(name()) > 3", "unknown function 'len' at character 1, expected one of"),
        (
            "metadata('namespace') == 'default'",
            "'metadata' at character 1 has no label, expected a label in quotes",
        ),
        ("metadata(name()) == 'default'", "'metadata' at character 1 has no label, expected a label in quotes such as"),
        ("metadata() == 'default'", "'metadata' at character 1 has 0 arguments, expected 1"),
        ("do(1)", "'do' at character 1 has 1 arguments, expected none"),
        ("incidr(client_ip())", "'incidr' at character 1 has 1 arguments, expected 2"),
        ("incidr(id(), '10.0.0.0/8')", "'incidr' at character 1 has an integer, expected an address and a network"),
        ("incidr(client_ip(), '10.0.0.0')", "'incidr' has '10.0.0.0', expected a network such as '10.0.0.0/8'"),
        ("incidr(client_ip(), '10.0.0.0/33')", "'incidr' has '10.0.0.0/33', expected a network"),
        ("incidr(client_ip(), '10.0.0.0/255.0.0.0')", "'incidr' has '10.0.0.0/255.0.0.0', expected a network"),
        ("name() matches '('", "'(' is no regular expression: "),
        ("name() matches '(?!a)'", "'(?!a)' is no regular expression: "),
        ("name() matches type()", "'matches' at character 8 has something computed, expected a pattern in quotes"),
        ("id() matches 'a'", "'matches' at character 6 has an integer, expected a string before it"),
        ("id() == '1'", "'==' at character 6 has an integer and a string, expected two of one kind"),
        ("port() > 1024", "'>' at character 8 has a string and an integer, expected two numbers or two strings"),
        ("1 < 2 < 3", "'<' at character 7 has a boolean and an integer, expected two numbers or two strings"),
        ("nil < 1", "'<' at character 5 has nil and an integer, expected two numbers or two strings"),
        ("name() contains 1", "'contains' at character 8 has a string and an integer, expected two strings"),
        ("name() + 1 == ''", "'+' at character 8 has a string and an integer, expected two numbers or two strings"),
        ("1.5 % 2 == 0", "'%' at character 5 has a number and an integer, expected two integers"),
        ("true - 1 == 0", "'-' at character 6 has a boolean and an integer, expected two numbers"),
        ("-name() == ''", "'-' at character 1 has a string, expected a number"),
        ("not name() matches 'a'", "'not' at character 1 has a string, expected conditions: true or false"),
        ("do() && id()", "'and' at character 6 has an integer, expected conditions: true or false"),
        ("name() ? true : false", "'?' at character 8 has a string, expected conditions: true or false"),
        ("(do() ? 1 : 'a') == 1", "'?' at character 7 has an integer and a string, expected two of one kind"),
        ("type() in 'AAAA'", "'in' at character 8 has no array, expected one after it, such as ['A', 'AAAA']"),
        ("type() in ['A', 1]", "'in' at character 8 looks for a string, but its array has an integer"),
        ("1 in [true]", "'in' at character 3 looks for an integer, but its array has a boolean"),
        ("['A'] == ['A']", "found an array at character 1, expected it after 'in'"),
        ("name()", "found a string, expected a condition: something that is true or false"),
        ("1", "found an integer, expected a condition"),
        ("nil", "found nil, expected a condition"),
    ],
)
def test_expressions_that_could_never_be_computed(expression: str, expected: str) -> None:
    assert expected in problem(expression)
