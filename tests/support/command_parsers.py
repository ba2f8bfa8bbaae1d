"""The parsers of the command lines, for tests of the manual and of completion."""

import argparse
from typing import NoReturn

import pytest

from topodns.cli import main as cli

COMMANDS = pytest.mark.parametrize(
    "words",
    [(), ("check",), ("explain",), ("who",), ("audit",), ("locator",), ("completion",)],
    ids=["serve", "check", "explain", "who", "audit", "locator", "completion"],
)


def parser_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> argparse.ArgumentParser:
    """The parser of the command line behind these words."""
    found: list[argparse.ArgumentParser] = []

    def caught(parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        found.append(parser)
        raise SystemExit

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", caught)
    with pytest.raises(SystemExit):
        cli.main([*words, "-conf", "Corefile"])
    return found[0]
