"""The commands of our documents that need nothing but this clone do what is said there, as they stand."""

from pathlib import Path

import pytest

from tests.support.process import until
from tests.support.runnable import Block, BlockFailed, blocks_in

HERE = Path(__file__).parent


def marked(*lines: str) -> Block:
    """The block of a document with one."""
    (found,) = blocks_in("a.md", "\n".join(["One does:", "", "<!-- run: one -->", "```sh", *lines, "```", ""]))
    return found


def test_a_block_is_run_with_its_environment_where_it_is_told(tmp_path: Path) -> None:
    said = marked("pwd", 'echo "$IMAGE" \\', "    and more >&2").run({"IMAGE": "one"}, tmp_path)
    assert said == f"{tmp_path}\none and more\n"


@pytest.mark.parametrize("line", ["false", "false | true", 'echo "$NEVER_SET"', "no-such-command"])
def test_a_block_ends_at_the_first_command_that_fails_and_says_where_it_stands(line: str) -> None:
    with pytest.raises(BlockFailed, match=r"a\.md:3: one: status [1-9]") as failed:
        marked("echo before", line, "echo after").run({}, HERE)
    before, _, printed = str(failed.value).partition("\nprinted\n")
    assert line in before
    assert printed.startswith("before\n")
    assert "after" not in printed


def test_a_block_that_takes_too_long_is_ended_with_what_it_printed() -> None:
    with pytest.raises(BlockFailed, match=r"not within 0\.5 s(?s:.*)printed\nbefore\n$"):
        marked("echo before", "sleep 600").run({}, HERE, patience=0.5)


def test_what_a_block_starts_in_the_background_ends_with_it() -> None:
    pid = marked("sleep 600 & echo $!").run({}, HERE)
    until(lambda: not Path("/proc", pid.strip(), "exe").exists(), "it has ended")


@pytest.mark.parametrize(
    "text",
    ["<!-- run: one -->\n\n```sh\ntrue\n```\n", "<!-- run: one -->\n```text\n```\n", "<!--run one-->\n```sh\n```\n"],
    ids=["a line between", "no shell", "misspelt"],
)
def test_a_mark_of_nothing_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"b\.md:1: expected <!-- run: NAME -->"):
        list(blocks_in("b.md", text))
