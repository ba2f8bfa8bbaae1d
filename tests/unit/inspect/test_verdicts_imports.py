"""`explain` of a ServiceImport: by which key of it a client gets endpoints of several clusters, or why it does not."""

from pathlib import Path

import pytest

from tests.support.corefile_settings import settings
from topodns.inspect.audit import audit_steps
from topodns.inspect.explain import Explanation, explanation_steps, parse_question
from topodns.inspect.sources import manifest_clusters
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.time_slices import do_at_once

MANIFEST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- apiVersion: v1
  kind: Node
  metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, topology.kubernetes.io/region: eu, rack: "7"}}
- {apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: db, annotations: {topodns.io/topology-keys: "no such key"}}
  spec: {clusterIP: None}
"""
PROPERTY = """
- apiVersion: about.k8s.io/v1alpha1
  kind: ClusterProperty
  metadata: {name: cluster.clusterset.k8s.io}
  spec: {value: east}
"""
IMPORT = """
- apiVersion: multicluster.x-k8s.io/v1alpha1
  kind: ServiceImport
  metadata: {namespace: shop, name: db, annotations: %s}
  spec: {%s, ports: []}
"""
SLICE = """
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata:
    namespace: shop
    name: db-%(cluster)s
    labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: %(cluster)s}
  addressType: IPv4
  endpoints:
  - {addresses: [10.%(at)s.0.1], nodeName: n1, zone: a}
  - {addresses: [10.%(at)s.0.2], nodeName: n2, zone: b}
  - {addresses: [10.%(at)s.0.3], nodeName: n3}
"""
COREFILE = """
clusterset.local {
  kubernetes {
    manifests cluster.yaml
    multicluster clusterset.local
  }
  topology {
    locate nodes
  }
}
"""


def cluster(tmp_path: Path, annotations: str, more: str = PROPERTY, kind: str = "type: Headless") -> Cluster:
    slices = "".join(SLICE % {"cluster": each, "at": at} for at, each in ((1, "east"), (2, "west")))
    (tmp_path / "cluster.yaml").write_text(MANIFEST + more + IMPORT % (annotations, kind) + slices)
    (found,) = manifest_clusters(settings(COREFILE, str(tmp_path)))
    return found


def explained(tmp_path: Path, keys: str, node: str = "n1", client: str = "", more: str = PROPERTY) -> Explanation:
    found = cluster(tmp_path, f'{{topodns.io/topology-keys: "{keys}"}}', more)
    arguments = {"name": "db.shop.svc.clusterset.local", "node": node, "client": client}
    return do_at_once(explanation_steps([found], parse_question(arguments)))


def verdicts(explanation: Explanation) -> list[str]:
    found = (
        (each["address"], each["answered"], each["fault"] or each["because"]) for each in explanation.verdicts.endpoints
    )
    return [f"{address} {'yes' if answered else 'no'}: {why}" for address, answered, why in found]


def test_the_policy_is_that_of_the_import_and_not_of_a_service_of_its_name(tmp_path: Path) -> None:
    found = explained(tmp_path, "cluster,*")
    assert (found.policy.keys, found.policy.problem, found.winner, found.findings) == (
        ("cluster", "*"),
        "",
        "cluster",
        (),
    )
    (tried,) = found.tried
    assert (tried["key"], tried["value"], tried["because"], tried["matches"]) == ("cluster", "east", None, 3)


@pytest.mark.parametrize(
    ("ips", "annotations", "reason", "findings"),
    [
        ("[10.98.0.1]", "{}", "the ServiceImport is of type ClusterSetIP: every client gets its ips", ()),
        ("[]", "{}", "the name exists, but the ServiceImport has no spec.ips", ()),
        (
            "[10.98.0.1]",
            "{topodns.io/topology-keys: rack}",
            "the ServiceImport is of type ClusterSetIP: every client gets its ips",
            ("ServiceImport shop/db: topology keys have no effect here: the ServiceImport is not headless",),
        ),
    ],
)
def test_an_import_of_type_clustersetip_has_no_policy_though_a_service_of_its_name_has_one(
    tmp_path: Path, ips: str, annotations: str, reason: str, findings: tuple[str, ...]
) -> None:
    found = cluster(tmp_path, annotations, kind=f"type: ClusterSetIP, ips: {ips}")
    arguments = {"name": "db.shop.svc.clusterset.local", "node": "n1", "client": ""}
    explanation = do_at_once(explanation_steps([found], parse_question(arguments)))
    assert (explanation.policy.source, explanation.policy.keys, explanation.policy.problem) == ("", (), "")
    assert (explanation.reason, explanation.findings) == (reason, findings)


def test_each_endpoint_has_the_reason_of_its_cluster(tmp_path: Path) -> None:
    assert verdicts(explained(tmp_path, "cluster"))[2:4] == [
        "10.1.0.3 yes: by cluster = east",
        "10.2.0.1 no: cluster = west",
    ]


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        (
            "rack",
            [
                "10.1.0.1 yes: by rack = 7",
                "10.1.0.2 no: node n2 has no label rack",
                "10.2.0.1 no: rack counts in this cluster alone, and it is in cluster west",
            ],
        ),
        (
            "topology.kubernetes.io/zone",
            [
                "10.1.0.1 yes: by topology.kubernetes.io/zone = a",
                "10.1.0.2 no: topology.kubernetes.io/zone = b",
                "10.1.0.3 no: its EndpointSlice has no zone",
                "10.2.0.1 yes: by topology.kubernetes.io/zone = a",
            ],
        ),
        (
            "topology.kubernetes.io/region",
            [
                "10.1.0.1 yes: by topology.kubernetes.io/region = eu",
                "10.1.0.2 no: the nodes of this cluster show no one region of zone b",
            ],
        ),
    ],
)
def test_an_endpoint_without_a_value_has_the_reason(tmp_path: Path, keys: str, lines: list[str]) -> None:
    assert set(lines) <= set(verdicts(explained(tmp_path, keys)))


def test_an_unknown_id_is_named(tmp_path: Path) -> None:
    found = explained(tmp_path, "cluster,rack", more="")
    assert [each["because"] for each in found.tried] == ["the id of this cluster is unknown", None]
    assert found.reason == "no key matches a ready endpoint for the client's node: NODATA for this client"


def test_a_client_without_a_node_gets_the_clusters_endpoints(tmp_path: Path) -> None:
    found = explained(tmp_path, "rack,cluster", node="", client="192.0.2.1")
    assert [(each["key"], each["because"]) for each in found.tried] == [
        ("rack", "the client's node is unknown"),
        ("cluster", None),
    ]
    assert len(found.answer) == 3


def test_problems_of_the_annotations_are_findings(tmp_path: Path) -> None:
    found = cluster(tmp_path, '{topodns.io/topology-keys: "a b", topodns.io/max-load: "2"}')
    texts = [
        "ServiceImport shop/db: annotation 'topodns.io/max-load' has no effect on a ServiceImport",
        "ServiceImport shop/db: invalid topology keys: expected a label key or *, found 'a b' "
        "(keys are separated by commas)",
    ]
    assert [str(each) for each in found.findings() if each is not None and each.kind == "import"] == texts
    assert found.topology is not None
    report, _ = do_at_once(audit_steps(found.state, found.topology))
    assert {str(each) for each in report.findings if each.kind == "import"} == set(texts)
