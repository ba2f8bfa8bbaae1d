"""`multisocket`: several processes on the same ports, each of them right, and one that watches for all."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.api_objects import endpoint_slice, namespace, service
from tests.support.event_loops import PATIENCE
from tests.support.program_with_fake_api import FRONT, IN_A, NEAR, Scene, scene
from tests.support.server_process import ROOT, Server, serving, until
from topodns.app.workers.pool import STOP_PATIENCE

NEW = "new.default.svc.cluster.local A"
MANY = 40  # questions, each from a port of its own: that none of them reaches one of two processes is unlikely
WHOAMI = """
. {
    bind HERE
    ready HERE:8181 {
        monitor continuously
    }
    prometheus HERE:9153
    multisocket 2
    log
    whoami
}
"""


def workers(server: Server) -> list[int]:
    """The process ids of the workers."""
    return [int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


def program(pid: int) -> bytes:
    """The command line of the program that the process executes."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def several(
    directory: Path, number: int = 2, options: str = "startup_timeout 300ms", tries: int = 1
) -> Iterator[Scene]:
    with scene(directory, options=options, directives=f"multisocket {number}", tries=tries) as there:
        assert len(workers(there.server)) == number - 1
        yield there


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Scene]:
    with several(tmp_path) as there:
        yield there


def answers(there: Scene, question: str, tcp: bool = False) -> set[tuple[str, ...]]:
    """The different answers to a question that is asked from MANY ports."""
    replies = (there.server.ask(question, IN_A, tcp=tcp) for _ in range(MANY))
    return {tuple(reply.data) if reply.rcode == "NOERROR" else (reply.rcode,) for reply in replies}


def requests(there: Scene) -> dict[str, float]:
    return {number: there.metric("topodns_multisocket_requests_total", process=number) for number in "12"}


def test_all_processes_answer_over_udp_and_tcp(story: Scene) -> None:
    for tcp in (False, True):
        before = requests(story)
        assert answers(story, NEAR, tcp) == {("10.61.1.1",)}
        after = requests(story)
        assert all(after[each] > before[each] for each in "12"), (before, after)


def test_a_change_is_right_in_all_processes(story: Scene) -> None:
    assert answers(story, NEW) == {("NXDOMAIN",)}
    story.server.get("/metrics", 9153)
    for number in range(1, 4):
        story.api.put(service("new", cluster_ip=f"10.96.0.{number + 10}"))
        until(lambda n=number: answers(story, NEW) == {(f"10.96.0.{n + 10}",)}, "the change")  # type: ignore[misc]
    story.api.put(endpoint_slice("near", {"10.61.1.1": "n1", "10.61.2.1": "n1"}))
    until(lambda: answers(story, NEAR) == {("10.61.1.1", "10.61.2.1")}, "the endpoint")
    story.api.delete(service("new"))
    until(lambda: answers(story, NEW) == {("NXDOMAIN",)}, "the removal")


def test_metrics_are_those_of_all_processes(tmp_path: Path) -> None:
    with serving(tmp_path, WHOAMI) as server:
        until(lambda: server.get("/ready", 8181)[0] == 200, "/ready")
        for _ in range(MANY):
            server.ask("a.example TXT")
        until(lambda: server.metric("coredns_dns_requests_total", type="TXT") == MANY, "all queries are counted")
        scrape = server.scrape()
        assert scrape.sum("coredns_dns_request_duration_seconds_count") == MANY
        assert scrape.sum("coredns_dns_request_size_bytes_bucket", le="+Inf") == MANY
        each = [scrape.sum("topodns_multisocket_requests_total", process=number) for number in "12"]
        assert (sum(each), min(each) > 0) == (MANY, True)
        assert scrape.sum("coredns_build_info") == scrape.sum("coredns_plugin_enabled", name="whoami") == 1
        for number in "12":
            assert scrape.sum("topodns_multisocket_resident_memory_bytes", process=number) > 10e6
            assert scrape.sum("topodns_multisocket_cpu_seconds_total", process=number) > 0
        (worker,) = workers(server)
        os.kill(worker, signal.SIGKILL)
        until(lambda: server.metric("topodns_multisocket_replaced_total", reason="exited") == 1, "a new one")
        until(lambda: server.get("/ready", 8181)[0] == 200, "/ready")
        assert server.metric("coredns_dns_requests_total", type="TXT") == MANY  # counters do not fall
        until(lambda: len(server.lines('"TXT IN a.example.')) == MANY, "the lines of all processes are whole")


