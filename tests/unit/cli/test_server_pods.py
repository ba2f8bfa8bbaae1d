"""The choice of the Pods to ask, their port, and the error where there is none."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.fake_kubectl import pod
from topodns.cli.kubectl_client import Kubectl, KubectlError
from topodns.cli.server_pods import (
    SELECTOR,
    ServerPod,
    find_server_pods,
    pod_addresses,
    pod_name,
    read_pod,
    ready_port,
    why_no_forward,
)

SYSTEM = "--namespace=kube-system"
EVERYWHERE = "--all-namespaces"


class Scripted(Kubectl):
    """kubectl without a process: Pods by the scope of the call, what RBAC denies (`VERB RESOURCE SCOPE`), and scopes
    in which calls fail."""

    def __init__(
        self, pods: Mapping[str, Sequence[dict[str, Any]]], denied: Sequence[str] = (), failing: Sequence[str] = ()
    ) -> None:
        self._pods, self._denied, self._failing = pods, denied, failing
        self.calls: list[tuple[str, ...]] = []

    def get(self, *arguments: str) -> dict[str, Any]:
        self.calls.append(arguments)
        if arguments[-1] in self._failing:
            raise KubectlError("`kubectl get` failed with status 1")
        found = self._pods.get(arguments[-1], [])
        return {"items": found} if arguments[0] == "pods" else next(iter(found))

    def is_allowed(self, verb: str, resource: str, *scope: str) -> bool:
        return " ".join((verb, resource, *scope)) not in self._denied


def chosen(
    pods: Mapping[str, Sequence[dict[str, Any]]], namespace: str = "", name: str = ""
) -> tuple[ServerPod, list[tuple[str, ...]]]:
    kubectl = Scripted(pods)
    return find_server_pods(kubectl, namespace, SELECTOR, name)[0], kubectl.calls


def listed(*scope: str) -> tuple[str, ...]:
    return ("pods", f"--selector={SELECTOR}", *scope)


def test_the_first_ready_pod_of_kube_system_is_asked() -> None:
    pods = [pod("c"), pod("a", ready=False), pod("b")]
    assert chosen({SYSTEM: pods}) == (ServerPod("kube-system", "b", 8181), [listed(SYSTEM)])


def test_all_ready_pods_are_found_by_name() -> None:
    pods = {SYSTEM: [pod("c"), pod("a", ready=False), pod("b")]}
    assert [each.name for each in find_server_pods(Scripted(pods), "", SELECTOR, "")] == ["b", "c"]


def test_a_terminating_pod_is_not_asked() -> None:
    ending = pod("a")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert chosen({SYSTEM: [ending, pod("b")]})[0].name == "b"


def test_without_pods_in_kube_system_the_one_namespace_that_has_some_is_found() -> None:
    found, calls = chosen({EVERYWHERE: [pod("b", "dns"), pod("a", "dns")]})
    assert (found, calls) == (ServerPod("dns", "a", 8181), [listed(SYSTEM), listed(EVERYWHERE)])


def test_pods_in_kube_system_that_are_not_ready_end_the_search() -> None:
    with pytest.raises(KubectlError, match=r"in any namespace; not ready: kube-system/a; --namespace"):
        chosen({SYSTEM: [pod("a", ready=False)], EVERYWHERE: [pod("b", "dns")]})


def test_several_namespaces_are_not_chosen_from() -> None:
    pods = {EVERYWHERE: [pod(f"a-{at}", f"dns-{at}") for at in range(7)]}
    expected = "found topodns in several namespaces, dns-0, dns-1, dns-2, dns-3, dns-4 and 2 more: --namespace chooses"
    with pytest.raises(KubectlError, match=expected):
        chosen(pods)


def test_a_ready_pod_is_not_asked_while_those_of_another_namespace_are_not_ready() -> None:
    with pytest.raises(KubectlError, match="found topodns in several namespaces, dns, tenant: --namespace chooses"):
        chosen({EVERYWHERE: [pod("a", "dns", ready=False), pod("b", "tenant")]})


def test_a_given_namespace_is_the_only_one() -> None:
    assert chosen({"--namespace=dns": [pod("a", "dns")]}, "dns")[1] == [listed("--namespace=dns")]
    with pytest.raises(KubectlError, match=f"found no ready Pod with the label {SELECTOR} in namespace dns; --name"):
        chosen({SYSTEM: [pod("a")]}, "dns")


def test_a_given_pod_is_asked_ready_or_not() -> None:
    pods = {SYSTEM: [pod("a", ready=False)], "--namespace=dns": [pod("b", "dns")]}
    assert chosen(pods, name="a") == (ServerPod("kube-system", "a", 8181), [("pod", "a", SYSTEM)])
    assert chosen(pods, name="b", namespace="dns")[0].namespace == "dns"
    assert chosen(pods, name="dns/b")[0].namespace == "dns"


def test_a_clients_pod_without_a_namespace_is_one_of_kubectls_context() -> None:
    kubectl = Scripted({"web-1": [pod("web-1", "shop")], "--namespace=shop": [pod("web-2", "shop")]})
    assert pod_name(read_pod(kubectl, "web-1")) == "shop/web-1"
    assert pod_name(read_pod(kubectl, "shop/web-2")) == "shop/web-2"


@pytest.mark.parametrize(
    ("scope", "where"), [(SYSTEM, ""), (EVERYWHERE, " in a ClusterRole, or a --namespace")], ids=["namespace", "all"]
)
def test_a_denied_list_names_the_rule(scope: str, where: str) -> None:
    kubectl = Scripted({}, denied=[f"list pods {scope}"], failing=[scope])
    with pytest.raises(KubectlError) as refused:
        find_server_pods(kubectl, "", SELECTOR, "")
    rule = '{apiGroups: [""], resources: [pods], verbs: [get, list]}'
    assert str(refused.value) == f"`kubectl get` failed with status 1; RBAC denies it: the user needs {rule}{where}"


def test_a_list_that_failed_for_another_reason_names_no_rule() -> None:
    with pytest.raises(KubectlError) as failed:
        find_server_pods(Scripted({}, failing=[SYSTEM]), "", SELECTOR, "")
    assert str(failed.value) == "`kubectl get` failed with status 1"


def test_a_denied_port_forward_names_the_rule() -> None:
    at = ServerPod("dns", "a", 8181)
    denied = Scripted({}, ["create pods --subresource=portforward --namespace=dns"])
    rule = '{apiGroups: [""], resources: [pods/portforward], verbs: [create]}'
    assert why_no_forward(denied, at) == f"; RBAC denies it: in namespace dns the user needs {rule}"
    assert why_no_forward(Scripted({}), at) == ""


READY = {"httpGet": {"path": "/ready", "port": "readiness"}}


@pytest.mark.parametrize(
    ("fields", "port"),
    [
        ({}, 8181),
        ({"readinessProbe": {"httpGet": {"path": "/ready", "port": 8282}}}, 8282),
        ({"readinessProbe": READY, "ports": [{"name": "readiness", "containerPort": 8383}]}, 8383),
        ({"readinessProbe": READY}, 8181),
        ({"readinessProbe": None, "ports": [{"name": "ready", "containerPort": 8484}]}, 8484),
        ({"readinessProbe": {"exec": {}}, "ports": None}, 8181),
        ({"readinessProbe": {"httpGet": {"path": "/healthz", "port": 1}}}, 8181),
        ({"readinessProbe": {"httpGet": {"path": "/ready", "port": 70000}}}, 8181),
    ],
)
def test_the_port_is_that_of_the_readiness_probe_or_the_one_named_ready(fields: dict[str, Any], port: int) -> None:
    assert ready_port(pod("a", **fields)) == port


def test_a_pod_of_another_form_has_the_default_port_and_no_address() -> None:
    for strange in ({}, {"spec": 3, "status": []}, {"spec": {"containers": {}}, "status": {"podIPs": "x"}}):
        assert ready_port(strange) == 8181
        assert pod_addresses(strange) == ()


def test_all_addresses_of_a_pod_are_known_the_first_one_first() -> None:
    assert pod_addresses(pod("a", ips=["10.0.0.1", "fd00::1"])) == ("10.0.0.1", "fd00::1")
    assert pod_addresses({"status": {"podIP": "10.0.0.1"}}) == ("10.0.0.1",)
