"""RDATA in presentation format to octets: the fields of each type of IANA's registry that has such a format.

Names are written uncompressed, in the case of the text (RFC 3597 section 4, RFC 4343). dnslib and dnspython read fewer
types, and refuse forms that CoreDNS reads: docs/develop/libraries.md.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Final, NamedTuple

from topodns.dns.name import MAX_LABEL, MAX_WIRE, Name
from topodns.dns.rrtype import RRType, type_text
from topodns.dns.svc_params import parameters
from topodns.dns.text_fields import (
    BadRecord,
    Word,
    address,
    base32hex,
    base64,
    groups,
    hexadecimal,
    moment,
    name,
    number_or,
    octets,
    period,
    record_type,
    salt,
    split_strings,
    string,
    whole,
    wrong,
)

# The fields of a line's types, in order: words of _FIELDS, `name`, and perhaps last a word of _REST.
_LAYOUTS: Final = """
    A: ip4
    AAAA: ip6
    NS MD MF CNAME MB MG MR PTR NSAP-PTR DNAME: name
    MINFO RP TALINK: name name
    MX AFSDB RT KX LP: u16 name
    PX: u16 name name
    SRV: u16 u16 u16 name
    NAPTR: u16 u16 string string string name
    SOA: name name u32 period period period period
    HINFO: host
    X25 UINFO: string
    ISDN: string subaddress?
    GPOS: string string string
    TXT SPF AVC NINFO RESINFO WALLET CLA: strings
    CAA: u8 string text
    URI: u16 u16 text
    DS CDS TA DLV: u16 algorithm u8 hex
    DNSKEY CDNSKEY RKEY: u16 u8 algorithm base64
    KEY: u16 u8 algorithm base64?
    RRSIG SIG: type algorithm u8 period moment moment u16 name base64
    NSEC: name types?
    NSEC3: u8 u8 u16 salt hash types?
    NSEC3PARAM: u8 u8 u16 salt
    NXT: name first-types
    CSYNC: u32 u16 types?
    ZONEMD: u32 u8 u8 hex
    SSHFP: u8 u8 hex
    TLSA SMIMEA: u8 u8 u8 hex
    CERT: certificate u16 algorithm base64
    DHCID OPENPGPKEY HHIT BRID: base64
    EID NIMLOC: hex
    SINK: u8 u8 u8 base64?
    DOA: u32 u32 u8 string base64-or-none
    IPSECKEY: ipseckey
    AMTRELAY: amtrelay
    HIP: hip
    APL: prefixes?
    LOC: location
    NSAP: nsap
    ATMA: atm
    WKS: ip4 protocol ports?
    A6: a6
    SVCB HTTPS: u16 name parameters?
    DSYNC: type scheme u16 name
    NID L64: u16 locator
    L32: u16 ip4
    EUI48: eui48
    EUI64: eui64
    UID GID: u32
    IPN: u64
