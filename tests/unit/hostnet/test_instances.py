"""An instance's words about itself, as octets."""

import pytest

from topodns.hostnet.instances import Word, read_word, write_word


@pytest.mark.parametrize("word", [Word(7), Word(1 << 90, True), Word(0, False, frozenset({3, 1 << 31}))])
def test_a_word_is_read_as_it_was_written(word: Word) -> None:
    assert read_word(write_word(word)) == word


@pytest.mark.parametrize("message", [b"", b"1", b"1 1", b"x 1 ", b"1 x ", b"1 1 2,x", b"1 1 2 3", b"\xff 1 "])
def test_a_message_that_is_no_word_is_none(message: bytes) -> None:
    assert read_word(message) is None
