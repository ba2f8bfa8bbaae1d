"""Node caches as they ship: config/kubernetes/node-cache on the nodes of a lab, and the cluster DNS behind them."""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import ip_address
from itertools import count, product
from pathlib import Path
from typing import Final

import yaml

from tests.kubelab.machine import LabError, Machine
from tests.support.kube.cluster import Cluster, PodView, view
from tests.support.kube.image import ROOT, TOPODNS_IMAGE
from tests.support.kube.objects import Object, metadata, workload
from tests.support.kube.servers import ACCOUNT, NAMESPACE, cluster_dns_service, protocols, samples, server_pod
from tests.support.kube.waiting import PATIENCE, eventually

NAME: Final = "node-local-dns"
LINK: Final = "nodelocaldns"
CAPABILITIES: Final = 1 << 10 | 1 << 12  # CAP_NET_BIND_SERVICE and CAP_NET_ADMIN of linux/capability.h
METRICS: Final = 9253
IPTABLES: Final = ("raw", "mangle", "nat", "filter")

_MANIFESTS: Final = ROOT / "config/kubernetes/node-cache"
_LABEL: Final = "k8s-app"
_ROLL: Final = PATIENCE * 2  # seconds, node by node
_OF_IPTABLES: Final = frozenset(f"table {family} {name}" for family, name in product(("ip", "ip6"), IPTABLES))

_numbers = count(1)


class ClusterDns:
    """topodns as the cluster DNS, with two replicas."""

    def __init__(self, cluster: Cluster, corefile: str, addresses: list[str]) -> None:
        self._cluster = cluster
        service = cluster_dns_service(addresses, "")
        service["spec"]["selector"] = {_LABEL: "kube-dns"}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("cluster-dns")}
        cluster.create(NAMESPACE, service, config | {"data": {"Corefile": corefile}}, _deployment())
        eventually(
            lambda: len(self._pods()) == 2 and all(pod.ready for pod in self._pods()), "the cluster DNS is ready"
        )

    def protocols(self) -> dict[str, str]:
        """By name asked for: how the last such query came. A node cache asks over TCP, pods themselves over UDP."""
        return protocols("".join(self._cluster.logs(NAMESPACE, pod.name) for pod in self._pods()))

    def nodes(self) -> set[str]:
        return {pod.node for pod in self._pods()}

    def _pods(self) -> list[PodView]:
        return [view(pod) for pod in self._cluster.list("Pod", NAMESPACE, f"{_LABEL}=kube-dns")]


def _deployment() -> Object:
    spec = server_pod("cluster-dns", "", False, ACCOUNT, TOPODNS_IMAGE)["spec"]
    made = workload("Deployment", "cluster-dns", {"replicas": 2}, spec)
    made["spec"]["selector"]["matchLabels"] = made["spec"]["template"]["metadata"]["labels"] = {_LABEL: "kube-dns"}
    return made