"""

_Field = Callable[[str, Name], bytes]
_Rest = Callable[[Sequence[Word], Name], bytes]


class _Layout(NamedTuple):
    fields: tuple[_Field, ...]  # a word each
    rest: _Rest | None  # of all further words
    least: int  # words


def read_rdata(rtype: int, words: Sequence[Word], origin: Name) -> bytes:
    """The RDATA of the words in the presentation format of the type, or in RFC 3597's: `\\# LENGTH HEX`.

    Raises BadRecord, also for a type that has no format of its own, and for a QTYPE or meta-type (RFC 6895 section
    3.1), which no record has.
    """
    if rtype in _NO_DATA:
        raise BadRecord(f"found {type_text(rtype)}, expected a type that records have")
    if words and words[0] == ("\\#", False, False):
        data = _unknown(words)
        if not _has_layout(rtype, data):
            raise BadRecord(f"found octets that are no data of {type_text(rtype)} (RFC 3597 section 5)")
        return data
    fields, rest, least = _layout(rtype)
    if len(words) < least or (rest is None and len(words) > least):
        at_least = "at least " if rest is not None else ""
        raise BadRecord(f"found {len(words)} words of data for {type_text(rtype)}, expected {at_least}{least}")
    parts = [read(word.text, origin) for read, word in zip(fields, words, strict=False)]
    if rest is not None:
        parts.append(rest(words[len(fields) :], origin))
    return b"".join(parts)


def _unknown(words: Sequence[Word]) -> bytes:
    data = hexadecimal(_joined(words[2:]))
    if len(words) < 2 or not words[1].text.isdecimal() or words[1].text.lstrip("0") != str(len(data) or ""):
        raise BadRecord("found data of another length than \\# says")
    return data


def _has_layout(rtype: int, data: bytes) -> bool:
    """Whether the octets are RDATA of the type, as far as its numbers, names and strings show; of others any are."""
    fields = _layouts().get(rtype)
    if fields is None:
        return True
    at = 0
    try:
        for field in fields:
            if field not in _SIZED:
                return at <= len(data)
            at = _SIZED[field](data, at)
    except IndexError:
        return False
    return at == len(data)


def _after_name(data: bytes, start: int) -> int:
    """The offset after an uncompressed name. Raises IndexError where it is none."""
    at = start
    while data[at]:
        if data[at] > MAX_LABEL:
            raise IndexError
        at += 1 + data[at]
    if at + 1 - start > MAX_WIRE:
        raise IndexError
    return at + 1


def _after_string(data: bytes, at: int) -> int:
    return at + 1 + data[at]


def _after_strings(data: bytes, at: int) -> int:
    """The offset after one string or more, up to the end."""
    at = _after_string(data, at)
    while at < len(data):
        at = _after_string(data, at)
    return at


def _after(octets: int) -> Callable[[bytes, int], int]:
    return lambda _, at: at + octets


@cache
def _layout(rtype: int) -> _Layout:
    """The layout of a type. Raises BadRecord for one without a presentation format."""
    names = _layouts().get(rtype)
    if names is None:
        raise BadRecord(f"found data of type {type_text(rtype)}, which has no text; expected \\# LENGTH HEX (RFC 3597)")
    *most, last = names
    if last.removesuffix("?") not in _REST:
        return _Layout(tuple(_FIELDS[each] for each in names), None, len(names))
    needed = 0 if last.endswith("?") else 1
    return _Layout(tuple(_FIELDS[each] for each in most), _REST[last.removesuffix("?")], len(most) + needed)


@cache
def _layouts() -> Mapping[int, list[str]]:
    """By type, the words of its line in _LAYOUTS."""
    lines = (line.partition(":") for line in _LAYOUTS.strip().splitlines())
    return {record_type(mnemonic): fields.split() for types, _, fields in lines for mnemonic in types.split()}


def _joined(words: Iterable[Word]) -> str:
    return "".join(word.text for word in words)


def _exactly(words: Sequence[Word], count: int) -> list[str]:
    if len(words) != count:
        raise BadRecord(f"found {len(words)} words of data, expected {count}")
    return [word.text for word in words]


def _bitmap(numbers: Iterable[int]) -> bytes:
    """The bits with these numbers, up to the last octet that has one; bit 0 is the highest of the first octet."""
    bits = bytearray(8192)
    last = -1
    for number in numbers:
        bits[number // 8] |= 0x80 >> number % 8
        last = max(last, number // 8)
    return bytes(bits[: last + 1])


def _types(words: Sequence[Word], _: Name) -> bytes:
    """The type bitmap of NSEC, NSEC3 and CSYNC: windows of 256 types (RFC 4034 section 4.1.2)."""
    windows: dict[int, list[int]] = {}
    for word in words:
        number = record_type(word.text)
        windows.setdefault(number >> 8, []).append(number & 0xFF)
    maps = ((window, _bitmap(numbers)) for window, numbers in sorted(windows.items()))
    return b"".join(bytes((window, len(bits))) + bits for window, bits in maps)


def _first_types(words: Sequence[Word], _: Name) -> bytes:
    """The type bitmap of NXT: one, of the types below 128 (RFC 2535 section 5.2)."""
    numbers = [record_type(word.text) for word in words]
    if max(numbers) > 127:
        raise BadRecord(f"found {type_text(max(numbers))}, expected types below 128")
    return _bitmap(numbers)


def _ports(words: Sequence[Word], _: Name) -> bytes:
    return _bitmap(int.from_bytes(whole(2)(word.text), "big") for word in words)


def _text(words: Sequence[Word], _: Name) -> bytes:
    (text,) = _exactly(words, 1)
    return octets(text)


def _host(words: Sequence[Word], _: Name) -> bytes:
    """CPU and operating system, of which CoreDNS takes the second from the first's blanks, or as several words."""
    cpu, *system = (words[0].text.split() or [""]) if len(words) == 1 else [word.text for word in words]
    return string(cpu) + string(" ".join(system))


