"""N10: one instance of the node cache takes over from another under load, without a lost answer."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.namespaced_cluster import LISTENED, NodeScene, node_scene
from tests.support.namespaced_node import CLUSTER_DNS
from tests.support.node_processes import (
    READY,
    NodeCache,
    arguments,
    cluster_dns,
    dig,
    environment,
    running,
    write_template,
)
from tests.support.server_process import until
from tests.support.stub_resolver_load import Question, asking

NODE = "node-b2"
TIMES = 20
PER_SECOND = 1000
TCP_EVERY = 10
NAME = Question("10-100-0-1.shop.pod.cluster.local", "10.100.0.1")
STOP_PATIENCE = 10.0  # seconds


@pytest.fixture
def scene() -> Iterator[NodeScene]:
    with node_scene(NODE) as made:
        yield made


class Rolling:
    """The instances of one node, as a DaemonSet with `maxSurge: 1` has them: the next one before the last one goes."""

    def __init__(self, scene: NodeScene, directory: Path, firewall: str, stack: ExitStack) -> None:
        self._scene, self._directory, self._firewall, self._stack = scene, directory, firewall, stack
        self._count = 0
        self.serving = self.start()

    def roll(self) -> None:
        """Another instance takes over."""
        old, self.serving = self.serving, self.start()
        assert self.stop(old) == 0, old.log.read_text()

    def roll_back(self) -> None:
        """Another instance is there, and goes again."""
        new = self.start()
        assert self.stop(new) == 0, new.log.read_text()

    def stop(self, instance: NodeCache) -> int:
        instance.process.send_signal(signal.SIGTERM)
        return instance.process.wait(STOP_PATIENCE)

    def start(self) -> NodeCache:
        """A new instance that serves, beside those that are there."""
        self._count += 1
        directory = self._directory / f"instance{self._count}"
        template = write_template(directory)
        command = [*arguments(self._scene.node, directory, self._firewall), f"-pidfile={directory}/pid"]
        log = directory / "log"
        process = self._stack.enter_context(running(self._scene.node.namespace, command, log, **environment()))
        new = NodeCache(self._scene.node, process, log, template)
        pid_file = directory / "pid"
        until(lambda: pid_file.exists() or process.poll() is not None, f"it serves: {log}", 20.0)
        assert process.poll() is None, log.read_text()
        return new


@contextmanager
def rolling(scene: NodeScene, directory: Path, firewall: str) -> Iterator[Rolling]:
    with ExitStack() as stack:
        stack.enter_context(cluster_dns(scene, directory))
        instances = Rolling(scene, directory, firewall, stack)
        instances.serving.wait()
        yield instances


def led_away(scene: NodeScene) -> bool:
    """Whether the cluster DNS answers at its addresses: conntrack knows of it."""
    scene.node.forget_tracked()
    return all(dig(scene.pod, address, READY) and scene.node.is_tracked(address) for address in CLUSTER_DNS.values())


def same_name() -> Iterator[Question]:
    while True:
        yield NAME


@pytest.mark.parametrize(("firewall", "times"), [("nftables", TIMES), ("iptables", 3)])
def test_n10_rolled_under_load_no_query_is_lost_or_answered_wrong(
    scene: NodeScene, tmp_path: Path, firewall: str, times: int
) -> None:
    with rolling(scene, tmp_path, firewall) as instances:
        with asking(scene.pod, LISTENED, PER_SECOND, same_name, TCP_EVERY) as outcome:
            for _ in range(times):
                instances.roll()
        print(f"{times} times, {firewall}: {outcome}")
        assert len(outcome.asked) > times * PER_SECOND / 10  # a load without queries would prove nothing
        assert not outcome.lost, str(outcome)
        assert not outcome.wrong, str(outcome)
        assert not outcome.late(1.0), str(outcome)
        assert instances.stop(instances.serving) == 0
        assert scene.node.leftovers() == []


def test_n10_names_that_are_not_cached_survive_it_too(scene: NodeScene, tmp_path: Path) -> None:
    with rolling(scene, tmp_path, "nftables") as instances:
        with asking(scene.pod, tuple(CLUSTER_DNS.values()), PER_SECOND / 5) as outcome:
            for _ in range(3):
                instances.roll()
        assert not outcome.lost, str(outcome)
        assert not outcome.wrong, str(outcome)


def test_n10_the_older_of_two_goes_on_where_the_younger_ends(scene: NodeScene, tmp_path: Path) -> None:
    with rolling(scene, tmp_path, "nftables") as instances:
        old = instances.serving
        with asking(scene.pod, LISTENED, PER_SECOND / 2, same_name, TCP_EVERY) as outcome:
            instances.roll_back()
        assert not outcome.lost, str(outcome)
        assert not outcome.wrong, str(outcome)
        assert old.process.poll() is None
        assert old.switched_on()


@pytest.mark.parametrize("instance", ["old", "new"])
def test_n10_where_one_of_two_hangs_the_cluster_dns_answers(scene: NodeScene, tmp_path: Path, instance: str) -> None:
    """Half of the questions would be lost to the one that hangs, as long as the other one keeps the traffic here."""
    with rolling(scene, tmp_path, "nftables") as instances:
        old = instances.serving
        new = instances.start()
        assert new.switched_on()
        hung = {"old": old, "new": new}[instance]
        hung.process.send_signal(signal.SIGSTOP)
        until(lambda: led_away(scene), "the traffic goes to the cluster DNS", 5.0)
        with asking(scene.pod, tuple(CLUSTER_DNS.values()), PER_SECOND / 5) as outcome:
            until(lambda: len(outcome.asked) > PER_SECOND / 5, "a second's load")
        assert not outcome.lost, str(outcome)
        hung.process.send_signal(signal.SIGCONT)
        until(old.switched_on, "both answer again", 5.0)


def test_n10_both_instances_share_the_ports_of_health_and_metrics(scene: NodeScene, tmp_path: Path) -> None:
    with rolling(scene, tmp_path, "nftables") as instances:
        old = instances.serving
        new = instances.start()
        for instance in (old, new):  # whichever it is that answers
            assert instance.metrics()["topodns_nodecache_switched_on"] == 1
        assert instances.stop(old) == 0
        assert new.metrics()["topodns_nodecache_switched_on"] == 1


IMPOSTOR = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for slot in range(8):
    try:
        sock.connect(f"\\0topodns-host-network/nodelocaldns/{slot}")
    except OSError:
        continue
    sock.send(b"99999999999999999999999999999 1 ")
    sock.recv(4096)  # it was taken in
    break
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("firewall", ["nftables", "iptables"])
def test_n10_nothing_is_left_to_one_that_only_says_that_it_serves(
    scene: NodeScene, tmp_path: Path, firewall: str
) -> None:
    """Any process of root on the network of the node may say so."""
    with (
        rolling(scene, tmp_path, firewall) as instances,
        scene.node.namespace.entered(),
        subprocess.Popen(
            [sys.executable, "-c", IMPOSTOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as impostor,
    ):
        assert impostor.stdout is not None
        assert impostor.stdout.readline() == "there\n"
        assert instances.stop(instances.serving) == 0
        assert scene.node.leftovers() == []
        impostor.kill()
