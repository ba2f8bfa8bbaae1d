"""The text of a zone file, read record by record."""

import pytest

from tests.support.cluster_dig import expected
from topodns.dns.dnslib_text import record_lines
from topodns.dns.name import parse_name
from topodns.dns.text_fields import BadRecord
from topodns.dns.zonefile import MAX_ENTRY, MAX_LINES, MAX_WORDS, STEP, BadZone, Include, generated, parse_zone

SOA = "@ 300 IN SOA ns host 1 7200 1800 86400 30\n"


def records(text: str, include: Include | None = None) -> str:
    origin = parse_name("example.org")
    found = parse_zone(text, origin) if include is None else parse_zone(text, origin, include)
    return "\n".join(record_lines((record.rrset for record in found if record is not None), b"\0"))


READ = {
    "names relative and not": (
        "@ 5 IN NS ns\nns 5 IN A 192.0.2.1\nNS2.example.net. 5 IN A 192.0.2.2",
        """
        example.org. 5 IN NS ns.example.org.
        ns.example.org. 5 IN A 192.0.2.1
        NS2.example.net. 5 IN A 192.0.2.2
        """,
    ),
    "the owner of the line above": (
        "www 5 A 192.0.2.1\n    AAAA ::1\n\n ; nothing\n\tTXT x",
        """
        www.example.org. 5 IN A 192.0.2.1
        www.example.org. 5 IN AAAA ::1
        www.example.org. 5 IN TXT "x"
        """,
    ),
    "the owner of the line above, when the origin has changed": (
        "www 5 A 192.0.2.1\n$ORIGIN net.\n A 192.0.2.2",
        """
        www.example.org. 5 IN A 192.0.2.1
        www.example.org. 5 IN A 192.0.2.2
        """,
    ),
    "lines in parentheses": (
        "@ 5 SOA ns host ( ; serial\n  2017 ; first (\n  1h 30m\n  1w 5 )\nns A 192.0.2.1",
        """
        example.org. 5 IN SOA ns.example.org. host.example.org. 2017 3600 1800 604800 5
        ns.example.org. 5 IN A 192.0.2.1
        """,
    ),
    "$ORIGIN, relative and not": (
        "$ORIGIN sub\na 5 A 192.0.2.1\n$ORIGIN net.\nb 5 A 192.0.2.2\n$ORIGIN @\nc 5 A 192.0.2.3",
        """
        a.sub.example.org. 5 IN A 192.0.2.1
        b.net. 5 IN A 192.0.2.2
        c.net. 5 IN A 192.0.2.3
        """,
    ),
    "$TTL, for records that have none": (
        "$TTL 1h\na A 192.0.2.1\nb 5 A 192.0.2.2\nc IN A 192.0.2.3\n$ttl 2\nd A 192.0.2.4",
        """
        a.example.org. 3600 IN A 192.0.2.1
        b.example.org. 5 IN A 192.0.2.2
        c.example.org. 3600 IN A 192.0.2.3
        d.example.org. 2 IN A 192.0.2.4
        """,
    ),
    "without $TTL, the TTL before": (
        "a 5 A 192.0.2.1\nb A 192.0.2.2\nc IN 1m A 192.0.2.3\nd in A 192.0.2.4",
        """
        a.example.org. 5 IN A 192.0.2.1
        b.example.org. 5 IN A 192.0.2.2
        c.example.org. 60 IN A 192.0.2.3
        d.example.org. 60 IN A 192.0.2.4
        """,
    ),
    "without any TTL, the SOA's minimum": (
        "@ IN SOA ns host 1 2 3 4 30\nwww IN A 192.0.2.1",
        """
        example.org. 30 IN SOA ns.example.org. host.example.org. 1 2 3 4 30
        www.example.org. 30 IN A 192.0.2.1
        """,
    ),
    "quotes hide what else would mean something": (
        'a 5 TXT "one; (two" three;four\r\nb 5 TXT \\;',
        """
        a.example.org. 5 IN TXT "one; (two" "three"
        b.example.org. 5 IN TXT ";"
        """,
    ),
    "owners with escapes": (
        r"a\.b 5 A 192.0.2.1" + "\n A 192.0.2.2\n" + r"\$x 5 A 192.0.2.3",
        r"""
        a\.b.example.org. 5 IN A 192.0.2.1
        a\.b.example.org. 5 IN A 192.0.2.2
        \$x.example.org. 5 IN A 192.0.2.3
        """,
    ),
    "types without a name": (r"a 5 TYPE65280 \# 2 ab cd", r"a.example.org. 5 IN TYPE65280 \# 2 abcd"),
    "parentheses in others, as in CoreDNS": ("a 5 A ( ( 192.0.2.1 ) )", "a.example.org. 5 IN A 192.0.2.1"),
    "a quoted string over lines, as in CoreDNS": (
        'a 5 TXT "one\n;two"\nb A 192.0.2.1',
        """
        a.example.org. 5 IN TXT "one\\010;two"
        b.example.org. 5 IN A 192.0.2.1
        """,
    ),
    "a record for each number": (
        "$TTL 60\n$GENERATE 1-5/2 web${9,3,d} A 192.0.2.$\n$GENERATE 10-11 $ 5 PTR h${0,0,x}",
        """
        web010.example.org. 60 IN A 192.0.2.1
        web012.example.org. 60 IN A 192.0.2.3
        web014.example.org. 60 IN A 192.0.2.5
        10.example.org. 5 IN PTR ha.example.org.
        11.example.org. 5 IN PTR hb.example.org.
        """,
    ),
    "a record for each number, named by its hexadecimal digits": (
        "$TTL 60\n$ORIGIN 8.b.d.0.1.0.0.2.ip6.arpa.\n$GENERATE 254-256 ${0,7,n} PTR h$.example.org.",
        """
        e.f.0.0.8.b.d.0.1.0.0.2.ip6.arpa. 60 IN PTR h254.example.org.
        f.f.0.0.8.b.d.0.1.0.0.2.ip6.arpa. 60 IN PTR h255.example.org.
        0.0.1.0.8.b.d.0.1.0.0.2.ip6.arpa. 60 IN PTR h256.example.org.
        """,
    ),
    "relative names in the data of any type": (
        "$ORIGIN net.\na 5 RP m t\nb NSEC3PARAM 1 0 0 -\nc LP 10 l\nd HTTPS 0 @",
        """
        a.net. 5 IN RP m.net. t.net.
        b.net. 5 IN NSEC3PARAM \\# 5 0100000000
        c.net. 5 IN LP \\# 9 000a016c036e657400
        d.net. 5 IN HTTPS 0 net.
        """,
    ),
    "classes, CRLF and no last line end": (
        "a IN 5 A 192.0.2.1\r\nb 5 in A 192.0.2.2\r\nc IN A ( 192.0.2.3\r\n )",
        """
        a.example.org. 5 IN A 192.0.2.1
        b.example.org. 5 IN A 192.0.2.2
        c.example.org. 5 IN A 192.0.2.3
        """,
    ),
    "nothing": ("; nothing\n\n", ""),
}


