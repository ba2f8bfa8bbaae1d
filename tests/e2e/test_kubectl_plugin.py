"""`kubectl topodns` with the real kubectl: what it finds and asks, with the permissions that the document gives."""

import json
from typing import Any

import pytest

from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Place
from tests.support.kube.operator_commands import Operator
from tests.support.kube.waiting import becomes

pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

NAME = "kubernetes.default.svc.cluster.local"
ANN = "ann"


def who(operator: Operator, client: str) -> Any:
    return json.loads(operator.run("kubectl", "topodns", "who", "--json", client))


@pytest.mark.short
def test_who_finds_the_pods_of_every_node(
    operator: Operator, clients: Place, askers: Askers, host_askers: Askers
) -> None:
    for asker in (*askers.values(), *host_askers.values()):
        pod = asker.pod
        found = who(operator, f"{clients.name}/{pod.name}")
        assert (found["pod"], found["node"]) == (f"{clients.name}/{pod.name}", pod.node)
        assert {cluster["node"] for each in found["addresses"] for cluster in each["clusters"]} == {pod.node}
        assert pod.ip in [each["address"] for each in found["addresses"]]


def test_explain_gives_the_answer_of_a_pod_and_of_a_node(operator: Operator, clients: Place, askers: Askers) -> None:
    pod = askers["node1"].pod
    by_pod = operator.tried("kubectl", "topodns", "explain", "--pod", f"{clients.name}/{pod.name}", NAME)
    assert by_pod.stdout.startswith(f"client   {pod.ip} on node {pod.node} (by ")
    assert by_pod.stderr.startswith("asking Pod kube-system/topodns-")
    by_node = operator.run("kubectl", "topodns", "explain", "--node", pod.node, NAME)
    assert by_node.startswith(f"client   any on node {pod.node} (as given)\n")
    assert f" IN A {by_pod.stdout.split()[-1]}\n" in by_node


@pytest.mark.short
def test_a_user_without_permissions_gets_the_rules_and_with_them_answers(installed: str, operator: Operator) -> None:
    def asked() -> tuple[int, str]:
        done = operator.tried("kubectl", "topodns", "who", f"--as={ANN}", "192.0.2.1")
        return done.returncode, done.stderr

    status, errors = asked()
    assert status == 2
    assert '{apiGroups: [""], resources: [pods], verbs: [get, list]}' in errors
    lists = ("--verb=get,list", "--resource=pods")
    system = ("kubectl", "--namespace", "kube-system")
    operator.run(*system, "create", "role", "topodns-lists", *lists)
    operator.run(*system, "create", "rolebinding", "topodns-lists", "--role=topodns-lists", f"--user={ANN}")
    rule = '{apiGroups: [""], resources: [pods/portforward], verbs: [create]}'
    becomes(lambda: rule in asked()[1], True)
    operator.run(*system, "delete", "role/topodns-lists", "rolebinding/topodns-lists")
    assert "address  192.0.2.1\n" in operator.follow("docs/operate/kubectl-plugin.md", "plugin-permissions", ANN=ANN)
    operator.run(*system, "delete", "role/topodns-plugin", "rolebinding/topodns-plugin")


def test_a_namespace_without_topodns_is_named(installed: str, operator: Operator) -> None:
    done = operator.tried("kubectl", "topodns", "who", "-n", "default", "192.0.2.1")
    assert done.returncode == 2
    assert "found no ready Pod with the label app.kubernetes.io/name=topodns in namespace default" in done.stderr
