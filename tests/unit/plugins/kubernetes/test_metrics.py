"""Metrics of clusters in a scrape."""

import asyncio
from pathlib import Path

import pytest

from tests.support.corefile_settings import settings
from tests.support.exposition_samples import only, scraped
from tests.support.generation_builder import assembly, read_whole
from topodns.cluster.known_kinds import Restored
from topodns.kube.informer.informer import ApiSource
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


def test_a_snapshot_that_is_served_has_an_age_and_others_are_counted() -> None:
    building = assembly()
    text = ". {\nkubernetes {\nendpoint http://127.0.0.1:9\nsnapshot /state\n}\n}\n"
    (cluster,) = building.build(settings(text)).clusters
    maker, source = building.cluster_maker, cluster.source
    assert maker is not None
    assert isinstance(source, ApiSource)

    async def samples() -> dict[str, float]:
        source.snapshot_since = asyncio.get_running_loop().time() - 100.0
        return scraped(readings=cluster_readings(lambda: [cluster], maker))

    assert only(asyncio.run(samples()), "topodns_snapshot_age_seconds") == {}
    cluster.state.restore(Restored(cluster.state.needed, 1_764_244_800))
    maker.snapshots.writes["written"] += 2
    maker.snapshots.refused["old"] += 1
    found = asyncio.run(samples())
    assert only(found, "topodns_snapshot_age_seconds") == {"": pytest.approx(100.0, abs=1.0)}
    assert only(found, "topodns_state_age_seconds") == {"": pytest.approx(100.0, abs=1.0)}
    assert only(found, "topodns_snapshot_writes_total") == {'{outcome="failed"}': 0.0, '{outcome="written"}': 2.0}
    assert only(found, "topodns_snapshots_refused_total") == {'{reason="old"}': 1.0}


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
