"""Files that a Corefile names: their text, and the reason where there is none."""

from pathlib import Path

import pytest

from topodns.corefile.errors import ConfigError
from topodns.corefile.files import MAX_TEXT, load_corefile, load_nameservers, load_search_list, read_text, unreadable


def test_the_text_of_a_file_is_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "Corefile"
    path.write_text("# é\n", encoding="utf-8")
    assert load_corefile(str(path)) == "# é\n"
    path.write_text("errors\n", encoding="utf-16")
    with pytest.raises(ConfigError) as refused:
        load_corefile(str(path))
    assert str(refused.value) == f"{path}: cannot be read: found UTF-16 or UTF-32, expected UTF-8"


def test_a_file_longer_than_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Corefile"
    path.write_bytes(b"#" * MAX_TEXT)
    assert len(read_text(str(path))) == MAX_TEXT
    path.write_bytes(b"#" * (MAX_TEXT + 1))
    with pytest.raises(ValueError, match=f"^longer than {MAX_TEXT} octets$"):
        read_text(str(path))


def test_a_path_that_cannot_be_read_has_the_reason_of_the_operating_system(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    assert unreadable(missing) == f"cannot read '{missing}': No such file or directory"
    assert unreadable(str(tmp_path)) is None


CASES = {
    "a node's": (
        "nameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch lan\noptions ndots:5\n",
        ["192.0.2.1", "192.0.2.2"],
    ),
    "more than the C library's three": (
        "\n".join(f"nameserver 192.0.2.{n}" for n in range(1, 6)),
        [f"192.0.2.{n}" for n in range(1, 6)],
    ),
    "comments, in lines of their own and behind an address": (
        "# nameserver 192.0.2.9\n;nameserver 192.0.2.9\n  nameserver\t192.0.2.1 # the first\n",
        ["192.0.2.1"],
    ),
    "IPv6, and one that is on a link": (
        "nameserver 2001:DB8::1\nnameserver fe80::1%eth0",
        ["2001:db8::1", "fe80::1%eth0"],
    ),
    "a line without an address": ("nameserver\n", []),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_the_nameserver_lines_count(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(text)
    assert list(load_nameservers(str(path))) == expected


def test_text_that_is_no_address_costs_no_other_name_server(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver dns.example\nnameserver 192.0.2.1\nnameserver 192.0.2.2:53\n")
    lines: list[str] = []
    assert load_nameservers(str(path), lines.append) == ("192.0.2.1",)
    assert lines == [
        f"{path}:{line}: 'nameserver' has '{text}', expected an IP address; the other name servers are used"
        for line, text in ((1, "dns.example"), (3, "192.0.2.2:53"))
    ]


def test_text_that_is_no_address_is_refused_with_its_place_where_there_is_no_other(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("search lan\nnameserver dns.example\n")
    with pytest.raises(ConfigError) as refused:
        load_nameservers(str(path))
    assert str(refused.value) == f"{path}:2: 'nameserver' has 'dns.example', expected an IP address"


def test_a_directory_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_nameservers(str(tmp_path))


def test_where_bad_domains_are_skipped_the_others_count(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(f"search a..b ok.test {'x' * 64}.test\n")
    assert load_search_list(str(path), skip_bad=True) == (("ok", "test"),)
    with pytest.raises(ConfigError, match=r"'a\.\.b'"):
        load_search_list(str(path))


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("search a b\nsearch c", (("c",),)),
        ("search a\ndomain b", (("b",),)),
        ("search a a .", (("a",),)),
        ("#search a", ()),
    ],
)
def test_the_last_line_of_a_search_list_counts(tmp_path: Path, text: str, domains: tuple[tuple[str, ...], ...]) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(text)
    assert load_search_list(str(path)) == domains
