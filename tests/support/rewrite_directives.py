"""`rewrite` directives from text, and the result of a query that goes through them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from tests.support.query_builders import ask, client
from topodns.corefile.errors import ConfigError
from topodns.corefile.lexer import tokenize
from topodns.corefile.parser import Directive, parse_blocks
from topodns.dns.message import Edns, Query, Response, RRset
from topodns.dns.name import name_text, name_wire, wire_labels
from topodns.dns.rrtype import QTYPES, TYPE_NAMES
from topodns.plugins.context import Context
from topodns.plugins.rewrite.handler import Rewriter
from topodns.plugins.rewrite.settings import RewriteRule
from topodns.plugins.rewrite.setup import parse_rewrite
from topodns.query.cname import Chase
from topodns.query.deferred import pursue
from topodns.query.plugin import Answered, Client, Resolution


def directives(lines: str) -> tuple[Directive, ...]:
    """The directives of these lines, which start on line 2."""
    (block,) = parse_blocks(tokenize(f". {{\n{lines}\n}}\n", "Corefile"))
    return block.directives


def rules(lines: str) -> tuple[RewriteRule, ...]:
    """The rules of all the `rewrite` directives in these lines."""
    return tuple(rule for each in directives(lines) for rule in parse_rewrite(each, Context(())))


def problem_of(lines: str) -> str:
    """The problem of these lines, as the operator reads it."""
    try:
        rules(lines)
    except ConfigError as error:
        return str(error)
    raise AssertionError("nothing is wrong with it")


def rrset(line: str) -> RRset:
    """`OWNER TTL TYPE DATA` for types of addresses and names, DATA with leading numbers; the owner @ is the query's."""
    owner, ttl, rtype, *numbers, value = line.split()
    head = b"".join(int(number).to_bytes(2, "big") for number in numbers)
    data = ip_address(value).packed if rtype in ("A", "AAAA") else head + _spelled(value)
    return RRset(b"" if owner == "@" else _spelled(owner), QTYPES[rtype], int(ttl), (data,))


def _spelled(name: str) -> bytes:
    return name_wire([label for label in name.split(".") if label])


def line(each: RRset) -> str:
    """The line that `rrset` was given, for types without numbers."""
    owner = name_text(wire_labels(each.owner)) if each.owner else "@"
    data = each.rdatas[0]
    value = str(ip_address(data)) if TYPE_NAMES[each.rtype] in ("A", "AAAA") else name_text(wire_labels(data))
    return f"{owner} {each.ttl} {TYPE_NAMES[each.rtype]} {value}"


def question(text: str, edns: Edns | None = None) -> Query:
    """The query for `NAME TYPE`."""
    name, qtype = text.split()
    return ask(name, QTYPES[qtype], edns=edns)


def asked(query: Query) -> str:
    return f"{name_text(wire_labels(query.spelling))} {TYPE_NAMES[query.qtype]}"


@dataclass(slots=True)
class Setup:
    """The steps below, which answer every question alike, and the listener, which knows a few names."""

    answered: Response = field(default_factory=Response)
    listener: Mapping[str, Answered | None] = field(default_factory=dict)  # by `NAME TYPE`
    queries: list[Query] = field(default_factory=list)  # what the steps below were asked
    chased: list[str] = field(default_factory=list)  # what the listener was asked

    def below(self, query: Query, _: Client) -> Answered:
        self.queries.append(query)
        return Resolution(self.answered, "forward")

    def chase(self, target: tuple[str, ...], qtype: int, _: Client) -> Answered | None:
        text = f"{name_text(target)} {TYPE_NAMES[qtype]}"
        self.chased.append(text)
        return self.listener[text]


def resolve(
    lines: str, query: Query, setup: Setup, who: Client | None = None, chase: Chase | None = None, server: bytes = b""
) -> Resolution:
    """The result for a client whose query passes the rules and then the world below; to be settled at once."""
    answered = Rewriter(rules(lines), chase, server)(query, who or client(), setup.below)
    if isinstance(answered, Resolution):
        return answered
    settled: list[Resolution] = []
    pursue(answered, settled.append)
    return settled[0]


def response(answer: Iterable[str]) -> Response:
    return Response(answer=tuple(map(rrset, answer)))
