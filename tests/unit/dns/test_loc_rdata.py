"""LOC (RFC 1876): angles, altitude, size and precisions."""

import pytest

from topodns.dns.loc_rdata import loc_rdata
from topodns.dns.text_fields import BadRecord


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("0 N 0 E 0", "00121613 80000000 80000000 00989680"),
        ("0 s 0 w 0m", "00121613 80000000 80000000 00989680"),
        ("90 S 180 E -100000m", f"00121613 {2**31 - 324_000_000:08x} {2**31 + 648_000_000:08x} 00000000"),
        ("1 2 3.004 N 4 5 W 10.5 2m", f"00221613 {2**31 + 3_723_004:08x} {2**31 - 14_700_000:08x} 00989a9a"),
        ("0 N 0 E 42849672.95m 90000000m 0.01 .5m", "00991051 80000000 80000000 ffffffff"),
        ("0 0 59.999 N 0 0 0. E 1.M 1.50m 20M 3", f"00122332 {2**31 + 59_999:08x} 80000000 009896e4"),
    ],
)
def test_a_location(text: str, wire: str) -> None:
    assert loc_rdata(text.split()).hex() == wire.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "degrees, minutes, seconds, and N or S"),
        ("here", "degrees, minutes, seconds, and N or S"),
        ("N 0 E 0", "degrees, minutes, seconds, and N or S"),
        ("0 0 0 0 N 0 E 0", "degrees, minutes, seconds, and N or S"),
        ("0.5 N 0 E 0", "degrees, minutes, seconds, and N or S"),
        ("91 N 0 E 0", "at most 90 degrees"),
        ("90 0 0.001 N 0 E 0", "at most 90 degrees"),
        ("1 60 N 0 E 0", "fewer than 60 minutes"),
        ("1 0 60 N 0 E 0", "fewer than 60 minutes and seconds"),
        ("0 N 181 E 0", "at most 180 degrees"),
        ("0 N 0 E", "found 0 words after the longitude, expected 1 to 4"),
        ("0 N 0 E 1 2 3 4 5", "found 5 words after the longitude"),
        ("0 N 0 E -100000.01m", "an altitude from"),
        ("0 N 0 E 42849672.96m", "an altitude from"),
        ("0 N 0 E 0 90000001m0", "metres"),
        ("0 N 0 E 0 99999999m -1m", "at most 90000000m"),
        ("0 N 0 E high", "found 'high', expected metres"),
    ],
)
def test_other_text_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadRecord, match=problem):
        loc_rdata(text.split())
