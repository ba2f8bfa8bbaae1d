"""State messages between instances, as octets."""

import pytest

from topodns.hostnet.instances import InstanceState, decode_state, encode_state


@pytest.mark.parametrize(
    "state", [InstanceState(7), InstanceState(1 << 90, True), InstanceState(0, False, frozenset({3, 1 << 31}))]
)
def test_a_state_is_decoded_as_it_was_encoded(state: InstanceState) -> None:
    assert decode_state(encode_state(state)) == state


@pytest.mark.parametrize("message", [b"", b"1", b"1 1", b"x 1 ", b"1 x ", b"1 1 2,x", b"1 1 2 3", b"\xff 1 "])
def test_a_malformed_message_is_none(message: bytes) -> None:
    assert decode_state(message) is None