class NodeCaches:
    """The DaemonSet and what belongs to it, with arguments of their own behind those of the manifest.

    `directory` is for an overlay of the manifests. What is on the nodes now counts as there before the node caches.
    """

    def __init__(self, cluster: Cluster, directory: Path, *arguments: str) -> None:
        self.cluster, self._overlay = cluster, directory
        self._before = {name: traces(cluster.lab.machine(name)) for name in cluster.nodes}
        name, _, tag = TOPODNS_IMAGE.partition(":")
        overlay = {
            "resources": [os.path.relpath(_MANIFESTS, directory.resolve())],
            "images": [{"name": "topodns", "newName": name, "newTag": tag}],
            "patches": [{"target": {"kind": "DaemonSet"}, "patch": _appended(arguments)}] if arguments else [],
        }
        (directory / "kustomization.yaml").write_text(yaml.safe_dump(overlay))

    def install(self) -> None:
        """As the documentation says; returns when all are ready."""
        self._kubectl("apply", "-k", str(self._overlay))
        self._await_settled()

    def remove(self) -> None:
        """Returns when the last one has gone."""
        self._kubectl("delete", "-k", str(self._overlay))
        eventually(lambda: not self._pods(), "the node caches have gone")

    def roll(self, change: Object | None = None) -> None:
        """Replace every pod, each by one of a template with this change; returns when all are."""
        stamp = {"metadata": {"annotations": {"rolled": str(next(_numbers))}}}
        self.cluster.patch("DaemonSet", NAMESPACE, NAME, {"spec": {"template": stamp | (change or {})}})
        self._await_settled()

    def settled(self) -> bool:
        """Whether each node has one, ready, and of the latest template."""
        found = self.cluster.read("DaemonSet", NAMESPACE, NAME)
        if found is None:
            return False
        status, nodes = found["status"], len(self.cluster.nodes)
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        numbers = {status.get(name, 0) for name in ("updatedNumberScheduled", "numberAvailable", "numberReady")}
        return current and numbers == {nodes} and len(self._pods()) == nodes

    def pod(self, node: str) -> PodView:
        (found,) = (pod for pod in self._pods() if pod.node == node)
        return found

    def restarts(self, node: str) -> int:
        pod = self.cluster.read("Pod", NAMESPACE, self.pod(node).name)
        assert pod is not None
        return int(pod["status"]["containerStatuses"][0]["restartCount"])

    def metric(self, node: str, sample_name: str) -> float:
        """The sum of the samples with this name."""
        answer = self.cluster.http(NAMESPACE, self.pod(node).name, METRICS, "/metrics")
        assert answer.ok, answer
        return samples(answer.body, sample_name)

    def logs(self) -> str:
        """What all of them say, for a failure."""
        said = [f"{pod.name} on {pod.node}:\n{self.cluster.logs(NAMESPACE, pod.name)}" for pod in self._pods()]
        return "\n".join(said)

    def leftovers(self) -> dict[str, set[str]]:
        """By node, what is there now and was not before the first of them came; nodes without are left out."""
        now = {name: traces(self.cluster.lab.machine(name)) - self._before[name] for name in self.cluster.nodes}
        return {name: found for name, found in now.items() if found}

    def _pods(self) -> list[PodView]:
        return [view(pod) for pod in self.cluster.list("Pod", NAMESPACE, f"{_LABEL}={NAME}")]

    def _await_settled(self) -> None:
        try:
            eventually(self.settled, "a ready node cache on each node", _ROLL)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{self.logs()}") from None

    def _kubectl(self, *words: str) -> None:
        done = subprocess.run(self.cluster.lab.kubectl(*words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def _appended(arguments: Iterable[str]) -> str:
    """A patch of the DaemonSet (RFC 6902)."""
    end = "/spec/template/spec/containers/0/args/-"
    return json.dumps([{"op": "add", "path": end, "value": argument} for argument in arguments])


def traces(machine: Machine) -> set[str]:
    """What a node cache may leave on a node: links, tables of nftables, rules and chains of iptables that name it.

    Of the nftables that iptables makes for itself only the rules count: it never takes such a table away.
    """
    links = (line.split()[1].split("@")[0] for line in machine.run("ip", "-o", "link").splitlines())
    found = {f"link {link}" for link in links if not link.startswith("veth")}  # those of pods come and go
    found |= set(machine.run("nft", "list", "tables").splitlines()) - _OF_IPTABLES
    for program in ("iptables-save", "ip6tables-save"):
        rules = machine.run(program).splitlines()
        found |= {f"{program}: {rule}" for rule in rules if "TOPODNS" in rule or "NodeLocal" in rule}
    return found


def tracked(machine: Machine, addresses: Iterable[str]) -> list[str]:
    """The entries of conntrack for questions to these addresses."""
    listed = (machine.run("conntrack", "-L", "-f", _family(address), "-d", address) for address in addresses)
    return [line for each in listed for line in each.splitlines() if " dport=53 " in line]


def forget_tracked(machine: Machine, addresses: Iterable[str]) -> None:
    for address in addresses:
        with suppress(LabError):  # there was nothing to forget
            machine.run("conntrack", "-D", "-f", _family(address), "-d", address)


def _family(address: str) -> str:
    return f"ipv{ip_address(address).version}"


def firewall_key(machine: Machine) -> str:
    """What names the rules of nftables as the same ones: whoever adopts them keeps it."""
    listed = json.loads(machine.run("nft", "-j", "list", "table", "inet", "topodns"))["nftables"]
    comments: Iterator[str] = (part["rule"].get("comment", "") for part in listed if "rule" in part)
    return next(comment.split()[4] for comment in comments if " of " in comment)


def link_index(machine: Machine) -> int:
    return int(machine.run("cat", f"/sys/class/net/{LINK}/ifindex"))


def processes(machine: Machine, pod: PodView) -> list[int]:
    """The processes of the pod's container, as the machine counts them, in the order of their numbers."""
    return sorted(int(line.split()[0]) for line in machine.run("ctr", "task", "ps", pod.container).splitlines()[1:])
