"""The command line, without a socket: usage, and the words of commands."""

from collections.abc import Sequence

import pytest

from topodns.cli import main as cli

CACHE = "cache.shop.svc.cluster.local"


Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-no-such-flag"],
        ["-conf"],
        ["-dns.port", "dns"],
        ["-dns.port", "65536"],
        ["-dns.port", "-1"],
        ["serve"],
        ["check", "Corefile"],
        ["check", "--from", "bind9"],
        ["explain"],
        ["explain", CACHE],
        ["explain", "--client", "127.0.0.1", "--node", "node-a1", CACHE],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2_with_the_usage(arguments: Sequence[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("usage: topodns")


def test_a_word_that_is_no_command_is_refused_with_the_commands(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        cli.main(["chek"])
    expected = "expected check, explain, who, audit, locator or node-cache, or flags alone to serve"
    assert f"unknown command 'chek', {expected}" in capsys.readouterr().err
