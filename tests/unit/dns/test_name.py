import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import packed
from topodns.dns.name import (
    MAX_WIRE,
    ROOT,
    BadName,
    Name,
    is_below_any,
    is_part_of_reverse,
    is_reverse,
    is_subdomain,
    label_wire,
    name_text,
    name_wire,
    parse_name,
    reverse_address,
    reverse_name,
    wire_labels,
)

any_octet = st.characters(max_codepoint=0xFF)
lower_octet = st.characters(max_codepoint=0xFF, exclude_characters=string.ascii_uppercase)


def names_of(octet: st.SearchStrategy[str]) -> st.SearchStrategy[Name]:
    labels = st.lists(st.text(octet, min_size=1, max_size=63), max_size=6)
    return labels.map(tuple).filter(lambda name: len(name_wire(name)) <= MAX_WIRE)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (".", ROOT),
        ("", ROOT),
        ("svc1.testns.svc.cluster.local.", ("svc1", "testns", "svc", "cluster", "local")),
        ("svc1.testns.svc.cluster.local", ("svc1", "testns", "svc", "cluster", "local")),
        ("cLuStEr.LoCaL.", ("cluster", "local")),
        ("_http._tcp.example.", ("_http", "_tcp", "example")),
        (r"a\.b.example.", ("a.b", "example")),
        (r"end\.", ("end.",)),
        (r"back\\slash.example.", (r"back\slash", "example")),
        (r"\065\066.example.", ("ab", "example")),
        (r"\000\255.example.", ("\0\xff", "example")),
        (r"\xa.example.", ("xa", "example")),
        ("a b.example.", ("a b", "example")),
        ("\xc4.example.", ("\xc4", "example")),
        ("\\\xb2.example.", ("\xb2", "example")),
    ],
)
def test_text_is_parsed_to_a_name_in_lower_case(text: str, name: Name) -> None:
    assert parse_name(text) == name


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("..", "empty label"),
        (".example.", "empty label"),
        ("a..example.", "empty label"),
        ("example..", "empty label"),
        ("a" * 64, "label of more than 63 octets"),
        (".".join(["a" * 63] * 3 + ["b" * 62]), "name of more than 255 octets"),
        ("\\", "unfinished escape"),
        (r"a\1", "unfinished escape"),
        (r"a\12.example.", "unfinished escape"),
        (r"a\1x2.example.", "unfinished escape"),
        (r"\256.example.", r"\\256 is not an octet"),
        ("bücher\u0161.example.", "'\u0161' is not an octet"),
        ("\\\u0161.example.", "'\u0161' is not an octet"),
        ("\\\u0661\u0662\u0663.example.", "'\u0661' is not an octet"),
    ],
)
def test_text_that_is_no_name_is_refused_with_the_text_found(text: str, problem: str) -> None:
    with pytest.raises(BadName, match=problem):
        parse_name(text)


def test_the_longest_name_has_255_octets() -> None:
    longest = parse_name(".".join(["a" * 63] * 3 + ["b" * 61]))
    assert len(name_wire(longest)) == MAX_WIRE


@given(st.text(max_size=80) | st.text(alphabet=r"a.\019", max_size=40))
def test_any_text_is_a_name_or_a_bad_name(text: str) -> None:
    try:
        name = parse_name(text)
    except BadName:
        return
    assert len(name_wire(name)) <= MAX_WIRE
    assert parse_name(name_text(name)) == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (ROOT, "."),
        (("_http", "_tcp", "svc-1"), "_http._tcp.svc-1."),
        (("-",), "-."),
        (("a.b", "example"), r"a\.b.example."),
        ((r"a\b",), r"a\\b."),
        (('";()@$',), r"\"\;\(\)\@\$."),
        (("line\nbreak", "\x1b[31m"), r"line\010break.\027[31m."),
        (("\xe9\0 ",), r"\233\000\032."),
    ],
)
def test_names_are_printed_so_that_no_log_line_can_be_forged(name: Name, text: str) -> None:
    assert name_text(name) == text


@given(names_of(any_octet))
def test_printed_names_are_plain_ascii(name: Name) -> None:
    assert all("!" <= char <= "~" for char in name_text(name))


@given(names_of(lower_octet))
def test_text_and_wire_give_the_same_name_back(name: Name) -> None:
    assert parse_name(name_text(name)) == name
    assert wire_labels(name_wire(name)) == name


