"""Lines out of pieces, whole, octet by octet, and with a tail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.kube.informer.watcher import LineReader, LineTooLong


def lines(*pieces: bytes, max_line: int = 1000) -> list[bytes]:
    reader = LineReader(max_line)
    return [line for piece in pieces for line in reader.feed(piece)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([b"one\ntwo\n"], [b"one", b"two"], id="whole lines"),
        pytest.param([b"on", b"e\nt", b"wo\n"], [b"one", b"two"], id="lines in pieces"),
        pytest.param([b"one\ntw"], [b"one"], id="the tail is no line"),
        pytest.param([b"\n\none\n \n\r\n"], [b"one"], id="empty lines are none"),
        pytest.param([b"", b"one", b"", b"\n"], [b"one"], id="empty pieces"),
    ],
)
def test_a_line_is_given_once_it_is_complete(pieces: list[bytes], expected: list[bytes]) -> None:
    assert lines(*pieces) == expected


@given(
    st.lists(st.binary(min_size=1, max_size=20).filter(lambda line: b"\n" not in line and line.strip()), max_size=8),
    st.data(),
)
def test_it_does_not_matter_where_the_pieces_end(expected: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in expected)
    ends = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[start:end] for start, end in zip([0, *ends], [*ends, len(stream)], strict=True)]
    assert lines(*pieces) == expected


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    assert lines(b"x" * 10 + b"\n" + b"y" * 10 + b"\n", max_line=10) == [b"x" * 10, b"y" * 10]
    with pytest.raises(LineTooLong, match="10 octets"):
        lines(b"x" * 6, b"x" * 5, max_line=10)
    with pytest.raises(LineTooLong):
        lines(b"short\n" + b"x" * 11, max_line=10)
