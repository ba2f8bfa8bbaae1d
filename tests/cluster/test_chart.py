"""The chart and the plain manifests on a real API server, which takes what they render. The admission policy refuses
what the server would call invalid. tests/e2e goes the ways of docs/operate/install.md.
"""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import Serve
from tests.kubelab.api import Answer
from tests.kubelab.lab import Lab
from tests.support.annotation_cases import FOREIGN, MEANT
from tests.support.chart.helm import CLUSTER_DNS, HELM, ROOT, rendered
from tests.support.chart.manifests import PARTS, Part, write_kustomization
from tests.support.chart.matrix import MATRIX, VALUES_OF_COREDNS
from tests.support.documents import yaml_block
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.coredns import COREDNS_IMAGE
from tests.support.kube.helm_release import Release
from tests.support.kube.image import TOPODNS_IMAGE
from tests.support.kube.objects import (
    TOPOLOGY_KEYS,
    Object,
    headless,
    pause_container,
    pod,
    pod_spec,
    sleeping_container,
    workload,
)
from tests.support.kube.operator_commands import Operator
from tests.support.kube.server_pods import serving
from tests.support.kube.waiting import becomes, eventually
from tests.support.topology_key_cases import CASES, Case
from topodns.cluster.annotations import READ, TTL, BadAnnotation
from topodns.topology.keys import bad_annotation

pytestmark = pytest.mark.skipif(bool(HELM.missing), reason="NO HELM HERE: run `make test-chart`, which builds it")

OPERATORS = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}  # kinds that the Prometheus operator brings
ADDRESS = "10.96.0.77"
NAME = "kubernetes.default.svc.cluster.local"
FIRST_SERVICE = {"10.96.0.1"}
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


def servers(*plugins: str) -> list[Object]:
    """A block that forwards to no server outside of the lab."""
    return [
        {
            "plugins": [
                {"name": "errors"},
                {"name": "health", "configBlock": "lameduck 2s"},
                {"name": "ready"},
                {"name": "kubernetes", "parameters": "cluster.local in-addr.arpa ip6.arpa"},
                {"name": "prometheus", "parameters": ":9153"},
                *({"name": name} for name in plugins),
            ]
        }
    ]


# Requests that let everything else of the suite run beside it.
SMALL: dict[str, Any] = {
    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    "admissionPolicy": {"enabled": False},
    "servers": servers("topology"),
}


@pytest.mark.parametrize("case", MATRIX)
def test_the_api_server_accepts_every_rendered_object(cluster: Cluster, case: str) -> None:
    objects = [each for each in rendered(MATRIX[case]) if each["kind"] not in OPERATORS]
    run = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", objects=objects)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == len(objects)
    # Of what the suite has made itself, kubectl says that it was not applied before.
    assert [line for line in run.stderr.splitlines() if "last-applied-configuration" not in line] == []


@pytest.mark.parametrize("parts", [PARTS[:1], PARTS[:-1], PARTS], ids=["server", "all in its place", "all beside"])
def test_the_api_server_takes_the_plain_manifests(cluster: Cluster, parts: Sequence[Part], tmp_path: Path) -> None:
    write_kustomization(tmp_path, parts)
    run = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", str(tmp_path))
    assert run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def admission(cluster: Cluster) -> Iterator[Place]:
    """A namespace, while the policy is in force there."""
    policy = [each for each in rendered({}) if each["kind"].startswith("ValidatingAdmissionPolicy")]
    with cluster.namespace("admission") as place:
        here = {"matchLabels": {"kubernetes.io/metadata.name": place.name}}
        (denies,) = (each for each in policy if each["spec"].get("validationActions") == ["Deny"])
        denies["spec"]["matchResources"] = {"namespaceSelector": here}

        def refused() -> bool:
            return not tried(place, headless("probe", "no such key")).ok

        assert len(policy) == 4
        assert cluster.kubectl("apply", "-f", "-", objects=policy).returncode == 0
        try:
            eventually(refused, "the policy is in force")
            yield place
        finally:
            assert cluster.kubectl("delete", "-f", "-", objects=policy).returncode == 0
            eventually(lambda: not refused(), "the policy has gone")


def tried(place: Place, service: Object) -> Answer:
    """The API server's verdict on this Service, by a dry run."""
    return place.cluster.lab.api.call("POST", f"/api/v1/namespaces/{place.name}/services?dryRun=All", service)


@pytest.mark.parametrize("case", CASES, ids=[ascii(case.annotation)[:60] for case in CASES])
def test_the_admission_policy_reads_an_annotation_as_the_server_does(admission: Place, case: Case) -> None:
    answer = tried(admission, headless("cache", case.annotation))
    if case.problem == "":
        assert answer.ok, answer
        return
    assert answer.status == 422, answer
    said = answer.body["message"].partition("denied request: ")[2]
    assert said.startswith("topodns.io/topology-keys: expected ")
    if case.problem is not None:
        assert said == f"topodns.io/topology-keys: {case.problem}"


