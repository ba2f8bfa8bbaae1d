"""Volumes for StatefulSets of a lab, which has no provisioner: folders of the nodes, made beforehand."""

from typing import Final

from tests.support.kube.cluster import Cluster
from tests.support.kube.objects import HOSTNAME, Object

_CLASS: Final = "folders"


def give_volumes(cluster: Cluster, number: int) -> None:
    """A default StorageClass, and so many PersistentVolumes of it on each node, one for each claim.

    A volume is deleted with its claim: Kubernetes' deleter of folders takes those under /tmp, on the machine of the
    controller manager, where there is none.
    """
    places = [(node, index) for index in range(number) for node in cluster.nodes]
    cluster.apply(_storage_class(), *(_volume(node, index) for node, index in places))


def _storage_class() -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(node: str, index: int) -> Object:
    here = {"key": HOSTNAME, "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{node}-{index}"},
        "spec": {
            "storageClassName": _CLASS,
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": {"path": f"/tmp/volumes/{index}", "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
