"""The API server reached from outside the cluster, and gone for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kubelab.lab import Lab
from tests.support.kube.clients import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.nearness import answers
from tests.support.kube.objects import ZONE, headless, manual_slice
from tests.support.kube.on_host import serving_on_host
from tests.support.kube.waiting import becomes, eventually, stays
from tests.support.process import READY
from tests.support.process import Server as Process

OUTAGE = 20.0  # seconds


@pytest.fixture
def on_the_host(cluster: Cluster, tmp_path: Path) -> Iterator[Process]:
    with serving_on_host(cluster, tmp_path) as process:
        yield process


def test_outside_the_cluster_a_kubeconfig_is_enough(on_the_host: Process, place: Place) -> None:
    assert on_the_host.ask("kubernetes.default.svc.cluster.local A").data == ["10.96.0.1"]
    place.create(headless("web", app=""), manual_slice("web", "web", [("198.51.100.1", "node1")]))
    becomes(lambda: on_the_host.ask(f"{place.fqdn('web')} A").data, ["198.51.100.1"])


def test_answers_go_on_without_the_api_server_and_nothing_is_missed_when_it_is_back(
    cluster: Cluster, place: Place, askers: Askers, host_askers: Askers, on_the_host: Process
) -> None:
    lab = cluster.lab
    endpoints = [("198.51.100.1", "node1"), ("198.51.100.3", "node3")]
    place.create(headless("web", ZONE, app=""), manual_slice("web", "web", endpoints))
    name, late = place.fqdn("web"), place.fqdn("late")
    before = {"node1": {"198.51.100.1"}, "node2": {"198.51.100.1"}, "node3": {"198.51.100.3"}, "node4": set()}
    becomes(lambda: answers(askers, name), before)

    def served() -> tuple[object, ...]:
        return (
            answers(askers, name),
            answers(host_askers, name),
            askers["node1"].addresses(late),
            on_the_host.ask("kubernetes.default.svc.cluster.local A").data,
            on_the_host.get("/ready", READY)[0],
        )

    with outage(lab):
        looks = stays(served, (before, before, {"NXDOMAIN"}, ["10.96.0.1"], 200), OUTAGE)
        assert looks > OUTAGE  # more than one a second
        assert on_the_host.metric("topodns_state_age_seconds") >= OUTAGE
        assert on_the_host.metric("topodns_watch_failing", kind="EndpointSlice") == 1
    place.create(headless("late", app=""), manual_slice("late", "late", [("198.51.100.9", "")]))
    becomes(lambda: askers["node1"].addresses(late), {"198.51.100.9"})
    becomes(lambda: on_the_host.ask(f"{late} A").data, ["198.51.100.9"])
    becomes(lambda: answers(askers, name), before)
    becomes(lambda: on_the_host.metric("topodns_watch_failing"), 0.0)


@contextmanager
def outage(lab: Lab) -> Iterator[None]:
    """Without the API server. In the end the rest of Kubernetes is started anew: the controller manager would take
    every node's lease for expired, and the others look for a lost server only once in a while.
    """
    others = ("kube-controller-manager", "kube-scheduler")
    for service in (*others, "kube-apiserver"):
        lab.control.stop(service, "KILL")
    try:
        yield
    finally:
        lab.control.start("kube-apiserver")
        eventually(lambda: lab.api.call("GET", "/readyz").ok, "the API server is back")
        lab.control.start(*others)
        for machine in lab.node_machines:
            for service in ("kubelet", "kube-proxy"):
                machine.stop(service)
                machine.start(service)
        eventually(lab.all_ready, "all nodes are Ready")