def test_a_worker_that_dies_is_replaced_and_right_from_its_first_answer_on(tmp_path: Path) -> None:
    with several(tmp_path, tries=2) as there:  # queries in the queue of its socket are lost
        there.api.put(service("new", cluster_ip="10.96.0.7"))
        there.comes(NEW, "10.96.0.7")
        for times in (1, 2):
            (worker,) = workers(there.server)
            os.kill(worker, signal.SIGKILL)
            until(lambda: there.ready()[0] == 503, "not ready while there is one process too few")
            assert "multisocket: process 2 of 2 does not serve yet" in there.ready()[1]
            there.api.put(service("new", cluster_ip=f"10.96.0.{7 + times}"))  # while it starts
            there.is_ready()
            assert answers(there, NEW) == {(f"10.96.0.{7 + times}",)}
            there.shows("topodns_multisocket_replaced_total", times, reason="exited")
        assert there.server.lines("process 2 ended by signal 9; another one takes its place")


def test_a_worker_that_does_not_acknowledge_makes_the_server_unready_and_is_replaced(tmp_path: Path) -> None:
    with several(tmp_path, tries=3) as there:  # its socket still gets queries for PATIENCE
        there.witness.stop()
        (worker,) = workers(there.server)
        os.kill(worker, signal.SIGSTOP)
        until(lambda: "multisocket: process 2 has not taken changes for" in there.ready()[1], "/ready names it")
        until(lambda: not is_alive(worker), "it is killed")
        there.shows("topodns_multisocket_replaced_total", 1, reason="stuck")
        there.is_ready()
        assert answers(there, FRONT) == {("10.96.0.1",)}


def test_programming_latency_ends_when_all_processes_have_the_change(tmp_path: Path) -> None:
    name = "coredns_kubernetes_dns_programming_duration_seconds_count"
    with several(tmp_path, tries=3) as there:
        there.witness.stop()
        (worker,) = workers(there.server)
        os.kill(worker, signal.SIGSTOP)
        changed = endpoint_slice("near", {"10.61.1.1": "n1", "10.61.2.1": "n1"})
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        changed["metadata"]["annotations"] = {"endpoints.kubernetes.io/last-change-trigger-time": now}
        there.api.put(changed)
        there.shows("topodns_multisocket_unacknowledged_seconds", 1, process="2")
        assert there.metric(name) == 0
        os.kill(worker, signal.SIGCONT)
        there.shows(name, 1)
        assert answers(there, NEAR) == {("10.61.1.1", "10.61.2.1")}
        assert there.metric("topodns_multisocket_replaced_total") == 0


def test_a_stop_ends_all_processes_and_answers_until_then(tmp_path: Path) -> None:
    with several(tmp_path, 3) as there:
        there.witness.stop()
        pids = [there.server.pid, *workers(there.server)]
        there.server.signal(signal.SIGTERM)
        assert there.server.wait() == 0
        assert [pid for pid in pids if is_alive(pid)] == []
        assert not there.server.lines("takes its place")


def test_a_stop_does_not_wait_for_a_worker_that_does_not_serve_yet(tmp_path: Path) -> None:
    with several(tmp_path) as there:
        there.witness.stop()
        (first,) = workers(there.server)
        os.kill(first, signal.SIGKILL)
        until(lambda: workers(there.server) not in ([], [first]), "another one starts")
        (second,) = workers(there.server)
        # A first process that has forked waits until its child has executed its program, and would wait for ever here.
        until(lambda: program(second) != program(there.server.pid), "it executes a program of its own")
        os.kill(second, signal.SIGSTOP)
        there.server.signal(signal.SIGTERM)
        assert there.server.process.wait(STOP_PATIENCE / 2) == 0
        assert not is_alive(second)


def test_signals_to_a_worker_do_not_end_it(story: Scene) -> None:
    (worker,) = workers(story.server)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        os.kill(worker, number)
    assert answers(story, FRONT) == {("10.96.0.1",)}
    assert workers(story.server) == [worker]


def test_workers_end_with_a_first_process_that_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, WHOAMI) as server:
        until(lambda: server.get("/ready", 8181)[0] == 200, "/ready")
        (worker,) = workers(server)
        server.signal(signal.SIGKILL)
        server.wait()
        until(lambda: not is_alive(worker), "the worker has ended")


