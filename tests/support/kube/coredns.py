"""CoreDNS on a lab: as kubeadm installs it, and single pods of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml

from tests.kubelab.programs import COREDNS
from tests.support.kube.cluster import Cluster, PodView
from tests.support.kube.image import ROOT
from tests.support.kube.objects import Object, metadata
from tests.support.kube.server_pods import ACCOUNT, NAMESPACE, Server, server_pod

COREDNS_IMAGE: Final = f"localhost/coredns:{COREDNS.version}"
KUBEADM_COREFILE: Final = (ROOT / "config/corefiles/kubeadm/Corefile").read_text()

_MANIFEST: Final = Path(__file__).with_suffix(".yaml")


def kubeadm_coredns() -> list[Object]:
    """All but the Service, which a cluster keeps with any cluster DNS behind it."""
    text = _MANIFEST.read_text().replace("IMAGE", COREDNS_IMAGE)
    config = _config("coredns", KUBEADM_COREFILE)
    config["metadata"]["namespace"] = NAMESPACE
    return [config, *yaml.safe_load_all(text)]


@contextmanager
def coredns_pod(cluster: Cluster, name: str, corefile: str, node: str) -> Iterator[PodView]:
    """A ready pod of this Corefile, with the account of topodns, behind a Service of its own."""
    pod = server_pod(name, node, False, ACCOUNT, COREDNS_IMAGE)
    del pod["metadata"]["labels"]["k8s-app"]
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata(name)}
    spec = {"selector": {"app": name}, "ports": ports}
    cluster.create(NAMESPACE, _config(name, corefile), service | {"spec": spec}, pod)
    running = Server(cluster, name)
    try:
        running.wait()
        yield running.pod
    finally:
        cluster.delete("Pod", NAMESPACE, name, grace=0)
        for kind in ("Service", "ConfigMap"):
            cluster.delete(kind, NAMESPACE, name)


def _config(name: str, corefile: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name), "data": {"Corefile": corefile}}
