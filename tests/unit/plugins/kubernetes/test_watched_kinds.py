"""Requests to an API server, by resource."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from topodns.cluster.label_selector import parse_selector
from topodns.kube.informer.resources import Resource
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.kubernetes.watched_kinds import needed_kinds, resources
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.client_locator import Method

ORIGIN = ("cluster", "local")
PLAIN = KubernetesSettings((ORIGIN,))
POD_LOCATION = TopologySettings(locate=(Method.NODES, Method.PODS))
NO_POD_LOCATION = TopologySettings(locate=(Method.NODES, Method.PODCIDR, Method.SLICES))
VERIFIED = KubernetesSettings((ORIGIN,), pods=PodMode.VERIFIED)
MULTICLUSTER = KubernetesSettings((ORIGIN,), multicluster=(ORIGIN,))
NAMED = replace(MULTICLUSTER, cluster_id="east")
ALWAYS = ["Namespace", "Service", "EndpointSlice"]


def located(methods: str) -> TopologySettings:
    return TopologySettings(locate=tuple(map(Method, methods.split())))


def by_kind(kubernetes: KubernetesSettings, topology: TopologySettings | None = None) -> Mapping[str, Resource]:
    return {resource.kind: resource for resource in resources(kubernetes, topology)}


@pytest.mark.parametrize(
    ("kubernetes", "topology", "more"),
    [
        pytest.param(PLAIN, None, [], id="no more than answers need"),
        pytest.param(PLAIN, TopologySettings(), ["Node", "Pod"], id="nodes and pods for topology"),
        pytest.param(PLAIN, NO_POD_LOCATION, ["Node"], id="nodes alone to locate clients without pods"),
        pytest.param(PLAIN, POD_LOCATION, ["Node", "Pod"], id="pods to locate clients"),
        pytest.param(PLAIN, located("nodelocator"), ["NodeLocator"], id="node locators have the labels of nodes"),
        pytest.param(PLAIN, located("nodelocator slices"), ["NodeLocator"], id="slices need no nodes"),
        pytest.param(PLAIN, located("nodes nodelocator"), ["Node", "NodeLocator"], id="nodes for their addresses"),
        pytest.param(PLAIN, located("podcidr nodelocator"), ["Node", "NodeLocator"], id="nodes for their podCIDRs"),
        pytest.param(PLAIN, located("nodelocator podcidr-unverified"), ["Node", "NodeLocator"], id="without proof"),
        pytest.param(PLAIN, located("podlocator slices"), ["PodLocator"], id="pod locators have the labels of nodes"),
        pytest.param(PLAIN, located("nodes podlocator"), ["Node", "PodLocator"], id="nodes and pod locators"),
        pytest.param(PLAIN, located("podlocator nodelocator"), ["NodeLocator", "PodLocator"], id="both locators"),
        pytest.param(PLAIN, located("pods nodelocator"), ["NodeLocator", "Pod"], id="pods and node locators"),
        pytest.param(PLAIN, located("slices"), ["Node"], id="slices have no labels"),
        pytest.param(VERIFIED, None, ["Pod"], id="pods to verify their names"),
        pytest.param(VERIFIED, POD_LOCATION, ["Node", "Pod"], id="pods once for both"),
        pytest.param(MULTICLUSTER, None, ["ServiceImport"], id="imports for multicluster"),
        pytest.param(
            MULTICLUSTER,
            NO_POD_LOCATION,
            ["Node", "ServiceImport", "ClusterProperty"],
            id="the cluster's id for keys of imports",
        ),
        pytest.param(NAMED, NO_POD_LOCATION, ["Node", "ServiceImport"], id="no id that the Corefile has"),
        pytest.param(KubernetesSettings((ORIGIN,), endpoint_pod_names=True), None, [], id="slices name the pods"),
    ],
)
def test_a_kind_is_watched_only_where_an_answer_rests_on_it(
    kubernetes: KubernetesSettings, topology: TopologySettings | None, more: list[str]
) -> None:
    found = by_kind(kubernetes, topology)
    assert list(found) == [*ALWAYS, *more]
    assert needed_kinds(kubernetes, topology) == frozenset(found)
    assert [kind for kind, resource in found.items() if resource.optional] == more


def test_labels_are_selected_by_the_server_where_coredns_does() -> None:
    labelled = KubernetesSettings((ORIGIN,), labels=parse_selector("app in (web, db)"), pods=PodMode.VERIFIED)
    found = by_kind(labelled, TopologySettings())
    selected = {kind for kind, resource in found.items() if "labelSelector" in resource.selectors}
    assert selected == {"Service", "EndpointSlice", "Pod"}
    assert found["Service"].selectors == {"labelSelector": "app in (web, db)"}


def test_an_empty_selector_is_not_sent() -> None:
    assert by_kind(KubernetesSettings((ORIGIN,), labels=parse_selector("")))["Service"].selectors == {}


def test_pods_that_are_over_are_not_sent() -> None:
    assert by_kind(VERIFIED)["Pod"].selectors == {
        "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown"
    }


def test_locators_are_custom_resources_that_may_be_missing() -> None:
    found = by_kind(PLAIN, located("nodelocator podlocator"))
    assert [(each.paths, each.custom) for each in (found["NodeLocator"], found["PodLocator"])] == [
        (("/apis/topodns.io/v1alpha1/nodelocators",), True),
        (("/apis/topodns.io/v1alpha1/podlocators",), True),
    ]
    assert found["NodeLocator"].rule == (
        'apiGroups: ["topodns.io"], resources: ["nodelocators"], verbs: ["list", "watch"]'
    )
