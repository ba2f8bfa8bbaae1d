from ipaddress import ip_address

import pytest

from tests.support.model_builders import packed
from topodns.dns.name import ROOT, Name, name_text, name_wire, parse_name, wire_labels
from topodns.plugins.hosts.table import MAX_ADDRESSES, BadHostsLine, HostEntry, HostTable, parse_hosts_line

EXAMPLE = """
# comment
127.0.0.1 localhost Localhost.Domain  # behind the names, too
::1 localhost
127.0.0.2\tlocalhost
::ffff:10.0.0.2 mapped.example
fe80::1%lo0 scoped.example.
10.0.0.3 *.apps.example
10.0.0.4 known.apps.example
fd00::4 *.apps.example
127.0.0.1 localhost
"""


def table_of(text: str, origins: tuple[Name, ...] = (ROOT,), reverse: bool = True) -> HostTable:
    table = HostTable(origins, reverse)
    for line in text.splitlines():
        entry = parse_hosts_line(line.encode())
        if entry is not None:
            table.add(entry)
    return table


def addresses(table: HostTable, name: str) -> list[str]:
    owner = name_wire(parse_name(name))
    return [str(ip_address(each)) for family in (4, 6) for each in table.addresses(owner, family)]


def names(table: HostTable, address: str) -> list[str]:
    return [name_text(wire_labels(name)) for name in table.names(packed(address))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("localhost.", ["127.0.0.1", "127.0.0.2", "::1"]),
        ("localhost.domain.", ["127.0.0.1"]),
        ("mapped.example.", ["10.0.0.2"]),
        ("scoped.example.", ["fe80::1"]),
        ("web.apps.example.", ["10.0.0.3", "fd00::4"]),
        ("known.apps.example.", ["10.0.0.4", "fd00::4"]),
        ("*.apps.example.", ["10.0.0.3", "fd00::4"]),
        ("apps.example.", []),
        ("a.web.apps.example.", []),
        ("elsewhere.", []),
    ],
)
def test_a_name_has_all_addresses_that_lines_give_it(name: str, expected: list[str]) -> None:
    assert addresses(table_of(EXAMPLE), name) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", ["localhost.", "localhost.domain."]),
        ("127.0.0.2", ["localhost."]),
        ("10.0.0.2", ["mapped.example."]),
        ("10.0.0.3", []),
        ("192.0.2.1", []),
    ],
)
def test_an_address_has_its_names_but_no_wildcards(address: str, expected: list[str]) -> None:
    assert names(table_of(EXAMPLE), address) == expected
    assert names(table_of(EXAMPLE, reverse=False), address) == []


def test_names_outside_its_origins_are_left_out() -> None:
    table = table_of("10.0.0.1 a.example b.test example", (("example",),))
    assert [addresses(table, name) for name in ("a.example.", "b.test.", "example.")] == [
        ["10.0.0.1"],
        [],
        ["10.0.0.1"],
    ]
    assert names(table, "10.0.0.1") == ["a.example.", "example."]


def test_entries_are_counted_in_both_directions() -> None:
    assert table_of("10.0.0.1 a b\n10.0.0.2 a\n10.0.0.3 *.x\n10.0.0.1 a").entries == 3 + 3 + 1
    assert table_of("10.0.0.1 a b", reverse=False).entries == 2


def test_one_name_or_address_holds_no_more_than_a_message_can() -> None:
    many = MAX_ADDRESSES + 10
    table = HostTable()
    for number in range(many):
        table.add(HostEntry(number.to_bytes(4, "big"), (("a",),)))
        table.add(HostEntry(b"\0\0\0\0", ((f"n{number}",),)))
    assert len(table.addresses(b"\x01a\0", 4)) == MAX_ADDRESSES
    assert len(table.names(b"\0\0\0\0")) == MAX_ADDRESSES


@pytest.mark.parametrize("line", ["", "   ", "# only a comment", "\t# 10.0.0.1 a"])
def test_a_line_may_say_nothing(line: str) -> None:
    assert parse_hosts_line(line.encode()) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"10.0.0.1", "found only '10.0.0.1', expected an address and its names"),
        (b"321.321.321.321 a", "'321.321.321.321' is no IP address"),
        (b"010.0.0.1 a", "'010.0.0.1' is no IP address"),
        (b"reload 5s", "'reload' is no IP address"),
        (b"10.0.0.1 a..b", "empty label in 'a..b'"),
        (b"10.0.0.1 " + b"a" * 64, "label of more than 63 octets"),
        (b"10.0.0.1 .", "found the root, expected a name"),
    ],
)
def test_a_bad_line_is_refused(line: bytes, problem: str) -> None:
    with pytest.raises(BadHostsLine, match=problem):
        parse_hosts_line(line)


@pytest.mark.parametrize("space", ["\N{NO-BREAK SPACE}", "\N{IDEOGRAPHIC SPACE}", "\N{EM SPACE}\t"])
def test_words_may_be_apart_by_unicode_s_white_space(space: str) -> None:
    """As in text that is copied from a web page; CoreDNS reads it."""
    line = f"10.0.0.1{space}a.example{space}b\N{LATIN SMALL LETTER O WITH DIAERESIS}".encode()
    assert parse_hosts_line(line) == HostEntry(packed("10.0.0.1"), (("a", "example"), ("b\xc3\xb6",)))


def test_a_name_of_odd_octets_keeps_them() -> None:
    assert parse_hosts_line(b"10.0.0.1 A\\.b.\xc3\x84") == HostEntry(packed("10.0.0.1"), (("a.b", "\xc3\x84"),))
