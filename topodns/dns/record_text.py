"""Parser of one record in zone-file text (RFC 1035 section 5.1, RFC 3597 section 5) to an RRset; keeps case."""

import re
from collections.abc import Iterator
from typing import Final

from topodns.dns.message import RRset
from topodns.dns.name import ROOT, Name
from topodns.dns.rdata_text import read_rdata
from topodns.dns.rrtype import RRClass, parse_qclass, parse_qtype
from topodns.dns.text_fields import BadRecord, Word, is_ttl, name, parse_ttl
from topodns.dns.wire_format import MAX_MESSAGE

DEFAULT_TTL: Final = 3600  # seconds, if the text has no TTL; as CoreDNS

_WORD: Final = re.compile(
    r"""
      (?P<blank> [ \t\r]+ | ;[^\n]* )
    | (?P<newline> \n )
    | (?P<parenthesis> [()] )
    | " (?P<quoted> (?: \\. | [^"\\] )* ) "
    | (?P<plain> (?: \\. | [^ \t\r\n;()"\\] )+ )
    """,
    re.VERBOSE | re.DOTALL,
)


class UnknownType(BadRecord):
    """A word of a record that is no TTL, class or type."""

    EXPECTED: Final = "expected a TTL, a class or a type"

    def __init__(self, word: str) -> None:
        super().__init__(f"found {word[:40]!r}, {self.EXPECTED}")
        self.word = word


def parse_record(text: str, origin: Name = ROOT) -> RRset:
    """Parse one record to an RRset with an explicit owner. Raises BadRecord.

    `OWNER [TTL] [CLASS] TYPE RDATA`, TTL and CLASS in any order, by default 3600 and IN; names without a final dot are
    relative to `origin`. Parentheses join lines; lines after the record are ignored.
    """
    words = list(_words(text))
    if len(words) < 2:
        raise BadRecord(f"found {text.strip()[:80]!r}, expected an owner, a type and its data")
    owner = name(words.pop(0).text, origin)
    ttl, rclass, type_name = _head(words)
    rtype = _type_number(type_name)
    rdata = read_rdata(rtype, words, origin)
    if len(rdata) > MAX_MESSAGE:
        raise BadRecord(f"found {len(rdata)} octets of data, expected at most {MAX_MESSAGE}")
    return RRset(owner, rtype, ttl, (rdata,), rclass)


def _words(text: str) -> Iterator[Word]:
    """The words of the first line that is not empty, which parentheses extend over several. Raises BadRecord."""
    at, depth, found, joined = 0, 0, False, False
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise BadRecord(f"found {text[at : at + 20]!r}, a quote or an escape without its end")
        at = match.end()
        kind = match.lastgroup
        if kind in ("plain", "quoted"):
            yield Word(match[kind], kind == "quoted", joined)
            found = joined = True
            continue
        joined = False
        if kind == "parenthesis":
            depth += 1 if match[0] == "(" else -1
        elif kind == "newline" and found and not depth:
            return
    if depth:
        raise BadRecord("found parentheses that do not match")


def _head(words: list[Word]) -> tuple[int, int, str]:
    """(TTL, class, type in upper case), removed from the front of `words`. The type may be none that is known.

    Raises BadRecord without a type, or for a TTL above MAX_TTL.
    """
    ttl: int | None = None
    rclass: int | None = None
    while words:
        word = words.pop(0).text.upper()
        if ttl is None and is_ttl(word):
            ttl = parse_ttl(word)
        elif rclass is None and (number := parse_qclass(word)) is not None:
            rclass = number
        else:
            return DEFAULT_TTL if ttl is None else ttl, RRClass.IN if rclass is None else rclass, word
    raise BadRecord("found no type")


def _type_number(name: str) -> int:
    number = parse_qtype(name)
    if number is None:
        raise UnknownType(name)
    return number
