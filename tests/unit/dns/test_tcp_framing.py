"""Framing of RFC 1035 section 4.2.2 under every split that RFC 7766 section 8 allows."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.dns.tcp_framing import MessageReader, frame
from topodns.dns.wire_format import MAX_MESSAGE


def test_a_frame_is_the_length_in_two_octets_and_the_message() -> None:
    assert frame(b"query") == b"\x00\x05query"
    assert frame(bytes(MAX_MESSAGE))[:2] == b"\xff\xff"


def test_no_frame_carries_more_than_65535_octets() -> None:
    with pytest.raises(OverflowError):
        frame(bytes(MAX_MESSAGE + 1))


STREAMS = {
    "nothing": (b"", [], 0),
    "half a length": (b"\x00", [], 1),
    "a length and no message": (b"\x00\x03", [], 2),
    "a message not complete": (b"\x00\x03ab", [], 4),
    "one message": (b"\x00\x03abc", [b"abc"], 0),
    "two messages": (b"\x00\x03abc\x00\x01d", [b"abc", b"d"], 0),
    "a message and half a length": (b"\x00\x03abc\x01", [b"abc"], 1),
    "a message and a part of the next": (b"\x00\x01a\x00\x02b", [b"a"], 3),
    "an empty message": (b"\x00\x00", [b""], 0),
    "the longest message": (b"\xff\xff" + bytes(MAX_MESSAGE), [bytes(MAX_MESSAGE)], 0),
    "the longest message but one octet": (b"\xff\xff" + bytes(MAX_MESSAGE - 1), [], MAX_MESSAGE + 1),
}


@pytest.mark.parametrize(("stream", "messages", "pending"), STREAMS.values(), ids=STREAMS)
def test_a_stream_arrives_whole(stream: bytes, messages: list[bytes], pending: int) -> None:
    reader = MessageReader()
    assert reader.receive_data(stream) == messages
    assert reader.pending == pending


@pytest.mark.parametrize(("stream", "messages", "pending"), STREAMS.values(), ids=STREAMS)
def test_a_stream_arrives_octet_by_octet(stream: bytes, messages: list[bytes], pending: int) -> None:
    reader = MessageReader()
    received = [message for octet in stream for message in reader.receive_data(bytes([octet]))]
    assert received == messages
    assert reader.pending == pending


def test_the_rest_of_a_message_may_bring_the_next_ones_along() -> None:
    reader = MessageReader()
    assert reader.receive_data(b"\x00\x04ab") == []
    assert reader.receive_data(b"cd\x00\x01e\x00") == [b"abcd", b"e"]
    assert reader.receive_data(b"\x02fg") == [b"fg"]
    assert reader.pending == 0


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 200), max_size=8))
def test_no_split_changes_the_messages(messages: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(frame, messages))
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader = MessageReader()
    received: list[bytes] = []
    for start, end in pairwise(edges):
        received += reader.receive_data(stream[start:end])
    assert received == messages
    assert reader.pending == 0


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_any_stream_is_cut_without_an_error_and_without_a_lost_octet(chunks: list[bytes]) -> None:
    reader = MessageReader()
    cut = [message for chunk in chunks for message in reader.receive_data(chunk)]
    assert sum(2 + len(message) for message in cut) + reader.pending == sum(map(len, chunks))
