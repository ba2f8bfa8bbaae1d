"""Two leaders of `topodns locator` never write, by the audit log of a real API server: the first one is suspended by
SIGSTOP, and goes on when the other one leads. One without the right to Leases, or without its kinds, says so and writes
nothing until they are there. And Kubernetes deletes locators with their owners where no controller runs.
"""

import base64
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kubelab.control_plane import AUDIT_LOG
from tests.kubelab.lab import Lab
from tests.kubelab.options import Options, node_list
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.labs import lab_of
from tests.support.kube.locator_process import ACCOUNT, OF_POD_LOCATORS, LocatorProcess, locator_process
from tests.support.kube.moving_pod import MOVING, PLAIN, located, move, unplayed_nodes
from tests.support.kube.objects import Object
from tests.support.kube.server_pods import granted, permissions
from tests.support.kube.waiting import becomes, eventually

RIGHTS = ("locator/crds.yaml", "locator/serviceaccount.yaml", "locator/rbac.yaml")
TAKES_OVER = 30.0  # seconds: a Lease takes 15 to expire, and is looked at every 2; the rest is for a busy machine
STAYS_SILENT = 20.0  # seconds for which the first leader writes nothing after SIGCONT: longer than a Lease
LONG = 180.0  # seconds: the garbage collector looks for new kinds every 30
GROUP, VERSION = "/apis/topodns.io", "v1alpha1"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    options = Options(node_list("a"), audit=True)
    with lab_of(options, tmp_path_factory.mktemp("audited") / "lab") as lab:
        yield lab


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    cluster = Cluster(lab)
    with granted(cluster, permissions(*RIGHTS)), unplayed_nodes(cluster):
        await_kinds(lab, VERSION)
        yield cluster


def await_kinds(lab: Lab, version: str) -> None:
    eventually(lambda: lab.api.call("GET", f"{GROUP}/{version}/nodelocators").ok, f"the kind NodeLocator in {version}")


def credential(directory: Path) -> str:
    """The name that the audit log has for the token of the replica of this directory."""
    config = json.loads((directory / "kubeconfig").read_text())
    payload = config["users"][0]["user"]["token"].split(".")[1]
    return f"JTI={json.loads(base64.urlsafe_b64decode(payload + '=='))['jti']}"


def writers(lab: Lab) -> list[str]:
    """The credential of each write of a NodeLocator that was not refused, in the order of the API server."""
    written = []
    for line in (lab.control.dir / AUDIT_LOG).read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        own = event.get("objectRef", {}).get("resource") == "nodelocators"
        if own and event["verb"] in ("create", "patch", "update", "delete") and event["responseStatus"]["code"] < 400:
            written += event["user"].get("extra", {}).get("authentication.kubernetes.io/credential-id", [])
    return written


@contextmanager
def moving(place: Place) -> Iterator[None]:
    """The address moves twice a second, so that there is always something to write."""
    stop = threading.Event()

    def go() -> None:
        number = 0
        while not stop.wait(0.5):
            move(place, number)
            number += 1

    thread = threading.Thread(target=go, name="moving")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_leader_that_was_suspended_never_writes_again_while_the_other_one_leads(
    lab: Lab, cluster: Cluster, place: Place, tmp_path: Path
) -> None:
    with locator_process(cluster, tmp_path / "1") as one, locator_process(cluster, tmp_path / "2") as two:
        eventually(lambda: one.leads or two.leads, "a leader")
        first, second = sorted((one, two), key=lambda replica: not replica.leads)
        old, new = (credential(replica.log.parent) for replica in (first, second))
        with moving(place):
            eventually(lambda: writers(lab).count(old) >= 5, "writes of the first leader")
            first.process.send_signal(signal.SIGSTOP)
            try:
                eventually(lambda: second.leads, second.log.read_text(), TAKES_OVER)
                eventually(lambda: writers(lab).count(new) >= 5, "writes of the second leader")
            finally:
                first.process.send_signal(signal.SIGCONT)
            resumed, until = len(writers(lab)), time.monotonic() + STAYS_SILENT
            while time.monotonic() < until:
                assert not first.leads
                assert second.leads
                time.sleep(0.2)
        written = writers(lab)
        assert set(written) == {old, new}
        assert old not in written[written.index(new) :]
        assert len(written) > resumed
        second.process.kill()
        eventually(lambda: first.leads, first.log.read_text(), TAKES_OVER)  # it takes part in the election again


def refusals(locator: LocatorProcess, reason: str) -> float:
    return locator.metrics().get(f'topodns_locator_refusals_total{{reason="{reason}"}}', 0.0)


