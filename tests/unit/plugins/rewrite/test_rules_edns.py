"""`rewrite edns0`: what the steps below find in the query, and what of it comes back to the client."""

import pytest

from tests.support.dns_messages import subnet
from tests.support.query_builders import client
from tests.support.rewrite_directives import Setup, question, resolve
from topodns.dns.message import Edns, Option, Response
from topodns.query.forwarded_options import forwarded_options
from topodns.query.plugin import Scope

Options = tuple[tuple[int, bytes], ...]

ECS, NSID = Option.CLIENT_SUBNET, Option.NSID
EMPTY = Edns(4096, 0, False)


def edns(*options: tuple[int, bytes]) -> Edns:
    return Edns(1232, 0, True, options)


@pytest.mark.parametrize(
    ("rule", "sent", "below"),
    [
        ("local set 0xffee abcd", None, Edns(4096, 0, False, ((0xFFEE, b"abcd"),))),
        ("local set 0xffee 0x6162", edns((1, b"x")), edns((1, b"x"), (0xFFEE, b"ab"))),
        ("local set 0xffee abcd", edns((0xFFEE, b"x"), (1, b"y"), (0xFFEE, b"z")), edns((0xFFEE, b"abcd"), (1, b"y"))),
        ("local append 0xffee abcd", edns(), edns((0xFFEE, b"abcd"))),
        ("local append 0xffee abcd", edns((0xFFEE, b"x")), edns((0xFFEE, b"x"), (0xFFEE, b"abcd"))),
        ("local append 0xffee {qname}", edns((0xFFEE, b"x")), edns((0xFFEE, b"x"))),
        ("local replace 0xffee abcd", edns((0xFFEE, b"x")), edns((0xFFEE, b"abcd"))),
        ("local replace 0xffee abcd", edns(), edns()),
        ("local replace 0xffee abcd", None, EMPTY),
        ("local unset 0xffee", edns((0xFFEE, b"x"), (1, b"y"), (0xFFEE, b"z")), edns((1, b"y"))),
        ("local unset 0xffee", None, EMPTY),
        ("nsid set", None, Edns(4096, 0, False, ((NSID, b""),))),
        ("nsid replace", edns((NSID, b"x")), edns((NSID, b""))),
        ("nsid append", edns((NSID, b"")), edns((NSID, b""), (NSID, b""))),
        ("nsid unset", edns((NSID, b"")), edns()),
        ("subnet set 24 56", edns((ECS, b"junk")), edns(subnet("10.240.7.0/24"))),
        ("subnet set 20 56", None, Edns(4096, 0, False, (subnet("10.240.0.0/20"),))),
        ("subnet set 0 56", edns(), edns((ECS, b"\0\1\0\0"))),
        ("subnet append 24 56", edns(subnet("10.9.0.0/16")), edns(subnet("10.9.0.0/16"))),
        ("subnet unset", edns(subnet("10.9.0.0/16")), edns()),
    ],
)
def test_the_query_below_has_the_options(rule: str, sent: Edns | None, below: Edns | None) -> None:
    setup = Setup()
    resolve(f"rewrite edns0 {rule}", question("a.com. A", sent), setup, client("10.240.7.9"))
    assert [query.edns for query in setup.queries] == [below]


@pytest.mark.parametrize(
    ("rule", "address", "data"),
    [
        ("{qname}", "10.0.0.1", b"A.Com."),
        ("{qtype}", "10.0.0.1", b"\0\x1c"),
        ("{client_ip}", "10.0.0.1", b"\x0a\0\0\1"),
        ("{client_ip}", "fd00::1", b"\xfd" + bytes(14) + b"\1"),
        ("{client_port}", "10.0.0.1", b"\x9d\x14"),
        ("{protocol}", "10.0.0.1", b"udp"),
        ("{server_ip}", "10.0.0.1", b"\x0a\x60\0\x0a"),
        ("{server_port}", "10.0.0.1", b"\0\x35"),
    ],
)
def test_variables(rule: str, address: str, data: bytes) -> None:
    setup = Setup()
    lines, server = f"rewrite edns0 local set 1 {rule}", bytes((10, 96, 0, 10))
    resolve(lines, question("A.Com. AAAA"), setup, client(address), server=server)
    assert [query.edns.option(1) for query in setup.queries if query.edns] == [data]


def test_an_unknown_server_address_is_no_match() -> None:
    setup = Setup()
    resolve("rewrite edns0 local set 1 {server_ip}\nrewrite type A MX", question("a.com. A"), setup)
    assert [(query.edns, query.qtype) for query in setup.queries] == [(None, 15)]


def test_the_name_is_the_one_that_earlier_rules_made() -> None:
    setup = Setup()
    resolve("rewrite continue name a.com b.org\nrewrite edns0 local set 1 {qname}", question("a.com. A"), setup)
    assert [query.edns.option(1) for query in setup.queries if query.edns] == [b"b.org."]


@pytest.mark.parametrize(
    ("lines", "asked_next"),
    [
        ("rewrite edns0 local set 1 a", False),
        ("rewrite edns0 local append 1 a", False),
        ("rewrite edns0 local append 1 {qname}", True),
        ("rewrite edns0 subnet append 24 56", False),
        ("rewrite edns0 local replace 2 a", True),
        ("rewrite edns0 local unset 2", False),
    ],
)
def test_a_rule_that_changed_nothing_is_no_match(lines: str, asked_next: bool) -> None:
    setup = Setup()
    resolve(f"{lines}\nrewrite type A MX", question("a.com. A", edns((1, b"x"))), setup)
    assert [query.qtype == 15 for query in setup.queries] == [asked_next]


