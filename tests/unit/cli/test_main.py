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


def test_a_word_that_is_no_command_is_refused_with_the_nearest_or_all_commands(capsys: Captured) -> None:
    commands = "check, explain, who, top, audit, locator, node-cache, completion, help or version"
    for word, expected in (
        ("chek", "did you mean 'check'?"),
        ("serve", f"expected {commands}, or flags alone to serve"),
    ):
        with pytest.raises(SystemExit, match="2"):
            cli.main([word])
        assert f"unknown command '{word}', {expected}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["help"], ["help", "check"], ["help", "node-cache"], ["version", "-h"]], ids=" ".join
)
def test_help_is_that_of_the_command(words: Sequence[str], capsys: Captured) -> None:
    try:
        status = cli.main(words)
    except SystemExit as ended:
        status = int(ended.code or 0)
    captured = capsys.readouterr()
    assert (status, captured.err) == (0, "")
    assert words[-1] in captured.out or words == ["help"]
    assert "-conf" in captured.out


def test_version_is_the_text_of_the_flag(capsys: Captured) -> None:
    assert cli.main(["-version"]) == 0
    of_flag = capsys.readouterr().out
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == of_flag


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_is_a_script_of_the_shell(shell: str, capsys: Captured) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script.endswith("complete -F _topodns topodns\n")
    assert ("bashcompinit\n" in script.split("#")[0]) is (shell == "zsh")
