"""Parser of one record in zone-file text (RFC 1035 section 5.1, RFC 3597 section 5) to an RRset; keeps case.

The types that are often written by hand are parsed here, exact to the octet; the others by `dnslib_text`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from topodns.dns.message import MAX_TTL, RRset
from topodns.dns.name import MAX_LABEL, MAX_WIRE, ROOT, Name, name_wire
from topodns.dns.rrtype import RRClass, parse_qclass, parse_qtype
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
_ESCAPED: Final = re.compile(r"\\([0-9]{3}|.)", re.DOTALL)
_NAME_PART: Final = re.compile(r"\\[0-9]{3}|\\.|\.|[^\\.]+", re.DOTALL)
_WHOLE: Final = re.compile(r"[0-9]{1,10}")
_TTL: Final = re.compile(r"(?=.)(?:[0-9]{1,10}[smhdw])*(?:[0-9]{1,10})?", re.IGNORECASE | re.ASCII)  # in linear time
_TTL_PART: Final = re.compile(r"([0-9]+)([smhdw]?)")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
# Fields of RDATA in presentation format, a letter each: a key of _READERS, n: name, x: hexadecimal octets, +: strings.
# The last two take all remaining words.
_LAYOUTS: Final[Mapping[str, str]] = {
    "A": "4",
    "AAAA": "6",
    "AFSDB": "hn",
    "CAA": "bsv",
    "CNAME": "n",
    "DNAME": "n",
    "DS": "hbbx",
    "HINFO": "ss",
    "MX": "hn",
    "NAPTR": "hhsssn",
    "NS": "n",
    "PTR": "n",
    "RP": "nn",
    "SOA": "nnwtttt",
    "SPF": "+",
    "SRV": "hhhn",
    "SSHFP": "bbx",
    "TLSA": "bbbx",
    "TXT": "+",
    "URI": "hhv",
}
_GREEDY: Final = "x+"


class BadRecord(ValueError):
    """Text that is not a record; the message has what was found."""


class _Word(NamedTuple):
    text: str  # with escapes, without quotes
    quoted: bool = False


def parse_record(text: str, origin: Name = ROOT) -> RRset:
    """Parse one record to an RRset with an explicit owner. Raises BadRecord.

    `OWNER [TTL] [CLASS] TYPE RDATA`, TTL and CLASS in any order, by default 3600 and IN; names without a final dot are
    relative to `origin`. Parentheses join lines; lines after the record are ignored.
    """
    words = list(_words(text))
    if len(words) < 2:
        raise BadRecord(f"found {text.strip()[:80]!r}, expected an owner, a type and its data")
    owner = _name(words.pop(0).text, origin)
    ttl, rclass, type_name = _head(words)
    rdata = _rdata(type_name, words, origin)
    if len(rdata) > MAX_MESSAGE:
        raise BadRecord(f"found {len(rdata)} octets of data, expected at most {MAX_MESSAGE}")
    return RRset(owner, _type_number(type_name), ttl, (rdata,), rclass)


def _words(text: str) -> Iterator[_Word]:
    """The words of the first line that is not empty, which parentheses extend over several. Raises BadRecord."""
    at, depth, found = 0, 0, False
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise BadRecord(f"found {text[at : at + 20]!r}, a quote or an escape without its end")
        at = match.end()
        if match["plain"] is not None:
            found = True
            yield _Word(match["plain"])
        elif match["quoted"] is not None:
            found = True
            yield _Word(match["quoted"], quoted=True)
        elif match["parenthesis"] is not None:
            depth += 1 if match[0] == "(" else -1
        elif match["newline"] is not None and found and not depth:
            return
    if depth:
        raise BadRecord("found parentheses that do not match")


def _head(words: list[_Word]) -> tuple[int, int, str]:
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
        raise BadRecord(f"found {name[:40]!r}, expected a TTL, a class or a type")
    return number


def _rdata(type_name: str, words: list[_Word], origin: Name) -> bytes:
    if words and words[0] == _Word("\\#"):
        return _unknown(words)
    layout = _LAYOUTS.get(type_name)
    if layout is not None:
        return b"".join(_fields(type_name, layout, words, origin))
    from topodns.dns.dnslib_text import parse_rdata  # imported late: dnslib takes memory, and is seldom needed

    number = _type_number(type_name)
    rdata = parse_rdata(number, [_octets(word.text).decode("latin-1") for word in words], origin)
    if rdata is None:
        raise BadRecord(f"found {' '.join(word.text for word in words)[:80]!r}, which is no data of type {type_name}")
    return rdata


def _fields(type_name: str, layout: str, words: list[_Word], origin: Name) -> Iterator[bytes]:
    greedy = layout[-1] in _GREEDY
    if len(words) < len(layout) or (len(words) > len(layout) and not greedy):
        raise BadRecord(f"found {len(words)} words of data for {type_name}, expected {len(layout)}")
    for letter, word in zip(layout, words, strict=False):
        if letter == "n":
            yield _name(word.text, origin)
        elif letter == "x":
            yield _hex("".join(each.text for each in words[len(layout) - 1 :]))
        elif letter == "+":
            yield b"".join(map(_string, words[len(layout) - 1 :]))
        else:
            yield _READERS[letter](word)


def _unknown(words: list[_Word]) -> bytes:
    data = _hex("".join(word.text for word in words[2:]))
    if len(words) < 2 or not _WHOLE.fullmatch(words[1].text) or int(words[1].text) != len(data):
        raise BadRecord("found data of another length than \\# says")
    return data


def _name(text: str, origin: Name) -> bytes:
    """The wire form of a name, relative to `origin` unless it ends in a dot; `@` is `origin`. Raises BadRecord."""
    if text == ".":
        return b"\0"
    if text == "@":
        return name_wire(origin)
    labels, open_label = [], b""
    absolute = False
    for part in _NAME_PART.findall(text):
        absolute = part == "."
        if absolute:
            labels.append(open_label)
            open_label = b""
        else:
            open_label += _octets(part)
    wire = b"".join(map(_label, labels if absolute else [*labels, open_label]))
    wire += b"\0" if absolute else name_wire(origin)
    if len(wire) > MAX_WIRE:
        raise BadRecord(f"found a name of more than {MAX_WIRE} octets: {text[:80]!r}")
    return wire


def _label(octets: bytes) -> bytes:
    if not 0 < len(octets) <= MAX_LABEL:
        raise BadRecord(f"found a label of {len(octets)} octets, expected 1 to {MAX_LABEL}")
    return bytes((len(octets),)) + octets


def _octets(text: str) -> bytes:
    """The octets of a text: escapes decoded, all else as UTF-8. Raises BadRecord for an escape above \\255."""
    if "\\" not in text:
        return text.encode()
    parts = _ESCAPED.split(text)
    return b"".join(_escaped(part) if at % 2 else part.encode() for at, part in enumerate(parts))


def _escaped(text: str) -> bytes:
    if len(text) < 3:
        return text.encode()
    if int(text) > 255:
        raise BadRecord(f"found \\{text}, which is no octet")
    return bytes((int(text),))


def _string(word: _Word) -> bytes:
    octets = _octets(word.text)
    if len(octets) > 255:
        raise BadRecord(f"found a string of {len(octets)} octets, expected at most 255")
    return bytes((len(octets),)) + octets


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise BadRecord(f"found {text[:40]!r}, expected hexadecimal digits") from None


def _whole(octets: int) -> Callable[[_Word], bytes]:
    def read(word: _Word) -> bytes:
        if not _WHOLE.fullmatch(word.text) or int(word.text) >= 1 << 8 * octets:
            raise BadRecord(f"found {word.text[:40]!r}, expected a number of {8 * octets} bits")
        return int(word.text).to_bytes(octets, "big")

    return read


def is_ttl(text: str) -> bool:
    """Whether a word is a TTL: seconds, or numbers with the units s, m, h, d and w in any case, as in BIND: 1h30m."""
    return _TTL.fullmatch(text) is not None


def parse_ttl(text: str, most: int = MAX_TTL) -> int:
    """The seconds of a text for which `is_ttl` is true. Raises BadRecord above `most`."""
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in _TTL_PART.findall(text.lower()))
    if seconds > most:
        raise BadRecord(f"found {text[:40]!r}, expected at most {most} seconds")
    return seconds


def _period(word: _Word) -> bytes:
    if not is_ttl(word.text):
        raise BadRecord(f"found {word.text[:40]!r}, expected seconds")
    return parse_ttl(word.text, 0xFFFFFFFF).to_bytes(4, "big")


def _address(make: type[IPv4Address] | type[IPv6Address], version: int) -> Callable[[_Word], bytes]:
    def read(word: _Word) -> bytes:
        try:
            return make(word.text.replace("%", " ")).packed  # refuses a scope, which no record can have
        except ValueError:
            raise BadRecord(f"found {word.text[:40]!r}, expected an IPv{version} address") from None

    return read


_READERS: Final[Mapping[str, Callable[[_Word], bytes]]] = {
    "4": _address(IPv4Address, 4),
    "6": _address(IPv6Address, 6),
    "b": _whole(1),
    "h": _whole(2),
    "w": _whole(4),
    "t": _period,
    "s": _string,
    "v": lambda word: _octets(word.text),
}
