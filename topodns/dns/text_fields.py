"""Fields of RDATA in presentation format, one word of text each, to octets (RFC 1035 section 5.1).

`rdata_text` has the fields of each type, `svc_params` those of SVCB's parameters.
"""

import re
from base64 import b32hexdecode
from binascii import Error as BadDigits
from binascii import a2b_base64
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from topodns.dns.message import MAX_TTL
from topodns.dns.name import MAX_LABEL, MAX_WIRE, Name, name_wire
from topodns.dns.rrtype import parse_qtype

MAX_STRING: Final = 255  # octets of a character-string (RFC 1035 section 3.3)

_ESCAPED: Final = re.compile(r"\\([0-9]{3}|.)", re.DOTALL)
_NAME_PART: Final = re.compile(r"\\[0-9]{3}|\\.|\.|[^\\.]+", re.DOTALL)
_WHOLE: Final = re.compile(r"[0-9]{1,20}")
_TTL: Final = re.compile(r"(?=.)(?:[0-9]{1,10}[smhdw])*(?:[0-9]{1,10})?", re.IGNORECASE | re.ASCII)  # in linear time
_TTL_PART: Final = re.compile(r"([0-9]+)([smhdw]?)")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DATE: Final = re.compile(r"[0-9]{14}")


class BadRecord(ValueError):
    """Text that is not a record; the message has what was found."""


class Word(NamedTuple):
    text: str  # with escapes, without quotes
    quoted: bool = False
    joined: bool = False  # to the word before, without a blank between them


def wrong(text: str, expected: str) -> BadRecord:
    return BadRecord(f"found {text[:40]!r}, expected {expected}")


def octets(text: str) -> bytes:
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


def name(text: str, origin: Name) -> bytes:
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
            open_label += octets(part)
    wire = b"".join(map(_label, labels if absolute else [*labels, open_label]))
    wire += b"\0" if absolute else name_wire(origin)
    if len(wire) > MAX_WIRE:
        raise BadRecord(f"found a name of more than {MAX_WIRE} octets: {text[:80]!r}")
    return wire


def _label(label: bytes) -> bytes:
    if not 0 < len(label) <= MAX_LABEL:
        raise BadRecord(f"found a label of {len(label)} octets, expected 1 to {MAX_LABEL}")
    return bytes((len(label),)) + label


def string(text: str) -> bytes:
    """One character-string with its length. Raises BadRecord above 255 octets."""
    found = octets(text)
    if len(found) > MAX_STRING:
        raise BadRecord(f"found a string of {len(found)} octets, expected at most {MAX_STRING}")
    return bytes((len(found),)) + found


def split_strings(text: str) -> bytes:
    """The character-strings of one word of TXT: the octets beyond each 255 begin another string, as in CoreDNS.

    Long keys are written so; readers join the strings (RFC 6376 section 3.6.2.2).
    """
    found = octets(text)
    parts = [found[at : at + MAX_STRING] for at in range(0, len(found), MAX_STRING)] or [b""]
    return b"".join(bytes((len(part),)) + part for part in parts)


def hexadecimal(text: str) -> bytes:
    """Octets of hexadecimal digits. Raises BadRecord."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise wrong(text, "hexadecimal digits") from None


def base64(text: str) -> bytes:
    """Octets of Base64 with padding (RFC 4648 section 4). Raises BadRecord."""
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError:
        raise wrong(text, "Base64") from None


def base32hex(text: str) -> bytes:
    """The next hashed owner name of NSEC3 with its length: base32hex without padding (RFC 5155 section 3.3)."""
    try:
        found = b32hexdecode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 8), casefold=True)
    except BadDigits:
        raise wrong(text, "base32hex") from None
    if len(found) > MAX_STRING:
        raise wrong(text, f"at most {MAX_STRING} octets")
    return bytes((len(found),)) + found


def salt(text: str) -> bytes:
    """The salt of NSEC3 with its length: hexadecimal, or `-` for none (RFC 5155 section 3.3)."""
    found = b"" if text == "-" else hexadecimal(text)
    if len(found) > MAX_STRING:
        raise wrong(text, f"at most {MAX_STRING} octets")
    return bytes((len(found),)) + found


def whole(size: int) -> Callable[[str], bytes]:
    """A reader of decimal numbers of this many octets."""

    def read(text: str) -> bytes:
        if not _WHOLE.fullmatch(text) or int(text) >= 1 << 8 * size:
            raise wrong(text, f"a number of {8 * size} bits")
        return int(text).to_bytes(size, "big")

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


def period(text: str) -> bytes:
    """Seconds, with units or without, in four octets."""
    if not is_ttl(text):
        raise wrong(text, "seconds")
    return parse_ttl(text, 0xFFFFFFFF).to_bytes(4, "big")


def moment(text: str) -> bytes:
    """YYYYMMDDHHmmSS in UTC, or seconds since 1970, modulo 2**32 (RFC 4034 section 3.2)."""
    if not _DATE.fullmatch(text):
        return whole(4)(text)
    try:
        date = datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise wrong(text, "YYYYMMDDHHmmSS") from None
    return (int(date.timestamp()) % (1 << 32)).to_bytes(4, "big")


def address(version: int) -> Callable[[str], bytes]:
    """A reader of IPv4 or IPv6 addresses."""
    make: type[IPv4Address] | type[IPv6Address] = IPv4Address if version == 4 else IPv6Address

    def read(text: str) -> bytes:
        try:
            return make(text.replace("%", " ")).packed  # refuses a scope, which no record can have
        except ValueError:
            raise wrong(text, f"an IPv{version} address") from None

    return read


def number_or(size: int, mnemonics: dict[str, int], expected: str) -> Callable[[str], bytes]:
    """A reader of a number of this many octets or one of its mnemonics, in any case."""

    def read(text: str) -> bytes:
        number = mnemonics.get(text.upper())
        if number is not None:
            return number.to_bytes(size, "big")
        try:
            return whole(size)(text)
        except BadRecord:
            raise wrong(text, f"{expected} or a number of {8 * size} bits") from None

    return read


def record_type(text: str) -> int:
    """The type of a mnemonic, of TYPE<number>, or of a bare number, as dig and dnslib print it. Raises BadRecord."""
    found = parse_qtype(f"TYPE{text}" if text.isdecimal() else text)
    if found is None:
        raise wrong(text, "a type")
    return found


def groups(count: int, digits: int, mark: str) -> Callable[[str], bytes]:
    """A reader of hexadecimal numbers with a mark between them, of up to `digits` digits each.

    EUI48 and EUI64: `00-00-5e-00-53-2a` (RFC 7043); NID and L64: `14:4fff:ff20:ee64` (RFC 6742).
    """
    one = f"[0-9A-Fa-f]{{1,{digits}}}"
    pattern = re.compile(mark.join([one] * count))

    def read(text: str) -> bytes:
        if not pattern.fullmatch(text):
            raise wrong(text, f"{count} hexadecimal numbers with {mark!r} between them")
        return bytes.fromhex("".join(part.zfill(digits) for part in text.split(mark)))

    return read
