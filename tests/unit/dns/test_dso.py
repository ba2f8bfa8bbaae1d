"""DSO messages, written and read by the layout of RFC 8490 section 5.4, octet by octet."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.dns.dso import (
    INFINITE,
    DsoMessage,
    DsoType,
    SessionTimeouts,
    Tlv,
    keepalive_tlv,
    read_dso,
    read_keepalive,
    read_retry_delay,
    retry_delay_tlv,
    write_dso,
    write_dso_response,
)
from topodns.dns.rrtype import Rcode
from topodns.dns.wire_reader import WireError

NO_COUNTS = bytes(8)
KEEPALIVE = bytes.fromhex("0001 0008 ffffffff 00003a98")
TLVS = st.builds(Tlv, st.integers(0, 0xFFFF), st.binary(max_size=20))


def test_a_keepalive_request_has_the_octets_of_the_rfc() -> None:
    octets = bytes.fromhex("1234 3000") + NO_COUNTS + KEEPALIVE
    message = DsoMessage(0x1234, False, 0, keepalive_tlv(SessionTimeouts(INFINITE, 15_000)))
    assert write_dso(message) == octets
    assert read_dso(octets) == message
    assert read_keepalive(KEEPALIVE[4:]) == (INFINITE, 15_000)


def test_a_response_repeats_the_id_and_has_qr_and_the_rcode() -> None:
    octets = bytes.fromhex("1234 b00b") + NO_COUNTS
    assert write_dso_response(0x1234, Rcode.DSOTYPENI) == octets
    assert read_dso(octets) == DsoMessage(0x1234, True, Rcode.DSOTYPENI, None)


def test_a_response_may_have_a_retry_delay() -> None:
    octets = bytes.fromhex("1234 b002") + NO_COUNTS + bytes.fromhex("0002 0004 0000ea60")
    assert write_dso_response(0x1234, Rcode.SERVFAIL, retry_delay_tlv(60_000)) == octets
    primary = read_dso(octets).primary
    assert primary is not None
    assert read_retry_delay(primary.data) == 60_000


@given(st.integers(0, 0xFFFF), st.booleans(), st.integers(0, 15), TLVS, st.lists(TLVS, max_size=5))
def test_what_is_written_is_read(ident: int, response: bool, rcode: int, first: Tlv, others: list[Tlv]) -> None:
    message = DsoMessage(ident, response, rcode, first, tuple(others))
    assert read_dso(write_dso(message)) == message


@given(st.binary(max_size=60))
def test_any_octets_are_a_message_or_a_wire_error(octets: bytes) -> None:
    with suppress(WireError):
        read_dso(bytes.fromhex("12343000") + octets)


@pytest.mark.parametrize(
    ("octets", "problem"),
    [
        (bytes.fromhex("1234 3000") + bytes(7), "no header"),
        (bytes.fromhex("1234 0000") + NO_COUNTS + KEEPALIVE, "no DSO message"),
        (bytes.fromhex("1234 3000 0001") + bytes(6) + KEEPALIVE, "section of records"),
        (bytes.fromhex("1234 3000") + bytes(7) + b"\1" + KEEPALIVE, "section of records"),
        (bytes.fromhex("1234 3000") + NO_COUNTS, "without a TLV"),
        (bytes.fromhex("1234 3000") + NO_COUNTS + KEEPALIVE[:3], "cut off"),
        (bytes.fromhex("1234 3000") + NO_COUNTS + KEEPALIVE[:-1], "past the message"),
        (bytes.fromhex("1234 3000") + NO_COUNTS + bytes(4) * 65, "more than 64 TLVs"),
    ],
)
def test_a_malformed_message_is_a_wire_error(octets: bytes, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        read_dso(octets)


def test_z_bits_are_ignored() -> None:
    octets = bytes.fromhex("1234 37f0") + NO_COUNTS + KEEPALIVE
    assert read_dso(octets) == read_dso(bytes.fromhex("1234 3000") + NO_COUNTS + KEEPALIVE)


@pytest.mark.parametrize("read", [read_keepalive, read_retry_delay])
@pytest.mark.parametrize("size", [0, 3, 5, 7, 9])
def test_a_tlv_of_another_size_is_a_wire_error(read: Callable[[bytes], object], size: int) -> None:
    with pytest.raises(WireError, match=f"of {size} octets"):
        read(bytes(size))


def test_our_own_type_is_in_the_range_for_local_use() -> None:
    assert 0xF800 <= DsoType.NODE_NAME <= 0xFBFF
