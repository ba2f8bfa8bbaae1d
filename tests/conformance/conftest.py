"""The chart on a lab, with Kubernetes' own tests of what rests on cluster DNS run against it: first the servers alone,
then with the node cache in front of them.

The release is named as kubeadm names CoreDNS, since specs look for the ConfigMap `coredns` and for Pods `coredns-...`.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.kubelab.lab import Lab
from tests.kubelab.options import CLUSTER_DNS, Options, node_list
from tests.kubelab.prepare import why_impossible
from tests.support.chart.helm import HELM
from tests.support.kube.cluster import Cluster
from tests.support.kube.helm_release import Release
from tests.support.kube.image import write_topodns_image
from tests.support.kube.kubernetes_tests import archives, missing_tests
from tests.support.kube.labs import lab_of
from tests.support.kube.objects import HOSTNAME, Object
from tests.support.kube.upstream import upstream
from tests.support.suite_skips import skip_all, those_of

# Volumes for StatefulSets of a lab, which has no provisioner: folders of the nodes, made beforehand.

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


# Specs of traffic distribution want two nodes in each of three topology zones.
TOPOLOGY_ZONES: Final = "a,a,b,b,c,c"

# The specs of "DNS configMap" change the forwarding of the cluster DNS. A node cache forwards names outside of the
# cluster's domain to the upstreams of its node: here it forwards those of the specs to the cluster DNS.
STUB_DOMAINS: Final = """\
acme.local:53 widget.local:53 {
    errors
    cache 30
    bind __PILLAR__LOCAL__DNS__
    forward . __PILLAR__CLUSTER__DNS__ {
        force_tcp
    }
}
"""

VALUES: Final = {"fullnameOverride": "coredns", "service": {"clusterIP": CLUSTER_DNS}}
SETUPS: Final[Mapping[str, Object]] = {
    "without node cache": {},
    "with node cache": {"nodeCache": {"enabled": True, "extraServerBlocks": STUB_DOMAINS}},
}

FIGURES: Final = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The specs that passed by group, whatever else is printed."""
    if config.stash[FIGURES]:
        terminalreporter.section("specs")
        for line in config.stash[FIGURES]:
            terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One line where none of it can be tried."""
    ours = those_of(Path(__file__).parent, items)
    if ours and (reason := _why_impossible()):
        skip_all(config, items, ours, f"NO KUBERNETES' TESTS HERE, nothing of tests/conformance is tried: {reason}")


def _why_impossible() -> str:
    if reason := why_impossible():
        return reason
    missing = [*HELM.missing, *missing_tests()]
    return f"lacks {' '.join(missing)}: `make test-conformance` builds it" if missing else ""


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """With volumes for StatefulSets."""
    directory = tmp_path_factory.mktemp("conformance")
    image = directory / "topodns.tar"
    write_topodns_image(image)
    with lab_of(Options(node_list(TOPOLOGY_ZONES)), directory / "lab", image, *archives()) as lab, upstream(lab):
        give_volumes(Cluster(lab), number=20)
        yield lab


@pytest.fixture(scope="session")
def release(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Release:
    return Release(lab, tmp_path_factory.mktemp("helm"), "topodns", "kube-system")


@pytest.fixture(scope="session", params=list(SETUPS))
def setup(request: pytest.FixtureRequest, release: Release) -> str:
    """The release as this entry of SETUPS describes it, all its Pods ready."""
    name: str = request.param
    release.install(VALUES | SETUPS[name])
    return name


@pytest.fixture
def say(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Prints a line at the end of the session."""
    return pytestconfig.stash[FIGURES].append
