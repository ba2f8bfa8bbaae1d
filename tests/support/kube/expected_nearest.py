"""The endpoints that each client ought to get, worked out from the nodes of pods: a second opinion on the choice."""

from collections.abc import Iterable, Mapping, Sequence

from tests.support.kube.cluster import Cluster, PodView
from tests.support.kube.expected_endpoints import Endpoint, Labels, chosen, node_labels
from tests.support.kube.objects import ZONE
from tests.support.kube.query_pods import Asker

Answers = dict[str, set[str]]  # by the client's node


def answers(askers: Mapping[str, Asker], name: str, qtype: str = "A") -> Answers:
    return {node: asker.addresses(name, qtype) for node, asker in askers.items()}


def of_keys(keys: Sequence[str], pods: Iterable[PodView], labels: Labels) -> Answers:
    """On each Node there is: the first addresses of the pods that these keys choose, or of all without keys."""
    endpoints = [Endpoint(pod.ip, pod.node, "") for pod in pods]
    return {node: set(chosen(endpoints, keys, node, labels)) for node in labels}


def of_everybody(cluster: Cluster, pods: Iterable[PodView]) -> Answers:
    return of_keys((), pods, node_labels(cluster))


def of_zone(cluster: Cluster, pods: Iterable[PodView]) -> Answers:
    return of_keys((ZONE,), pods, node_labels(cluster))
