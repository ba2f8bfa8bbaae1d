"""The words that bash offers by the script of `topodns completion bash`."""

import subprocess

import pytest

from tests.support.command_parsers import COMMANDS, parser_of
from tests.support.documents import ROOT
from topodns.cli.admin_client import FAIL_ON
from topodns.cli.serve import _WORDS
from topodns.locator.objects import KINDS
from topodns.nodecache.flags import FLAGS


def completed(*words: str) -> set[str]:
    """What bash offers for the word behind these."""
    script = (ROOT / "topodns/cli/completion.bash").read_text(encoding="utf-8")
    ask = f'COMP_WORDS=(topodns {" ".join(words)} ""); COMP_CWORD={len(words) + 1}; _topodns; echo "${{COMPREPLY[@]}}"'
    run = subprocess.run(["bash", "-c", f"{script}\n{ask}"], cwd=ROOT, capture_output=True, text=True, check=False)
    return set(run.stdout.split())


@COMMANDS
def test_every_flag_is_completed(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    flags = {
        name
        for action in parser_of(monkeypatch, *words)._actions
        for name in action.option_strings
        if not (name[1:] in action.option_strings and name[0] == "-")
    }
    commands = {"bash", "zsh"} if words else set(_WORDS)
    assert completed(*words) - (commands if words in ((), ("completion",)) else set()) == flags


def test_the_values_of_flags_and_the_words_of_commands_are_completed() -> None:
    assert completed() >= set(_WORDS)
    assert completed("completion") >= {"bash", "zsh"}
    assert completed("audit", "--fail-on") == set(FAIL_ON)
    assert completed("check", "--from") == {"coredns"}
    assert completed("locator", "--kind") == set(KINDS)
    assert completed("node-cache") == {f"-{flag.name}" for flag in FLAGS}
    assert "topodns" in completed("check", "-conf")  # files of the working directory
