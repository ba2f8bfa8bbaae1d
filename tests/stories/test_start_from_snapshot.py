"""The program with a snapshot of its cluster: starts without the API server, and the faults of the file (K26 to K32).

Faults within the file, and clocks, are in tests/unit/kube/snapshot.
"""

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.api_objects import Object, namespace, service
from tests.support.dns_messages import EDE, Opt
from tests.support.fake_api.server import FakeApi, running
from tests.support.program_with_fake_api import FRONT, IN_A, IN_B, NEAR, PLAIN, Scene, scene
from tests.support.server_process import READY, Server, serving, until
from tests.support.yurthub import yurthub

ROOT = Path(__file__).parents[2]
SYSTEM = namespace("kube-system")
NEW = "new.default.svc.cluster.local A"
WRITES, AGE, REFUSED = (
    "topodns_snapshot_writes_total",
    "topodns_snapshot_age_seconds",
    "topodns_snapshots_refused_total",
)
OPTIONS = "snapshot snapshot interval 1s\nstartup_timeout 300ms"


@contextmanager
def writing(directory: Path, *more: Object, directives: str = "") -> Iterator[Scene]:
    """A server that has written the snapshot of its cluster beside its Corefile."""
    with scene(directory, SYSTEM, *more, options=OPTIONS, directives=directives) as story:
        until((directory / "snapshot").exists, "a snapshot")
        yield story


@contextmanager
def second(directory: Path, first: Scene) -> Iterator[Server]:
    """Another server with the Corefile and the snapshot of a first one."""
    corefile = (directory / "Corefile").read_text().replace(first.server.address, "HERE")
    (directory / "second").mkdir()
    with serving(
        directory / "second", corefile.replace("snapshot snapshot", f"snapshot {directory}/snapshot")
    ) as server:
        yield server


@contextmanager
def another(api: FakeApi, *objects: Object) -> Iterator[None]:
    """An API server with these objects alone, in place of one that is down."""
    host, port = api.url.removeprefix("http://").split(":")
    with running(objects, host, int(port)):
        yield


def data(server: Server, question: str, source: str = IN_A) -> list[str]:
    reply = server.ask(question, source)
    return reply.data if reply.rcode == "NOERROR" else [reply.rcode]


def answers(server: Server) -> list[list[str]]:
    return [data(server, FRONT), data(server, PLAIN), data(server, NEAR), data(server, NEAR, IN_B)]


ALL = [["10.96.0.1"], ["10.61.1.2", "10.61.2.2"], ["10.61.1.1"], ["10.61.2.1"]]


def test_k26_a_server_that_starts_without_the_api_server_answers_as_before(tmp_path: Path) -> None:
    with writing(tmp_path) as first:
        first.api.down()
        with second(tmp_path, first) as server:
            assert answers(server) == ALL
            assert data(server, NEW) == ["SERVFAIL"]
            reply = server.ask(FRONT, opt=Opt())
            assert [line.split()[1] for line in reply.answer] == ["5"]
            assert (reply.options or {})[EDE].startswith(b"\0\3snapshot of 2")
            status, text = server.get("/ready", READY)
            assert status == 200
            assert text.startswith("OK\nkubernetes: answers are from the snapshot of 2")
            assert server.metric(AGE) >= 0
            assert server.metric("topodns_state_synced") == 0
            first.api.put(service("new", cluster_ip="10.96.0.7"))
            first.api.up()
            until(lambda: server.get("/ready", READY) == (200, "OK"), server.output())
            assert [*answers(server), data(server, NEW)] == [*ALL, ["10.96.0.7"]]
            assert data(server, "none.default.svc.cluster.local A") == ["NXDOMAIN"]
            samples = [sample.name for family in server.scrape().families for sample in family.samples]
            assert AGE not in samples
            until(lambda: server.metric(WRITES, outcome="written") >= 1, server.output())


def test_k26_all_processes_of_multisocket_answer_from_the_snapshot_also_after_a_reload(tmp_path: Path) -> None:
    with writing(tmp_path, directives="multisocket 2") as first:
        first.witness.stop()
        first.api.down()
        with second(tmp_path, first) as server:
            until(lambda: server.get("/ready", READY)[0] == 200, "the second process")
            for _ in range(20):  # each from another port, and so to any of the processes
                assert answers(server) == ALL
                assert data(server, NEW) == ["SERVFAIL"]
            server.signal(signal.SIGUSR1)
            server.wait_for_line("Reloading complete")
            assert answers(server) == ALL
            corefile = tmp_path / "second/Corefile"
            corefile.write_text(corefile.read_text().replace("startup_timeout", "labels !hidden\nstartup_timeout"))
            server.signal(signal.SIGUSR1)
            until(lambda: server.metric("coredns_reload_failed_total") >= 1, server.output())
            assert answers(server) == ALL
            first.api.up()
            until(lambda: server.get("/ready", READY) == (200, "OK"), server.output())
            for _ in range(20):
                assert data(server, NEW) == ["NXDOMAIN"]


