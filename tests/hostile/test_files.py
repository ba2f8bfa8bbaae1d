"""Files that are none: a pipe in the place of one holds nothing up, and what a foreign file says is not repeated."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.server_process import serving, topodns, until
from tests.support.steady_client import victim


def pipe(path: Path) -> int:
    """A FIFO that has a writer who says nothing: opening it for reading succeeds, and reading waits."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


@pytest.mark.parametrize("line", ["import FIFO", "forward . FIFO", "kubernetes cluster.local {\n kubeconfig FIFO\n }"])
def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path, line: str) -> None:
    (tmp_path / "Corefile").write_text(f". {{\n {line.replace('FIFO', str(tmp_path / 'fifo'))}\n whoami\n}}\n")
    writer = pipe(tmp_path / "fifo")
    try:
        checked = topodns("check", "-conf", str(tmp_path / "Corefile"))
    finally:
        os.close(writer)
    assert (checked.returncode, checked.stderr.count("is no regular file")) == (1, 1), checked.stdout


def test_a_reload_that_meets_a_pipe_is_refused_and_dns_goes_on(tmp_path: Path) -> None:
    corefile = "bind HERE\n hosts {\n 192.0.2.1 a.example\n }\n"
    with serving(tmp_path, f". {{\n {corefile}\n}}\n") as server:
        writer = pipe(tmp_path / "fifo")
        try:
            text = corefile.replace("HERE", server.address)
            (tmp_path / "Corefile").write_text(f". {{\n {text}\n import fifo\n}}\n")
            with victim(server, "a.example A", "192.0.2.1") as fate:
                server.signal(signal.SIGUSR1)
                server.wait_for_line("is no regular file")
                until(lambda: fate.asked >= 20, "questions asked")
            assert (fate.lost, fate.wrong) == (0, []), fate
        finally:
            os.close(writer)


def test_a_private_key_is_not_repeated(tmp_path: Path) -> None:
    key = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2"
    (tmp_path / "tls.key").write_text(f"-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n")
    checked = topodns("-conf", str(tmp_path / "tls.key"))
    assert checked.returncode == 1
    assert "tls.key:2: unknown directive '…' (64 characters, not shown)" in checked.stdout + checked.stderr
    assert key not in checked.stdout + checked.stderr
