"""A server that may have few descriptors; idle connections, and questions without answers, that would take them all."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.dns_messages import query
from tests.support.faulty_upstream import ANSWER, bad_upstream
from tests.support.push_client import NOERROR, REFUSED, push_client
from tests.support.server_process import (
    COMMAND,
    HEALTH,
    METRICS,
    READY,
    Server,
    open_tcp,
    open_udp,
    serving,
    topodns,
    until,
)
from tests.support.steady_client import victim
from tests.support.upstream_faults import answers, silent

COREFILE = f"""
. {{{{
    bind HERE
    health HERE:{HEALTH}
    ready HERE:{READY}
    prometheus HERE:{METRICS}
    forward . 127.0.0.1:{{port}}
}}}}
"""
LIMIT = 120
FEW_DESCRIPTORS = ("sh", "-c", f'ulimit -n {LIMIT} && exec "$@"', "sh", *COMMAND)


@pytest.mark.parametrize("http", [False, True], ids=["dns", "dns-and-http"])
def test_two_hundred_idle_connections_leave_descriptors_for_forwarding_and_health(tmp_path: Path, http: bool) -> None:
    ports = (0, HEALTH, READY, METRICS) if http else (0,)
    with (
        bad_upstream(answers) as upstream,
        serving(tmp_path, COREFILE.format(port=upstream.port), command=FEW_DESCRIPTORS) as server,
        ExitStack() as idle,
    ):
        (line,) = server.lines("Descriptors: the limit of 120")
        assert "allows 40 TCP connections of clients on each of 1 listeners, not 1000" in line
        for number in range(200):
            for port in ports:
                at = server.address, port or server.port
                idle.enter_context(open_tcp(at, f"127.66.{number % 20}.1"))
        with (
            victim(server, "a.example A", ANSWER) as by_udp,
            victim(server, "b.example A", ANSWER, tcp=True) as by_tcp,
        ):
            for number in range(20):
                assert server.ask(f"n{number}.example A").data == [ANSWER]
                assert server.get("/health", HEALTH) == (200, "OK")
        assert by_udp.asked
        assert by_tcp.asked
        assert (by_udp.lost, by_udp.wrong, by_tcp.lost, by_tcp.wrong) == (0, [], 0, [])
        assert server.metric("process_open_fds") < LIMIT - 10


@pytest.mark.parametrize("upstreams", [1, 3])
def test_questions_that_no_upstream_answers_leave_descriptors_for_other_questions_and_health(
    tmp_path: Path, upstreams: int
) -> None:
    with ExitStack() as stack:
        asked = [
            stack.enter_context(bad_upstream(lambda each: (answers if b"good" in each.message else silent)(each)))
            for _ in range(upstreams)
        ]
        ports = " 127.0.0.1:".join(str(each.port) for each in asked)
        server = stack.enter_context(serving(tmp_path, COREFILE.format(port=ports), command=FEW_DESCRIPTORS))
        _ask_dead_names(server)
        until(lambda: server.metric("topodns_forward_dropped_total", reason="preempted") > 0, "all places taken")
        with victim(server, "good.example A", ANSWER) as fate:
            until(lambda: fate.asked >= 30, "questions of the victim")
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert server.get("/health", HEALTH) == (200, "OK")
        assert server.metric("process_open_fds") < LIMIT - 10
        assert "too many open files" not in server.output()
        server.process.kill()  # it would wait for its upstreams
        server.process.wait()


def test_sessions_of_push_leave_descriptors_for_other_clients(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("")
    push = "    kubernetes cluster.local {{\n        manifests cluster.yaml\n    }}\n    push\n    forward"
    corefile = COREFILE.replace("    forward", push)
    with (
        bad_upstream(answers) as upstream,
        serving(tmp_path, corefile.format(port=upstream.port), command=FEW_DESCRIPTORS) as server,
        ExitStack() as stack,
    ):
        (of_sessions, _) = server.lines("Descriptors: the limit of 120")
        assert "allows 20 sessions of 'push', not 1000" in of_sessions
        at = server.address, server.port
        rcodes = []
        for number in range(25):
            one = stack.enter_context(push_client(at, f"127.66.{number % 20}.1"))
            rcodes.append(one.keepalive().rcode)
        assert rcodes == [NOERROR] * 20 + [REFUSED] * 5
        for number in range(100):
            stack.enter_context(open_tcp(at, f"127.67.{number % 20}.1"))
        for number in range(20):
            assert server.ask(f"n{number}.example A", tcp=True).data == [ANSWER]
        assert server.metric("topodns_push_sessions") == 20
        assert server.metric("process_open_fds") < LIMIT - 10


def _ask_dead_names(server: Server) -> None:
    for address in range(5):
        with open_udp((server.address, server.port), f"127.66.{address}.1") as sock:
            for number in range(40):
                sock.send(query(f"dead-{address}-{number}.example A"))


def test_with_enough_descriptors_nothing_is_said(tmp_path: Path) -> None:
    with bad_upstream(answers) as upstream, serving(tmp_path, COREFILE.format(port=upstream.port)) as server:
        assert server.lines("Descriptors") == []


# Files that are none: a pipe in the place of one holds nothing up, and what a foreign file says is not repeated.


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