def test_k26_behind_yurthub_a_server_starts_without_the_api_server_from_the_lists_of_its_node(tmp_path: Path) -> None:
    """Without credentials and without a snapshot; YurtHub has the lists because a first server has read them."""

    def prepare(api: FakeApi) -> None:
        api.require_token("of the node")
        hub.api = api.url

    with (
        yurthub("of the node") as hub,
        scene(
            tmp_path, SYSTEM, source=f"endpoint {hub.url}", options="startup_timeout 300ms", prepare=prepare
        ) as first,
    ):
        first.api.put(service("late", cluster_ip="10.96.0.8"))
        first.comes("late.default.svc.cluster.local A", "10.96.0.8")
        first.api.down()
        with second(tmp_path, first) as server:
            until(lambda: server.get("/ready", READY) == (200, "OK"), server.output())
            assert [*answers(server), data(server, "late.default.svc.cluster.local A")] == [*ALL, ["10.96.0.8"]]
            first.api.put(service("new", cluster_ip="10.96.0.7"))
            first.api.up()
            until(lambda: data(server, NEW) == ["10.96.0.7"], server.output())
            assert answers(server) == ALL


def test_k27_a_writer_that_is_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.killed_snapshot_writer", str(tmp_path / "snapshot"), "100", "7"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    numbers = [int(line) for line in ended.stdout.split()]
    assert len(numbers) == 100
    assert numbers == sorted(numbers)  # the old file or a new one
    assert len(set(numbers)) > 10
    assert {path.name for path in tmp_path.iterdir()} <= {"snapshot", "snapshot.new"}


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("taken", "Is a directory"),
        ("missing/snapshot", "No such file or directory"),
        ("/sys/snapshot", "/sys/snapshot"),
    ],
)
def test_k28_where_nothing_can_be_written_serving_goes_on(tmp_path: Path, path: str, problem: str) -> None:
    (tmp_path / "taken").mkdir()
    with scene(tmp_path, SYSTEM, options=f"snapshot {path} interval 1s") as story:
        story.shows(WRITES, 2, outcome="failed")
        (line,) = story.server.lines("cannot write the snapshot")
        assert problem in line
        assert (story.data(FRONT), story.ready()) == (["10.96.0.1"], (200, "OK"))


def test_k28_on_a_full_disk_the_old_file_stays_and_serving_goes_on(tmp_path: Path) -> None:
    with writing(tmp_path) as story:
        before = (tmp_path / "snapshot").read_bytes()
        size = len(before) + 4096
        resource.prlimit(story.server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        story.api.put(*(service(f"s{number}", cluster_ip=f"10.96.1.{number}") for number in range(200)))
        story.shows(WRITES, outcome="failed")
        assert (tmp_path / "snapshot").read_bytes() == before
        assert not (tmp_path / "snapshot.new").exists()
        story.comes("s7.default.svc.cluster.local A", "10.96.1.7")
        resource.prlimit(story.server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        story.server.wait_for_line("is written again")
        assert (tmp_path / "snapshot").stat().st_size > size


def test_k29_a_snapshot_of_another_cluster_is_dropped_as_soon_as_the_api_server_answers(tmp_path: Path) -> None:
    with writing(tmp_path) as first:
        first.witness.stop()
        first.api.down()
        other = {**SYSTEM, "metadata": {**SYSTEM["metadata"], "uid": "other"}}
        with second(tmp_path, first) as server:
            assert answers(server) == ALL
            with another(first.api, other, namespace("default")):
                server.wait_for_line("is of another cluster: Namespace kube-system has uid")
                until(lambda: data(server, FRONT) == ["NXDOMAIN"], server.output())
                assert server.metric(REFUSED, reason="foreign") == 1
                assert server.metric(AGE) == 0


@pytest.mark.parametrize(
    ("octets", "line"),
    [
        (b"", "is damaged: 0 octets without their checksum"),
        (b"nameserver 192.0.2.1", "begins with other octets than 'topodns snapshot'"),
        (b"topodns snapshot\n\0\7rest", "has format 7, expected 1: another topodns wrote it"),
        (b"topodns snapshot\n\0\1rest", "is damaged: 23 octets without their checksum"),
    ],
)
def test_k30_a_file_that_is_no_snapshot_is_named_and_left(tmp_path: Path, octets: bytes, line: str) -> None:
    (tmp_path / "snapshot").write_bytes(octets)
    with scene(tmp_path, SYSTEM, options=OPTIONS, prepare=FakeApi.down, synced=False) as story:
        assert f"{line}; it is not used, and stays" in story.server.wait_for_line("the snapshot")
        assert (story.data(FRONT), story.ready()[0]) == (["SERVFAIL"], 503)
        assert story.metric("topodns_snapshots_refused_total") == 1
        assert (tmp_path / "snapshot").read_bytes() == octets
        story.api.up()
        story.is_ready()
        story.witness.synced = True


def test_k32_an_etcd_that_was_wiped_meanwhile_is_believed_when_it_is_confirmed(tmp_path: Path) -> None:
    more = [service(f"s{number}", cluster_ip=f"10.96.1.{number}") for number in range(150)]
    with writing(tmp_path, *more) as first:
        first.witness.stop()
        first.api.down()
        with second(tmp_path, first) as server, another(first.api, SYSTEM, namespace("default")):
            server.wait_for_line("list of services: it has 0 objects where there were 153; asking again")
            until(lambda: data(server, FRONT) == ["NXDOMAIN"], server.output())
