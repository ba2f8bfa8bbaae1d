"""Foreign text is shown as one short line that forges no other and does nothing to a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.logs import LONGEST, one_line, printable

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too, which no stream can write


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("default/web: an address", "default/web: an address"),
        ("größer als 名前", "größer als 名前"),
        ("red \x1b[31m", r"red \x1b[31m"),
        ("two\nlines", r"two\nlines"),
        ("right to left \u202e", r"right to left \u202e"),
        ("half \ud800", r"half \ud800"),
    ],
)
def test_unprintable_text_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" one\r\n\ttwo  three\x00 ", r"one two three\x00"),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * (LONGEST - 1) + "…"),
        ("\x1b" * LONGEST, (r"\x1b" * LONGEST)[: LONGEST - 1] + "…"),
        ("x" * 10_000_000, "x" * (LONGEST - 1) + "…"),
    ],
    ids=["white space", "just short enough", "too long", "too long once escaped", "very long"],
)
def test_a_line_is_short_and_has_single_blanks(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(ANY_TEXT)
def test_every_text_can_be_shown(text: str) -> None:
    for shown in (printable(text), one_line(text)):
        assert shown.isprintable()
        shown.encode()
    assert len(one_line(text)) <= LONGEST
