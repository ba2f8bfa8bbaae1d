"""Headless Services of one workload, one for each sort of topology keys, and views: the answers of clients, and those
expected.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.expected_endpoints import node_labels
from tests.support.kube.expected_nearest import Answers, answers, of_keys
from tests.support.kube.objects import HOSTNAME, ZONE, Object, headless

RACK: Final = "example.com/rack"  # a label of the operator's own, where there are racks
_APPLY_TO: Final = "topodns.io/apply-to"
_SORTS: Final[Mapping[str, Sequence[str]]] = {
    "near": (ZONE,),
    "local": (HOSTNAME,),
    "soft": (HOSTNAME, ZONE, "*"),
    "racked": (RACK,),
}


def keys_by_service(app: str) -> Mapping[str, Sequence[str]]:
    """`APP`, which is without keys, `APP-near`, `APP-local`, ..."""
    return {app: ()} | {f"{app}-{sort}": keys for sort, keys in _SORTS.items()}


def keys_by_name(app: str) -> Mapping[str, Sequence[str]]:
    """By name: the keys of each Service, of `APP-apart`, whose keys are for `_near` alone, and of views."""
    views = {f"_near.{app}": (HOSTNAME, ZONE, "*"), f"_all.{app}-near": (), f"_near.{app}-apart": (ZONE,)}
    return {**keys_by_service(app), f"{app}-apart": (), **views}


def services(app: str) -> list[Object]:
    """All of them, of the same pods."""
    apart = headless(f"{app}-apart", ZONE, app=app)
    apart["metadata"]["annotations"][_APPLY_TO] = "near"
    return [*(headless(name, ",".join(keys) or None, app=app) for name, keys in keys_by_service(app).items()), apart]


def seen(place: Place, askers: Askers, app: str) -> dict[str, Answers]:
    """The answer of each client about each name."""
    return {name: answers(askers, place.fqdn(name)) for name in keys_by_name(app)}


def expected(place: Place, app: str) -> dict[str, Answers]:
    """The same as it follows from the pods that are ready now, on Nodes as they are labelled now.

    Without a ready one only the views are there: NODATA.
    """
    pods, labels = place.ready_pods(app), lab_labels(place.cluster)
    if not pods:
        empty = {name: set() if name.startswith("_") else {"NXDOMAIN"} for name in keys_by_name(app)}
        return {name: dict.fromkeys(labels, answer) for name, answer in empty.items()}
    return {name: of_keys(keys, pods, labels) for name, keys in keys_by_name(app).items()}


def members(place: Place, askers: Askers, app: str, number: int) -> Answers:
    """By member of a StatefulSet: what its name leads to, the same for every client."""
    found = {}
    for name in (f"{app}-{i}" for i in range(number)):
        (everybody,) = {frozenset(asker.addresses(place.fqdn(f"{name}.{app}"))) for asker in askers.values()}
        found[name] = set(everybody)
    return found


def lab_labels(cluster: Cluster) -> Mapping[str, Mapping[str, str]]:
    """Of the nodes that clients are on."""
    labels = node_labels(cluster)
    return {node: labels[node] for node in cluster.nodes}