@given(names_of(any_octet))
def test_only_ascii_letters_are_folded(name: Name) -> None:
    folded = wire_labels(name_wire(name).lower())
    assert parse_name(name_text(name)) == folded


def test_wire_form_is_length_octets_and_labels_and_a_zero() -> None:
    assert name_wire(("svc1", "local")) == b"\x04svc1\x05local\0"
    assert name_wire(ROOT) == b"\0"


def test_labels_are_given_in_the_case_they_are_spelled_in() -> None:
    assert wire_labels(b"\x07cLuStEr\x05LoCaL\0") == ("cLuStEr", "LoCaL")


@pytest.mark.parametrize("label", ["", "a" * 64])
def test_a_label_has_1_to_63_octets(label: str) -> None:
    with pytest.raises(BadName, match=f"label of {len(label)} octets"):
        label_wire(label)


@pytest.mark.parametrize(
    ("name", "origin", "expected"),
    [
        ("cluster.local.", "cluster.local.", True),
        ("svc.cluster.local.", "cluster.local.", True),
        ("notcluster.local.", "cluster.local.", False),
        ("local.", "cluster.local.", False),
        ("cluster.local.example.", "cluster.local.", False),
        ("example.", ".", True),
        (".", ".", True),
        (".", "example.", False),
        (r"x\.cluster.local.", "cluster.local.", False),
    ],
)
def test_a_name_is_below_an_origin_by_whole_labels(name: str, origin: str, expected: bool) -> None:
    assert is_subdomain(parse_name(name), parse_name(origin)) is expected


REVERSE = [
    ("10.96.0.10", "10.0.96.10.in-addr.arpa."),
    ("0.0.0.0", "0.0.0.0.in-addr.arpa."),
    ("255.255.255.255", "255.255.255.255.in-addr.arpa."),
    ("2001:db8::10", "0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."),
]


@pytest.mark.parametrize(("address", "text"), REVERSE)
def test_an_address_and_its_reverse_name(address: str, text: str) -> None:
    assert reverse_name(packed(address)) == parse_name(text)
    assert reverse_address(parse_name(text)) == packed(address)


@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16))
def test_every_address_comes_back_from_its_reverse_name(address: bytes) -> None:
    assert reverse_address(reverse_name(address)) == address


NO_REVERSE = [
    "in-addr.arpa.",
    "0.96.10.in-addr.arpa.",
    "1.10.0.96.10.in-addr.arpa.",
    "256.0.96.10.in-addr.arpa.",
    "010.0.96.10.in-addr.arpa.",
    "-1.0.96.10.in-addr.arpa.",
    r"\178.0.96.10.in-addr.arpa.",
    "a.0.96.10.in-addr.arpa.",
    "10.0.96.10.example.",
    "ip6.arpa.",
    REVERSE[3][1].removeprefix("0."),
    "0." + REVERSE[3][1],
    REVERSE[3][1].replace("b", "g"),
    "00." + REVERSE[3][1].removeprefix("0."),
]


@pytest.mark.parametrize("text", ["arpa.", "in-addr.arpa.", "0.96.10.in-addr.arpa.", "ip6.arpa.", "d.f.ip6.arpa."])
def test_a_name_above_reverse_names_of_addresses(text: str) -> None:
    assert is_part_of_reverse(parse_name(text))


@pytest.mark.parametrize(
    "text",
    [".", "org.", "10.0.96.10.in-addr.arpa.", "256.10.in-addr.arpa.", "g.ip6.arpa.", "10.example.", REVERSE[3][1]],
)
def test_any_other_name_is_above_none(text: str) -> None:
    assert not is_part_of_reverse(parse_name(text))


@pytest.mark.parametrize("text", NO_REVERSE)
def test_other_names_are_no_reverse_names_of_an_address(text: str) -> None:
    assert reverse_address(parse_name(text)) is None


def test_a_name_is_below_any_origin_that_it_ends_in() -> None:
    origins = (("example", "org"), ("cluster", "local"))
    assert is_below_any(("cluster", "local"), origins)
    assert is_below_any(("web", "example", "org"), origins)
    assert not is_below_any(("org",), origins)
    assert not is_below_any(("web",), ())
    assert is_below_any(("web",), (*origins, ()))


def test_reverse_names_are_those_of_in_addr_and_ip6() -> None:
    assert is_reverse(("in-addr", "arpa"))
    assert is_reverse(("1", "ip6", "arpa"))
    assert not is_reverse(("arpa",))
    assert not is_reverse(("in-addr", "arpa", "example"))
