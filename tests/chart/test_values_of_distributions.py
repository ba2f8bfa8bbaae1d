"""charts/topodns/values-*.yaml: each fits what the installer of its distribution sets.

The facts are of the installers' sources and manuals: kubeadm (phases/addons/dns/manifests.go, defaults of its API
v1beta4), kind (pkg/apis/config/v1alpha4/default.go), Talos (k8stemplates/coredns.go), k3s (manifests/coredns.yaml,
`--cluster-dns`), RKE2 (rke2-charts/packages/rke2-coredns), EKS (the add-on's Service; 10.100.0.10 or 172.20.0.10), GKE
(its add-on kube-dns), AKS (`az aks create --dns-service-ip`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest
import yaml

from tests.support.chart.helm import CHART, Object, rendered
from tests.support.distribution_corefiles import COREFILES
from topodns.app.load import settings_from_text


@dataclass(frozen=True)
class Distribution:
    """What its installer sets: the address in `clusterDNS` of kubelets, where it is a fixed default, and its Service.

    `corefile` is the folder of config/corefiles. `stays`: its Service leads to topodns, too, by the labels `finds`.
    """

    corefile: str
    cluster_dns: str = ""
    service: str = "kube-dns"
    finds: str = "k8s-app=kube-dns"
    stays: bool = True


DISTRIBUTIONS: Final = {
    "kubeadm": Distribution("kubeadm", "10.96.0.10"),
    "kind": Distribution("kubeadm", "10.96.0.10"),
    "talos": Distribution("talos", "10.96.0.10"),
    "k3s": Distribution("k3s", "10.43.0.10"),
    "rke2": Distribution(
        "rke2",
        "10.43.0.10",
        "rke2-coredns-rke2-coredns",
        "k8s-app=kube-dns,app.kubernetes.io/name=rke2-coredns,app.kubernetes.io/instance=rke2-coredns",
        stays=False,
    ),
    "eks": Distribution("eks"),
    "gke": Distribution("gke"),
    "aks": Distribution("aks", "10.0.0.10", stays=False),
}
# Objects of CoreDNS, or kube-dns, that these installers own: helm would refuse to take them over.
INSTALLERS: Final = {
    *((kind, name) for kind in ("ConfigMap", "Deployment", "ServiceAccount") for name in ("coredns", "kube-dns")),
    ("ConfigMap", "coredns-custom"),
    ("ClusterRole", "system:coredns"),
    ("ClusterRoleBinding", "system:coredns"),
}
ADDED: Final = {"topology", "push", "max_concurrent 1000"}

each_distribution = pytest.mark.parametrize("name", DISTRIBUTIONS)


def values_for(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / f"values-{name}.yaml").read_text(encoding="utf-8"))
    return found


def objects_for(name: str, **node_cache: Any) -> dict[tuple[str, str], Object]:
    """By kind and name, of the release in kube-system, with these values of `nodeCache` beside those of the file."""
    values = values_for(name)
    values["nodeCache"] = {**values.get("nodeCache", {}), **node_cache}
    return {(each["kind"], each["metadata"]["name"]): each for each in rendered(values)}


def pod_of(objects: Mapping[tuple[str, str], Object], kind: str, name: str) -> Object:
    template: Object = objects[kind, name]["spec"]["template"]
    return template


def lines_of(corefile: str) -> list[str]:
    """Without comments, braces and what differs by intent: lameduck, the place of NodeHosts, `disable` of `cache`."""
    text = corefile.replace("/etc/coredns/k3s/NodeHosts", "/etc/coredns/NodeHosts").replace("0.0.0.0:9153", ":9153")
    text = text.replace("cluster.local.", "cluster.local").replace("cluster.local  cluster.local", "cluster.local")
    lines = [" ".join(line.partition("#")[0].replace("{ ", "").split()) for line in text.splitlines()]
    kept = [line.removesuffix(" {").removesuffix("{").strip() for line in lines]
    return sorted(line for line in kept if line not in ("", "}") and line.split()[0] not in ("lameduck", "disable"))


def test_there_are_values_for_each_distribution_and_no_other() -> None:
    assert {path.stem.removeprefix("values-") for path in CHART.glob("values-*.yaml")} == set(DISTRIBUTIONS)


@each_distribution
def test_the_service_that_pods_ask_leads_to_topodns(name: str) -> None:
    distribution, objects = DISTRIBUTIONS[name], objects_for(name)
    labels = pod_of(objects, "Deployment", "topodns")["metadata"]["labels"]
    is_found = dict(pair.split("=") for pair in distribution.finds.split(",")).items() <= labels.items()
    assert is_found is distribution.stays
    services = {service: each for (kind, service), each in objects.items() if kind == "Service"}
    if distribution.stays:
        assert services == {}
    elif name == "aks":
        assert list(services) == ["topodns"]
    else:
        (service,) = services.values()
        assert service["metadata"]["name"] == distribution.service
        assert service["spec"]["clusterIP"] == distribution.cluster_dns
        assert service["metadata"]["labels"]["k8s-app"] == "kube-dns"
        assert service["spec"]["selector"].items() <= labels.items()


@each_distribution
def test_no_object_of_the_release_is_one_of_the_installer(name: str) -> None:
    distribution, objects = DISTRIBUTIONS[name], objects_for(name)
    kept = {("Service", distribution.service)} if distribution.stays or name == "aks" else set()
    assert objects.keys() & (INSTALLERS | kept) == set()


@each_distribution
def test_its_corefile_is_that_of_the_distribution_with_topology_and_push(name: str) -> None:
    shipped = COREFILES[DISTRIBUTIONS[name].corefile].read_text(encoding="utf-8")
    shipped = shipped.partition("corp.example.org:53")[0]  # an example of one of GKE's stub domains
    ours = objects_for(name)["ConfigMap", "topodns"]["data"]["Corefile"]
    assert [line for line in lines_of(ours) if line not in ADDED] == [
        line for line in lines_of(shipped) if line not in ADDED
    ]
    assert {"topology", "push"} <= set(lines_of(ours))


@each_distribution
def test_topodns_serves_it(name: str) -> None:
    text = objects_for(name)["ConfigMap", "topodns"]["data"]["Corefile"].replace("/etc/resolv.conf", "192.0.2.53")
    assert settings_from_text(text, "/etc/coredns/Corefile", 53, {}).blocks


@each_distribution
def test_files_that_the_corefile_names_are_mounted_from_the_config_maps_of_the_installer(name: str) -> None:
    objects = objects_for(name)
    text = objects["ConfigMap", "topodns"]["data"]["Corefile"]
    spec = pod_of(objects, "Deployment", "topodns")["spec"]
    volumes = {volume["name"]: volume.get("configMap", {}).get("name") for volume in spec["volumes"]}
    named = {word for word in text.split() if "/" in word and ("custom/" in word or "NodeHosts" in word)}
    for container in (*spec["containers"], *spec["initContainers"]):
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
        folders = {"/etc/coredns/" + word.removeprefix("/etc/coredns/").rpartition("/")[0] for word in named}
        found = {mounts[folder] for folder in folders}
        assert found == {"aks": {"coredns-custom"}, "k3s": {"coredns-custom", "coredns"}}.get(name, set())


@each_distribution
def test_the_node_cache_takes_the_address_that_the_kubelets_give_pods(name: str) -> None:
    cluster_dns = DISTRIBUTIONS[name].cluster_dns
    given = {} if cluster_dns else {"dnsServer": ["172.20.0.10"]}
    objects = objects_for(name, enabled=True, **given)
    (container,) = pod_of(objects, "DaemonSet", "node-local-dns")["spec"]["containers"]
    assert {"name": "LOCAL_ADDRESSES", "value": f"169.254.20.10,{cluster_dns or '172.20.0.10'}"} in container["env"]
