"""The `log` plugin: logs queries and their replies as lines in CoreDNS's format language.

The only free text of a query is its name, and `name_text` escapes it: no query can forge or break a line.
The caller writes the lines.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, NamedTuple

from topodns.corefile.arguments import choice, fold_options, some_args
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dns.message import Flag, Query
from topodns.dns.name import ROOT, Name, is_below_any, name_text
from topodns.dns.rrtype import class_text, members, rcode_text, type_text
from topodns.dns.wire_format import MAX_MESSAGE, MIN_UDP_PAYLOAD
from topodns.logs import printable
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin, all_origins
from topodns.plugins.setup import BlockListener, BlockSetup, Install
from topodns.query.metadata import ReaderOf, ReadLabel, without_metadata
from topodns.query.plugin import ChainPart, Client, Resolution
from topodns.query.response_type import ResponseType, response_class, response_type


@dataclass(frozen=True, slots=True)
class LogRule:
    """One `log` directive: logs in `format` the queries for names under `origins` with a reply of one of `classes`."""

    origins: tuple[Name, ...]
    format: str
    classes: frozenset[str]  # of: success, denial, error, all


COMMON_FORMAT: Final = (
    '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" '
    "{rcode} {>rflags} {rsize} {duration}"
)
COMBINED_FORMAT: Final = f'{COMMON_FORMAT} "{{>opcode}}"'
_CLASSES: Final = {name: name for name in ("success", "denial", "error", "all")}


def parse_log(directive: Directive, _: Context) -> tuple[LogRule, ...]:
    """`log [NAMES...] [FORMAT]`: of two or more arguments, a last one with a brace is the format, as in CoreDNS."""
    names, form = directive.args, COMMON_FORMAT
    if len(names) > 1 and "{" in names[-1]:
        names, form = names[:-1], names[-1]
    for name in names:
        if "{" in name:
            raise directive.error(f"'log' has {shown(name)}, expected names and then one format: log . {shown(name)}")
    form = form.replace("{common}", COMMON_FORMAT).replace("{combined}", COMBINED_FORMAT)
    classes = fold_options(directive, frozenset[str](), {"class": _classes}) or frozenset({"all"})
    return (LogRule(parse_origins(directive, names) or (ROOT,), form, classes),)


def _classes(option: Directive, classes: frozenset[str]) -> frozenset[str]:
    words = some_args(option, "success, denial, error or all")
    return classes | {choice(option, word, _CLASSES) for word in words}


EMPTY: Final = "-"

_FLAGS: Final = tuple((name.lower(), bit) for name, bit in members(Flag).items())
_METADATA: Final = "{/"
_PLACEHOLDER: Final = re.compile(r"(\{[^{}]*\})")


class Exchange(NamedTuple):
    """A query and its reply."""

    query: Query
    client: Client
    rcode: int | None  # None: no reply
    flags: int  # the second header word of the reply
    rsize: int  # octets of the reply; 0: none
    duration: float  # seconds from the query's arrival to its reply
    kind: ResponseType  # OTHER_ERROR: no reply
    local: str  # the address listened on, as text
    upstream: str  # that gave the answer, or failed; "": `forward` was not asked


Formatter = Callable[[Exchange], str]
_Rule = tuple[tuple[Name, ...], frozenset[str], Formatter]


class QueryLog:
    """The `log` directives of a server block that listens on `local` ("": every address); `write` takes the lines."""

    def __init__(
        self,
        rules: Sequence[LogRule],
        write: Callable[[str], object],
        local: str = "",
        reader_of: ReaderOf = without_metadata,
    ) -> None:
        self._rules: list[_Rule] = [
            (rule.origins, rule.classes, compile_format(rule.format, reader_of)) for rule in rules
        ]
        self._write = write
        self._local = local or "::"

    def __call__(
        self, query: Query, client: Client, resolution: Resolution | None, reply: bytes | None, seconds: float
    ) -> bool:
        """Log the query if its rule has the reply's class; returns whether it was logged.

        A query that was dropped has no resolution or no reply, and counts as an error.
        """
        rule = self._rule_for(query.qname)
        if rule is None:
            return False
        exchange = self._exchange(query, client, resolution, reply, seconds)
        _, classes, formatter = rule
        if "all" not in classes and response_class(exchange.kind).value not in classes:
            return False
        self._write(formatter(exchange))
        return True

    def _rule_for(self, qname: Name) -> _Rule | None:
        """The first rule that covers the name, even if its classes exclude the reply (as CoreDNS)."""
        return next((rule for rule in self._rules if is_below_any(qname, rule[0])), None)

    def _exchange(
        self, query: Query, client: Client, resolution: Resolution | None, reply: bytes | None, seconds: float
    ) -> Exchange:
        if resolution is None or reply is None:
            return Exchange(
                query=query,
                client=client,
                rcode=None,
                flags=0,
                rsize=0,
                duration=seconds,
                kind=ResponseType.OTHER_ERROR,
                local=self._local,
                upstream="" if resolution is None else resolution.upstream,
            )
        kind = response_type(query, resolution.response)
        flags = int.from_bytes(reply[2:4], "big")
        return Exchange(
            query=query,
            client=client,
            rcode=resolution.response.rcode,
            flags=flags,
            rsize=len(reply),
            duration=seconds,
            kind=kind,
            local=self._local,
            upstream=resolution.upstream,
        )


def compile_format(text: str, reader_of: ReaderOf = without_metadata) -> Formatter:
    """A function that replaces this format's placeholders, as CoreDNS does.

    An unknown placeholder is literal text; {/LABEL} of metadata without a value is "-".
    """
    parts = [_part(piece, reader_of) for piece in _PLACEHOLDER.split(text) if piece]
    return lambda exchange: "".join([part(exchange) for part in parts])


def _part(piece: str, reader_of: ReaderOf) -> Formatter:
    placeholder = _PLACEHOLDERS.get(piece)
    if placeholder is not None:
        return placeholder
    if piece.startswith(_METADATA) and piece.endswith("}"):
        return _metadata(reader_of(piece[len(_METADATA) : -1]))
    return lambda _: piece


def _metadata(read: ReadLabel) -> Formatter:
    def value(exchange: Exchange) -> str:
        found = read(exchange.query, exchange.client)
        return EMPTY if found is None else printable(found)  # in a manifest, a label may have any characters

    return value


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _opcode(exchange: Exchange) -> str:
    return str(exchange.query.flags >> 11 & 15)


def _dnssec_ok(exchange: Exchange) -> str:
    edns = exchange.query.edns
    return "true" if edns is not None and edns.dnssec_ok else "false"


def _bufsize(exchange: Exchange) -> str:
    if exchange.client.transport == "tcp":
        return str(MAX_MESSAGE)
    edns = exchange.query.edns
    return str(max(MIN_UDP_PAYLOAD, edns.udp_payload_size if edns is not None else 0))


def _rcode(exchange: Exchange) -> str:
    if exchange.rcode is None:
        return EMPTY
    return rcode_text(exchange.rcode)


def _response_flags(exchange: Exchange) -> str:
    if exchange.rcode is None:
        return EMPTY
    return ",".join(name for name, bit in _FLAGS if exchange.flags & bit)


def _duration(exchange: Exchange) -> str:
    # CoreDNS prints nanoseconds at most, and never an exponent.
    return f"{exchange.duration:.9f}".rstrip("0").rstrip(".") + "s"


_PLACEHOLDERS: Final[Mapping[str, Formatter]] = {
    "{type}": lambda exchange: type_text(exchange.query.qtype),
    "{name}": lambda exchange: name_text(exchange.query.qname),
    "{class}": lambda exchange: class_text(exchange.query.qclass),
    "{proto}": lambda exchange: exchange.client.transport,
    "{remote}": lambda exchange: _bracketed(str(ip_address(exchange.client.address))),
    "{port}": lambda exchange: str(exchange.client.port),
    "{local}": lambda exchange: _bracketed(exchange.local),
    "{size}": lambda exchange: str(exchange.query.size),
    "{>id}": lambda exchange: str(exchange.query.id),
    "{>opcode}": _opcode,
    "{>do}": _dnssec_ok,
    "{>bufsize}": _bufsize,
    "{rcode}": _rcode,
    "{rsize}": lambda exchange: str(exchange.rsize),
    "{duration}": _duration,
    "{>rflags}": _response_flags,
    "{/forward/upstream}": lambda exchange: exchange.upstream or EMPTY,
    "{/log/type}": lambda exchange: exchange.kind.value,
    "{/log/class}": lambda exchange: response_class(exchange.kind).value,
}


def labels(settings: tuple[LogRule, ...]) -> frozenset[str]:
    """The labels of metadata in the formats."""
    pieces = {piece for rule in settings for piece in _PLACEHOLDER.findall(rule.format)} - _PLACEHOLDERS.keys()
    return frozenset(piece[len(_METADATA) : -1] for piece in pieces if piece.startswith(_METADATA))


def _setup(settings: tuple[LogRule, ...], block: BlockSetup) -> Install:
    def install(listener: BlockListener) -> tuple[ChainPart]:
        return (ChainPart(logs=QueryLog(settings, block.process.write_line, listener.host, block.reader_of)),)

    return install


PLUGIN: Final = Plugin(
    name="log",
    coredns=differs(
        Effect.NOTHING, "{rsize} is what was sent, after compression; metadata is that of kubernetes, log and view"
    ),
    parse=parse_log,
    zones=all_origins,
    setup=_setup,
    adds_up=True,
    labels=labels,
)
