"""Permissions: topodns's own account is enough, and missing rights are reported at /ready."""

from contextlib import AbstractContextManager

import pytest

from tests.cluster.conftest import COREFILE, Serve
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster
from tests.support.kube.server_pods import Server, granted, permissions
from tests.support.kube.waiting import becomes, eventually


def curtailed(cluster: Cluster, account: str, resource: str, verbs: list[str]) -> AbstractContextManager[None]:
    """An account with topodns's rights, but only these verbs on one resource."""
    objects = permissions("rbac.yaml", account=account)
    (role,) = (each for each in objects if each["kind"] == "ClusterRole")
    kept = [rule | {"resources": [name]} for rule in role["rules"] for name in rule["resources"]]
    role["rules"] = [rule | {"verbs": verbs} if rule["resources"] == [resource] else rule for rule in kept]
    role["rules"] = [rule for rule in role["rules"] if rule["verbs"]]
    return granted(cluster, objects)


def complaint(server: Server) -> str:
    """The body of /ready, "" where it is empty."""
    answer = server.readiness()
    return str(answer.body) if answer.status == 503 else ""


@pytest.mark.parametrize("resource", ["services", "endpointslices", "namespaces"])
def test_without_a_verb_it_is_not_ready_and_says_which(cluster: Cluster, serve: Serve, resource: str) -> None:
    account = f"without-{resource}"
    with (
        curtailed(cluster, account, resource, ["list"]),
        serve(account, COREFILE, account=account, wait=False) as server,
    ):
        eventually(lambda: f"cannot watch {resource}" in complaint(server), f"{resource} in {complaint(server)}")
        assert account in complaint(server)


def test_names_that_do_not_need_the_missing_kind_are_answered_and_all_names_are_once_the_right_is_granted(
    cluster: Cluster, serve: Serve, askers: Askers
) -> None:
    with (
        curtailed(cluster, "later", "endpointslices", []),
        serve("later", COREFILE, account="later", wait=False) as server,
    ):
        eventually(lambda: "cannot watch endpointslices" in complaint(server), "endpointslices are missing")
        asker, to, name = askers["node2"], server.pod.ip, "client.clients.svc.cluster.local"
        becomes(lambda: asker.addresses("kubernetes.default.svc.cluster.local", to=to), {"10.96.0.1"})
        assert asker.addresses(name, to=to) == {"SERVFAIL"}
        (role,) = (each for each in permissions("rbac.yaml") if each["kind"] == "ClusterRole")
        cluster.patch("ClusterRole", "", "later", {"rules": role["rules"]})
        eventually(lambda: server.readiness().ok, "ready")
        assert asker.addresses(name, to=to) == {each.pod.ip for each in askers.values()}


def test_without_nodes_it_is_not_ready_and_answers(cluster: Cluster, serve: Serve, askers: Askers) -> None:
    """Clients whose node's labels decide get every endpoint; everything else is served as ever."""
    with (
        curtailed(cluster, "without-nodes", "nodes", []),
        serve("without-nodes", COREFILE, account="without-nodes", wait=False) as server,
    ):
        eventually(lambda: "topology lacks Node (cannot watch nodes" in complaint(server), "nodes are missing")
        assert server.metric("topodns_watch_failing", kind="Node", status="403") == 1
        everybody = askers["node1"].addresses("client.clients.svc.cluster.local", to=server.pod.ip)
        assert everybody == {asker.pod.ip for asker in askers.values()}
