"""The JSON document of an audit: its members, and its bounds."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.corefile_settings import settings
from tests.support.demo import Demo
from tests.support.documents import DOCUMENTS
from tests.support.generation_builder import assembly
from tests.support.model_builders import endpoint, endpoint_slice, node, service
from tests.unit.cluster.findings.scene import misannotated
from topodns.cluster.model import ClusterObject, KeySource, Upserted
from topodns.cluster.state import ClusterState
from topodns.inspect import audit
from topodns.inspect.audit import AuditSubject, document_steps, subjects
from topodns.inspect.errors import Refused
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import do_at_once
from topodns.topology.keys import key_reader

Z = "topology.kubernetes.io/zone"


def subject(*objects: ClusterObject) -> AuditSubject:
    state = ClusterState(frozenset(), key_reader((KeySource.ANNOTATION,)))
    for each in objects:
        state.apply(Upserted(each), 0)
    return AuditSubject(state, TopologySettings())


def audited(*clusters: AuditSubject, changes: tuple[str, ...] = ()) -> list[Mapping[str, Any]]:
    found = json.loads(do_at_once(document_steps(clusters, changes)))
    assert found["version"] == 1
    clusters_found: list[Mapping[str, Any]] = found["clusters"]
    return clusters_found


SMALL = (
    node("a1", {Z: "a"}),
    node("b1", {Z: "b"}),
    service("db", annotation=Z),
    endpoint_slice("db", endpoint("10.0.0.1", "a1")),
)


def test_the_document_has_all_of_a_cluster() -> None:
    [cluster] = audited(subject(*SMALL))
    uncovered = {
        "service": "default/db",
        "severity": "error",
        "kind": "uncovered",
        "text": "clients on 1 of 2 Nodes get no endpoint (NODATA), all of zone b: b1",
        "nodes": 1,
        "node_names": ["b1"],
        "zones": ["b"],
    }
    assert cluster == {
        "origins": [],
        "waiting": [],
        "skipped": [],
        "nodes": 2,
        "counts": {"error": 1, "warning": 0, "info": 0},
        "others": [],
        "others_left_out": 0,
        "services": [
            {
                "service": "default/db",
                "keys": [Z],
                "source": "annotation",
                "guards": {},
                "endpoints": 1,
                "nodes": 2,
                "covered": 1,
                "zones": [
                    {"zone": "a", "nodes": 1, "covered": 1, "endpoints": 1},
                    {"zone": "b", "nodes": 1, "covered": 0, "endpoints": 0},
                ],
                "skew": 1.0,
                "findings": [uncovered],
            }
        ],
        "services_left_out": 0,
        "what_if": None,
    }


def test_a_what_if_has_the_services_that_change() -> None:
    [cluster] = audited(subject(*SMALL), changes=("keys=default/db:none",))
    assert cluster["what_if"]["changes"] == ["keys=default/db:none"]
    assert cluster["what_if"]["counts"] == {"error": 0, "warning": 0, "info": 0}
    [change] = cluster["what_if"]["services"]
    assert (change["service"], change["before"]["covered"], change["after"]["covered"]) == ("default/db", 1, 2)
    assert ([one["kind"] for one in change["gone"]], change["new"]) == (["uncovered"], [])


def test_a_finding_about_the_cluster_has_no_service() -> None:
    waiting = replace(subject(*SMALL), waiting=("Pod: denied",))
    waiting.state.needed = frozenset({"Pod"})
    waiting.state.denied.add("Pod")
    [cluster] = audited(waiting)
    assert [(one["service"], one["kind"]) for one in cluster["others"]] == [(None, "unlocated")]
    assert cluster["waiting"] == ["Pod: denied"]


def test_a_finding_about_annotations_of_pods_names_the_first_of_them() -> None:
    pods = [misannotated(f"db-{at}", f"10.0.0.{at}") for at in (2, 1)]
    [cluster] = audited(subject(*SMALL, *pods))
    texts = {one["service"]: one["text"] for one in cluster["others"] if "on a Pod" in one["text"]}
    assert texts.keys() == {"default/db", None}
    assert texts["default/db"].endswith(": put 'topodns.io/topology-keys' on the Service (Pod db-1)")
    assert texts[None].endswith(": put 'topodns.io/topology-keys' on a headless Service (Pod db-2)")


def test_of_several_clusters_a_what_if_is_of_those_that_have_its_names() -> None:
    other = subject(node("c1", {Z: "c"}), service("db", annotation=Z), endpoint_slice("db", endpoint("10.0.0.2", "c1")))
    first, second = audited(subject(*SMALL), other, changes=("node=c1:down",))
    assert first["what_if"] is None
    assert second["what_if"]["services"][0]["after"]["nodes"] == 0
    with pytest.raises(Refused, match="no Node is named 'd1'"):
        audited(subject(*SMALL), other, changes=("node=d1:down",))


def test_rows_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_ROWS", 2)
    [cluster] = audited(subject(*SMALL, *(service(f"s{at}", annotation=Z) for at in range(4))))
    assert [one["service"] for one in cluster["services"]] == ["default/db", "default/s0"]
    assert cluster["services_left_out"] == 3
    assert cluster["counts"] == {"error": 5, "warning": 0, "info": 0}


def test_octets_beyond_the_bound_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_OCTETS", 1500)
    many = [service(f"s{at}", annotation=Z) for at in range(100)]
    text = do_at_once(document_steps([subject(*SMALL, *many)], ()))
    [cluster] = json.loads(text)["clusters"]
    assert len(text) < 2000
    assert len(cluster["services"]) + cluster["services_left_out"] == 101


def test_zones_that_only_slices_name_are_bounded() -> None:
    some = [endpoint(f"10.0.{at}.1", topology_zone=f"z{at}") for at in range(200)]
    [cluster] = audited(subject(service("db", annotation=f"{Z},*"), endpoint_slice("db", *some)))
    assert len(cluster["services"][0]["zones"]) == audit.MAX_ZONES


def test_the_clusters_of_a_corefile_are_those_with_topology() -> None:
    plain = assembly().build(settings("cluster.local {\nkubernetes\n}\n"))
    assert subjects(plain.clusters) == []
    [cluster] = subjects(Demo().generation.clusters)
    assert (cluster.origins, cluster.waiting) == (
        ("cluster.local.", "clusterset.local.", "in-addr.arpa.", "ip6.arpa."),
        (),
    )


def test_a_cluster_that_is_not_known_yet_says_what_it_waits_for() -> None:
    [cluster] = subjects(assembly().build(settings("cluster.local {\nkubernetes\ntopology\n}\n")).clusters)
    assert any("Service" in line for line in cluster.waiting)


def test_every_member_is_in_the_manual() -> None:
    def names(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(names, value.values()))
        return set().union(*map(names, value)) if isinstance(value, list) else set()

    found = json.loads(do_at_once(document_steps(subjects(Demo().generation.clusters), ("zone=eu-1b:down",))))
    manual = DOCUMENTS["docs/operate/audit.md"]
    assert sorted(name for name in names(found) if f"`{name}`" not in manual) == []
