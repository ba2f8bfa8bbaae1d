"""Servers under test, as pods: the image of the working tree, a Corefile, the account of config/kubernetes."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import yaml

from tests.kubelab.api import Answer
from tests.kubelab.lab import Lab
from tests.support.kube.cluster import Cluster, Place, PodView, starts_on_node, view
from tests.support.kube.image import ROOT, TOPODNS_IMAGE
from tests.support.kube.objects import Object, metadata, pod_spec
from tests.support.kube.waiting import becomes, eventually
from tests.support.scraped_metrics import Scrape, fresh

# REMOTE:PORT - ID "TYPE IN NAME. ...
_LOGGED: Final = re.compile(r"\[?([0-9a-f.:]+?)\]?:\d+ - \d+ \"\S+ IN (\S+)\. ")

NAMESPACE: Final = "kube-system"
ACCOUNT: Final = "topodns"
READY, METRICS = 8181, 9153

_FETCH: Final = """
import sys, urllib.error, urllib.request
try:
    reply = urllib.request.urlopen(sys.argv[1], timeout=5)
except urllib.error.HTTPError as refusal:
    reply = refusal
print(reply.status, reply.read().decode())
"""

_IDENTITY: Final = [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
_CONFINED: Final = {
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
}
# The image's user gets no port below 1024 by its file's capability where there are no new privileges.
_ANY_PORT: Final = {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}
_ON_HOST: Final = {"runAsUser": 0}  # whose sysctls are not the pod's


class Server:
    """A pod that serves DNS."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name

    @property
    def pod(self) -> PodView:
        found = self.cluster.read("Pod", NAMESPACE, self.name)
        assert found is not None, f"no pod {self.name}"
        return view(found)

    def wait(self) -> None:
        """Until it is ready; where it does not get so, its log is in the failure."""
        try:
            eventually(lambda: self.pod.ready, "ready")
        except AssertionError as problem:
            raise AssertionError(f"server {self.name}: {problem}; its log:\n{self.logs()}") from None

    def logs(self) -> str:
        return self.cluster.logs(NAMESPACE, self.name)

    def readiness(self) -> Answer:
        """The body of /ready."""
        return self.cluster.http(NAMESPACE, self.name, READY, "/ready")

    def metric(self, sample_name: str, /, **labels: str) -> float:
        """The sum of the samples with this name and these labels; 0.0 where there are none."""
        return fresh(lambda: exposition(self.cluster, self.name, METRICS)).sum(sample_name, **labels)

    def remotes(self) -> dict[str, str]:
        """By name asked for: the source address of the last such query, as `log` has it."""
        return remotes(self.logs())


def exposition(cluster: Cluster, pod: str, port: int) -> str:
    """The body of /metrics of a Pod."""
    answer = cluster.http(NAMESPACE, pod, port, "/metrics")
    assert answer.ok, answer
    return str(answer.body)


def samples(text: str, sample_name: str, /, **labels: str) -> float:
    """The sum of the samples with this name and these labels in what /metrics says; 0.0 where there are none."""
    return Scrape(text).sum(sample_name, **labels)


def remotes(logs: str) -> dict[str, str]:
    """By name asked for: the source address of the last such query in what `log` has written."""
    return {found[2]: found[1] for found in _LOGGED.finditer(logs)}