def test_an_annotation_that_is_longer_than_any_list_of_keys_is_refused(admission: Place) -> None:
    answer = tried(admission, headless("cache", "zone" + " " * 8189))
    assert (answer.status, "expected at most 8192 characters" in answer.body["message"]) == (422, True)
    assert tried(admission, headless("cache", "zone" + " " * 8188)).ok


def test_only_headless_services_are_looked_at(admission: Place) -> None:
    assert tried(admission, headless("virtual", "no such key", clusterIP="")).ok
    assert tried(admission, headless("cache")).ok


@pytest.mark.parametrize(("keys", "problem"), [("zone,*", ""), ("zone,,*", "found nothing (a comma too many)")])
def test_the_keys_of_a_namespace_are_read_likewise(cluster: Cluster, admission: Place, keys: str, problem: str) -> None:
    annotation = f"topodns.io/topology-keys={keys}"
    run = cluster.kubectl("annotate", "--dry-run=server", "namespace", admission.name, annotation)
    assert (run.returncode == 0) == (problem == "")
    assert problem in run.stderr


def test_an_object_that_exists_before_the_install_stays_until_its_value_changes(
    cluster: Cluster, admission: Place
) -> None:
    admission.create(headless("late", "no such key", clusterIP="10.96.0.78"), headless("fine", "zone"))
    change = {"metadata": {"annotations": {TOPOLOGY_KEYS: "no such key either"}}}
    with pytest.raises(AssertionError, match="found 'no such key either'"):
        admission.patch("Service", "fine", change)
    admission.patch("Service", "late", change)
    admission.patch("Service", "fine", {"metadata": {"labels": {"a": "b"}}})


def warnings(cluster: Cluster, place: Place, *objects: Object) -> list[str]:
    """What the policy says of these objects, of which the API server takes each; sorted."""
    run = cluster.kubectl("-n", place.name, "create", "--dry-run=server", "-f", "-", objects=list(objects))
    assert run.returncode == 0, run.stderr
    said = "Warning: Validation failed for ValidatingAdmissionPolicy 'topodns-annotations' with binding "
    parts = (line.partition(f"{said}'topodns-annotations': ") for line in run.stderr.splitlines())
    return sorted(text for _, found, text in parts if found)


def annotated(one: Object, name: str) -> Object:
    one["metadata"].setdefault("annotations", {})[name] = "zone"
    return one


def test_annotations_without_effect_get_a_warning_in_the_words_of_the_server(
    cluster: Cluster, admission: Place
) -> None:
    names = [*MEANT, *FOREIGN, *READ]
    services = [annotated(headless(f"s{at}", app=""), name) for at, name in enumerate(names)]
    eventually(lambda: warnings(cluster, admission, services[0]) != [], "the policy is in force")
    said = [bad_annotation(BadAnnotation(name, meant)).text for name, meant in MEANT.items()]
    assert warnings(cluster, admission, *services) == sorted(said)


def test_annotations_of_pods_that_only_a_service_can_have_get_a_warning(cluster: Cluster, admission: Place) -> None:
    template = pod_spec(pause_container())
    statefulset = workload("StatefulSet", "db", {"serviceName": "db"}, template)
    annotated(statefulset["spec"]["template"], TOPOLOGY_KEYS)
    deployment = workload("Deployment", "web", {}, template)
    annotated(deployment["spec"]["template"], "topology-keys")
    single = annotated(pod("single", "web", pause_container()), TTL)
    own = annotated(workload("DaemonSet", "agent", {}, template), "topology-keys")  # not in its template
    assert warnings(cluster, admission, deployment, statefulset, single, own) == [
        "annotation 'topodns.io/topology-keys' has no effect on a Pod: put 'topodns.io/topology-keys' on the Service",
        "annotation 'topodns.io/ttl' has no effect on a Pod: put 'topodns.io/ttl' on the Service",
        "annotation 'topology-keys' has no effect on a DaemonSet: put 'topodns.io/topology-keys' on the Service",
        "annotation 'topology-keys' has no effect on a Pod: put 'topodns.io/topology-keys' on the Service",
    ]


