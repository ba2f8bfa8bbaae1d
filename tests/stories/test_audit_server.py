"""`topodns audit --server`: what it prints of a running server."""

from pathlib import Path

from tests.support.server_process import READY, ROOT, serving, topodns

COREFILE = f"""
cluster.local {{
    bind HERE
    ready HERE:{READY}
    kubernetes {{
        manifests {ROOT}/config/demo/cluster
    }}
    topology
}}
"""


def test_a_running_server_is_audited_as_its_manifests_are(tmp_path: Path) -> None:
    with serving(tmp_path, COREFILE) as server:
        asked = topodns("audit", "--server", f"{server.address}:{READY}")
        read = topodns("audit", "--manifests", "config/demo/cluster")
        assert (asked.returncode, asked.stderr) == (1, "")
        assert asked.stdout == read.stdout
        changes = ("--what-if", "node=node-a1:down", "--what-if", "scale=shop/cache:-1")
        asked = topodns("audit", "--server", f"{server.address}:{READY}", *changes)
        read = topodns("audit", "--manifests", "config/demo/cluster", *changes)
        assert asked.stdout == read.stdout
        nonsense = topodns("audit", "--server", f"{server.address}:{READY}", "--what-if", "zone=eu-1d:down")
        assert (nonsense.returncode, nonsense.stdout) == (2, "")
        assert nonsense.stderr.startswith("no zone is named 'eu-1d', did you mean 'eu-1")


def test_a_server_that_does_not_answer_is_no_audit() -> None:
    ended = topodns("audit", "--server", "127.0.0.1:1")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "no answer from 127.0.0.1:1" in ended.stderr
