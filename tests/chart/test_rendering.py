"""Rendered objects fit together: selectors match Pods, references lead to objects, ports to ports."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.chart.boards import BOARDS, FOLDER
from tests.support.chart.helm import CHART, NAMESPACE, ROOT, Object, Values, helm, rendered
from tests.support.chart.matrix import MATRIX

CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
WORKLOADS = {"Deployment", "DaemonSet"}


@pytest.fixture(scope="module", params=MATRIX)
def objects(request: pytest.FixtureRequest) -> list[Object]:
    return rendered(MATRIX[request.param])


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    return [each for each in objects if each["kind"] in kinds]


def named(objects: list[Object], kind: str, name: str) -> Object:
    (found,) = (each for each in of_kind(objects, kind) if each["metadata"]["name"] == name)
    return found


def pods(workload: Object) -> Object:
    template: Object = workload["spec"]["template"]
    return template


def serves(workload: Object) -> bool:
    """Whether its Pods are those of the cluster DNS."""
    return "topodns" in [each["name"] for each in containers(workload)]


def finds(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def containers(workload: Object) -> Iterator[Object]:
    spec = pods(workload)["spec"]
    yield from spec["containers"]
    yield from spec.get("initContainers", ())


def test_every_template_is_rendered_by_some_of_these_values() -> None:
    kinds = {each["kind"] for values in MATRIX.values() for each in rendered(values)}
    assert kinds >= {*CLUSTER_WIDE, *WORKLOADS, "ConfigMap", "HorizontalPodAutoscaler", "NetworkPolicy"}
    assert kinds >= {"PodDisruptionBudget", "PrometheusRule", "Role", "RoleBinding", "Service", "ServiceAccount"}
    assert kinds >= {"PodMonitor", "ServiceMonitor"}
    assert {path.suffix for path in CHART.glob("templates/**/*") if path.is_file()} == {".yaml", ".tpl", ".txt"}


def test_each_object_is_rendered_once_and_in_its_namespace(objects: list[Object]) -> None:
    names = Counter((each["kind"], each["metadata"]["name"]) for each in objects)
    assert [name for name, times in names.items() if times > 1] == []
    for each in objects:
        assert each["metadata"].get("namespace") == (None if each["kind"] in CLUSTER_WIDE else NAMESPACE), each
        assert {"app.kubernetes.io/name", "app.kubernetes.io/instance", "helm.sh/chart"} <= each["metadata"][
            "labels"
        ].keys()


def test_a_workload_finds_its_own_pods_and_no_other_workload_does(objects: list[Object]) -> None:
    workloads = of_kind(objects, *WORKLOADS)
    for workload in workloads:
        selector = workload["spec"]["selector"]["matchLabels"]
        found = [each["metadata"]["name"] for each in workloads if finds(selector, pods(each)["metadata"]["labels"])]
        assert found == [workload["metadata"]["name"]]


def test_services_budgets_and_policies_find_pods_of_one_workload(objects: list[Object]) -> None:
    workloads = of_kind(objects, *WORKLOADS)
    if not any(map(serves, workloads)):
        return  # the pods that the upstream's Service finds belong to another program
    selectors = {
        each["metadata"]["name"]: each["spec"]["podSelector" if each["kind"] == "NetworkPolicy" else "selector"]
        for each in of_kind(objects, "Service", "PodDisruptionBudget", "NetworkPolicy")
    }
    for name, selector in selectors.items():
        labels = selector.get("matchLabels", selector)
        found = [each for each in workloads if finds(labels, pods(each)["metadata"]["labels"])]
        assert len(found) == 1, name


def test_a_service_leads_to_ports_that_are_listened_on(objects: list[Object]) -> None:
    for service in of_kind(objects, "Service"):
        names = [port["name"] for port in service["spec"]["ports"]]
        assert len(set(names)) == len(names)
        for workload in filter(serves, of_kind(objects, *WORKLOADS)):
            if not finds(service["spec"]["selector"], pods(workload)["metadata"]["labels"]):
                continue
            listened = {
                (port["containerPort"], port["protocol"])
                for container in containers(workload)
                for port in container.get("ports", ())
            }
            led = {(port["targetPort"], port.get("protocol", "TCP")) for port in service["spec"]["ports"]}
            assert led <= listened, service["metadata"]["name"]


def test_references_lead_to_objects(objects: list[Object]) -> None:
    accounts = {each["metadata"]["name"] for each in of_kind(objects, "ServiceAccount")} | {"default"}
    for workload in of_kind(objects, *WORKLOADS):
        spec = pods(workload)["spec"]
        assert spec["serviceAccountName"] in accounts
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        for container in containers(workload):
            assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes.keys()
    for binding in of_kind(objects, "ClusterRoleBinding", "RoleBinding"):
        named(objects, binding["roleRef"]["kind"], binding["roleRef"]["name"])
        assert [subject["name"] in accounts for subject in binding["subjects"]] == [True]
    for binding in of_kind(objects, "ValidatingAdmissionPolicyBinding"):
        named(objects, "ValidatingAdmissionPolicy", binding["spec"]["policyName"])
    for scaler in of_kind(objects, "HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        assert "replicas" not in named(objects, target["kind"], target["name"])["spec"]


def test_a_mounted_config_map_has_the_files_that_are_taken_from_it(objects: list[Object]) -> None:
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(objects, "ConfigMap")}
    if not maps:
        return  # skipConfig: another program owns it
    for workload in of_kind(objects, *WORKLOADS):
        for volume in pods(workload)["spec"].get("volumes", ()):
            config = volume.get("configMap", {"optional": True})
            if not config.get("optional"):
                assert {item["key"] for item in config["items"]} <= maps[config["name"]].keys()


def test_monitors_find_a_service_with_that_port(objects: list[Object]) -> None:
    for monitor in of_kind(objects, "ServiceMonitor"):
        labels = monitor["spec"]["selector"]["matchLabels"]
        (service,) = (each for each in of_kind(objects, "Service") if finds(labels, each["metadata"]["labels"]))
        ports = {port["name"] for port in service["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


def test_monitors_of_pods_find_a_workload_with_that_port(objects: list[Object]) -> None:
    for monitor in of_kind(objects, "PodMonitor"):
        labels = monitor["spec"]["selector"]["matchLabels"]
        (workload,) = (each for each in of_kind(objects, *WORKLOADS) if finds(labels, pods(each)["metadata"]["labels"]))
        ports = {port["name"] for each in containers(workload) for port in each.get("ports", ())}
        assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports


def test_pods_may_do_no_more_than_they_need(objects: list[Object]) -> None:
    """reliability.md 5.2."""
    for workload in of_kind(objects, *WORKLOADS):
        spec = pods(workload)["spec"]
        on_nodes = workload["metadata"]["name"] == "node-local-dns"
        assert spec.get("hostNetwork", False) is on_nodes
        for container in containers(workload):
            confined: dict[str, Any] = container["securityContext"]
            assert confined["readOnlyRootFilesystem"] is True
            assert confined["allowPrivilegeEscalation"] is False
            assert confined["capabilities"]["drop"] == ["ALL"]
            added = set(confined["capabilities"].get("add", ()))
            if container["name"] == "snapshot-folder":
                assert (added, confined["runAsUser"]) == ({"CHOWN"}, 0)
            else:
                assert added <= ({"NET_ADMIN", "NET_BIND_SERVICE"} if on_nodes else {"NET_BIND_SERVICE"})
                assert on_nodes or confined.get("runAsUser") != 0
            profile = {**spec.get("securityContext", {}), **confined}["seccompProfile"]
            assert profile == {"type": "RuntimeDefault"}
        assert on_nodes or spec["securityContext"]["runAsNonRoot"] is True


def test_only_the_container_that_asks_the_api_server_has_a_token(objects: list[Object]) -> None:
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    for workload in of_kind(objects, *WORKLOADS):
        assert pods(workload)["spec"]["automountServiceAccountToken"] is False
        mounts = {each["name"]: each.get("volumeMounts", ()) for each in containers(workload)}
        having = {name for name, found in mounts.items() if path in [mount["mountPath"] for mount in found]}
        assert having == mounts.keys() & {"topodns", "autoscaler", "locator"}


def server(values: Values) -> Object:
    """The spec of the server's Pods."""
    spec: Object = pods(named(rendered(values), "Deployment", "topodns"))["spec"]
    return spec