def test_a_namespace_with_another_annotation_than_keys_or_a_label_in_its_place_gets_a_warning(
    cluster: Cluster, admission: Place
) -> None:
    def namespace(name: str, **metadata: Object) -> Object:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}

    some = [
        namespace("one", annotations={"topodns.io/topology-key": "zone"}),
        namespace("two", annotations={TTL: "3", TOPOLOGY_KEYS: "zone"}),
        namespace("three", labels={TOPOLOGY_KEYS: "zone"}),
        namespace("four", annotations={TOPOLOGY_KEYS: "zone", READ[-1]: "a"}, labels={READ[-1]: "a"}),
    ]
    run = cluster.kubectl("create", "--dry-run=server", "-f", "-", objects=some)
    assert run.returncode == 0, run.stderr
    for text in (
        "annotation 'topodns.io/topology-key' is unknown and has no effect, did you mean 'topodns.io/topology-keys'?",
        "annotation 'topodns.io/ttl' has no effect on a Namespace: put 'topodns.io/ttl' on the Service",
        "label 'topodns.io/topology-keys' has no effect, did you mean the annotation 'topodns.io/topology-keys'?",
    ):
        assert run.stderr.count(text) == 1, run.stderr
    assert run.stderr.count("'topodns-annotations'") == 6, "the names of policy and binding, for three Namespaces"


def test_kubectl_prints_the_output_in_the_manual(cluster: Cluster, admission: Place) -> None:
    manual = (ROOT / "docs/operate/install.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^\$ kubectl --namespace shop annotate service (.+)\n((?:.+\n)+?)```", manual, re.MULTILINE)
    admission.create(headless("cache"))
    run = cluster.kubectl("-n", admission.name, "annotate", "service", *shlex.split(shown[0]))
    assert run.stderr.split() == shown[1].split()


@pytest.fixture
def trial(cluster: Cluster, tmp_path: Path) -> Iterator[Release]:
    """A release that is not installed yet, in a namespace of its own, with nothing left of it in the end."""
    with cluster.namespace("dns-trial") as place:
        release = Release(cluster.lab, tmp_path, "trial", place.name)
        yield release
        if cluster.kubectl("-n", place.name, "get", "deployment", "trial").returncode == 0:
            release.remove()
    eventually(lambda: cluster.read("Namespace", "", "dns-trial") is None, "the namespace has gone")


def test_the_plain_manifests_install_it(cluster: Cluster, askers: Askers, tmp_path: Path) -> None:
    """The overlay of docs/operate/install.md, under its own names and namespace, beside the suite's server."""
    overlay = yaml.safe_load(yaml_block("docs/operate/install.md", "Without helm").replace(CLUSTER_DNS, ADDRESS))
    (image,) = overlay["images"]
    image["newName"], _, image["newTag"] = TOPODNS_IMAGE.rpartition(":")
    overlay["resources"] = [os.path.relpath(ROOT / "config/kubernetes/server", tmp_path.resolve())]
    with cluster.namespace() as place:
        overlay |= {"namespace": place.name, "namePrefix": "plain-"}
        (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        run = cluster.kubectl("apply", "-k", str(tmp_path))
        try:
            assert run.returncode == 0, run.stderr
            becomes(lambda: askers["node2"].addresses(NAME, to=ADDRESS), FIRST_SERVICE)
        finally:
            cluster.kubectl("delete", "-k", str(tmp_path), "--wait=false")


def address(cluster: Cluster, release: Release, service: str) -> str:
    found = cluster.read("Service", release.namespace, service)
    assert found is not None
    return str(found["spec"]["clusterIP"])


def test_installed_from_nothing_it_is_the_cluster_dns_and_its_address_outlives_it(
    cluster: Cluster, askers: Askers, trial: Release
) -> None:
    trial.install({**SMALL, "service": {"clusterIP": ADDRESS}})
    assert address(cluster, trial, "kube-dns") == ADDRESS
    becomes(lambda: askers["node2"].addresses(NAME, to=ADDRESS), FIRST_SERVICE)
    run = trial.test()
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{NAME} by /etc/resolv.conf: 10.96.0.1\n" in run.stderr
    eventually(lambda: cluster.read("Pod", trial.namespace, "trial-ask") is None, "the Pod of the test has gone")
    trial.install({**SMALL, "service": {"clusterIP": ADDRESS}, "tests": {"outsideName": f"no-such.{NAME}"}})
    assert trial.test().returncode != 0
    assert cluster.read("Pod", trial.namespace, "trial-ask") is not None
    run = trial.upgrade({**SMALL, "mode": "beside"})
    assert "the Service kube-dns would stay and find no Pods any more" in run.stderr
    assert askers["node2"].addresses(NAME, to=ADDRESS) == FIRST_SERVICE
    trial.remove()
    assert address(cluster, trial, "kube-dns") == ADDRESS
    becomes(lambda: serving(cluster, "kube-dns", trial.namespace), [])
    trial.install({**SMALL, "mode": "beside"})
    trial.install({**SMALL, "mode": "beside", "podAnnotations": {"upgraded": "once"}})


@contextmanager
def kubelets_with(cluster: Cluster, cluster_dns: str) -> Iterator[None]:
    """kubeadm's ConfigMap with the configuration of the kubelets."""
    kubelet = f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nclusterDNS:\n- {cluster_dns}\n"
    name = {"name": "kubelet-config"}
    cluster.create(
        "kube-system", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"kubelet": kubelet}}
    )
    try:
        yield
    finally:
        cluster.delete("ConfigMap", "kube-system", "kubelet-config")


