"""Start, a changed configuration and stop of a node cache, with Pods that ask meanwhile (N8, N20)."""

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.namespaced_cluster import LISTENED, NodeScene
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL
from tests.support.node_cache_template import node_template
from tests.support.node_processes import (
    NOISE,
    SLOW_START,
    STOP_PATIENCE,
    NodeCache,
    arguments,
    dig,
    environment,
    node_cache,
    running,
    write_template,
)
from tests.support.server_process import until
from tests.support.stub_resolver_load import asking

pytestmark = pytest.mark.usefixtures("servers")
FIREWALLS = pytest.mark.parametrize("firewall", ["nftables", "iptables"])
BOTH = list(CLUSTER_DNS.values())
STARTED = 1.5  # seconds from the start until Pods are served (issue 6)
RATE = 500.0
XTABLES_LOCK = "/run/xtables.lock"


@FIREWALLS
def test_started_and_stopped_under_load_it_loses_nothing_and_leaves_nothing(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    node, template = cluster.node, write_template(tmp_path / "cache")
    command = arguments(node, template.parent, firewall)
    with asking(cluster.pod, BOTH, RATE) as outcome, asking(node.pods[1], LISTENED[:2], 100) as own:
        began = time.monotonic()
        with running(node.namespace, command, tmp_path / "log", **environment()) as process:
            until(lambda: own.right_after(began), "served at the link-local address", STARTED + SLOW_START)
            cache = NodeCache(node, process, tmp_path / "log", template)
            until(lambda: cache.metrics()["topodns_nodecache_switched_on"] == 1.0, "all traffic comes here")
            seen = len(outcome.asked)
            until(lambda: len(outcome.asked) > seen + RATE, "some answers of the cache")
            stopped = time.monotonic()
            assert cache.stop() == 0
            took = time.monotonic() - stopped
        seen = len(outcome.asked)
        until(lambda: len(outcome.asked) > seen + RATE / 2, "some answers of the cluster DNS")
    print(outcome, f"; served after {own.first_right_after(began):.2f} s, stopped after {took:.2f} s")
    assert took <= STOP_PATIENCE
    assert node.leftovers() == []
    assert (outcome.lost, outcome.wrong) == ([], []), outcome


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_whatever_the_signal_to_stop_nothing_is_left(
    cluster: NodeScene, tmp_path: Path, number: signal.Signals
) -> None:
    with node_cache(cluster.node, tmp_path) as cache:
        assert cluster.node.leftovers() != []
        cache.process.send_signal(number)
        assert cache.process.wait(2 * STOP_PATIENCE) == 0
    assert cluster.node.leftovers() == []
    assert dig(cluster.pod, BOTH[0], "web.shop.svc.cluster.local") == ["10.96.10.20"]


@contextmanager
def xtables_locked() -> Iterator[None]:
    """Another process holds the lock of the older iptables, which is the one that Kubernetes uses here."""
    with open(XTABLES_LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_n08_with_the_lock_of_iptables_held_it_stops_in_time_and_leaves_nothing(
    cluster: NodeScene, tmp_path: Path
) -> None:
    node = cluster.node.namespace
    for program in ("iptables-legacy", "ip6tables-legacy"):
        node.run(program, "-t mangle -N KUBE-KUBELET-CANARY")
    with node_cache(cluster.node, tmp_path, "iptables") as cache:
        assert "TOPODNS" in node.run("iptables-legacy-save", "-t raw")
        with xtables_locked():
            began = time.monotonic()
            assert cache.stop() == 0
            print(f"stopped after {time.monotonic() - began:.2f} s")
            assert time.monotonic() - began <= STOP_PATIENCE + NOISE
        for program in ("iptables-legacy-save", "ip6tables-legacy-save"):
            assert "TOPODNS" not in node.run(program, "-t raw")
    assert dig(cluster.pod, BOTH[0], "web.shop.svc.cluster.local") == ["10.96.10.20"]


@pytest.mark.parametrize(
    "bad",
    [
        "cluster.local:53 {\n    no-such-directive\n}\n",
        node_template().replace("force_tcp", "force_tcp yes please"),
        node_template().replace(":9253", ":not-a-port"),
        node_template().replace("__PILLAR__CLUSTER__DNS__", "169.254.20.10"),
        "",
    ],
    ids=["directive", "option", "port", "circle", "empty"],
)
def test_n20_a_template_that_cannot_be_served_changes_nothing_under_load(
    cluster: NodeScene, tmp_path: Path, bad: str
) -> None:
    faults = "coredns_nodecache_setup_errors_total{configmap}"
    with node_cache(cluster.node, tmp_path) as cache:
        good = cache.template.read_text()
        with asking(cluster.pod, LISTENED, RATE, tcp_every=50) as outcome:
            assert cache.metrics()[faults] == 0.0
            replace(cache.template, bad)
            until(lambda: cache.metrics()[faults] == 1.0, "it is counted")
            seen = len(outcome.asked)
            until(lambda: len(outcome.asked) > seen + RATE / 2, "more questions")
            replace(cache.template, good.replace("errors\n", "errors\n    nsid mended\n", 1))
            until(lambda: b"mended".hex(" ") in nsid(cluster), "the mended one is in force")
        assert cache.process.poll() is None
        assert f"{cache.template}" in cache.log.read_text()
    assert (outcome.lost, outcome.wrong) == ([], []), outcome


def replace(path: Path, text: str) -> None:
    """At once, as the kubelet does."""
    path.with_suffix(".new").write_text(text)
    os.replace(path.with_suffix(".new"), path)


def nsid(cluster: NodeScene) -> str:
    return cluster.pod.run("dig", f"+nsid @{LINK_LOCAL[4]} web.shop.svc.cluster.local.").lower()