def test_the_check_of_the_corefile_is_the_program_without_its_capability() -> None:
    """`/topodns` is run by an interpreter with a file capability, which cannot be started where that is not allowed."""
    (check,) = server({})["initContainers"]
    assert " ".join([*check["command"], *check["args"]]) == "python3 -m topodns check -conf /etc/coredns/Corefile"
    for security_context in ({}, {"runAsUser": 1000, "capabilities": {"add": ["SYS_PTRACE"]}}):
        (check,) = server({"securityContext": security_context})["initContainers"]
        assert check["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert check["securityContext"].get("runAsUser") == security_context.get("runAsUser")


def test_a_snapshot_has_a_volume_that_the_server_alone_may_write() -> None:
    assert "fsGroup" not in server({})["securityContext"]
    assert "snapshot" not in str(server({}))
    spec = server({"snapshot": {"enabled": True}})
    assert (spec["securityContext"]["fsGroup"], spec["securityContext"]["runAsUser"]) == (65532, 65532)
    assert {"name": "snapshot", "emptyDir": {}} in spec["volumes"]
    (serving,), (check,) = spec["containers"], spec["initContainers"]
    assert {"name": "snapshot", "mountPath": "/var/lib/topodns"} in serving["volumeMounts"]
    assert "snapshot" not in [mount["name"] for mount in check["volumeMounts"]]
    own = {"snapshot": {"enabled": True}, "podSecurityContext": {"fsGroup": 2000}}
    assert server(own)["securityContext"]["fsGroup"] == 2000


def test_a_snapshot_may_be_on_a_volume_of_the_operators() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "topodns"}}
    values: Values = {"snapshot": {"enabled": True, "volume": claim}}
    assert {"name": "snapshot", **claim} in server(values)["volumes"]