def test_with_the_values_of_coredns_chart_it_has_the_address_that_the_cluster_has_for_it(
    cluster: Cluster, askers: Askers, trial: Release
) -> None:
    """The kubelets' at first, and that of the Service from then on."""
    run = trial.upgrade(VALUES_OF_COREDNS)
    assert "found none, and the cluster has neither Service dns-trial/kube-dns nor kubeadm's ConfigMap" in run.stderr
    with kubelets_with(cluster, ADDRESS):
        run = trial.upgrade(VALUES_OF_COREDNS)
    assert run.returncode == 0, run.stderr
    assert f"Service dns-trial/kube-dns at {ADDRESS}." in run.stdout
    assert "WARNING: the namespace is dns-trial, not kube-system." in run.stdout
    assert "WARNING: `servers` is without the plugin topology" in run.stdout
    assert address(cluster, trial, "kube-dns") == ADDRESS
    becomes(lambda: askers["node2"].addresses(NAME, to=ADDRESS), FIRST_SERVICE)
    run = trial.upgrade({**VALUES_OF_COREDNS, "podAnnotations": {"upgraded": "once"}})
    assert (run.returncode, f"at {ADDRESS}." in run.stdout) == (0, True), run.stderr


def test_the_check_of_its_pods_runs_without_token_and_capability(cluster: Cluster, trial: Release) -> None:
    trial.install({**SMALL, "mode": "beside", "replicaCount": 1})
    (found,) = cluster.list("Pod", trial.namespace, "app.kubernetes.io/instance=trial")
    (check,), (server,) = found["spec"]["initContainers"], found["spec"]["containers"]
    having = {each["name"]: TOKEN in [mount["mountPath"] for mount in each["volumeMounts"]] for each in (check, server)}
    assert having == {"check": False, "topodns": True}
    assert check["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert found["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert found["status"]["containerStatuses"][0]["started"] is True


def test_beside_the_cluster_dns_invalid_keys_are_warned_of_and_let_in(cluster: Cluster, trial: Release) -> None:
    run = trial.upgrade({**SMALL, "mode": "beside", "admissionPolicy": {"enabled": True}})
    assert run.returncode == 0, run.stderr
    assert "in all namespaces: Warn.\nBeside the cluster DNS no request is denied" in run.stdout
    said: list[str] = []

    def warned() -> bool:
        service = headless("invalid", "no such key")
        run = cluster.kubectl("-n", trial.namespace, "apply", "--dry-run=server", "-f", "-", objects=[service])
        assert run.returncode == 0, run.stderr
        said[:] = [run.stderr]
        return bool(run.stderr)

    eventually(warned, "the policy is in force")
    assert "topodns.io/topology-keys: expected a label key or *, found 'no such key'" in said[0]


def test_beside_the_cluster_dns_a_pod_and_a_block_of_coredns_can_ask_it(
    cluster: Cluster, askers: Askers, trial: Release, serve: Serve
) -> None:
    trial.install({**SMALL, "mode": "beside"})
    beside = address(cluster, trial, "trial")
    with serve(
        "stubbing", f".:53 {{\n ready\n}}\nsvc.cluster.local:53 {{\n forward . {beside}\n}}\n", image=COREDNS_IMAGE
    ) as one:
        becomes(lambda: askers["node2"].addresses(NAME, to=one.pod.ip), FIRST_SERVICE)
    own = {"nameservers": [beside], "searches": ["svc.cluster.local"], "options": [{"name": "ndots", "value": "5"}]}
    with cluster.namespace() as place:
        place.create(pod("asking", "asking", sleeping_container(), dnsPolicy="None", dnsConfig=own))
        (asking,) = place.pods_once_ready("asking", 1)
        found = place.run(asking, "python3", "-c", "import socket; print(socket.gethostbyname('kubernetes.default'))")
        assert {found.strip()} == FIRST_SERVICE


# The counts that docs/operate/sizing.md has an operator take.


def test_the_commands_count_the_variables_of_the_formula(
    lab: Lab, cluster: Cluster, place: Place, tmp_path: Path
) -> None:
    place.create(headless("without-endpoints", app="nobody"))
    *kinds, endpoints = Operator(lab, tmp_path).follow("docs/operate/sizing.md", "sizing-count").splitlines()
    counted = {kind: int(number) for number, kind in (line.split() for line in kinds)}
    assert counted.keys() == {"nodes", "services", "endpointslices", "pods"}
    assert counted["nodes"] == len(cluster.nodes)
    slices = cluster.list("EndpointSlice", "")
    assert int(endpoints) == sum(len(each.get("endpoints") or ()) for each in slices)
