"""The flags of `topodns` that print and do not serve."""

import re

import pytest

from topodns import __version__
from topodns.cli import main as cli
from topodns.plugins.order import ORDER

Captured = pytest.CaptureFixture[str]


def test_the_version_is_named_with_the_system_and_the_language(capsys: Captured) -> None:
    for flag in ("-version", "--version"):
        assert cli.main([flag]) == 0
        assert re.fullmatch(
            rf"topodns-{re.escape(__version__)}\n\S+/\S+, python 3\.\d+\.\d+\S*\n", capsys.readouterr().out
        )


def test_the_directives_are_listed_in_order_as_coredns_lists_its_plugins(capsys: Captured) -> None:
    assert cli.main(["-plugins"]) == 0
    names = capsys.readouterr().out.split()
    assert names == sorted(f"dns.{name}" for name in ORDER)
    assert {"dns.kubernetes", "dns.topology"} <= set(names)
