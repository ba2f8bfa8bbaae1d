"""`topodns locator` on a real API server, with the rights of its manifests: its writes while 1,000 Pods come and go on
50 nodes that kwok plays, how soon an address that moves is right, and two replicas of which the leader is killed.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kubelab.kwok import MARK, TAINT, FakeNode, fake_nodes
from tests.support.dns_messages import Opt, subnet
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.host_process import serving_on_host
from tests.support.kube.location_service import NAME, NOWHERE, node_of, whereabouts
from tests.support.kube.locator_process import LocatorProcess, locator_process
from tests.support.kube.objects import HOSTNAME, ZONE, pause_container, pod
from tests.support.kube.server_pods import granted, permissions
from tests.support.kube.waiting import PATIENCE, becomes, eventually
from tests.support.server_process import Server as Process

NODES, PODS, RATE, SECONDS = 50, 1000, 20, 30  # of the churn: Pods replaced in a second, for so many seconds
COALESCE: Final = 0.5  # seconds, the default
MOVES: Final = 10
RIGHT_WITHIN: Final = 1.0  # seconds
BUSY: Final = 10.0  # seconds that a write may wait for an API server which shares the machine with all this
LONG: Final = 5 * PATIENCE

FLEET: Final = [FakeNode(number, {ZONE: "abc"[number % 3]}) for number in range(NODES)]
RIGHTS: Final = ("locator/crds.yaml", "locator/serviceaccount.yaml", "locator/rbac.yaml")


@pytest.fixture(scope="module")
def kinds(cluster: Cluster) -> Iterator[None]:
    """The custom resources, and the account of the locator with its rights."""
    with granted(cluster, permissions(*RIGHTS)):
        path = "/apis/topodns.io/v1alpha1/nodelocators"
        eventually(lambda: cluster.lab.api.call("GET", path).ok, "the kind NodeLocator")
        yield


@pytest.fixture(scope="module")
def fleet(cluster: Cluster, kinds: None) -> Iterator[Place]:
    """A namespace with so many Pods on the fake nodes, each with an address."""
    with fake_nodes(cluster.lab, FLEET):
        with cluster.namespace("fleet") as place:
            at_once([f"pod-{number}" for number in range(PODS)], lambda name: place.create(played(name)))
            becomes(lambda: len(addresses(place)), PODS, LONG)
            yield place
        at_once(names(place), lambda name: place.delete("Pod", name, grace=0))


def played(name: str) -> dict[str, Any]:
    """A Pod on a fake node of its own choice."""
    node = random.Random(name).choice(FLEET).name
    return pod(name, "played", pause_container(), node, nodeSelector=MARK, tolerations=[{"key": TAINT["key"]}])


def at_once(items: Sequence[str], act: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, items))


def names(place: Place) -> list[str]:
    return [each["metadata"]["name"] for each in place.cluster.list("Pod", place.name)]


def oldest(place: Place) -> int:
    """The number of the Pod that is replaced next."""
    return min(int(name.removeprefix("pod-")) for name in names(place))


def addresses(place: Place) -> Mapping[str, str]:
    """The node by the address of each Pod that is there."""
    return {
        ip["ip"]: each["spec"]["nodeName"]
        for each in place.cluster.list("Pod", place.name)
        for ip in each["status"].get("podIPs", ())
    }


def located(cluster: Cluster, nodes: Sequence[str] = ()) -> Mapping[str, str]:
    """The node by each address of the NodeLocators, of these nodes or of the fake ones; no address is in two."""
    found: dict[str, str] = {}
    for each in cluster.list("NodeLocator", ""):
        name = each["metadata"]["name"]
        if name in nodes or (not nodes and name.startswith("fake")):
            for ip in each["spec"]["podIPs"]:
                assert ip not in found, f"{ip} is at {found[ip]} and at {name}"
                found[ip] = name
    return found


@contextmanager
def churn(place: Place, rate: int) -> Iterator[None]:
    """Pods are replaced at this rate, each by one on some other node."""
    stop, problems = threading.Event(), []

    def replace(number: int) -> None:
        place.delete("Pod", f"pod-{number}", grace=0)
        place.create(played(f"pod-{number + PODS}"))

    def run() -> None:
        begin, number = time.monotonic(), oldest(place)
        with ThreadPoolExecutor(8) as pool:
            done = 0
            while not stop.is_set():
                time.sleep(max(0.0, begin + done / rate - time.monotonic()))
                problems.append(pool.submit(replace, number + done))
                done += 1

    thread = threading.Thread(target=run, name="churn")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    for problem in problems:
        problem.result()


def test_while_pods_come_and_go_each_node_is_written_seldom_and_all_is_right_in_the_end(
    cluster: Cluster, fleet: Place, tmp_path: Path
) -> None:
    with locator_process(cluster, tmp_path / "one") as locator:
        eventually(lambda: located(cluster) == addresses(fleet), locator.log.read_text())
        began, before, lags, first = time.monotonic(), locator.writes, [], oldest(fleet)
        with churn(fleet, RATE):
            while time.monotonic() < began + SECONDS:
                lags.append(locator.metrics()["topodns_locator_lag_seconds"])
                time.sleep(0.1)
        seconds = time.monotonic() - began
        rate, replaced = (locator.writes - before) / seconds, (oldest(fleet) - first) / seconds
        becomes(lambda: located(cluster) == addresses(fleet), True)
        samples = locator.metrics()
        print(
            f"\n{PODS} Pods on {NODES} nodes, {replaced:.1f} replaced a second: {rate:.1f} writes a second, "
            f"lag {shown(lags)}, {locator.resident} MB"
        )
        assert rate <= NODES / COALESCE
        assert rate <= 2 * replaced + 5  # each replacement changes two nodes
        assert max(lags) < BUSY
        assert samples['topodns_locator_writes_total{kind="nodelocator",result="refused"}'] == 0
        assert samples['topodns_locator_writes_total{kind="nodelocator",result="failed"}'] == 0


PLAIN: Final = ("node91", "node92")  # Nodes that nothing plays: the test writes the status of their Pods
ADDRESS: Final = "10.99.0.7"


@pytest.fixture
def plain_nodes(cluster: Cluster, kinds: None) -> Iterator[None]:
    for name in PLAIN:
        cluster.create("", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOSTNAME: name}}})
    yield
    for name in PLAIN:
        cluster.delete("Node", "", name)


def move(place: Place, number: int) -> str:
    """The Pod with the address goes, and another one on the other node gets it; the name of that node."""
    if number:
        place.delete("Pod", f"mover-{number - 1}", grace=0)
    node = PLAIN[number % 2]
    tolerations = [{"operator": "Exists"}]
    place.create(pod(f"mover-{number}", "mover", pause_container(), node, tolerations=tolerations))
    path = f"/api/v1/namespaces/{place.name}/pods/mover-{number}/status"
    status = {"phase": "Running", "podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}], "startTime": "2026-01-01T00:00:00Z"}
    answer = place.cluster.lab.api.call("PATCH", path, {"status": status}, "application/merge-patch+json")
    assert answer.ok, answer
    return node


@pytest.fixture
def server(cluster: Cluster, kinds: None, tmp_path: Path) -> Iterator[Process]:
    """A server that finds clients by Nodes and NodeLocators alone; its clients name the address of which they ask."""
    options = ("locate nodes nodelocator", "trust 127.0.0.0/8")
    with (
        granted(cluster, permissions("rbac-locators.yaml")),
        serving_on_host(cluster, tmp_path, *options) as process,
    ):
        yield process


def test_an_address_that_moves_is_right_within_a_second_in_locators_and_answers_and_never_at_two_nodes(
    cluster: Cluster, plain_nodes: None, server: Process, place: Place, tmp_path: Path
) -> None:
    place.create(*whereabouts(PLAIN))
    opt = Opt(options=[subnet(f"{ADDRESS}/32")])

    def answered() -> str:
        return node_of(set(server.ask(f"{place.fqdn(NAME)} A", opt=opt).data), PLAIN)

    with locator_process(cluster, tmp_path / "one") as locator:
        eventually(lambda: located(cluster, PLAIN) == {} and locator.leads, "a leader")
        move(place, 0)
        becomes(answered, PLAIN[0])
        written, seen = [], []
        for number in range(1, MOVES + 1):
            node = move(place, number)
            began = time.monotonic()
            written.append(seconds_until(lambda: located(cluster, PLAIN).get(ADDRESS), node, began))
            seen.append(seconds_until(answered, node, began))
        print(f"\n{MOVES} moves: {shown(written)} in the NodeLocator, {shown(seen)} in the server's answer")
        assert max(written) < RIGHT_WITHIN
        assert max(seen) < RIGHT_WITHIN
        place.delete("Pod", f"mover-{MOVES}", grace=0)
        becomes(answered, NOWHERE)


def seconds_until(observed: Callable[[], str | None], expected: str, began: float) -> float:
    while observed() != expected:
        assert time.monotonic() < began + PATIENCE
        time.sleep(0.01)
    return time.monotonic() - began


def shown(seconds: Sequence[float]) -> str:
    return f"{sorted(seconds)[len(seconds) // 2]:.2f} s at the median and {max(seconds):.2f} s at most"


def test_the_locator_of_a_deleted_node_goes_with_it(cluster: Cluster, kinds: None, tmp_path: Path) -> None:
    cluster.create("", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "short-lived"}})
    with locator_process(cluster, tmp_path / "one"):
        eventually(lambda: cluster.read("NodeLocator", "", "short-lived"), "its locator")
        cluster.delete("Node", "", "short-lived")
        eventually(lambda: cluster.read("NodeLocator", "", "short-lived") is None, "its locator is gone")


def test_of_two_replicas_one_writes_and_when_it_is_killed_the_other_one_does(
    cluster: Cluster, fleet: Place, tmp_path: Path
) -> None:
    with locator_process(cluster, tmp_path / "one") as one, locator_process(cluster, tmp_path / "two") as two:
        eventually(lambda: one.leads or two.leads, "a leader")
        leader, follower = sorted((one, two), key=lambda replica: not replica.leads)
        with churn(fleet, RATE // 2):
            assert only_one_writes(leader, follower, 10.0) > 0
            leader.process.kill()
            killed = time.monotonic()
            eventually(lambda: follower.leads, follower.log.read_text())
            took = time.monotonic() - killed
            print(f"\nthe leader was killed: the other one led after {took:.1f} s")
            assert took < 25.0  # a Lease takes 15 to expire, and is looked at every 2; the rest is for a busy machine
        becomes(lambda: located(cluster) == addresses(fleet), True)
        assert follower.writes > 0


def only_one_writes(leader: LocatorProcess, follower: LocatorProcess, seconds: float) -> float:
    """Samples both; how much the leader wrote in this time."""
    before, until = leader.writes, time.monotonic() + seconds
    while time.monotonic() < until:
        assert leader.leads
        assert not follower.leads
        assert follower.writes == 0
        time.sleep(0.1)
    return leader.writes - before


def test_podlocators_are_written_by_flag_with_rights_of_their_own(
    cluster: Cluster, fleet: Place, tmp_path: Path
) -> None:
    verbs = ["list", "watch", "create", "patch", "delete"]
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
        {"apiGroups": ["topodns.io"], "resources": ["podlocators"], "verbs": verbs},
    ]
    cluster.patch("ClusterRole", "", "topodns-locator", {"rules": rules})

    def of_pods() -> Mapping[str, str]:
        return {
            ip: each["spec"]["nodeName"]
            for each in cluster.list("PodLocator", fleet.name)
            for ip in each["spec"]["ips"]
        }

    with locator_process(cluster, tmp_path / "one", "--kind", "podlocator") as locator:
        began = time.monotonic()
        becomes(of_pods, dict(addresses(fleet)), LONG)
        print(f"\n{PODS} PodLocators after {time.monotonic() - began:.1f} s")
        before, began = locator.writes, time.monotonic()
        with churn(fleet, RATE):
            time.sleep(10.0)
        rate = (locator.writes - before) / (time.monotonic() - began)
        print(f"{RATE} Pods replaced a second: {rate:.1f} writes a second")
        becomes(of_pods, dict(addresses(fleet)))
        assert rate <= 2 * RATE + 5