def nodes_with_locator(lab: Lab) -> set[str]:
    """None where the kind is not there."""
    answer = lab.api.call("GET", f"{GROUP}/{VERSION}/nodelocators")
    return {each["metadata"]["name"] for each in answer.body["items"]} if answer.ok else set()


def recovers(lab: Lab, cluster: Cluster, locator: LocatorProcess, what: str) -> None:
    """It leads, each Node gets its NodeLocator, and the log has the end of the refusals."""
    nodes = {each["metadata"]["name"] for each in cluster.list("Node", "")}
    becomes(lambda: nodes_with_locator(lab), nodes, LONG)
    assert locator.leads
    eventually(lambda: f"locator: {what}: no longer refused" in locator.log.read_text(), locator.log.read_text())


def test_without_the_right_to_leases_it_says_so_and_writes_nothing_until_the_right_is_granted(
    lab: Lab, cluster: Cluster, tmp_path: Path
) -> None:
    (binding,) = (each for each in permissions(*RIGHTS) if each["kind"] == "RoleBinding")
    cluster.kubectl("delete", "nodelocators", "--all")
    cluster.delete("RoleBinding", "kube-system", ACCOUNT)
    try:
        with locator_process(cluster, tmp_path / "one") as locator:
            eventually(lambda: refusals(locator, "rbac") >= 3, locator.log.read_text())
            (line,) = (line for line in locator.log.read_text().splitlines() if ": 403: " in line)
            assert f"locator: Lease kube-system/{ACCOUNT}: 403: " in line
            assert line.endswith(": config/kubernetes/locator/rbac.yaml (chart: locator.enabled) has the rule")
            assert not locator.leads
            assert locator.writes == 0
            assert nodes_with_locator(lab) == set()
            cluster.apply(binding)
            recovers(lab, cluster, locator, f"Lease kube-system/{ACCOUNT}")
    finally:
        cluster.apply(binding)


def kinds(version: str) -> list[Object]:
    found = permissions("locator/crds.yaml")
    for each in found:
        each["spec"]["versions"][0]["name"] = version
    return found


def replace_kinds(lab: Lab, cluster: Cluster, version: str) -> None:
    """The kinds are there in this version and in no other; "" for not at all."""
    names = [each["metadata"]["name"] for each in kinds(VERSION)]
    run = cluster.kubectl("delete", "crd", *names, "--ignore-not-found", "--wait")
    assert run.returncode == 0, run.stderr
    if not version:
        eventually(lambda: lab.api.call("GET", GROUP).status == 404, "the group is gone")
        return
    cluster.apply(*kinds(version))
    await_kinds(lab, version)


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("", "the API server has no kind NodeLocator"),
        ("v1beta1", "the API server has topodns.io as v1beta1, expected v1alpha1"),
    ],
)
def test_without_its_kinds_it_says_so_and_writes_nothing_until_they_are_installed(
    lab: Lab, cluster: Cluster, tmp_path: Path, version: str, problem: str
) -> None:
    replace_kinds(lab, cluster, version)
    try:
        with locator_process(cluster, tmp_path / "one") as locator:
            eventually(lambda: refusals(locator, "crd") >= 2, locator.log.read_text(), LONG)
            (line,) = (line for line in locator.log.read_text().splitlines() if "locator.crds" in line)
            remedy = "apply config/kubernetes/locator/crds.yaml (chart: locator.crds)"
            assert line.endswith(f"locator: nodelocators: {problem}: {remedy}")
            assert locator.leads
            assert locator.writes == 0
            replace_kinds(lab, cluster, VERSION)
            recovers(lab, cluster, locator, "nodelocators")
            assert locator.writes > 0
    finally:
        replace_kinds(lab, cluster, VERSION)


def test_kubernetes_deletes_a_locator_with_its_node_or_pod_where_no_controller_runs(
    cluster: Cluster, place: Place, tmp_path: Path
) -> None:
    """The garbage collector of kube-controller-manager, by the owner reference."""
    node = move(place, 1)
    with locator_process(cluster, tmp_path / "nodes"):
        becomes(lambda: located(cluster, PLAIN).get(MOVING), node)
    cluster.patch("ClusterRole", "", "topodns-locator", {"rules": list(OF_POD_LOCATORS)})
    with locator_process(cluster, tmp_path / "pods", "--kind", "podlocator"):
        eventually(lambda: place.read("PodLocator", "mover-1"), "its PodLocator", LONG)
    place.delete("Pod", "mover-1", grace=0)
    eventually(lambda: place.read("PodLocator", "mover-1") is None, "the PodLocator is gone", LONG)
    cluster.delete("Node", "", node)
    eventually(lambda: cluster.read("NodeLocator", "", node) is None, "the NodeLocator is gone", LONG)
