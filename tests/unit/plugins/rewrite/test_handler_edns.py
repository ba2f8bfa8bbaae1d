"""`rewrite edns0`: what the steps below find in the query, and what of it comes back to the client.

Above `cache` and `forward`, the upstream gets the options, and no answer is for other ones.
"""

import struct
from collections.abc import Iterator
from random import Random

import pytest

from tests.support.chains import chain_of
from tests.support.corefile_settings import only_block
from tests.support.dns_messages import subnet
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from tests.support.rewrite_directives import Setup, question, resolve
from topodns.dns.message import Edns, Option, Query, Response
from topodns.dns.rrtype import RRType
from topodns.query.deferred import pursue
from topodns.query.plugin import ChainPart, Client, Resolution, Scope, forwarded_options

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


CODES = (65001, 65002, 3, 8)
NAMES = ("a.example", "b.example", "a.c.example")


def reply_with_options(message: bytes) -> bytes:
    """An upstream: a TXT record with all options of the query, and the query's OPT record."""
    end = message.index(b"\0", 12) + 5
    opt = message[end:]
    options = " ".join(f"{code}={data.hex()}" for code, data in _options(opt[11:])) if opt else "no EDNS"
    record = b"\xc0\x0c\0\x10\0\1\0\0\0\x3c" + struct.pack("!HB", len(options) + 1, len(options)) + options.encode()
    return b"\0\0\x81\x80\0\1\0\1\0\0\0" + bytes((bool(opt),)) + message[12:end] + record + opt


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        code, length = struct.unpack_from("!HH", data)
        yield code, data[4 : 4 + length]
        data = data[4 + length :]


class Block:
    """A server block with these directives and an upstream in memory whose reply has the options of the query."""

    def __init__(self, lines: str, late: bool = False) -> None:
        self.scene = ForwardScene(reply_with_options)
        self.scene.upstreams[0].delay = 0.1 if late else 0.0
        part = ChainPart(step=self.scene.forwarding)
        self._chain = chain_of(only_block(f"{lines}\nforward . 192.0.2.1"), {"forward": (part,)})

    def ask(self, query: Query, asker: Client) -> list[Resolution]:
        """The resolution, perhaps later."""
        result: list[Resolution] = []
        answered = self._chain.resolve(query, asker)
        if isinstance(answered, Resolution):
            result.append(answered)
        else:
            pursue(answered, result.append)
        return result

    def sent_options(self, query: Query, asker: Client) -> str:
        return sent_options(self.ask(query, asker))


def sent_options(resolutions: list[Resolution]) -> str:
    """The options that the upstream got for this answer."""
    (resolution,) = resolutions
    return resolution.response.answer[0].rdatas[0][1:].decode()


@pytest.mark.parametrize(
    ("rules", "sent", "expected"),
    [
        ("edns0 subnet set 24 56", None, "8=000118000af000"),
        ("edns0 subnet set 24 56", (subnet("203.0.113.0/24"), (10, b"cookie00")), "8=000118000af000"),
        ("edns0 local set 0xfde9 abcd", (), "65001=61626364"),
        ("edns0 nsid set revert", None, "3="),
        ("edns0 local append 0xfde9 {qname}", ((65001, b"xx"), (65002, b"yy")), "65001=7878"),
        ("edns0 local replace 0xfde9 abcd", ((65001, b"xx"), (65002, b"yy")), "65001=61626364"),
        ("edns0 local unset 0xfde9", ((65001, b"xx"), (65002, b"yy")), ""),
        ("edns0 local unset 0xfde9", None, ""),
        ("name b.example a.example", None, "no EDNS"),
    ],
)
def test_the_upstream_gets_the_options_of_the_rules(
    rules: str, sent: tuple[tuple[int, bytes]] | None, expected: str
) -> None:
    edns = None if sent is None else Edns(1232, 0, False, sent)
    assert (
        Block(f"rewrite {rules}").sent_options(ask("a.example", RRType.TXT, edns=edns), client("10.240.0.1"))
        == expected
    )


