"""`topodns audit --server`: what it prints of a running server."""

import http.client
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.event_loops import PATIENCE
from tests.support.server_process import READY, ROOT, serving, topodns, until

COREFILE = f"""
cluster.local {{
    bind HERE
    ready HERE:{READY}
    prometheus HERE:9153
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


def test_the_audit_of_a_server_is_incomplete_while_a_manifest_cannot_be_read(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    shutil.copytree(ROOT / "config/demo/cluster", manifests)
    broken = manifests / "pods.yaml"

    def audit() -> tuple[int, str]:
        asked = topodns("audit", "--server", f"{server.address}:{READY}", "--fail-on", "never")
        return asked.returncode, asked.stdout

    with serving(tmp_path, COREFILE.replace(f"{ROOT}/config/demo/cluster", str(manifests))) as server:
        whole = audit()
        assert whole[0] == 0
        broken.write_text("kind: [")
        problem = server.wait_for_line(str(broken)).partition("manifests: ")[2]
        assert problem.startswith(f"{broken}:1: ")
        assert problem.endswith("; its last good state stays")
        until(lambda: audit()[0] == 2, "an audit that is not complete")
        assert audit() == (2, f"not complete: {problem}\n{whole[1]}")


def test_a_what_if_of_nonsense_a_wrong_host_and_a_wrong_method_are_refused_and_counted(tmp_path: Path) -> None:
    def ask(method: str, path: str, host: str = "localhost") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(server.address, READY, timeout=PATIENCE)
        connection.request(method, path, headers={"Host": host})
        response = connection.getresponse()
        found = response.status, response.read()
        connection.close()
        return found

    with serving(tmp_path, COREFILE) as server:
        nonsense = b"found 'make it so', expected node=NAME:down, zone=NAME:down, "
        status, body = ask("GET", "/audit?what-if=make%20it%20so")
        assert (status, body.startswith(nonsense)) == (400, True)
        assert ask("GET", "/explain?name=example.org&node=node-a1")[0] == 400
        assert ask("GET", "/audit", "attacker.example") == (403, b"not to web pages: the Host is no loopback address\n")
        assert ask("POST", "/audit") == (405, b"only GET and HEAD\n")
        scrape = server.scrape()
        counts = {status: scrape.sum("topodns_http_refused_total", status=status) for status in ("400", "403", "405")}
        assert counts == {"400": 2, "403": 1, "405": 1}


def test_a_server_that_does_not_answer_is_no_audit() -> None:
    ended = topodns("audit", "--server", "127.0.0.1:1")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "no answer from 127.0.0.1:1" in ended.stderr


def test_a_report_whose_reader_has_gone_is_not_a_missing_audit() -> None:
    command = [sys.executable, "-m", "topodns", "audit", "-conf", "config/demo/Corefile", "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == 141
