"""The JSON Schema of the documents of explain, who and audit: it is made of the types, and real documents keep it."""

import json
from collections.abc import Collection
from itertools import product
from pathlib import Path

import pytest

from tests.support.demo import Demo
from tests.support.document_schema import SCHEMA, faults, schema_text
from tests.support.explained_cluster import with_topology, without_topology
from topodns.inspect.audit import document_steps, subjects
from topodns.inspect.explain import explanation_json_steps
from topodns.inspect.sources import manifest_clusters
from topodns.inspect.who import who_reply
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.time_slices import do_at_once

DEMO = ("cache.shop", "db-near.data", "kiosk.shop", "search.shop", "agent.monitoring", "missing.shop", "web.shop")


@pytest.fixture(scope="module")
def demo() -> list[Cluster]:
    return Demo().generation.clusters


def explain_faults(clusters: Collection[Cluster], name: str, qtype: str, **client: str) -> list[str]:
    arguments = {"name": f"{name}.svc.cluster.local", "type": qtype, **client}
    return faults(json.loads(do_at_once(explanation_json_steps(clusters, arguments))), "ExplainDocument")


def test_the_published_schema_is_that_of_the_types() -> None:
    """`python -m tests.support.document_schema` writes it."""
    assert SCHEMA.read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("name", DEMO)
def test_explanations_of_the_example_keep_the_schema(demo: list[Cluster], name: str) -> None:
    for qtype, client in product(("A", "AAAA", "SRV", "MX"), ({"node": "node-c1"}, {"client": "127.10.0.77"})):
        assert explain_faults(demo, name, qtype, **client) == []


@pytest.mark.parametrize("name", ["soft.shop", "hard.shop", "wrong.shop", "plain.shop", "front.shop"])
def test_explanations_with_and_without_topology_keep_the_schema(directory: Path, served: Settings, name: str) -> None:
    for settings in (served, without_topology(directory), with_topology(directory, "unknown_client refuse")):
        for client in ({"node": "far"}, {"client": "10.0.0.1"}, {"client": "192.0.2.1"}):
            assert explain_faults(manifest_clusters(settings), name, "A", **client) == []


def test_locations_keep_the_schema(demo: list[Cluster], directory: Path) -> None:
    for clusters in (demo, manifest_clusters(without_topology(directory))):
        for address in ("127.10.7.100", "127.10.0.5", "192.0.2.1", "2001:db8::1"):
            assert faults(who_reply(clusters, {"client": address}), "WhoDocument") == []


@pytest.mark.parametrize("changes", [(), ("zone=eu-1a:down", "scale=data/db:-1")], ids=str)
def test_audits_keep_the_schema(demo: list[Cluster], changes: tuple[str, ...]) -> None:
    document = json.loads(do_at_once(document_steps(subjects(demo), changes)))
    assert document["clusters"][0]["services"]
    assert faults(document, "AuditDocument") == []


FAULTS = [
    ({"version": 1, "address": "10.0.0.1", "clusters": [], "more": 1}, "WhoDocument: more is in no schema"),
    ({"version": 1, "clusters": []}, "WhoDocument: address is missing"),
    ({"version": 2, "address": "10.0.0.1", "clusters": []}, "WhoDocument.version: 2"),
    ({"version": 1, "address": None, "clusters": []}, "WhoDocument.address: None is no string"),
    ({"version": 1, "address": "", "clusters": [1]}, "WhoDocument.clusters[0]: 1 is no object"),
]


@pytest.mark.parametrize(("document", "fault"), FAULTS, ids=[case[1] for case in FAULTS])
def test_a_document_that_does_not_keep_the_schema_is_found(document: object, fault: str) -> None:
    assert faults(document, "WhoDocument") == [fault]
