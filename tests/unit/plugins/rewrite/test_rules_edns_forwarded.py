"""`rewrite edns0` above `cache` and `forward`: the upstream gets the options, and no answer is for other ones."""

import struct
from collections.abc import Iterator
from random import Random

import pytest

from tests.support.chains import chain_of
from tests.support.corefile_settings import only_block
from tests.support.dns_messages import subnet
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from topodns.dns.message import Edns, Option, Query
from topodns.dns.rrtype import RRType
from topodns.query.deferred import pursue
from topodns.query.plugin import ChainPart, Client, Resolution

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
    alone = [Block(rules).sent_options(*each) for each in queries]
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
