"""$GENERATE: the lines of a range of numbers."""

import pytest

from topodns.dns.text_fields import BadRecord
from topodns.dns.zone_generate import MAX_LINES, generated


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("1-3 a$ A 192.0.2.$", ["a1 A 192.0.2.1", "a2 A 192.0.2.2", "a3 A 192.0.2.3"]),
        ("0-5/5\t$ PTR h$", ["0 PTR h0", "5 PTR h5"]),
        ("7-7 h${-7} TXT ${1,4,d}${0,0,x}${8,3,o}${3,2,X}", ["h0 TXT 000870170A"]),
        (r"1-1 \$ TXT $$ \\x$", [r"$ TXT $ \\x1"]),
    ],
)
def test_each_dollar_sign_is_the_number(text: str, lines: list[str]) -> None:
    assert list(generated(text, 100)) == lines


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1-2",
        "2-1 a$ A 192.0.2.1",
        "1-2/0 a$ A 192.0.2.1",
        "one-two a$ A 192.0.2.1",
        "0-2147483648 a$ A 192.0.2.1",
        f"0-{MAX_LINES} a$ A 192.0.2.1",
        "1-2 a${-2} A 192.0.2.1",
        "1-2 a${0,1,q} A 192.0.2.1",
        "1-2 a${0,256,d} A 192.0.2.1",
        "1-2 a${} A 192.0.2.1",
        "1-2 a$ TXT " + "x" * 100,
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(BadRecord):
        list(generated(text, 100))
