"""Record types, classes and response codes by name."""

import pytest
from dnslib import QTYPE

from topodns.dns.rrtype import QTYPES, class_text, parse_qclass, parse_rcode, rcode_text, type_text


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


@pytest.mark.parametrize(
    ("text", "qclass"),
    [("IN", 1), ("ch", 3), ("NONE", 254), ("CLASS65281", 65281), ("CLASS65536", None), ("TYPE1", None)],
)
def test_classes_are_named_in_any_case_or_by_number(text: str, qclass: int | None) -> None:
    assert parse_qclass(text) == qclass


def test_types_classes_and_codes_without_a_mnemonic_are_their_number() -> None:
    assert (type_text(257), type_text(65280)) == ("CAA", "TYPE65280")
    assert (class_text(2), class_text(5)) == ("CS", "CLASS5")
    assert (rcode_text(16), rcode_text(3841)) == ("BADVERS", "3841")


def test_each_type_has_one_number_and_it_is_the_one_that_dnslib_has() -> None:
    assert len(set(QTYPES.values())) == len(QTYPES)
    theirs = {name: number for number, name in QTYPE.forward.items() if name != "HIP"}  # dnslib has 53, SMIMEA's
    assert {name: QTYPES[name] for name in theirs.keys() & QTYPES.keys()} == {
        name: number for name, number in theirs.items() if name in QTYPES
    }
