"""The API server away for a minute, and an etcd that has lost everything and gets it back: what topodns answers,
installed by the README, and as a process on the host.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, Generic, TypeVar

import pytest

from tests.kubelab.etcd import back_up, wiped
from tests.kubelab.options import CLUSTER_DNS, FIRST_SERVICES
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place, PodView, kill_container
from tests.support.kube.host_process import administrator_kubeconfig, serving_on_host
from tests.support.kube.objects import Object, headless, manual_slice
from tests.support.kube.outage_scene import KNOWN_AGAIN, KUBERNETES, Got, Scene, got
from tests.support.kube.outages import nobody_else_follows, outage, wait_for_api_server
from tests.support.kube.query_loads import Asked, load, outcome
from tests.support.kube.server_pods import cluster_dns_pods, get, log_on_node, samples
from tests.support.kube.upstream import OUTSIDE, OUTSIDE_ADDRESS
from tests.support.kube.waiting import becomes, eventually, stays
from tests.support.server_process import METRICS, READY
from tests.support.server_process import Server as Process

# Samples taken all the while, in a thread, so that a state of a moment is not missed.

T = TypeVar("T")


@dataclass
class Course(Generic[T]):
    """Each thing seen that was another than the one before, with the time of its begin (monotonic seconds)."""

    moments: list[tuple[float, T]] = field(default_factory=list)
    looks: int = 0

    def note(self, seen: T) -> None:
        self.looks += 1
        if not self.moments or self.moments[-1][1] != seen:
            self.moments.append((time.monotonic(), seen))

    @property
    def seen(self) -> list[T]:
        return [seen for _, seen in self.moments]

    @property
    def latest(self) -> T | None:
        """None: nothing yet."""
        return self.moments[-1][1] if self.moments else None


@contextmanager
def followed(observed: Callable[[], T]) -> Iterator[Course[T]]:
    """Without a pause while the block runs; the sampled client must not be used elsewhere meanwhile."""
    course, ended = Course[T](), Event()

    def follow() -> None:
        while not ended.is_set():
            course.note(observed())

    with ThreadPoolExecutor(1, "followed") as pool:
        following = pool.submit(follow)
        try:
            yield course
        finally:
            ended.set()
            following.result()


pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

OUTAGE, RESTARTED = 60.0, 40.0  # seconds; a container is killed after so many
RATE = 50  # questions a second on each node
RESTORED = 10.0  # and for an etcd that was restored
MANY = 110  # objects: fewer than 100 may vanish at once
ONE_OF_MANY = "many-7.default.svc.cluster.local A"
ADDRESS_OF_ONE: Final = frozenset({"198.51.100.17"})
NODATA: Final[frozenset[str]] = frozenset()
NXDOMAIN: Final = frozenset({"NXDOMAIN"})


@pytest.fixture
def pods(installed: str, cluster: Cluster) -> list[PodView]:
    """The two of the cluster DNS."""
    return cluster_dns_pods(cluster)


def test_k02_a_minute_without_the_api_server_all_names_keep_resolving(
    cluster: Cluster,
    scene: Scene,
    askers: Askers,
    host_askers: Askers,
    clients: Place,
    pods: list[PodView],
    say: Callable[[str], None],
) -> None:
    """But for the last third, in which a container is killed: it knows nothing until the API server is back."""
    survivor, victim = pods
    web = f"{scene.place.fqdn('web')} A"

    name = f"{KUBERNETES} A"
    expected = {**scene.right, "of the nodes' networks": {name: scene.right[name]}, "/ready": 200}

    def served() -> dict[str, object]:
        ready, _ = get(clients, askers["node4"].pod, survivor, READY, "/ready")
        return {**got(askers, scene.questions), "of the nodes' networks": got(host_askers, [name]), "/ready": ready}

    with outage(cluster.lab):
        begun = time.monotonic()
        with ExitStack() as stack:
            asked = [Asked(web, CLUSTER_DNS)]
            loads = [stack.enter_context(load(cluster.lab, each.pod, asked, RATE)) for each in askers.values()]
            with outcome(*loads) as became:
                stays(served, expected, RESTARTED)
        say(f"API server away for {RESTARTED:g} s: {became}")
        assert (became.lost, became.failed) == (0, 0), became.problems
        _, metrics = get(clients, askers["node4"].pod, survivor, METRICS, "/metrics")
        assert samples(metrics, "topodns_state_age_seconds") >= RESTARTED
        assert samples(metrics, "topodns_watch_failing", kind="EndpointSlice", status="0") == 1
        assert "cannot watch endpointslices" in log_on_node(cluster.lab, survivor)

        kill_container(cluster.lab, victim)
        becomes(lambda: told_directly(askers, survivor, victim), LEFT)
        assert get(clients, askers["node4"].pod, victim, READY, "/ready")[0] == 503
        through_the_service = set().union(*(askers["node1"].addresses(KUBERNETES) for _ in range(50)))
        assert through_the_service == {FIRST_SERVICES[0], "SERVFAIL"}
        stays(lambda: told_directly(askers, survivor, victim), LEFT, begun + OUTAGE - time.monotonic())
    begun = time.monotonic()
    after = scene.with_late()
    becomes(lambda: got(askers, scene.questions), after, KNOWN_AGAIN)
    known = time.monotonic() - begun
    say(f"API server back after {OUTAGE:g} s, the nodes Ready: a new Service is known within {known:.1f} s")
    becomes(lambda: get(clients, askers["node4"].pod, victim, READY, "/ready")[0], 200)


LEFT: Final = [{FIRST_SERVICES[0]}, {"SERVFAIL"}, {OUTSIDE_ADDRESS}]


def told_directly(askers: Askers, survivor: PodView, victim: PodView) -> list[set[str]]:
    """By one that remembers; by one that has nothing to remember, and what it needs no memory for."""
    asks = [(KUBERNETES, survivor), (KUBERNETES, victim), (OUTSIDE, victim)]
    return [askers["node1"].addresses(name, to=pod.ip) for name, pod in asks]


def many() -> Iterator[Object]:
    """So many Services, in a namespace that an empty API server has too."""
    for number in range(MANY):
        yield headless(f"many-{number}", app="")
        yield manual_slice(f"many-{number}", f"many-{number}", [(f"198.51.100.{10 + number}", "")])


@pytest.fixture
def on_host(cluster: Cluster, installed: str, tmp_path: Path) -> Iterator[Process]:
    with serving_on_host(cluster, tmp_path, config=administrator_kubeconfig(cluster)) as process:
        yield process


def test_k11_k24_an_etcd_is_wiped_and_restored(
    cluster: Cluster,
    scene: Scene,
    askers: Askers,
    clients: Place,
    pods: list[PodView],
    on_host: Process,
    say: Callable[[str], None],
) -> None:
    """The many Services made after the backup are gone in the end, and nothing else changes for Pods."""
    lab, web = cluster.lab, f"{scene.place.fqdn('web')} SRV"
    restored = {**scene.right, ONE_OF_MANY: dict.fromkeys(askers, NXDOMAIN)}
    later = {**scene.right, ONE_OF_MANY: dict.fromkeys(askers, ADDRESS_OF_ONE)}

    def of_pods() -> Got:
        return got(askers, [*later])

    def of_host() -> frozenset[str]:
        reply = on_host.ask(ONE_OF_MANY)
        return frozenset(reply.data if reply.rcode == "NOERROR" else {reply.rcode})

    back_up(lab)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(partial(cluster.create, "default"), many()))
    becomes(of_pods, later)
    becomes(of_host, ADDRESS_OF_ONE)
    with followed(of_pods) as by_pods, followed(of_host) as by_host, nobody_else_follows(lab):
        with wiped(lab):
            becomes(lambda: by_host.latest, NXDOMAIN)
            for pod in pods:
                eventually(partial(is_refused, cluster, pod), "the log of a pod says why it answers from memory")
                assert get(clients, askers["node4"].pod, pod, READY, "/ready")[0] == 200
            assert on_host.get("/ready", READY)[0] == 200
            assert by_pods.seen == [later]
        wait_for_api_server(lab)
        returned = time.monotonic()
        becomes(lambda: by_pods.latest, restored, RESTORED)
        say(f"etcd restored: right {time.monotonic() - returned:.1f} s after the API server is back")
        eventually(lambda: on_host.ask(web).rcode == "NOERROR", "the Services of the backup", RESTORED)
    becomes(of_pods, restored)
    possible = every_answer([later, restored]) | {(ONE_OF_MANY, node, NODATA) for node in askers}
    assert every_answer(by_pods.seen) <= possible
    assert set(by_host.seen) <= {ADDRESS_OF_ONE, NODATA, NXDOMAIN}
    assert [line for line in on_host.lines("asking again") if "list of services: it has " in line]


def is_refused(cluster: Cluster, pod: PodView) -> bool:
    return "401" in log_on_node(cluster.lab, pod)


def every_answer(course: list[Got]) -> set[tuple[str, str, frozenset[str]]]:
    return {(question, *each) for moment in course for question, by_node in moment.items() for each in by_node.items()}
