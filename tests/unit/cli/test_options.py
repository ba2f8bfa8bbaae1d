"""Options that the commands share: the Corefile, and the port of keys without one."""

import argparse
import io
from pathlib import Path

import pytest

from topodns.cli.options import LoadedCorefile, add_corefile_flags, stdin_text
from topodns.corefile.errors import ConfigError


def test_the_flags_have_coredns_s_spellings_and_defaults() -> None:
    parser = argparse.ArgumentParser()
    add_corefile_flags(parser)
    assert vars(parser.parse_args([])) == {"conf": "", "port": 53}
    for flag in ("-dns.port", "--dns.port", "-p"):
        assert parser.parse_args([flag, "1053", "-conf", "a"]) == argparse.Namespace(conf="a", port=1053)


@pytest.mark.parametrize("text", ["dns", "-1", "65536", "1" * 5000, "٥٣"])
def test_a_port_that_is_none_is_refused_with_the_range(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_corefile_flags(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([f"-dns.port={text}"])
    assert "expected a port from 0 to 65535" in capsys.readouterr().err


def test_only_conf_stdin_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbftext \xfc")))
    assert (stdin_text("Corefile"), stdin_text(""), stdin_text("stdin")) == (None, None, "text \udcfc")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("text".encode("utf-16"))))
    with pytest.raises(ConfigError, match=r"^stdin: cannot be read: found UTF-16 or UTF-32, expected UTF-8$"):
        stdin_text("stdin")


def test_warnings_of_a_corefile_are_logged_once_for_each_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "Corefile"
    path.write_text(". {\nimport none/*\nwhoami\n}")
    again = LoadedCorefile(str(path), 53, None)
    assert again() == again()
    assert len(caplog.records) == 1
    path.write_text(". {\nimport none/*\nany\n}")
    again()
    assert len(caplog.records) == 2