def test_a_folder_of_the_node_is_given_to_the_user_of_the_server() -> None:
    """A kubelet makes it for root, and gives no `hostPath` to `fsGroup`."""
    values: Values = {"snapshot": {"enabled": True, "volume": {"hostPath": {"path": "/srv/dns"}}}}
    folder, check = server(values)["initContainers"]
    assert check["name"] == "check"
    assert folder["command"][-1] == 'import os; os.chown("/var/lib/topodns", 65532, -1)'
    assert [mount["name"] for mount in folder["volumeMounts"]] == ["snapshot"]
    (folder,) = server({**values, "securityContext": {"runAsUser": 1000}, "deployment": {"check": False}})[
        "initContainers"
    ]
    assert folder["command"][-1] == 'import os; os.chown("/var/lib/topodns", 1000, -1)'


def test_a_server_on_each_node_is_a_daemon_set() -> None:
    objects = rendered(MATRIX["a server on each node"])
    spec = named(objects, "DaemonSet", "topodns")["spec"]
    assert {"replicas", "strategy"} & spec.keys() == set()
    assert spec["updateStrategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": 0}
    assert of_kind(objects, "Deployment", "PodDisruptionBudget") == []
    of_a_deployment = server({"nodeSelector": {"edge": "true"}})
    assert pods(named(objects, "DaemonSet", "topodns"))["spec"] == of_a_deployment