def test_a_reload_reaches_all_processes_and_changes_their_number(tmp_path: Path) -> None:
    with several(tmp_path) as there:
        corefile = tmp_path / "Corefile"
        text = corefile.read_text()
        for number, ttl in ((2, 7), (3, 9), (1, 11), (2, 13)):
            new = text.replace("startup_timeout 300ms", f"startup_timeout 300ms\nttl {ttl}")
            corefile.write_text(new.replace("multisocket 2", f"multisocket {number}"))
            there.server.signal(signal.SIGUSR1)
            until(lambda n=number: len(workers(there.server)) == n - 1, f"{number} processes")  # type: ignore[misc]
            there.is_ready()
            until(lambda t=ttl: ttls(there) == {t}, f"ttl {ttl}")  # type: ignore[misc]
            there.api.put(service("new", cluster_ip=f"10.96.0.{ttl}"))
            until(lambda t=ttl: answers(there, NEW) == {(f"10.96.0.{t}",)}, "the change")  # type: ignore[misc]
            assert answers(there, FRONT, tcp=True) == {("10.96.0.1",)}


def ttls(there: Scene) -> set[int]:
    return {int(line.split()[1]) for _ in range(MANY) for line in there.server.ask(FRONT, IN_A).answer}


def test_a_faulty_corefile_changes_no_process(tmp_path: Path) -> None:
    with several(tmp_path, tries=2) as there:
        refuse_and_replace(there, tmp_path)


def refuse_and_replace(story: Scene, tmp_path: Path) -> None:
    before = workers(story.server)
    (tmp_path / "Corefile").write_text("nonsense {\n multisocket 0\n}\n")
    story.server.signal(signal.SIGUSR1)
    until(lambda: story.server.lines("expected a whole number from 1 to 1024"), "the error")
    assert workers(story.server) == before
    os.kill(before[0], signal.SIGKILL)  # its successor serves the Corefile in force, not the one on disk
    until(lambda: workers(story.server) not in ([], before), "another one")
    story.is_ready()
    assert answers(story, FRONT) == {("10.96.0.1",)}


def test_one_process_is_what_it_was(tmp_path: Path) -> None:
    with serving(tmp_path, WHOAMI.replace("multisocket 2", "multisocket 1")) as server:
        assert server.get("/ready", 8181)[0] == 200
        assert workers(server) == []
        assert "multisocket_" not in server.get("/metrics", 9153)[1]


def test_more_processes_than_cpus_are_warned_of_with_their_place(tmp_path: Path) -> None:
    number = len(os.sched_getaffinity(0)) + 1
    with serving(tmp_path, WHOAMI.replace("multisocket 2", f"multisocket {number}")) as server:
        line = server.wait_for_line(f"plugin/multisocket: {number} processes on")
        assert line.startswith("[WARNING]")
        corefile = WHOAMI.split("\n")
        assert line.rstrip().endswith(f"Corefile:{1 + corefile.index('    multisocket 2')})")


SCRIPT = """
import asyncio, sys
from topodns.app.banner import print_nothing
from topodns.app.hooks import Options
from topodns.app.load import settings_from_text
from topodns.app.server import Announcement, Server

async def main(text):
    settings = settings_from_text(text, "Corefile", 0, {})
    await Server(lambda: settings, Announcement(print_nothing), Options())._activate(settings)
    print(*(name for name in sys.modules if name.startswith("topodns.app.workers")))

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("directive", ["", "multisocket 1"])
def test_one_process_loads_nothing_of_several(directive: str) -> None:
    corefile = f".:0 {{\n bind 127.0.0.1\n {directive}\n whoami\n}}\n"
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, corefile], cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert run.stdout.split() == []


def test_manifests_are_read_once_and_their_changes_are_in_all_processes(tmp_path: Path) -> None:
    manifest = tmp_path / "cluster.json"
    manifest.write_text(cluster_with("10.96.0.1"))
    text = WHOAMI.replace("whoami", f"kubernetes cluster.local {{\n manifests {manifest}\n }}")
    with serving(tmp_path, text) as server:
        until(lambda: server.get("/ready", 8181)[0] == 200, "/ready")
        manifest.write_text(cluster_with("10.96.0.2"))
        until(lambda: seen(server) == {("10.96.0.2",)}, "the change")
        assert len(server.lines("manifests: changed files were read")) == 1


def cluster_with(address: str) -> str:
    objects = [namespace("default"), service("web", cluster_ip=address)]
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})


def seen(server: Server) -> set[tuple[str, ...]]:
    return {tuple(server.ask("web.default.svc.cluster.local A").data) for _ in range(MANY)}