@pytest.mark.parametrize(("text", "lines"), READ.values(), ids=READ)
def test_reads(text: str, lines: str) -> None:
    assert records(text) == expected(lines)


FILES = {
    "zone": "$TTL 9\na A 192.0.2.1\n$INCLUDE more/one sub\n A 192.0.2.2\nb A 192.0.2.3\n$INCLUDE two",
    "more/one": "$TTL 8\n A 192.0.2.4\n@ A 192.0.2.5\n$INCLUDE two",
    "more/two": "c A 192.0.2.6",
    "two": "d A 192.0.2.7",
    "self": "$INCLUDE self",
    "bad": "a 5 A 192.0.2.1\n$INCLUDE worse",
    "worse": "\nb 5 A nonsense",
}


def included(file: str, name: str) -> tuple[str, str]:
    path = f"{file.rpartition('/')[0]}/{name}".lstrip("/")
    return path, FILES[path]


def records_of_file(file: str) -> str:
    return records(FILES[file], included)


def test_included_files_have_an_origin_of_their_own_and_change_neither_owner_nor_ttl_after_them() -> None:
    assert records_of_file("zone") == expected(
        """
        a.example.org. 9 IN A 192.0.2.1
        a.example.org. 8 IN A 192.0.2.4
        sub.example.org. 8 IN A 192.0.2.5
        c.sub.example.org. 8 IN A 192.0.2.6
        a.example.org. 9 IN A 192.0.2.2
        b.example.org. 9 IN A 192.0.2.3
        d.example.org. 9 IN A 192.0.2.7
        """
    )


