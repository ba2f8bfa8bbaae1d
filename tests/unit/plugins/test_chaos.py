"""The version and the authors of `chaos`."""

from random import Random

import pytest

from tests.support.corefile_settings import block_problem, only_block
from tests.support.query_builders import ask, client
from topodns.dns.message import Response, RRset
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.chaos import DEFAULT_AUTHORS, Chaos, ChaosText
from topodns.query.plugin import Scope


def texts(settings: Chaos, name: str) -> tuple[bytes, ...]:
    step = ChaosText(settings, "topodns-1.2.3", "dns-0", Random(7))
    resolution = step(ask(name, RRType.TXT, RRClass.CH), client())
    assert resolution is not None
    rdatas = resolution.response.answer[0].rdatas
    assert resolution.plugin == "chaos"
    assert resolution.response == Response(answer=(RRset(b"", RRType.TXT, 0, rdatas, RRClass.CH),), flags=0)
    return rdatas


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("version.bind.", b"\x05DNS-9"),
        ("Version.Server.", b"\x05DNS-9"),
        ("hostname.bind.", b"\x05dns-0"),
        ("id.server.", b"\x05dns-0"),
    ],
)
def test_says_its_version_and_its_host(name: str, text: bytes) -> None:
    assert texts(Chaos("DNS-9"), name) == (text,)


def test_without_a_version_of_the_operators_it_says_its_own() -> None:
    assert texts(Chaos(), "version.bind.") == (b"\x0dtopodns-1.2.3",)


def test_names_every_author_once_in_any_order() -> None:
    assert sorted(texts(Chaos("x", ("eve", "adam")), "authors.bind.")) == [b"\x03eve", b"\x04adam"]
    assert len(texts(Chaos(), "authors.bind.")) == len(DEFAULT_AUTHORS)


def test_the_order_of_authors_is_not_cached() -> None:
    step = ChaosText(Chaos("x", ("eve", "adam")), "v", "h", Random(7))
    resolution = step(ask("authors.bind.", RRType.TXT, RRClass.CH), client())
    assert resolution is not None
    assert resolution.scope == Scope.CLIENT


def test_a_text_too_long_for_a_character_string_is_cut_at_255_octets() -> None:
    assert texts(Chaos("v" * 300), "version.bind.") == (b"\xff" + b"v" * 255,)


@pytest.mark.parametrize(
    ("name", "qtype", "qclass"),
    [
        ("version.bind.", RRType.TXT, RRClass.IN),
        ("version.bind.", RRType.A, RRClass.CH),
        ("elsewhere.bind.", RRType.TXT, RRClass.CH),
    ],
)
def test_other_classes_types_and_names_pass(name: str, qtype: int, qclass: int) -> None:
    assert ChaosText(Chaos(), "v", "h", Random(7))(ask(name, qtype, qclass), client()) is None


@pytest.mark.parametrize(
    ("lines", "chaos"),
    [
        ("chaos", Chaos()),
        ("chaos CoreDNS-001", Chaos("CoreDNS-001")),
        ("chaos v1 miek bob miek", Chaos("v1", ("bob", "miek"))),
        (f"chaos {'v' * 256}", Chaos("v" * 255)),
        (f"chaos {'é' * 200}", Chaos("é" * 127)),  # two octets each
    ],
)
def test_chaos(lines: str, chaos: Chaos) -> None:
    assert only_block(lines).settings.get("chaos") == chaos


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("chaos {\n x\n}", "3: found 'x', but 'chaos' has no options"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