@pytest.mark.parametrize(
    ("lines", "sent", "given", "seen"),
    [
        pytest.param("rewrite edns0 local set 9 a", edns(), (), (), id="no client sees it"),
        pytest.param("rewrite edns0 local set 9 a revert", edns(), (), (), id="nor with revert"),
        pytest.param(
            "rewrite edns0 local set 9 a", edns(), ((9, b"x"),), ((9, b"x"),), id="but what the steps below say"
        ),
        pytest.param(
            "rewrite edns0 local set 9 a revert", edns(), ((8, b"w"), (9, b"x"), (9, b"y")), ((8, b"w"),),
            id="revert removes those that the client did not send",
        ),
        pytest.param(
            "rewrite edns0 local replace 9 a revert", edns((9, b"c")), ((7, b"w"), (9, b"x")), ((7, b"w"), (9, b"c")),
            id="revert restores the one that the client sent",
        ),
        pytest.param(
            "rewrite edns0 local replace 9 a revert", edns(), ((9, b"x"),), ((9, b"x"),),
            id="a rule that did not match reverts nothing",
        ),
        pytest.param(
            "rewrite continue edns0 local set 9 a\nrewrite edns0 local replace 9 b revert", edns(),
            ((9, b"x"),), ((9, b"a"),), id="revert restores what an earlier rule set",
        ),
        pytest.param("rewrite edns0 nsid set revert", edns(), ((NSID, b"x"),), (), id="an NSID is reverted, too"),
        pytest.param("rewrite edns0 nsid set", edns(), (), (), id="NSID is not echoed"),
        pytest.param(
            "rewrite edns0 subnet set 24 56", edns(), (subnet("10.240.7.0/24"),), (), id="no subnet that was not sent"
        ),
        pytest.param(
            "rewrite edns0 subnet set 24 56", edns(subnet("10.9.0.0/16")), ((ECS, b"\0\1\x18\x18\x0a\xf0\7"),),
            ((ECS, b"\0\1\x10\x10\x0a\x09"),), id="the one that was sent, with it as the scope",
        ),
        pytest.param(
            "rewrite edns0 subnet set 24 56 revert", edns(subnet("10.9.0.0/16")), (subnet("10.240.7.0/24"),),
            ((ECS, b"\0\1\x10\x10\x0a\x09"),), id="with revert as well",
        ),
        pytest.param(
            "rewrite edns0 subnet append 24 56", edns(subnet("10.9.0.0/16")), (),
            ((ECS, b"\0\1\x10\x10\x0a\x09"),), id="also of an answer from a cache, which does not say its scope",
        ),
        pytest.param(
            "rewrite edns0 subnet set 24 56", edns((ECS, b"x")), (subnet("10.0.0.0/8"),), (), id="but not junk"
        ),
        pytest.param(
            "rewrite edns0 nsid set", edns(), (subnet("10.0.0.0/8"),), (subnet("10.0.0.0/8"),), id="else as it comes"
        ),
    ],
)  # fmt: skip
def test_options_of_the_response(lines: str, sent: Edns, given: Options, seen: Options) -> None:
    setup = Setup(Response(options=given))
    assert resolve(lines, question("a.com. A", sent), setup, client("10.240.7.9")).response.options == seen


@pytest.mark.parametrize(
    ("rule", "scope"),
    [
        ("local set 9 a", Scope.EVERYONE),
        ("local set 9 {qname}", Scope.EVERYONE),
        ("local set 9 {qtype}", Scope.EVERYONE),
        ("local set 9 {client_ip}", Scope.CLIENT),
        ("local set 9 {client_port}", Scope.CLIENT),
        ("local set 9 {protocol}", Scope.CLIENT),
        ("local set 9 {server_port}", Scope.CLIENT),
        ("local replace 9 {client_ip}", Scope.EVERYONE),  # there is none
        ("subnet set 24 56", Scope.CLIENT),
        ("subnet unset", Scope.EVERYONE),
    ],
)
def test_an_answer_that_depends_on_the_client_is_for_it_alone(rule: str, scope: Scope) -> None:
    assert resolve(f"rewrite edns0 {rule}", question("a.com. A", edns()), Setup()).scope is scope


@pytest.mark.parametrize(
    ("rule", "sent", "forwarded"),
    [
        ("local set 9 ours", edns((9, b"client"), (10, b"cookie")), [(9, b"ours")]),
        ("local append 9 ours", edns((9, b"client"), (10, b"cookie")), [(9, b"client"), (9, b"ours")]),
        ("local append 9 {qname}", edns((9, b"client"), (10, b"cookie")), [(9, b"client")]),
        ("subnet append 24 56", edns(subnet("10.9.0.0/16")), [subnet("10.9.0.0/16")]),
        ("local replace 9 ours", edns((10, b"cookie")), []),
        ("local unset 9", edns((9, b"client"), (10, b"cookie")), []),
    ],
)
def test_options_are_forwarded_that_a_rule_sets_or_keeps(rule: str, sent: Edns, forwarded: list[object]) -> None:
    setup = Setup()
    resolve(f"rewrite edns0 {rule}", question("a.com. A", sent), setup)
    assert [[*forwarded_options(query.edns)] for query in setup.queries] == [forwarded]