def test_a_server_may_take_as_long_to_start_as_the_manual_says() -> None:
    text = (ROOT / "docs/operate/sizing.md").read_text(encoding="utf-8")
    (found,) = re.findall(
        r"(\d+) with\s+150,000 Pods .*?`100m` .*?would\s+take (\d+) s.*?allows (\d+)\b", text, re.DOTALL
    )
    of_a_core, under_the_limit, allowed = map(int, found)
    probe = server({})["containers"][0]["startupProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] == allowed
    assert of_a_core * 10 == under_the_limit < allowed


def test_without_a_liveness_probe_there_is_no_startup_probe() -> None:
    """So that a Corefile without `health` needs one value only."""
    plugins = [{"name": "ready"}]
    (container,) = server({"livenessProbe": {"enabled": False}, "servers": [{"plugins": plugins}]})["containers"]
    assert {"startupProbe", "livenessProbe"} & container.keys() == set()


def test_an_old_pod_goes_once_the_new_one_has_been_ready_for_a_while() -> None:
    assert named(rendered({}), "Deployment", "topodns")["spec"]["minReadySeconds"] == 5


@pytest.mark.parametrize(
    ("values", "actions"),
    [
        ({}, ["Deny"]),
        ({"mode": "beside"}, ["Warn"]),
        ({"mode": "beside", "admissionPolicy": {"actions": ["Deny", "Audit"]}}, ["Deny", "Audit"]),
    ],
)
def test_beside_the_cluster_dns_the_policy_denies_nothing_unless_it_is_told_to(
    values: Values, actions: list[str]
) -> None:
    bindings = of_kind(rendered(values), "ValidatingAdmissionPolicyBinding")
    (binding,) = (each for each in bindings if each["spec"]["policyName"].endswith("-topology-keys"))
    assert binding["spec"]["validationActions"] == actions


def test_a_node_cache_may_forward_to_servers_near_it() -> None:
    near = {"upstreamService": {"trafficDistribution": "PreferSameZone"}}
    values = {"nodeCache": {"enabled": True, **near}}
    assert named(rendered(values), "Service", "kube-dns-upstream")["spec"]["trafficDistribution"] == "PreferSameZone"
    assert "trafficDistribution" not in named(rendered(values), "Service", "kube-dns")["spec"]


def test_the_pods_of_the_cluster_dns_have_its_label_and_those_beside_it_have_not() -> None:
    for mode, label in (("replace", "kube-dns"), ("beside", None)):
        (deployment,) = of_kind(rendered({"mode": mode}), "Deployment")
        assert pods(deployment)["metadata"]["labels"].get("k8s-app") == label
        assert "k8s-app" not in deployment["spec"]["selector"]["matchLabels"]


def test_kubeadm_finds_no_second_deployment_of_the_cluster_dns_beside_its_own() -> None:
    """By the label of the Deployment itself: an upgrade ends with "multiple DNS addon deployments found"."""
    for values in MATRIX.values():
        found = of_kind(rendered(values), "Deployment")
        assert [each for each in found if each["metadata"]["labels"].get("k8s-app") == "kube-dns"] == []


def test_the_service_of_the_cluster_dns_is_the_one_of_kubeadm() -> None:
    service = named(rendered({"service": {"clusterIP": "10.96.0.10"}}), "Service", "kube-dns")
    labels = {"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
    assert labels.items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"] == {"k8s-app": "kube-dns"}
    assert service["spec"]["clusterIP"] == "10.96.0.10"
    assert service["spec"]["ports"] == [
        {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
        {"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
    ]


def test_the_service_has_tcp_beside_udp_unless_tcp_is_off_and_alone_for_dns_over_tls() -> None:
    plugins = [{"name": "health"}, {"name": "ready"}]

    def ports(zone: Object) -> list[str]:
        values = {"servers": [{"zones": [zone], "port": 5353, "servicePort": 53, "plugins": plugins}]}
        service = named(rendered(values), "Service", "kube-dns")
        return [f"{port['name']} {port['port']} {port['targetPort']}" for port in service["spec"]["ports"]]

    both = ["dns-5353 53 5353", "dns-tcp-5353 53 5353"]
    assert ports({"zone": "."}) == ports({"zone": ".", "use_tcp": True}) == both
    assert ports({"zone": ".", "use_tcp": False}) == both[:1]
    assert ports({"zone": ".", "scheme": "tls://"}) == both[1:]


def test_helm_leaves_the_address_of_the_cluster_dns_in_place_when_the_release_goes() -> None:
    service = named(rendered({}), "Service", "kube-dns")
    assert service["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_a_changed_corefile_replaces_the_pods() -> None:
    def stamp(ttl: int) -> str:
        plugins = [{"name": "health"}, {"name": "ready"}, {"name": "cache", "parameters": ttl}]
        (deployment,) = of_kind(rendered({"servers": [{"plugins": plugins}]}), "Deployment")
        return str(pods(deployment)["metadata"]["annotations"]["checksum/config"])

    assert stamp(30) == stamp(30) != stamp(31)


def test_node_caches_follow_one_another_without_a_gap() -> None:
    cache = named(rendered(MATRIX["the node cache alone"]), "DaemonSet", "node-local-dns")
    assert cache["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    (container,) = pods(cache)["spec"]["containers"]
    assert "ports" not in container
    assert container["env"][0] == {"name": "LOCAL_ADDRESSES", "value": "169.254.20.10,10.96.0.10"}
    assert pods(cache)["spec"]["priorityClassName"] == "system-node-critical"


@pytest.mark.parametrize("folder", ["", "/srv/dns"])
def test_the_answers_of_a_node_cache_are_kept_in_a_folder_of_the_node_that_root_can_write(folder: str) -> None:
    persist = {"enabled": True, **({"hostPath": folder} if folder else {})}
    found = pods(named(rendered({"nodeCache": {"enabled": True, "persist": persist}}), "DaemonSet", "node-local-dns"))
    (container,) = found["spec"]["containers"]
    assert container["volumeMounts"][-1] == {"name": "answers", "mountPath": "/var/lib/topodns"}
    assert container["securityContext"]["runAsUser"] == 0
    assert container["securityContext"]["readOnlyRootFilesystem"]
    host_path = {"path": folder or "/var/lib/topodns/node-cache", "type": "DirectoryOrCreate"}
    assert found["spec"]["volumes"][-1] == {"name": "answers", "hostPath": host_path}


def test_a_node_cache_has_nothing_of_the_node_unless_its_answers_are_kept() -> None:
    found = pods(named(rendered({"nodeCache": {"enabled": True}}), "DaemonSet", "node-local-dns"))
    (container,) = found["spec"]["containers"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert all("hostPath" not in volume for volume in found["spec"]["volumes"])


def test_helm_has_nothing_to_say_against_the_chart() -> None:
    run = subprocess.run(helm("lint", "--strict", CHART), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


# The dashboards as Grafana's sidecar finds them.

ON: dict[str, Any] = {"prometheus": {"dashboards": {"enabled": True}}}
NODE_CACHE: dict[str, Any] = {"nodeCache": {"enabled": True, "intercept": False}}


def config_maps(values: dict[str, Any]) -> dict[str, Object]:
    """By the name of the board."""
    found = [each for each in rendered(values) if "-dashboard-" in each["metadata"]["name"]]
    assert all(each["kind"] == "ConfigMap" for each in found)
    return {each["metadata"]["name"].removeprefix("topodns-dashboard-"): each for each in found}


def test_without_being_asked_for_there_are_none() -> None:
    assert config_maps(NODE_CACHE) == {}


@pytest.mark.parametrize("name", BOARDS)
def test_a_config_map_has_the_board_as_it_is_in_the_chart(name: str) -> None:
    board = config_maps({**ON, **NODE_CACHE})[name]
    assert board["metadata"]["namespace"] == NAMESPACE
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    ((file, text),) = board["data"].items()
    assert file == f"topodns-{name}.json"
    assert json.loads(text) == json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def test_dashboards_are_rendered_for_installed_parts_only() -> None:
    assert config_maps(ON).keys() == {"topology"}
    assert config_maps({**ON, **NODE_CACHE}).keys() == {"topology", "node-cache"}
    assert config_maps({**ON, **NODE_CACHE, "deployment": {"enabled": False}}).keys() == {"node-cache"}


def test_a_sidecar_that_looks_elsewhere_finds_them() -> None:
    where = {
        "enabled": True,
        "labels": {"boards": "yes"},
        "annotations": {"grafana_folder": "DNS"},
        "namespace": "monitoring",
    }
    metadata = config_maps({"prometheus": {"dashboards": where}})["topology"]["metadata"]
    assert metadata["namespace"] == "monitoring"
    assert metadata["labels"]["boards"] == "yes"
    assert metadata["annotations"] == {"grafana_folder": "DNS"}


@pytest.mark.parametrize("as_text", [True, False])
def test_a_tag_may_be_a_number_of_digits(as_text: bool) -> None:
    """Values of a file are JSON numbers to helm, those of --set integers, and those of --set-json floats."""
    tag: Any = "20261128" if as_text else 20261128
    switched: Values = {"nodeCache": {"enabled": True, "localDns": ["169.254.20.10"]}, "autoscaler": {"enabled": True}}
    of_file = rendered({**switched, "image": {"tag": tag}, "autoscaler": {"enabled": True, "image": {"tag": tag}}})
    flags = ("--set", "image.tag=20261128,autoscaler.image.tag=20261128")
    of_json = ("--set-json", 'image={"tag":20261128}', "--set-json", 'autoscaler.image={"tag":20261128}')
    for objects in (of_file, rendered(switched, *flags), rendered(switched, *of_json)):
        images = {each["image"] for workload in of_kind(objects, *WORKLOADS) for each in containers(workload)}
        assert len(images) == 2
        assert {each.rpartition(":")[2] for each in images} == {"20261128"}
