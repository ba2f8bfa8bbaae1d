"""The parser of the file of `loadbalance weighted FILE`. `source` reads the file."""

from collections.abc import Generator, Mapping
from typing import Final

from topodns.dns.addresses import packed_address
from topodns.dns.name import BadName, name_wire, parse_name
from topodns.files.text import MAX_LINE, BadText, numbered_lines

LINES_AT_ONCE: Final = 10  # lines per step, about 0.1 ms

Weights = Mapping[bytes, Mapping[bytes, int]]
"""The weight, 1..255, of each packed address per owner (wire form, lower case); an unlisted address weighs 1."""


class BadWeights(BadText):
    """Text that is not a weight file; the message has the line and the text found."""


def parse_weights(content: bytes) -> Generator[None, None, Weights]:
    """Return the weights that CoreDNS reads from this content, LINES_AT_ONCE lines per step. Raises BadWeights.

    A line is a domain name, or an address and its weight for the last name above; blank lines and lines that begin
    with # are ignored. A name may be repeated; of an address listed twice under a name the first weight applies. A line
    of more than MAX_LINE octets is bad.
    """
    weights: dict[bytes, dict[bytes, int]] = {}
    current: dict[bytes, int] | None = None
    for number, line in numbered_lines(content):
        if number % LINES_AT_ONCE == 0:
            yield
        try:
            fields = _fields(line)
            if len(fields) == 1:
                current = weights.setdefault(_parse_owner(fields[0]), {})
            elif fields:
                _add_weight(current, fields)
        except BadWeights as problem:
            raise BadWeights(f"line {number}: {problem}") from None
    return weights


def _fields(line: bytes | None) -> list[str]:
    """The words of a line; none of a comment. Raises BadWeights for None, a line that is too long."""
    if line is None:
        raise BadWeights(f"more than {MAX_LINE} octets")
    text = line.strip()
    return [] if text.startswith(b"#") else text.decode(errors="replace").split()


def _add_weight(current: dict[bytes, int] | None, fields: list[str]) -> None:
    if len(fields) > 2:
        raise BadWeights(f"found {len(fields)} words, expected a domain name, or an address and its weight")
    if current is None:
        raise BadWeights(f"no domain name above {fields[0]!r}")
    address = _parse_address(fields[0])
    if address is None:
        raise BadWeights(f"{fields[0]!r} is no IP address")
    current.setdefault(address, _parse_weight(fields[1]))


def _parse_owner(text: str) -> bytes:
    if _parse_address(text) is not None:
        raise BadWeights(f"found only {text!r}, expected a domain name, or an address and its weight")
    try:
        return name_wire(parse_name(text))
    except BadName as problem:
        raise BadWeights(str(problem)) from None


def _parse_address(text: str) -> bytes | None:
    try:
        return packed_address(text)
    except ValueError:
        return None


def _parse_weight(text: str) -> int:
    weight = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= weight <= 255:
        raise BadWeights(f"weight {text!r} is not between 1 and 255")
    return weight
