"""From nothing: README's commands, and the answers that pods get from then on."""

import json
import re
from pathlib import Path

import pytest

from tests.kubelab.options import CLUSTER_DNS, CLUSTER_DNS_IPV6, FIRST_SERVICES
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place, view
from tests.support.kube.expected_nearest import answers
from tests.support.kube.objects import headless, manual_slice
from tests.support.kube.operator_commands import Operator
from tests.support.kube.upstream import OUTSIDE, OUTSIDE_ADDRESS
from tests.support.kube.waiting import becomes, eventually

NAME = "kubernetes.default.svc.cluster.local"
RESOLVED = "import socket, sys; print({each[4][0] for each in socket.getaddrinfo(sys.argv[1], 53, socket.AF_INET)})"


@pytest.mark.short
def test_with_the_commands_of_the_readme_pods_become_ready_and_answer(installed: str, cluster: Cluster) -> None:
    pods = [view(pod) for pod in cluster.list("Pod", "kube-system", "k8s-app=kube-dns")]
    assert [pod.ready for pod in pods] == [True, True]
    assert len({pod.node for pod in pods}) == 2
    assert "STATUS: deployed" in installed
    assert "Phase:          Succeeded" in installed  # `helm test`


@pytest.mark.parametrize("node", ["node1", "node4"])
def test_a_pod_resolves_by_its_own_resolv_conf(clients: Place, askers: Askers, node: str) -> None:

    def printed(*words: str) -> str:
        return clients.run(askers[node].pod, *words)

    assert f"nameserver {CLUSTER_DNS}\n" in printed("cat", "/etc/resolv.conf") + "\n"
    for name, address in {"kubernetes.default": FIRST_SERVICES[0], OUTSIDE: OUTSIDE_ADDRESS}.items():
        assert printed("python3", "-c", RESOLVED, name) == str({address})
    assert printed("dig", "+search", "+short", "kubernetes.default") == FIRST_SERVICES[0]


@pytest.fixture
def service(place: Place) -> Place:
    """`db`: headless, two endpoints with names."""
    endpoints = manual_slice("db", "db", [("198.51.100.1", "node1"), ("198.51.100.2", "node2")])
    for i, endpoint in enumerate(endpoints["endpoints"]):
        endpoint["hostname"] = f"db-{i}"
    place.create(headless("db", app=""), endpoints)
    return place


@pytest.mark.short
def test_dig_in_a_pod_shows_every_sort_of_name(clients: Place, askers: Askers, service: Place) -> None:
    db = service.fqdn("db")
    becomes(lambda: askers["node3"].addresses(db), {"198.51.100.1", "198.51.100.2"})

    def dig(*words: str) -> list[str]:
        return sorted(clients.run(askers["node3"].pod, "dig", "+short", *words).splitlines())

    assert dig(NAME) == [FIRST_SERVICES[0]]  # a ClusterIP
    assert dig(db) == ["198.51.100.1", "198.51.100.2"]  # headless
    assert dig(f"db-1.{db}") == ["198.51.100.2"]
    assert dig(f"_http._tcp.{db}", "SRV") == [f"0 50 80 db-{i}.{db}." for i in range(2)]
    assert dig("-x", "198.51.100.1") == [f"db-0.{db}."]
    assert dig("-x", FIRST_SERVICES[0]) == [f"{NAME}."]
    assert dig("+tcp", OUTSIDE) == [OUTSIDE_ADDRESS]
    header = clients.run(askers["node3"].pod, "dig", f"no-such.{db}")
    assert re.findall(r"status: (\w+)", header) == ["NXDOMAIN"]


@pytest.mark.short
def test_dual_stack_it_answers_over_both_families(clients: Place, askers: Askers, operator: Operator) -> None:
    """With the command of docs/operate/install.md; the Service gets its second address, and keeps the first."""
    operator.follow("docs/operate/install.md", "dual-stack")
    digs = [
        ["dig", "+short", "+tries=1", *tcp, f"@{address}", NAME]
        for address in (CLUSTER_DNS, CLUSTER_DNS_IPV6)
        for tcp in ([], ["+tcp"])
    ]

    def got() -> set[str]:
        pod = askers["node2"].pod
        script = " && ".join(" ".join(words) for words in digs)
        return set(clients.run(pod, "sh", "-c", f"{{ {script}; }} || true").splitlines())

    becomes(got, {FIRST_SERVICES[0]})


@pytest.mark.short
def test_the_annotation_of_the_readme_keeps_clients_near(askers: Askers, operator: Operator, service: Place) -> None:
    db = service.fqdn("db")
    everybody = {"198.51.100.1", "198.51.100.2"}
    becomes(
        lambda: {asker.pod.node: asker.addresses(db) for asker in askers.values()}, dict.fromkeys(askers, everybody)
    )
    operator.follow("README.md", "annotate", NAMESPACE=service.name, SERVICE="db")
    near = {"node1": {"198.51.100.1"}, "node2": {"198.51.100.2"}, "node3": everybody, "node4": everybody}
    becomes(lambda: answers(askers, db), near)


@pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)
def test_a_corefile_that_cannot_be_served_leaves_the_old_pods_serving_and_the_log_has_the_line(
    askers: Askers, operator: Operator, cluster: Cluster, tmp_path: Path
) -> None:
    before = [pod["metadata"]["name"] for pod in cluster.list("Pod", "kube-system", "k8s-app=kube-dns")]
    values = tmp_path / "values.yaml"
    plugins = [{"name": name} for name in ("health", "ready", "no-such-directive")]
    values.write_text(json.dumps({"servers": [{"plugins": plugins}]}))
    upgrade = ("helm", "-n", "kube-system", "upgrade", "topodns", "charts/topodns", "--reuse-values", "--wait")
    assert operator.tried(*upgrade, "--timeout", "10s", "--values", str(values)).returncode != 0
    eventually(
        lambda: "no-such-directive" in operator.follow("docs/operate/install.md", "check-log"), "the log has the line"
    )
    ready = {pod.name for pod in map(view, cluster.list("Pod", "kube-system", "k8s-app=kube-dns")) if pod.ready}
    assert ready == set(before)
    assert askers["node2"].addresses(NAME) == {FIRST_SERVICES[0]}
    operator.follow("docs/operate/install.md", "dual-stack")


@pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)
def test_rolled_back_the_revision_before_an_upgrade_serves_again(
    askers: Askers, operator: Operator, cluster: Cluster
) -> None:
    def deployed() -> dict[str, str]:
        found = cluster.read("Deployment", "kube-system", "topodns")
        assert found is not None
        labels: dict[str, str] = found["spec"]["template"]["metadata"]["labels"]
        return labels

    before = deployed()
    upgrade = ("helm", "--namespace", "kube-system", "upgrade", "topodns", "charts/topodns", "--wait")
    operator.run(*upgrade, "--reset-then-reuse-values", "--set", "podLabels.revision=newer")
    assert deployed() == before | {"revision": "newer"}
    operator.follow("docs/operate/install.md", "rollback")
    assert deployed() == before
    becomes(lambda: askers["node2"].addresses(NAME), {FIRST_SERVICES[0]})