@pytest.mark.parametrize(
    ("rules", "options"),
    [("edns0 local set 65001 a", ((65001, b"a"),)), ("edns0 local set 65001 a revert", ()), ("edns0 nsid unset", ())],
)
def test_the_client_gets_the_upstreams_option_of_a_rule_without_revert(
    rules: str, options: tuple[tuple[int, bytes], ...]
) -> None:
    query = ask("a.example", RRType.TXT, edns=Edns(1232, 0, False, ((Option.NSID, b""),)))
    ((resolution),) = Block(f"rewrite {rules}").ask(query, client())
    assert resolution.response.options == options


def _rules(random: Random) -> str:
    lines = []
    for _ in range(random.randint(1, 4)):
        action = random.choice(("set", "append", "replace", "unset"))
        kind = random.choice(("local", "local", "local", "nsid", "subnet"))
        words = ["edns0", kind, action]
        if kind == "local":
            words.append(random.choice(("65001", "65002")))
        if action != "unset":
            if kind == "local":
                words.append(
                    random.choice(("abcd", "{qname}", "{client_ip}", "{client_port}", "{protocol}", "{qtype}"))
                )
            words += random.choice((["24", "56"], ["8", "0"])) if kind == "subnet" else []
            words += random.choice(([], ["revert"]))
        lines.append(" ".join(("rewrite", random.choice(("continue", "stop")), *words)))
    return "\n".join(lines)


def _queries(random: Random) -> Iterator[tuple[Query, Client]]:
    """Few values of each field, so that many queries are equal but for one."""
    for _ in range(40):
        options = [(random.choice(CODES[:3]), random.choice((b"", b"x"))) for _ in range(random.choice((0, 0, 1, 2)))]
        options += [subnet("203.0.113.0/24")] if random.random() < 0.2 else []
        edns = Edns(1232, 0, random.random() < 0.2, tuple(options)) if options or random.random() < 0.5 else None
        name = random.choice(NAMES)
        asker = random.choice(("10.240.0.1", "10.240.0.9", "10.240.7.1", "2001:db8::1"))
        yield (
            ask(random.choice((name, name.upper())), RRType.TXT, edns=edns),
            client(asker, random.choice((4000, 5000)), random.choice(("udp", "tcp"))),
        )


@pytest.mark.parametrize("late", [False, True], ids=["one after another", "at the same time"])
@pytest.mark.parametrize("seed", range(60))
def test_no_answer_is_one_for_other_options(seed: int, late: bool) -> None:
    """Answers that are cached, or shared by queries in flight, are those that each query gets alone."""
    random = Random(seed)
    rules = _rules(random)
    queries = list(_queries(random))
    together = Block(f"{rules}\ncache 30", late)
    answers = [together.ask(*each) for each in queries]
    together.scene.timers.advance(1)
    uncached = Block(rules)
    alone = [uncached.sent_options(*each) for each in queries]
    assert [sent_options(each) for each in answers] == alone, rules


@pytest.mark.parametrize("late", [False, True], ids=["one after another", "at the same time"])
def test_queries_whose_forwarded_options_are_the_same_share_an_answer(late: bool) -> None:
    block = Block("rewrite edns0 subnet set 24 56\ncache 30", late)
    answers = [
        block.ask(ask("a.example", RRType.TXT, edns=Edns(1232, 0, False, options)), client(address, port))
        for port, address in enumerate(("10.240.0.1", "10.240.0.9", "10.240.7.1"), 4000)
        for options in ((), (subnet("203.0.113.0/24"),), ((10, b"cookie00"),))
    ]
    block.scene.timers.advance(1)
    assert [sent_options(each)[-6:] for each in answers] == 6 * ["0af000"] + 3 * ["0af007"]
    assert block.scene.asked == [2]
