"""RDATA of LOC in presentation format to octets (RFC 1876 sections 2 and 3)."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from topodns.dns.text_fields import BadRecord, wrong

_WHOLE: Final = re.compile(r"[0-9]{1,3}")
_SECONDS: Final = re.compile(r"[0-9]{1,2}(?:\.[0-9]{0,9})?")
_METRES: Final = re.compile(r"(-?(?:[0-9]{1,8}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}))m?", re.IGNORECASE)
_DEFAULTS: Final = ("1m", "10000m", "10m")  # size, horizontal and vertical precision
_ALTITUDE_OF_ZERO: Final = 10_000_000  # centimetres below the reference
_MIDDLE: Final = 1 << 31  # the equator, and the prime meridian


def loc_rdata(texts: Sequence[str]) -> bytes:
    """Latitude, longitude, altitude, and perhaps size and precisions in metres. Raises BadRecord."""
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