def test_each_record_has_the_place_of_its_entry() -> None:
    text = "a 5 SOA ns host (\n1 1 1 1 1 )\nb A 192.0.2.1\n\n$INCLUDE two\n$GENERATE 1-2 c$ A 192.0.2.$\nd A 192.0.2.1"
    found = parse_zone(text, parse_name("example.org"), included)
    places = [(record.file, record.line) for record in found if record is not None]
    assert places == [("", 1), ("", 3), ("two", 1), ("", 6), ("", 6), ("", 7)]


def test_a_file_that_includes_itself_is_refused() -> None:
    with pytest.raises(BadZone, match=r"^self:1: found .INCLUDE in files that are included, more than 7 deep$"):
        records_of_file("self")


def test_an_error_in_an_included_file_has_its_line() -> None:
    with pytest.raises(BadZone, match=r"^worse:2: found 'nonsense', expected an IPv4 address$"):
        records_of_file("bad")


REFUSED = {
    "a record without a TTL": ("a A 192.0.2.1", "line 1: a record without a TTL"),
    "no owner above": (" 5 A 192.0.2.1", "line 1: a record without a name"),
    "another class": ("\na 5 CH TXT x", "line 2: a record of class 3, expected IN"),
    "an open parenthesis": ("a 5 A 192.0.2.1\nb 5 SOA (\n1", "line 2: a parenthesis that is never closed"),
    "a closed one": ("a 5 A 192.0.2.1 )", "line 1: parentheses that do not match"),
    "an open quote": ('\n\na 5 TXT "x', "line 3: a quote or a backslash"),
    "an include where there are no files": ("$INCLUDE other", "line 1: found $INCLUDE 'other', but no files are read"),
    "an include of nothing": ("$INCLUDE", "line 1: $INCLUDE with '', expected a file and perhaps a name"),
    "a generation of nothing": ("$GENERATE 1-9", "line 1: found '1-9', expected START-STOP[/STEP] and a record"),
    "another directive": (
        "$UNKNOWN",
        "line 1: found a word of 8 characters, expected a record or one of $ORIGIN, $TTL",
    ),
    "a slip of a directive": ("$TLL 5", "line 1: found '$TLL', expected a record or one of $ORIGIN, $TTL, $INCLUDE"),
    "a password": ("hunter2", "line 1: found a word of 7 characters, expected an owner, a type and its data"),
    "an environment": ("export A=b", "line 1: found a word of 3 characters, expected a TTL, a class or a type"),
    "a netrc": ("password hunter2", "line 1: found a word of 7 characters, expected a TTL, a class or a type"),
    "a slip of a type": ("www CNAM x", "line 1: found 'CNAM', expected a TTL, a class or a type"),
    "a generated record that is none": ("\n$GENERATE 1-2 a$ 5 A 192.0.2.255$", "line 2: found '192.0.2.2551'"),
    "an origin that is none": ("$ORIGIN a..b", "line 1: empty label in 'a..b'"),
    "two origins": ("$ORIGIN a b", "line 1: $ORIGIN with 'a b', expected one name"),
    "a time that is none": ("$TTL soon", "line 1: $TTL with 'soon'"),
    "a time that is too long": ("$TTL 9999w", "line 1: found '9999w', expected at most 2147483647 seconds"),
    "digits without end": ("$TTL " + "1" * 60 + "x", "line 1: $TTL with '111"),
    "data that is none": ("a 5 A 192.0.2.1\n\nb 5 A 192.0.2.256", "line 3: found '192.0.2.256'"),
    "a mistake on a later line of a record": ("\na 5 SOA ns host (\n1 2 3 4 x )", "line 2: "),
    "a type that is none": ("a 5 IN NONSENSE 1", "line 1: found a word of 8 characters"),
    "a name that is too long": ("a 5 CNAME " + "a." * 130, "line 1: "),
    "a label that is too long": ("a" * 64 + " 5 A 192.0.2.1", "line 1: "),
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_refuses_and_says_where(text: str, problem: str) -> None:
    with pytest.raises(BadZone) as refused:
        records(text)
    assert str(refused.value).startswith(problem)


def test_records_before_a_mistake_have_been_read_by_then() -> None:
    reading = filter(None, parse_zone(f"{SOA}a 5 A nonsense", parse_name("example.org")))
    assert next(reading).rrset.rtype == 6
    with pytest.raises(BadZone):
        next(reading)


def steps_before_fault(text: str) -> int:
    """How many steps are made before the one that finds the fault."""
    steps = 0
    try:
        for _ in parse_zone(text, parse_name("example.org")):
            steps += 1
    except BadZone:
        return steps
    raise AssertionError("no fault was found")


@pytest.mark.parametrize("repeated", ["\n", "; c\n", "$TTL 5\n", "()", "(\n)\n", "a 5 A 192.0.2.1\n"])
def test_a_step_reads_no_more_characters_than_step_however_few_records_there_are(repeated: str) -> None:
    for before in range(0, 20 * STEP, STEP):
        text = repeated * (before // len(repeated))
        assert steps_before_fault(f"{text})") >= len(text) // (STEP + len(repeated)), before


def test_newlines_within_parentheses_are_read_in_steps() -> None:
    assert steps_before_fault("a 5 TXT (" + "\n" * 40 * STEP) >= 40


@pytest.mark.parametrize(
    "text",
    [
        "\n\na 5 TXT " + "a" * MAX_ENTRY,
        '\n\na 5 TXT "' + "a" * MAX_ENTRY + '"',
        '\n\na 5 TXT "' + "a" * (MAX_ENTRY * 2),
        "\n\na 5 TXT " + "\\0" * MAX_ENTRY,
        "\n\n;" + "a" * MAX_ENTRY,
    ],
)
def test_an_entry_of_more_than_its_limit_is_refused_after_a_few_steps(text: str) -> None:
    with pytest.raises(BadZone, match=f"^line 3: an entry of more than {MAX_ENTRY} characters$"):
        records(text)
    assert steps_before_fault(text) <= 2


def test_an_entry_of_more_words_than_its_limit_is_refused() -> None:
    for word in ("a ", '"" ', '""'):
        with pytest.raises(BadZone, match=f"^line 2: an entry of more than {MAX_WORDS} words and quotes$"):
            records("\na 5 TXT " + word * MAX_WORDS)


def test_the_largest_txt_record_that_one_message_can_hold_is_read() -> None:
    text = "a 5 TXT " + " ".join(f'"{"x" * 250}"' for _ in range(258))
    assert len(text) <= MAX_ENTRY
    (record,) = filter(None, parse_zone(text, parse_name("example.org")))
    assert len(record.rrset.rdatas[0]) == 258 * 251


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("1-3 a$ A 192.0.2.$", ["a1 A 192.0.2.1", "a2 A 192.0.2.2", "a3 A 192.0.2.3"]),
        ("0-5/5\t$ PTR h$", ["0 PTR h0", "5 PTR h5"]),
        ("7-7 h${-7} TXT ${1,4,d}${0,0,x}${8,3,o}${3,2,X}", ["h0 TXT 000870170A"]),
        ("18-18 ${0,3,n} PTR ${0,0,n}.${1,1,n}", ["2.1 PTR 2.1.3.1"]),
        ("1-1 ${0,7,n} PTR ${0,5,N}.h${170,3,n}.h${171,3,N}", ["1.0.0.0 PTR 1.0.0.hb.a.hC.A"]),
        ("1-17/16 ${0,4,n}z PTR h", ["1.0.z PTR h", "1.1.z PTR h"]),
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
