"""Colour of output: on a terminal, and nowhere else."""

import io

import pytest

from topodns.cli.colour import show


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("line", "graded", "colour"),
    [
        ("    error   no-endpoint: no client", "    error", 31),
        ("  + warning skew: 4.0", "  + warning", 33),
        ("  forward: refused: 'x'", ": refused", 31),
        ("Corefile: not as it is: 1 refused", ": not as it is", 31),
        ("Corefile: good: 1 server block", ": good", 32),
        ("tried    zone = a: 1 matching  <- wins", "<- wins", 32),
        ("can change an answer:", "can change an answer:", 33),
    ],
)
def test_on_a_terminal_the_grade_of_a_line_has_its_colour(line: str, graded: str, colour: int) -> None:
    stream = Terminal()
    show(line, stream)
    assert stream.getvalue() == line.replace(graded, f"\x1b[{colour}m{graded}\x1b[0m") + "\n"


@pytest.mark.parametrize("line", ["answer   NOERROR", "  the error is in a text", "an error: not good"])
def test_other_words_have_none(line: str) -> None:
    stream = Terminal()
    show(line, stream)
    assert stream.getvalue() == f"{line}\n"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_may_be_switched_off(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    stream = Terminal()
    show("Corefile: good: 1 server block", stream)
    assert stream.getvalue() == "Corefile: good: 1 server block\n"


def test_a_pipe_gets_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    show("Corefile: good: 1 server block")
    assert capsys.readouterr().out == "Corefile: good: 1 server block\n"
