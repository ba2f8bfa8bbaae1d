"""Response codes by name."""

import pytest

from topodns.dns.rrtype import parse_rcode


@pytest.mark.parametrize(
    ("text", "rcode"),
    [
        ("NOERROR", 0),
        ("nxdomain", 3),
        ("NOTIMP", 4),
        ("NOTIMPL", 4),
        ("Refused", 5),
        ("BADCOOKIE", 23),
        ("3", None),
        ("", None),
    ],
)
def test_codes_are_named_in_any_case(text: str, rcode: int | None) -> None:
    assert parse_rcode(text) == rcode