@contextmanager
def server(
    cluster: Cluster,
    name: str,
    corefile: str,
    node: str = "node1",
    host_network: bool = False,
    account: str = ACCOUNT,
    wait: bool = True,
    image: str = TOPODNS_IMAGE,
) -> Iterator[Server]:
    """A server of this Corefile on this node, ready unless `wait` is off. CoreDNS's image serves as well."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name), "data": {"Corefile": corefile}}
    cluster.create(NAMESPACE, config, server_pod(name, node, host_network, account, image))
    running = Server(cluster, name)
    try:
        if wait:
            running.wait()
        yield running
    finally:
        cluster.delete("Pod", NAMESPACE, name, grace=0)
        cluster.delete("ConfigMap", NAMESPACE, name)


def server_pod(name: str, node: str, host_network: bool, account: str, image: str) -> Object:
    container = {
        "name": "main",
        "image": image,
        "args": ["-conf", "/etc/topodns/Corefile"],
        "env": _IDENTITY,
        "securityContext": _CONFINED,
        "readinessProbe": {"httpGet": {"path": "/ready", "port": READY}, "periodSeconds": 1},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/topodns"}],
    }
    spec = pod_spec(
        container,
        nodeName=node,
        hostNetwork=host_network,
        securityContext=_ON_HOST if host_network else _ANY_PORT,
        dnsPolicy="Default",
        serviceAccountName=account,
        automountServiceAccountToken=True,
        volumes=[{"name": "config", "configMap": {"name": name}}],
    )
    labels = {"app": name, "k8s-app": "kube-dns"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(name, labels), "spec": spec}


def cluster_dns_service(addresses: list[str], app: str) -> Object:
    """The Service whose addresses kubelets write into pods' resolv.conf, with this server behind it."""
    ports = [{"name": f"dns-{protocol}".lower(), "port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    spec = {
        "selector": {"app": app},
        "clusterIP": addresses[0],
        "clusterIPs": addresses,
        "ipFamilyPolicy": "RequireDualStack" if len(addresses) > 1 else "SingleStack",
        "ports": ports,
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata("kube-dns"), "spec": spec}


def serving(cluster: Cluster, service: str = "kube-dns", namespace: str = NAMESPACE) -> list[str]:
    """The workloads of the ready pods behind a Service, by the first word of their names."""
    slices = cluster.list("EndpointSlice", namespace, f"kubernetes.io/service-name={service}")
    endpoints = [each for found in slices if found["addressType"] == "IPv4" for each in found.get("endpoints") or ()]
    return sorted(each["targetRef"]["name"].split("-")[0] for each in endpoints if each["conditions"]["ready"])


def cluster_dns_pods(cluster: Cluster) -> list[PodView]:
    """The two of the cluster DNS, once both are ready and no other is left."""

    def found() -> list[PodView]:
        return [view(pod) for pod in cluster.list("Pod", NAMESPACE, "k8s-app=kube-dns")]

    becomes(lambda: [(pod.ready, pod.terminating) for pod in found()], [(True, False)] * 2)
    return found()


def get(place: Place, client: PodView, pod: PodView, port: int, path: str) -> tuple[int, str]:
    """A pod's response to a GET from a client pod of this place, without the API server: status and body."""
    said = place.run(client, "python3", "-c", _FETCH, f"http://{pod.ip}:{port}{path}")
    status, _, body = said.partition(" ")
    return int(status), body


def log_on_node(lab: Lab, pod: PodView) -> str:
    """The output of its containers, read on the node and not through the API server."""
    return "".join(file.read_text() for file in starts_on_node(lab, pod, "topodns"))


def permissions(*files: str, account: str = ACCOUNT) -> list[Object]:
    """The objects of files in config/kubernetes, for this account in place of topodns, with a role of its own."""
    texts = [(ROOT / "config/kubernetes" / file).read_text() for file in files]
    found = [document for text in texts for document in yaml.safe_load_all(text)]
    renamed: list[Object] = json.loads(json.dumps(found).replace(f'"name": "{ACCOUNT}"', f'"name": "{account}"'))
    return renamed


def grant(cluster: Cluster, permissions: Iterable[Object]) -> None:
    for each in permissions:
        cluster.create(each["metadata"].get("namespace", ""), each)


@contextmanager
def granted(cluster: Cluster, permissions: Sequence[Object]) -> Iterator[None]:
    """They are there; in the end they are not."""
    grant(cluster, permissions)
    try:
        yield
    finally:
        for each in permissions:
            cluster.delete(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
