"""A site that is cut off: no API server and no etcd, no cluster DNS, containers killed meanwhile. With the options of
docs/operate/cut-off-site.md names are answered as before; CoreDNS beside them knows none.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.kubelab.lab import Lab
from tests.kubelab.options import FIRST_SERVICES
from tests.support.dns_messages import EDE, Opt, Reply, query
from tests.support.kube.chart_servers import await_rollout, rolled_back
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place, PodView, kill_container, starts_on_node, view
from tests.support.kube.coredns import KUBEADM_COREFILE, coredns_pod
from tests.support.kube.helm_release import Release
from tests.support.kube.node_caches import NodeCaches, node_caches
from tests.support.kube.objects import Object
from tests.support.kube.operator_commands import Operator
from tests.support.kube.outage_scene import KNOWN_AGAIN, KUBERNETES, Got, Scene, got
from tests.support.kube.outages import outage
from tests.support.kube.query_pods import Asker
from tests.support.kube.server_pods import NAMESPACE, cluster_dns_pods, get
from tests.support.kube.upstream import OUTSIDE
from tests.support.kube.waiting import becomes, eventually
from tests.support.server_process import METRICS, READY

pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

AT_ONCE: Final = 10.0  # seconds from the start of a container until it answers everything
WRITTEN: Final = 60.0  # seconds: twice the interval of either file
AGE: Final = "\ntopodns_snapshot_age_seconds "
SERVFAIL, NXDOMAIN = frozenset({"SERVFAIL"}), frozenset({"NXDOMAIN"})


@pytest.fixture(scope="module")
def kept(installed: str, operator: Operator) -> Iterator[None]:
    """State and answers are kept on disk, as the document says; in the end the release is as before."""
    with rolled_back(operator):
        operator.follow("docs/operate/cut-off-site.md", "cut-off-site")
        await_rollout(operator)
        yield


class Servers(NamedTuple):
    """The Pods of the cluster DNS, asked from Pods without the API server."""

    lab: Lab
    pods: Sequence[PodView]
    askers: Askers
    clients: Place

    def got(self, questions: Collection[str]) -> list[Got]:
        return [got(self.askers, questions, pod.ip) for pod in self.pods]

    def get(self, port: int, path: str) -> list[tuple[int, str]]:
        return [get(self.clients, self.askers["node4"].pod, pod, port, path) for pod in self.pods]

    def snapshots(self, namespace: str) -> list[tuple[int, int]]:
        """Owner and mode of the files in emptyDirs that have the Namespace, a Service of it and an EndpointSlice."""
        folders = {self.lab.machine(pod.node).dir / "var/lib/kubelet/pods" for pod in self.pods}
        path = "*/volumes/kubernetes.io~empty-dir/snapshot/cluster.local"
        written = [file for each in folders for file in each.glob(path) if _has(file, namespace)]
        return [(file.stat().st_uid, file.stat().st_mode & 0o777) for file in written]


def _has(file: Path, namespace: str) -> bool:
    return file.read_bytes().count(namespace.encode()) >= 3


def started_anew(lab: Lab, pods: Collection[PodView], container: str) -> bool:
    return all(len(starts_on_node(lab, pod, container)) > 1 for pod in pods)


def without_news(right: Got) -> Got:
    """A name that was never there may be new by now."""
    answers = {question: its.items() for question, its in right.items()}
    return {name: {node: SERVFAIL if it == NXDOMAIN else it for node, it in its} for name, its in answers.items()}


def is_stale(reply: Reply) -> bool:
    ede = (reply.options or {}).get(EDE, b"")
    return ede.startswith(b"\0\3snapshot of ") and all(int(line.split()[1]) <= 5 for line in reply.answer)


@pytest.fixture
def servers(kept: None, cluster: Cluster, askers: Askers, clients: Place) -> Servers:
    return Servers(cluster.lab, cluster_dns_pods(cluster), askers, clients)


@pytest.fixture
def coredns(servers: Servers, cluster: Cluster) -> Iterator[PodView]:
    with coredns_pod(cluster, "coredns", KUBEADM_COREFILE, servers.pods[0].node) as pod:
        yield pod


def test_k26_both_servers_killed_without_an_api_server_answer_every_name_as_before(
    servers: Servers, coredns: PodView, scene: Scene, say: Callable[[str], None]
) -> None:
    lab, askers, client = servers.lab, servers.askers, servers.askers["node1"]
    meanwhile, known = without_news(scene.right), [{FIRST_SERVICES[0]}] * 2
    becomes(lambda: client.addresses(KUBERNETES, to=coredns.ip), {FIRST_SERVICES[0]})
    becomes(lambda: servers.snapshots(scene.place.name), [(65532, 0o600)] * 2, WRITTEN)
    with outage(lab, "etcd"):
        for pod in (*servers.pods, coredns):
            kill_container(lab, pod)
        eventually(lambda: started_anew(lab, servers.pods, "topodns"), "their kubelets start them anew")
        begun = time.monotonic()
        becomes(lambda: [client.addresses(KUBERNETES, to=pod.ip) for pod in servers.pods], known, AT_ONCE)
        assert servers.got(scene.questions) == [meanwhile] * 2
        took = time.monotonic() - begun
        say(f"cut off, both servers killed: every name is answered {took:.1f} s after the containers' start")
        assert took < AT_ONCE
        assert got(askers, scene.questions) == meanwhile
        assert all(is_stale(client.ask(f"{scene.place.fqdn('web')} A", pod.ip, opt=Opt())) for pod in servers.pods)
        for status, text in servers.get(READY, "/ready"):
            assert status == 200
            assert text.startswith("OK\nkubernetes: answers are from the snapshot of ")
        assert all(AGE in text for _, text in servers.get(METRICS, "/metrics"))

        eventually(lambda: started_anew(lab, [coredns], "main"), "CoreDNS is started anew")
        becomes(lambda: client.addresses(KUBERNETES, to=coredns.ip), SERVFAIL)
        of_the_cluster = [question for question in scene.questions if OUTSIDE not in question]
        of_coredns = got(askers, of_the_cluster, coredns.ip)
        assert set().union(*(it for its in of_coredns.values() for it in its.values())) <= {"SERVFAIL", "NXDOMAIN"}
    after = scene.with_late()
    becomes(lambda: servers.got(scene.questions), [after] * 2, KNOWN_AGAIN)
    becomes(lambda: servers.get(READY, "/ready"), [(200, "OK")] * 2, KNOWN_AGAIN)
    assert not any(AGE in text for _, text in servers.get(METRICS, "/metrics"))


FOLDER, CLAIMED = "var/lib/topodns/edge", "var/lib/topodns/claimed"  # of a node
CLAIM: Final = "snapshots"


def edge_values(volume: Object, **more: object) -> Object:
    """Values of a release beside the cluster DNS whose servers have their snapshots in this volume."""
    snapshot = {"enabled": True, "parameters": "interval 2s", "volume": volume}
    return {"mode": "beside", "snapshot": snapshot, "admissionPolicy": {"enabled": False}, **more}


@contextmanager
def released(cluster: Cluster, directory: Path, values: Object) -> Iterator[list[PodView]]:
    def found() -> list[PodView]:
        return [view(pod) for pod in cluster.list("Pod", NAMESPACE, "app.kubernetes.io/instance=edge")]

    release = Release(cluster.lab, directory, "edge", NAMESPACE)
    release.install(values)
    yield found()
    release.remove()
    eventually(lambda: not found(), "none of its Pods is left")


@pytest.fixture
def on_each_node(installed: str, cluster: Cluster, askers: Askers, clients: Place, tmp_path: Path) -> Iterator[Servers]:
    """A server on each node, with its snapshot in a folder of the node."""
    volume = {"hostPath": {"path": f"/{FOLDER}", "type": "DirectoryOrCreate"}}
    with released(cluster, tmp_path, edge_values(volume, deployment={"kind": "DaemonSet"})) as pods:
        yield Servers(cluster.lab, pods, askers, clients)


def claimed_folder(node: str) -> list[Object]:
    """A PersistentVolume that is a folder of the node, which a kubelet gives to the Pod's group, and its claim."""
    of_the_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    shape = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": CLAIM},
        "spec": {
            **shape,
            "capacity": {"storage": "1Gi"},
            "local": {"path": f"/{CLAIMED}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [of_the_node]}]}},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": NAMESPACE},
        "spec": {**shape, "volumeName": CLAIM, "resources": {"requests": {"storage": "1Gi"}}},
    }
    return [volume, claim]


