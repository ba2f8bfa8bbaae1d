from topodns.files.lines import MAX_LINE, numbered_lines


def test_lines_are_numbered_and_have_no_newline() -> None:
    assert list(numbered_lines(b"a\n\nb\r\nc")) == [(1, b"a"), (2, b""), (3, b"b\r"), (4, b"c")]
    assert list(numbered_lines(b"a\n")) == [(1, b"a")]
    assert list(numbered_lines(b"")) == []


def test_a_line_longer_than_its_limit_is_none() -> None:
    most = b"a" * MAX_LINE
    assert list(numbered_lines(most + b"\n" + most + b"a\nb")) == [(1, most), (2, None), (3, b"b")]
    assert list(numbered_lines(most + b"a")) == [(1, None)]
