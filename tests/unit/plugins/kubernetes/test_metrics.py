"""Metrics of clusters in a scrape."""

from pathlib import Path

import pytest

from tests.support.corefile_settings import settings
from tests.support.exposition_samples import only, scraped
from tests.support.generation_builder import assembly, read_whole
from topodns.plugins.kubernetes.metrics import cluster_readings

LOCATORS = """
apiVersion: topodns.io/v1alpha1
kind: NodeLocator
metadata: {name: one}
spec: {podIPs: [10.1.1.1, 127.0.0.1, 10.1.1], addresses: [192.0.2.1]}
---
apiVersion: topodns.io/v1alpha1
kind: PodLocator
metadata: {name: p, namespace: shop}
spec: {addresses: [10.1.1.1, "fe80::1"], nodeName: two}
---
apiVersion: topodns.io/v1alpha1
kind: PodLocator
metadata: {name: q, namespace: shop}
spec: {addresses: [192.0.2.1], nodeName: two}
"""
MANIFEST = """
apiVersion: v1
kind: Node
metadata: {name: one}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
status: {phase: Running, podIP: 10.1.1.1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: None}
"""
ALWAYS = {"Namespace": 0.0, "Service": 1.0, "EndpointSlice": 0.0}


@pytest.mark.parametrize(
    ("directives", "more"),
    [
        ("kubernetes {\n manifests .\n}", {}),
        ("kubernetes {\n manifests .\n}\ntopology", {"Node": 1.0, "Pod": 1.0}),
        ("kubernetes {\n manifests .\n pods verified\n}", {"Pod": 1.0}),
    ],
)
def test_objects_are_counted_of_the_kinds_that_are_watched_and_of_no_others(
    tmp_path: Path, directives: str, more: dict[str, float]
) -> None:
    (tmp_path / "cluster.yaml").write_text(MANIFEST)
    building = assembly()
    clusters = read_whole(building, settings(f". {{\n{directives}\n}}\n", str(tmp_path))).clusters
    assert building.cluster_maker is not None
    got = cluster_readings(lambda: clusters, building.cluster_maker)
    shown = only(scraped(readings=got), "topodns_state_objects")
    assert shown == {f'{{kind="{kind}"}}': count for kind, count in {**ALWAYS, **more}.items()}


def test_contradicted_and_refused_addresses_of_locators_are_counted_by_kind_and_reason(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(LOCATORS)
    building = assembly()
    corefile = ". {\nkubernetes {\n manifests .\n}\ntopology {\n locate nodelocator podlocator\n}\n}\n"
    clusters = read_whole(building, settings(corefile, str(tmp_path))).clusters
    for cluster in clusters:
        list(cluster.feed.idle_work())
    assert building.cluster_maker is not None
    samples = scraped(readings=cluster_readings(lambda: clusters, building.cluster_maker))
    assert only(samples, "topodns_locator_contradictions") == {
        '{kind="NodeLocator",reason="conflict"}': 1.0,
        '{kind="PodLocator",reason="conflict"}': 1.0,
        '{kind="PodLocator",reason="node_address"}': 1.0,
    }
    assert only(samples, "topodns_locator_refused_addresses") == {
        '{kind="NodeLocator",reason="loopback"}': 1.0,
        '{kind="NodeLocator",reason="malformed"}': 1.0,
        '{kind="PodLocator",reason="link_local"}': 1.0,
    }
    assert only(samples, "topodns_state_objects").items() >= {
        ('{kind="NodeLocator"}', 1.0),
        ('{kind="PodLocator"}', 2.0),
    }