@pytest.fixture
def with_a_claim(installed: str, cluster: Cluster, askers: Askers, clients: Place, tmp_path: Path) -> Iterator[Servers]:
    """One server, with its snapshot on a PersistentVolume of the node node2."""
    (cluster.lab.machine("node2").dir / CLAIMED).mkdir(parents=True)
    objects = claimed_folder("node2")
    cluster.apply(*objects)
    with released(
        cluster, tmp_path, edge_values({"persistentVolumeClaim": {"claimName": CLAIM}}, replicaCount=1)
    ) as pods:
        yield Servers(cluster.lab, pods, askers, clients)
    cluster.kubectl("delete", "--filename=-", objects=objects)


def killed_and_cut_off(edge: Servers, scene: Scene, folder: str) -> None:
    """Each server has its snapshot, is killed without an API server, and answers its node as before."""
    lab, own = edge.lab, {pod.node: pod for pod in edge.pods}
    files = [lab.machine(node).dir / folder / "cluster.local" for node in own]
    eventually(lambda: all(file.exists() and _has(file, scene.place.name) for file in files), "each has its snapshot")
    assert [(file.stat().st_uid, file.stat().st_mode & 0o777) for file in files] == [(65532, 0o600)] * len(own)
    meanwhile = without_news(scene.right)
    with outage(lab, "etcd"):
        for pod in edge.pods:
            kill_container(lab, pod)
        eventually(lambda: started_anew(lab, edge.pods, "topodns"), "their kubelets start them anew")
        for node, pod in own.items():
            right = {question: {node: its[node]} for question, its in meanwhile.items()}
            becomes(partial(got, {node: edge.askers[node]}, scene.questions, pod.ip), right, AT_ONCE)


