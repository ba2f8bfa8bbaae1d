"""The framing of netlink messages, octet for octet."""

import struct

import pytest

from topodns.netlink.messages import DUMP, Message, read_messages, write_message


def test_messages_of_one_datagram_are_split_with_their_padding() -> None:
    bodies = (b"a", b"four", b"")
    data = b"".join(
        struct.pack("=IHHII", 16 + len(body), 16 + number, 0, 0, 0) + body.ljust((len(body) + 3) // 4 * 4, b"\0")
        for number, body in enumerate(bodies)
    )
    assert list(read_messages(data)) == [Message(16 + number, body) for number, body in enumerate(bodies)]


@pytest.mark.parametrize("data", [b"", b"\0" * 15, struct.pack("=IHHII", 0, 16, 0, 0, 0), b"\0" * 32])
def test_a_message_that_is_too_short_or_has_no_length_ends_the_datagram(data: bytes) -> None:
    assert list(read_messages(data)) == []


def test_a_request_has_its_length_type_flags_and_sequence_number_before_the_body() -> None:
    assert write_message(20, b"body", DUMP, 7) == struct.pack("=IHHII", 20, 20, 0x301, 7, 0) + b"body"