def _gateway(kind: int, text: str, origin: Name) -> bytes:
    """The gateway of IPSECKEY (RFC 4025 section 2.5) and the relay of AMTRELAY (RFC 8777 section 4.2.4)."""
    if kind == 0 and text == ".":
        return b""
    if kind in (1, 2):
        return address(4 if kind == 1 else 6)(text)
    if kind == 3:
        return name(text, origin)
    raise wrong(text, "'.' for a gateway of type 0, or a type from 1 to 3")


def _ipseckey(words: Sequence[Word], origin: Name) -> bytes:
    """Precedence, gateway type, algorithm, gateway, and perhaps a key (RFC 4025 section 3.1)."""
    precedence, kind, algorithm, gateway = _exactly(words[:4], 4)
    head = b"".join(map(whole(1), (precedence, kind, algorithm)))
    return head + _gateway(head[1], gateway, origin) + base64(_joined(words[4:]))


def _amtrelay(words: Sequence[Word], origin: Name) -> bytes:
    """Precedence, discovery bit, relay type, relay (RFC 8777 section 4.3.1)."""
    precedence, discovery, kind, relay = _exactly(words, 4)
    if discovery not in ("0", "1"):
        raise wrong(discovery, "0 or 1")
    number = whole(1)(kind)[0]
    return whole(1)(precedence) + bytes((int(discovery) << 7 | number,)) + _gateway(number, relay, origin)


def _hip(words: Sequence[Word], origin: Name) -> bytes:
    """Algorithm, HIT, key, and perhaps rendezvous servers (RFC 8005 section 6)."""
    algorithm, hit_text, key_text = _exactly(words[:3], 3)
    hit, key = hexadecimal(hit_text), base64(key_text)
    if len(hit) > 255:
        raise BadRecord("found a HIT of more than 255 octets")
    head = bytes((len(hit),)) + whole(1)(algorithm) + len(key).to_bytes(2, "big")
    return head + hit + key + b"".join(name(word.text, origin) for word in words[3:])


def _prefixes(words: Sequence[Word], _: Name) -> bytes:
    return b"".join(_prefix(word.text) for word in words)


_PREFIX: Final = re.compile(r"(!?)([0-9]{1,5}):([^/]*)/([0-9]{1,3})")


def _prefix(text: str) -> bytes:
    """One item of APL, `[!]FAMILY:ADDRESS/LENGTH` (RFC 3123 section 5)."""
    match = _PREFIX.fullmatch(text)
    if match is None:
        raise wrong(text, "[!]FAMILY:ADDRESS/LENGTH")
    family, length = whole(2)(match[2]), whole(1)(match[4])
    version = {1: 4, 2: 6}.get(int(match[2]))
    found = hexadecimal(match[3]) if version is None else address(version)(match[3])
    significant = found.rstrip(b"\0")
    if len(significant) > 127 or (version is not None and length[0] > 8 * len(found)):
        raise wrong(text, "a prefix of the family")
    return family + length + bytes((0x80 * bool(match[1]) | len(significant),)) + significant


def _nsap(text: str, _: Name) -> bytes:
    """`0x` and hexadecimal digits with dots (RFC 1706 section 7)."""
    if text[:2].lower() != "0x":
        raise wrong(text, "0x and hexadecimal digits")
    return hexadecimal(text[2:].replace(".", ""))


def _atm(text: str, _: Name) -> bytes:
    """An ATM address: `+` and decimal digits, or hexadecimal digits with dots (AF-SAA-0069.000 section 3)."""
    if text.startswith("+") and text[1:].isascii() and text[1:].isdigit():
        return b"\1" + text[1:].encode()
    return b"\0" + hexadecimal(text.replace(".", ""))


