"""Values that directives share."""

from dataclasses import dataclass

import pytest

from topodns.corefile.arguments import duration, parse_network, switch
from topodns.corefile.errors import ConfigError, hint, listed, nearest
from topodns.corefile.parser import Directive
from topodns.dns.rrtype import parse_qtype

LINE = Directive("lameduck", (), (), "Corefile", 7)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("0s", 0.0),
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("1h0.5m", 3630.0),
        ("500ms", 0.5),
        ("700ms", 0.7),
        (".5s", 0.5),
        ("5.s", 5.0),
        ("10us", 0.00001),
        ("10µs", 0.00001),
        ("3ns", 0.000000003),
    ],
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert duration(LINE, text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", ".s", "-5s", "+5s", "5 s", "5sec", "1e3s", "5d", "\u0665s", "9" * 400 + "h"]
)
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^Corefile:7: 'lameduck' has '.*', expected a duration such as 5s"):
        duration(LINE, text)


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("FD00::1", "fd00::1/128"),
        ("fd00::1/8", "fd00::/8"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ("10.0.0.0/33", None),
        ("10.0.0.0/", None),
        ("10.0.0.0/255.0.0.0", None),
        ("10.0.0", None),
        ("fe80::1%eth0", None),
        ("", None),
    ],
)
def test_networks(text: str, network: str | None) -> None:
    found = parse_network(text)
    assert (None if found is None else str(found)) == network


@pytest.mark.parametrize(
    ("text", "qtype"),
    [("A", 1), ("aaaa", 28), ("NSAP-PTR", 23), ("TYPE65280", 65280), ("TYPE65536", None), ("TYPE", None), ("B", None)],
)
def test_record_types(text: str, qtype: int | None) -> None:
    assert parse_qtype(text) == qtype


def test_wording_of_lists_and_guesses() -> None:
    assert (listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])) == ("a", "a or b", "a, b or c")
    assert nearest("LOCALE", ["local", "locate"]) in ("local", "locate")
    assert nearest("x" * 10_000, ["x" * 9_999]) is None
    assert hint("zzz", ["b", "a"]) == ", expected b or a"
    assert hint("zzz", []) == ", expected none"


@dataclass(frozen=True)
class Lamp:
    lit: bool = False
    ttl: int = 5


def test_a_switch_sets_one_field_and_has_neither_arguments_nor_a_body() -> None:
    option = Directive("lit", (), (), "Corefile", 7)
    assert switch("lit")(option, Lamp()) == Lamp(lit=True)
    assert switch("lit", to=False)(option, Lamp(lit=True, ttl=9)) == Lamp(ttl=9)
    with pytest.raises(ConfigError, match=r"^Corefile:7: 'lit' has the arguments 'yes', expected none"):
        switch("lit")(Directive("lit", ("yes",), (), "Corefile", 7), Lamp())
    with pytest.raises(ConfigError, match=r"^Corefile:7: found 'lameduck', but 'lit' has no options"):
        switch("lit")(Directive("lit", (), (LINE,), "Corefile", 6), Lamp())
