"""The node caches of a release on the nodes of a lab, and what they do there."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from itertools import product
from pathlib import Path
from typing import Final

import yaml

from tests.kubelab.machine import LabError, Machine
from tests.support.kube.cluster import Cluster, PodView, view
from tests.support.kube.image import ROOT, TOPODNS_IMAGE
from tests.support.kube.operator_commands import Operator
from tests.support.kube.server_pods import NAMESPACE, exposition
from tests.support.kube.waiting import PATIENCE, becomes, eventually
from tests.support.scraped_metrics import fresh

NAME: Final = "node-local-dns"
LINK: Final = "nodelocaldns"
CAPABILITIES: Final = 1 << 10 | 1 << 12  # CAP_NET_BIND_SERVICE and CAP_NET_ADMIN of linux/capability.h
METRICS: Final = 9253
IPTABLES: Final = ("raw", "mangle", "nat", "filter")

_UPGRADE: Final = ("helm", "-n", NAMESPACE, "upgrade", "topodns", "charts/topodns", "--reuse-values", "--wait")
_LABEL: Final = "k8s-app"
_ROLL: Final = PATIENCE * 2  # seconds, node by node
_OF_IPTABLES: Final = frozenset(f"table {family} {name}" for family, name in product(("ip", "ip6"), IPTABLES))


class NodeCaches:
    """The DaemonSet of a release. Things on the nodes now count as there before the node caches."""

    def __init__(self, cluster: Cluster, operator: Operator) -> None:
        self.cluster, self._operator = cluster, operator
        self._before = {name: traces(cluster.lab.machine(name)) for name in cluster.nodes}

    def configure(self, *values: str) -> None:
        """For when they are switched on; `values` are words for helm."""
        self._operator.run(*_UPGRADE, *values)

    def switch_on(self, document: str, block: str) -> None:
        """By this block of a document; returns when all are ready."""
        self._operator.follow(document, block)
        self.await_settled()

    def switch_off(self) -> None:
        """By docs/operate/install.md; returns when the last one has gone."""
        self._operator.follow("docs/operate/install.md", "node-cache-off")
        self.await_gone()

    def await_gone(self) -> None:
        eventually(lambda: not self._pods(), "the node caches have gone")

    def roll(self) -> None:
        """Replace every pod; returns when all are."""
        self._operator.run("kubectl", "-n", NAMESPACE, "rollout", "restart", f"daemonset/{NAME}")
        self.await_settled()

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
        return fresh(lambda: exposition(self.cluster, self.pod(node).name, METRICS)).sum(sample_name)

    def logs(self) -> str:
        """The logs of all of them, for a failure."""
        said = [f"{pod.name} on {pod.node}:\n{self.cluster.logs(NAMESPACE, pod.name)}" for pod in self._pods()]
        return "\n".join(said)

    def leftovers(self) -> dict[str, set[str]]:
        """By node, things that are there now and were not before the first of them came; nodes without are left out."""
        now = {name: traces(self.cluster.lab.machine(name)) - self._before[name] for name in self.cluster.nodes}
        return {name: found for name, found in now.items() if found}

    def _pods(self) -> list[PodView]:
        return [view(pod) for pod in self.cluster.list("Pod", NAMESPACE, f"{_LABEL}={NAME}")]

    def await_settled(self) -> None:
        try:
            eventually(self.settled, "a ready node cache on each node", _ROLL)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{self.logs()}") from None


@contextmanager
def node_caches(cluster: Cluster, operator: Operator) -> Iterator[NodeCaches]:
    """On every node, as docs/operate/install.md has it; in the end the release is without them, and they have gone."""
    caches = NodeCaches(cluster, operator)
    caches.switch_on("docs/operate/install.md", "node-cache")
    yield caches
    caches.switch_off()


def write_overlay(directory: Path) -> None:
    """In this folder: the plain manifests with the image of the working tree, as docs/operate/node-cache.md has it."""
    name, _, tag = TOPODNS_IMAGE.rpartition(":")
    overlay = {
        "components": [os.path.relpath(ROOT / "config/kubernetes/node-cache", directory.resolve())],
        "images": [{"name": "topodns", "newName": name, "newTag": tag}],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(overlay))


def traces(machine: Machine) -> set[str]:
    """Leftovers of a node cache on a node: links, tables of nftables, rules and chains of iptables that name it.

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
    """Delete the entries of conntrack for questions to these addresses.

    `conntrack -D` lists the entries and deletes them one by one, and gives up at the first that ran out of time in
    between (ENOENT): it is run until none is left.
    """
    for address in addresses:
        becomes(partial(_delete_tracked, machine, address), [])


def _delete_tracked(machine: Machine, address: str) -> list[str]:
    with suppress(LabError):  # none matched, or one was gone when its turn came
        machine.run("conntrack", "-D", "-f", _family(address), "-d", address)
    return tracked(machine, [address])


def _family(address: str) -> str:
    return f"ipv{ip_address(address).version}"


def firewall_key(machine: Machine) -> str:
    """The key in the comments of the nftables rules: an instance that adopts the rules keeps it."""
    listed = json.loads(machine.run("nft", "-j", "list", "table", "inet", "topodns"))["nftables"]
    comments: Iterator[str] = (part["rule"].get("comment", "") for part in listed if "rule" in part)
    return next(comment.split()[4] for comment in comments if " of " in comment)


def link_index(machine: Machine) -> int:
    return int(machine.run("cat", f"/sys/class/net/{LINK}/ifindex"))


def processes(machine: Machine, pod: PodView) -> list[int]:
    """The processes of the pod's container, as the machine counts them, in the order of their numbers."""
    return sorted(int(line.split()[0]) for line in machine.run("ctr", "task", "ps", pod.container).splitlines()[1:])
