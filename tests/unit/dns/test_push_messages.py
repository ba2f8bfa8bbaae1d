"""Messages of DNS Push Notifications, by the layout of RFC 8765 section 6, octet by octet."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.dnslib_records import NAMES
from topodns.dns.dso import DsoType, Tlv, read_dso
from topodns.dns.push_messages import (
    ALL_REMOVED,
    MAX_PUSH,
    MAX_PUSHED_RDATA,
    REMOVED,
    PushChange,
    Reconfirm,
    Subscribe,
    read_push,
    read_reconfirm,
    read_subscribe,
    read_unsubscribe,
    write_push,
    write_subscribe,
    write_unsubscribe,
)
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.wire_reader import WireError

WEB = b"\3web\4shop\3svc\0"
HEAD = bytes.fromhex("0000 3000") + bytes(8)
ADDRESS = b"\x0a\0\0\1"
CHANGES = st.builds(
    PushChange,
    NAMES.map(bytes.lower),
    st.sampled_from([RRType.TXT, 65280]),
    st.just(RRClass.IN),
    st.sampled_from([0, 5, REMOVED]),
    st.binary(max_size=4000),
)


def primary_data(octets: bytes) -> bytes:
    primary = read_dso(octets).primary
    assert primary is not None
    return primary.data


def test_a_subscribe_has_the_octets_of_the_rfc() -> None:
    octets = bytes.fromhex("0007 3000") + bytes(8) + b"\0\x40\0\x12" + WEB + b"\0\1\0\1"
    assert write_subscribe(7, Subscribe(WEB, RRType.A)) == octets
    assert read_subscribe(primary_data(octets)) == Subscribe(WEB, RRType.A, RRClass.IN)


def test_a_subscribe_carries_the_name_of_the_node_as_an_additional_tlv() -> None:
    octets = write_subscribe(7, Subscribe(WEB, RRType.A), Tlv(DsoType.NODE_NAME, b"node-a1"))
    assert octets.endswith(b"\xf8\xee\0\7node-a1")
    assert read_dso(octets).additional == (Tlv(0xF8EE, b"node-a1"),)


def test_a_name_is_read_in_lower_case() -> None:
    assert read_subscribe(WEB.upper() + b"\0\1\0\1").qname == WEB
    assert read_reconfirm(WEB.upper() + b"\0\1\0\1ABCD") == Reconfirm(WEB, RRType.A, RRClass.IN, b"ABCD")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "cut off"),
        (b"\3web", "cut off"),
        (b"\3we", "cut off"),
        (WEB, "octets"),
        (WEB + b"\0\1\0", "octets"),
        (WEB + b"\0\1\0\1\0", "octets"),
        (b"\xc0\x0c\0\1\0\1", "compressed"),
        (b"\x40" + b"a" * 64 + b"\0\0\1\0\1", "extended"),
        ((b"\x3f" + b"a" * 63) * 4 + b"\0\0\1\0\1", "255"),
    ],
)
def test_a_malformed_subscribe_is_a_wire_error(data: bytes, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        read_subscribe(data)


def test_a_name_of_255_octets_is_read() -> None:
    name = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"a" * 61 + b"\0"
    assert len(name) == 255
    assert read_subscribe(name + b"\0\1\0\1").qname == name


def test_an_unsubscribe_has_the_id_of_its_subscribe() -> None:
    octets = HEAD + b"\0\x42\0\2\0\7"
    assert write_unsubscribe(7) == octets
    assert read_unsubscribe(primary_data(octets)) == 7
    with pytest.raises(WireError, match="3 octets"):
        read_unsubscribe(b"\0\7\0")


def test_a_reconfirm_has_one_record_without_its_length() -> None:
    octets = HEAD + b"\0\x43\0\x16" + WEB + b"\0\1\0\1" + ADDRESS
    assert read_reconfirm(primary_data(octets)) == Reconfirm(WEB, RRType.A, RRClass.IN, ADDRESS)
    with pytest.raises(WireError, match="cut off"):
        read_reconfirm(WEB + b"\0\1\0")


def test_a_push_has_the_octets_of_the_rfc_and_points_to_an_earlier_owner() -> None:
    changes = [
        PushChange(WEB, RRType.A, RRClass.IN, 5, ADDRESS),
        PushChange(WEB, RRType.A, RRClass.IN, REMOVED, b"\x0a\0\0\2"),
        PushChange(b"\3api" + WEB[4:], RRType.A, RRClass.IN, ALL_REMOVED),
    ]
    records = (
        (WEB + bytes.fromhex("0001 0001 00000005 0004") + ADDRESS)
        + (b"\xc0\x10" + bytes.fromhex("0001 0001 ffffffff 0004 0a000002"))
        + (b"\3api\xc0\x14" + bytes.fromhex("0001 0001 fffffffe 0000"))
    )
    octets = HEAD + b"\0\x41" + len(records).to_bytes(2, "big") + records
    assert write_push(changes) == [octets]
    assert read_push(octets) == changes


def test_names_in_rdata_are_uncompressed() -> None:
    service = b"\5_http\4_tcp" + WEB
    records = service + bytes.fromhex("0021 0001 00000005 0008 0000 0064 0050") + b"\xc0\x1b"
    [change] = read_push(HEAD + b"\0\x41" + len(records).to_bytes(2, "big") + records)
    assert change == PushChange(service, RRType.SRV, RRClass.IN, 5, b"\0\0\0\x64\0\x50" + WEB)


def test_a_change_with_a_ttl_that_means_nothing_is_left_out() -> None:
    records = WEB + bytes.fromhex("0001 0001 80000000 0004") + ADDRESS
    assert read_push(HEAD + b"\0\x41" + len(records).to_bytes(2, "big") + records) == []


@pytest.mark.parametrize(
    ("octets", "problem"),
    [
        (HEAD + b"\0\x41\0\0", "without a change"),
        (HEAD + b"\0\x41\0", "cut off"),
        (HEAD + b"\0\x41\0\5\0", "no PUSH"),
        (HEAD + b"\0\x40\0\1\0", "no PUSH"),
        (HEAD + b"\0\x41\0\x0f\0" + bytes.fromhex("0001 0001 fffffffe 0004") + ADDRESS, "with RDATA"),
        (HEAD + b"\0\x41\0\x0f\0" + bytes.fromhex("0001 0001 00000005 0005") + ADDRESS, "past the end"),
        (HEAD + b"\0\x41\0\x0e\0" + bytes.fromhex("0001 0001 00000005 0003") + b"abc", "wrong length"),
        (HEAD + b"\0\x41\0\2\xc0\x10", "backwards"),
        (HEAD + b"\0\x41\0\3\0\0\1", "too early"),
        (HEAD + b"\0\x41" + (MAX_PUSH - 15).to_bytes(2, "big") + bytes(MAX_PUSH - 15), f"at most {MAX_PUSH}"),
    ],
)
def test_a_malformed_push_is_a_wire_error(octets: bytes, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        read_push(octets)


@given(st.binary(max_size=80))
def test_any_octets_are_changes_or_a_wire_error(octets: bytes) -> None:
    for message in (HEAD + b"\0\x41" + len(octets).to_bytes(2, "big") + octets, HEAD + b"\0\x41" + octets):
        with suppress(WireError):
            read_push(message)


@given(st.lists(CHANGES, max_size=12))
def test_changes_are_split_into_messages_that_are_not_too_long_and_keep_their_order(changes: list[PushChange]) -> None:
    messages = write_push(changes)
    assert all(len(message) <= MAX_PUSH for message in messages)
    assert [change for message in messages for change in read_push(message)] == changes


def test_as_many_changes_as_fit_are_one_message() -> None:
    changes = [PushChange(WEB, RRType.A, RRClass.IN, 5, number.to_bytes(4, "big")) for number in range(3000)]
    sizes = [len(message) for message in write_push(changes)]
    assert len(sizes) == 3
    assert all(MAX_PUSH - 16 < size <= MAX_PUSH for size in sizes[:-1])


def test_a_record_that_fits_in_no_message_is_an_error() -> None:
    name = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"a" * 61 + b"\0"
    [message] = write_push([PushChange(name, RRType.TXT, RRClass.IN, 5, bytes(MAX_PUSHED_RDATA))])
    assert len(message) == MAX_PUSH
    with pytest.raises(OverflowError, match="fits in no PUSH"):
        write_push([PushChange(name, RRType.TXT, RRClass.IN, 5, bytes(MAX_PUSHED_RDATA + 1))])


def test_no_change_is_no_message() -> None:
    assert write_push([]) == []