def test_k26_a_server_on_each_node_answers_its_site_when_it_is_killed_while_the_site_is_cut_off(
    on_each_node: Servers, scene: Scene
) -> None:
    assert {pod.node for pod in on_each_node.pods} == {machine.name for machine in on_each_node.lab.node_machines}
    killed_and_cut_off(on_each_node, scene, FOLDER)


def test_k26_a_server_whose_snapshot_is_on_a_persistent_volume_answers_likewise(
    with_a_claim: Servers, scene: Scene
) -> None:
    assert [pod.node for pod in with_a_claim.pods] == ["node2"]
    killed_and_cut_off(with_a_claim, scene, CLAIMED)


@pytest.fixture
def caches(kept: None, cluster: Cluster, operator: Operator) -> Iterator[NodeCaches]:
    with node_caches(cluster, operator) as caches:
        yield caches


@contextmanager
def no_cluster_dns(cluster: Cluster, operator: Operator) -> Iterator[None]:
    scale = ("kubectl", "--namespace", NAMESPACE, "scale", "deployment/topodns")
    operator.run(*scale, "--replicas=0")
    try:
        eventually(lambda: not cluster.list("Pod", NAMESPACE, "k8s-app=kube-dns"), "no server is left")
        yield
    finally:
        operator.run(*scale, "--replicas=2")
        await_rollout(operator)


def answers_kept(lab: Lab, node: str, questions: Collection[str]) -> bool:
    """Whether the files of the node's cache have all of these."""
    content = b"".join(file.read_bytes() for file in (lab.machine(node).dir / "var/lib/topodns/node-cache").glob("*"))
    return all(query(question)[12:-4] in content for question in questions)


def test_n22_a_node_cache_killed_without_the_cluster_dns_answers_as_before(
    caches: NodeCaches, cluster: Cluster, operator: Operator, scene: Scene, askers: Askers, say: Callable[[str], None]
) -> None:
    lab, node = cluster.lab, "node2"
    own: dict[str, Asker] = {node: askers[node]}
    known = {question: {node: its[node]} for question, its in scene.right.items() if its[node] != NXDOMAIN}
    pod = caches.pod(node)
    becomes(lambda: got(own, known), known)
    eventually(lambda: answers_kept(lab, node, known), "the answers are on the node's disk", WRITTEN)
    with no_cluster_dns(cluster, operator):
        kill_container(lab, pod)
        eventually(lambda: started_anew(lab, [pod], "node-cache"), "its kubelet starts it anew")
        begun = time.monotonic()
        becomes(lambda: got(own, known), known, AT_ONCE)
        say(f"node cache killed without the cluster DNS: as before {time.monotonic() - begun:.1f} s after its start")
        assert own[node].addresses(scene.place.fqdn("never-asked")) == SERVFAIL
        assert caches.metric(node, "topodns_cache_persist_restored_total") >= len(known)
    becomes(lambda: got(own, scene.questions), {question: {node: its[node]} for question, its in scene.right.items()})
