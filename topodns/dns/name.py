"""DNS names as tuples of lower-case labels, leaf first, and their text, wire and reverse forms.

A label is a str with one character per octet (latin-1), so that dots and octets above 127 inside a label are kept, and
names are never compared as dotted text. The root is the empty tuple.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from topodns.dns.addresses import OCTETS

Name = tuple[str, ...]

ROOT: Final[Name] = ()
MAX_LABEL: Final = 63  # RFC 1035 section 2.3.4
MAX_WIRE: Final = 255

IN_ADDR_ARPA: Final[Name] = ("in-addr", "arpa")
IP6_ARPA: Final[Name] = ("ip6", "arpa")

_DIGITS: Final = "0123456789"
_NIBBLES: Final = "0123456789abcdef"
# The ASCII letters only (RFC 4343): str.lower would also fold the upper half of latin-1.
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


class BadName(ValueError):
    """Text that is not a DNS name; the message has what was found."""


def parse_name(text: str) -> Name:
    """Parse presentation format (RFC 1035 section 5.1, with \\. and \\DDD) to a lower-cased name. Raises BadName.

    A final dot is optional: every name is absolute. "" is the root, as "." is.
    """
    if text in ("", "."):
        return ROOT
    labels = _split_labels(text)
    if any(not label for label in labels):
        raise BadName(f"empty label in {text!r}")
    if any(len(label) > MAX_LABEL for label in labels):
        raise BadName(f"label of more than {MAX_LABEL} octets in {text!r}")
    if sum(len(label) + 1 for label in labels) + 1 > MAX_WIRE:
        raise BadName(f"name of more than {MAX_WIRE} octets: {text!r}")
    return tuple(label.translate(_LOWER) for label in labels)


def _split_labels(text: str) -> list[str]:
    labels, label, at = [], "", 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            octet, at = _read_escape(text, at)
            label += octet
        elif char == ".":
            labels.append(label)
            label, at = "", at + 1
        else:
            label, at = label + _octet(char, text), at + 1
    if label:
        labels.append(label)
    return labels


def _read_escape(text: str, at: int) -> tuple[str, int]:
    digits = text[at + 1 : at + 4]
    if len(digits) == 3 and digits.isascii() and digits.isdigit():
        if int(digits) > 255:
            raise BadName(f"\\{digits} is not an octet in {text!r}")
        return chr(int(digits)), at + 4
    if not digits or digits[0] in _DIGITS:
        raise BadName(f"unfinished escape in {text!r}")
    return _octet(digits[0], text), at + 2


def _octet(char: str, text: str) -> str:
    if ord(char) > 0xFF:
        raise BadName(f"{char!r} is not an octet in {text!r}; write IDNs in their A-label (xn--) form")
    return char


def name_text(name: Sequence[str]) -> str:
    """Presentation format with the final dot; special and unprintable octets are escaped, so logs cannot be forged."""
    if not name:
        return "."
    return "".join(_label_text(label) + "." for label in name)


def _label_text(label: str) -> str:
    if label.isascii() and label.replace("-", "").replace("_", "").isalnum():
        return label
    return "".join(_octet_text(char) for char in label)


def _octet_text(char: str) -> str:
    if char in '."\\;()@$':
        return "\\" + char
    return char if "!" <= char <= "~" else f"\\{ord(char):03d}"


def name_wire(name: Sequence[str]) -> bytes:
    """Uncompressed wire form with the final zero octet, of any length. Raises BadName as `label_wire` does."""
    return b"".join(label_wire(label) for label in name) + b"\0"


def label_wire(label: str) -> bytes:
    """One label in wire form: length octet and octets. Raises BadName unless 1 to 63 octets (RFC 1035 2.3.4)."""
    octets = label.encode("latin-1")
    if not 0 < len(octets) <= MAX_LABEL:
        raise BadName(f"label of {len(octets)} octets: {label!r}")
    return bytes((len(octets),)) + octets


def wire_labels(spelling: bytes) -> Name:
    """The labels of an uncompressed wire-form name, in their original case."""
    labels, at = [], 0
    while (length := spelling[at]) != 0:
        labels.append(spelling[at + 1 : at + 1 + length].decode("latin-1"))
        at += 1 + length
    return tuple(labels)


def is_subdomain(name: Name, origin: Name) -> bool:
    """Whether `name` equals `origin` or is below it. Both lower-cased."""
    return not origin or name[-len(origin) :] == origin


def is_below_wire(name: bytes, origin: bytes) -> bool:
    """`is_subdomain` of names in wire form: `name` ends with `origin`, at a label's begin. False without an origin."""
    if not origin or not name.endswith(origin):
        return False
    at, start = 0, len(name) - len(origin)
    while at < start:
        at += 1 + name[at]
    return at == start


def is_below_any(name: Name, origins: Iterable[Name]) -> bool:
    """Whether `name` equals or is below one of `origins`. All lower-cased."""
    for origin in origins:  # noqa: SIM110 - most queries pass here, and `any` of a generator takes three times as long
        if not origin or name[-len(origin) :] == origin:
            return True
    return False


def is_reverse(name: Name) -> bool:
    """Whether `name` equals or is below in-addr.arpa or ip6.arpa."""
    return name[-2:] in (IN_ADDR_ARPA, IP6_ARPA)


def reverse_name(address: bytes) -> Name:
    """The in-addr.arpa or ip6.arpa name of a packed address of 4 or 16 octets (RFC 1035 3.5, RFC 3596 2.5)."""
    if len(address) == 4:
        return (*(str(octet) for octet in reversed(address)), *IN_ADDR_ARPA)
    nibbles = address.hex()
    return (*reversed(nibbles), *IP6_ARPA)


def reverse_address(name: Name) -> bytes | None:
    """The packed address of a complete reverse name; None for any other name, including partial reverse names."""
    if len(name) == 6 and name[4:] == IN_ADDR_ARPA:
        return _octets_of(name[3::-1])
    if len(name) == 34 and name[32:] == IP6_ARPA:
        digits = "".join(name[31::-1])
        return bytes.fromhex(digits) if len(digits) == 32 and all(d in _NIBBLES for d in digits) else None
    return None


def is_part_of_reverse(name: Name) -> bool:
    """Whether complete reverse names can be below `name`: `arpa`, `ip6.arpa`, or a part such as `0.10.in-addr.arpa`.

    False for the root.
    """
    if name[-2:] == IN_ADDR_ARPA:
        return len(name) < 6 and all(label in OCTETS for label in name[:-2])
    if name[-2:] == IP6_ARPA:
        return len(name) < 34 and all(label in _NIBBLES for label in name[:-2])
    return name == IP6_ARPA[1:]


def _octets_of(labels: Name) -> bytes | None:
    return bytes([OCTETS[label] for label in labels]) if all(label in OCTETS for label in labels) else None