def _a6(words: Sequence[Word], origin: Name) -> bytes:
    """Prefix length, suffix unless that is 128, name unless it is 0 (RFC 2874 section 3.2)."""
    length = whole(1)(words[0].text)
    bits = length[0]
    texts = _exactly(words[1:], (bits < 128) + (bits > 0))
    if bits > 128:
        raise wrong(words[0].text, "at most 128")
    suffix = address(6)(texts.pop(0)) if bits < 128 else b""
    own = int.from_bytes(suffix, "big") & ((1 << 128 - bits) - 1)
    return length + own.to_bytes(16, "big")[bits // 8 :] + b"".join(name(text, origin) for text in texts)


def _or_none(words: Sequence[Word], _: Name) -> bytes:
    """Base64, or `-` for no octets, as BIND prints DOA."""
    text = _joined(words)
    return b"" if text == "-" else base64(text)


def _plain(read: Callable[[str], bytes]) -> _Field:
    """A field of one word that needs no origin."""
    return lambda text, _: read(text)


def _all(read: Callable[[str], bytes]) -> _Rest:
    """A field of all words together, such as digits with blanks between them."""
    return lambda words, _: read(_joined(words))


_NO_DATA: Final = frozenset((0, RRType.OPT, *range(128, 256)))

# The offset after each word of _LAYOUTS in RDATA; the octets of others are not checked.
_SIZED: Final[Mapping[str, Callable[[bytes, int], int]]] = {
    "name": _after_name,
    "host": lambda data, at: _after_string(data, _after_string(data, at)),
    "strings": _after_strings,
    **dict.fromkeys(("string", "salt", "hash"), _after_string),
    **dict.fromkeys(("u8", "algorithm", "protocol", "scheme"), _after(1)),
    **dict.fromkeys(("u16", "type", "certificate"), _after(2)),
    **dict.fromkeys(("u32", "period", "moment", "ip4"), _after(4)),
    "eui48": _after(6),
    **dict.fromkeys(("u64", "eui64", "locator"), _after(8)),
    "ip6": _after(16),
}

# Mnemonics: the registry "DNS Security Algorithm Numbers" with the spellings of BIND, dnspython and CoreDNS.
_ALGORITHMS: Final = {
    **{"RSAMD5": 1, "DH": 2, "DSA": 3, "ECC": 4, "RSASHA1": 5, "RSASHA256": 8, "RSASHA512": 10, "ED25519": 15},
    **{"DSA-NSEC3-SHA1": 6, "DSANSEC3SHA1": 6, "NSEC3DSA": 6},
    **{"RSASHA1-NSEC3-SHA1": 7, "RSASHA1NSEC3SHA1": 7, "NSEC3RSASHA1": 7},
    **{
        "ECC-GOST": 12,
        "ECCGOST": 12,
        "ECDSAP256SHA256": 13,
        "ECDSAP384SHA384": 14,
        "ED448": 16,
        "SM2SM3": 17,
        "MLDSA44": 18,
    },
    **{"ECC-GOST12": 23, "INDIRECT": 252, "PRIVATEDNS": 253, "PRIVATEOID": 254},
}
# RFC 4398 section 2.1.
_CERTIFICATES: Final = {
    **{"PKIX": 1, "SPKI": 2, "PGP": 3, "IPKIX": 4, "IPIX": 4, "ISPKI": 5, "IPGP": 6, "ACPKIX": 7, "IACPKIX": 8},
    **{"URI": 253, "OID": 254},
}

_FIELDS: Final[Mapping[str, _Field]] = {
    "name": name,
    "algorithm": _plain(number_or(1, _ALGORITHMS, "an algorithm")),
    "atm": _atm,
    "certificate": _plain(number_or(2, _CERTIFICATES, "a certificate type")),
    "eui48": _plain(groups(6, 2, "-")),
    "eui64": _plain(groups(8, 2, "-")),
    "hash": _plain(base32hex),
    "ip4": _plain(address(4)),
    "ip6": _plain(address(6)),
    "locator": _plain(groups(4, 4, ":")),
    "moment": _plain(moment),
    "nsap": _nsap,
    "period": _plain(period),
    "protocol": _plain(number_or(1, {"TCP": 6, "UDP": 17}, "a protocol")),
    "salt": _plain(salt),
    "scheme": _plain(number_or(1, {"NOTIFY": 1}, "a scheme")),
    "string": _plain(string),
    "type": _plain(lambda text: record_type(text).to_bytes(2, "big")),
    **{f"u{8 * size}": _plain(whole(size)) for size in (1, 2, 4, 8)},
}
_REST: Final[Mapping[str, _Rest]] = {
    "a6": _a6,
    "amtrelay": _amtrelay,
    "base64": _all(base64),
    "base64-or-none": _or_none,
    "first-types": _first_types,
    "hex": _all(hexadecimal),
    "hip": _hip,
    "host": _host,
    "ipseckey": _ipseckey,
    "location": lambda words, _: loc_rdata([word.text for word in words]),
    "parameters": parameters,
    "ports": _ports,
    "prefixes": _prefixes,
    "strings": lambda words, _: b"".join(split_strings(word.text) for word in words),
    "subaddress": lambda words, _: b"".join(string(text) for text in _exactly(words, min(len(words), 1))),
    "text": _text,
    "types": _types,
}


_WHOLE: Final = re.compile(r"[0-9]{1,3}")
_SECONDS: Final = re.compile(r"[0-9]{1,2}(?:\.[0-9]{0,9})?")
_METRES: Final = re.compile(r"(-?(?:[0-9]{1,8}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}))m?", re.IGNORECASE)
_DEFAULTS: Final = ("1m", "10000m", "10m")  # size, horizontal and vertical precision
_ALTITUDE_OF_ZERO: Final = 10_000_000  # centimetres below the reference
_MIDDLE: Final = 1 << 31  # the equator, and the prime meridian


def loc_rdata(texts: Sequence[str]) -> bytes:
    """LOC: latitude, longitude, altitude, and perhaps size and precisions in metres (RFC 1876 sections 2 and 3).

    Raises BadRecord.
    """
    latitude, after = _angle(texts, ("N", "S"), 90)
    longitude, lengths = _angle(after, ("E", "W"), 180)
    if not 1 <= len(lengths) <= 4:
        raise BadRecord(f"found {len(lengths)} words after the longitude, expected 1 to 4")
    altitude = _centimetres(lengths[0]) + _ALTITUDE_OF_ZERO
    if not 0 <= altitude < 1 << 32:
        raise wrong(lengths[0], "an altitude from -100000m to 42849672.95m")
    sizes = map(_size, (*lengths[1:], *_DEFAULTS[len(lengths) - 1 :]))
    return b"\0" + bytes(sizes) + latitude + longitude + altitude.to_bytes(4, "big")


def _angle(texts: Sequence[str], sides: tuple[str, str], most: int) -> tuple[bytes, Sequence[str]]:
    """(thousandths of a second of arc, texts after them) of degrees, perhaps minutes and seconds, and a side."""
    end = next((at for at, text in enumerate(texts) if text.upper() in sides), 0)
    degrees, minutes, seconds = (*texts[:end], "0", "0", "0")[:3]
    whole = _WHOLE.fullmatch(degrees) and _WHOLE.fullmatch(minutes) and _SECONDS.fullmatch(seconds)
    if not 1 <= end <= 3 or not whole:
        raise wrong(" ".join(texts[: end + 1]), f"degrees, minutes, seconds, and {sides[0]} or {sides[1]}")
    thousandths = (int(degrees) * 60 + int(minutes)) * 60_000 + int(Decimal(seconds) * 1000)
    if int(minutes) >= 60 or Decimal(seconds) >= 60 or thousandths > most * 3_600_000:
        raise wrong(" ".join(texts[:end]), f"at most {most} degrees, and fewer than 60 minutes and seconds")
    signed = thousandths if texts[end].upper() == sides[0] else -thousandths
    return (_MIDDLE + signed).to_bytes(4, "big"), texts[end + 1 :]


def _centimetres(text: str) -> int:
    match = _METRES.fullmatch(text)
    if match is None:
        raise wrong(text, "metres")
    return round(Decimal(match[1]) * 100)


def _size(text: str) -> int:
    """A length as a digit, and the power of ten in centimetres by which it is multiplied: both in one octet."""
    digit, power = _centimetres(text), 0
    while digit >= 10:
        digit, power = digit // 10, power + 1
    if digit < 0 or power > 9:
        raise wrong(text, "at most 90000000m")
    return digit << 4 | power
