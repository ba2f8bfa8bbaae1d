"""What each client ought to get, worked out from where pods are: a second opinion on the choice by topology."""

from collections.abc import Callable, Iterable, Mapping

from tests.support.kube.askers import Asker
from tests.support.kube.cluster import Cluster, PodView

Answers = dict[str, set[str]]  # by the client's node


def answers(askers: Mapping[str, Asker], name: str, qtype: str = "A") -> Answers:
    return {node: asker.addresses(name, qtype) for node, asker in askers.items()}


def of_everybody(cluster: Cluster, pods: Iterable[PodView]) -> Answers:
    return _chosen(cluster, pods, lambda client, pod: True)


def of_zone(cluster: Cluster, pods: Iterable[PodView]) -> Answers:
    where = cluster.topology_zones
    return _chosen(cluster, pods, lambda client, pod: where[client] == where[pod])


def of_node(cluster: Cluster, pods: Iterable[PodView]) -> Answers:
    return _chosen(cluster, pods, lambda client, pod: client == pod)


def of_nearest(cluster: Cluster, pods: Iterable[PodView]) -> Answers:
    """Own node, else own zone, else everywhere."""
    pods = list(pods)
    tries = [of_node(cluster, pods), of_zone(cluster, pods), of_everybody(cluster, pods)]
    return {node: next((each[node] for each in tries if each[node]), set()) for node in cluster.nodes}


def _chosen(cluster: Cluster, pods: Iterable[PodView], near: Callable[[str, str], bool]) -> Answers:
    """Of pods by client's and pod's node, what is near; the first address of each."""
    pods = list(pods)
    return {node: {pod.ip for pod in pods if near(node, pod.node)} for node in cluster.nodes}
