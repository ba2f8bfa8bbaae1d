"""Options that the commands share: the Corefile, and the port of keys without one."""

import argparse
import io
from pathlib import Path

import pytest

from topodns.cli.options import LoadedCorefile, add_corefile_flags, load, stdin_text


def test_the_flags_have_coredns_s_spellings_and_defaults() -> None:
    parser = argparse.ArgumentParser()
    add_corefile_flags(parser)
    assert vars(parser.parse_args([])) == {"conf": "", "port": 53}
    for flag in ("-dns.port", "--dns.port", "-p"):
        assert parser.parse_args([flag, "1053", "-conf", "a"]) == argparse.Namespace(conf="a", port=1053)


def test_a_corefile_comes_from_stdin_a_file_or_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("example.org {\nwhoami\n}"))
    assert load("stdin", 1053, stdin_text("stdin")).blocks[0].keys[0].origin == ("example", "org")
    assert (stdin_text("Corefile"), stdin_text("")) == (None, None)
    assert load("", 1053, None).blocks[0].directives == ("log", "whoami")
    (tmp_path / "Corefile").write_text(". {\nany\n}")
    found = load("", 1053, None).blocks[0]
    assert (found.directives, found.keys[0].port) == (("any",), 1053)


def test_warnings_of_a_corefile_are_logged_once_for_each_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "Corefile"
    path.write_text(". {\nimport none/*\nwhoami\n}")
    again = LoadedCorefile(str(path), 53, None)
    assert again() == again()
    assert len(caplog.records) == 1
    path.write_text(". {\nimport none/*\nany\n}")
    again()
    assert len(caplog.records) == 2
