"""All findings about the keys, annotations and objects of a cluster."""

from dataclasses import replace

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, node, service, stateful_set
from tests.unit.cluster.findings.scene import NODES, SOURCES, findings, misannotated
from topodns.cluster.annotations import TOPOLOGY_KEYS, BadAnnotation
from topodns.cluster.findings.objects import policy_findings, service_findings
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    ClusterObject,
    Namespace,
    Service,
    StatefulSet,
    Upserted,
)
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((), id="an empty cluster"),
        pytest.param((service("db"), service("web", cluster_ips=["10.96.0.1"])), id="no wishes"),
        pytest.param((service("db", annotation="kubernetes.io/hostname,*"),), id="a valid wish"),
        pytest.param((service("db"), stateful_set("db", "db")), id="a governing Service without a wish"),
        pytest.param((service("db", annotation="none"), stateful_set("db", "db")), id="one that wishes for nothing"),
        pytest.param(
            (service("db", annotation="kubernetes.io/hostname"), stateful_set("db", "db", "prod")),
            id="a namesake that governs elsewhere",
        ),
        pytest.param(
            (service("db", annotation="kubernetes.io/hostname"), stateful_set("db", "db-peers")),
            id="a Service beside the governing one",
        ),
        pytest.param(
            (service("web", cluster_ips=["10.96.0.1"], annotation="none"),), id="off where it is not headless"
        ),
        pytest.param(
            (service("web", cluster_ips=["10.96.0.1"], field=("*",)),), id="kube-proxy's field where it works"
        ),
    ],
)
def test_there_is_nothing_to_say_about(objects: tuple[Service | StatefulSet, ...]) -> None:
    assert findings(*objects) == []


def test_all_findings_are_reported_at_once() -> None:
    found = findings(
        service("a", annotation="not a label key"),
        service("db", annotation="kubernetes.io/hostname", ttl="soon"),
        service("web", cluster_ips=["10.96.0.1"], annotation="kubernetes.io/hostname"),
        stateful_set("db", "db"),
    )
    assert [kind for kind, _ in found] == ["governing", "invalid", "mended", "misplaced"]


def test_the_findings_about_one_service_are_those_of_all_that_are_about_it() -> None:
    bad = BadAnnotation("topodns.io/topologykeys", TOPOLOGY_KEYS)
    db = service("db", annotation=f"zone,{ZONE_LABEL}", bad=(bad,))
    other = service("other", annotation="no key!", bad=(bad,))
    pod = misannotated("db-0", "10.0.0.1")
    member = endpoint("10.0.0.1", "n1", hostname="db-0", pod="db-0")
    state = ClusterState(frozenset(), key_reader(SOURCES))
    objects: tuple[ClusterObject, ...] = (*NODES, db, other, pod, endpoint_slice("db", member))
    for each in objects:
        state.apply(Upserted(each), 0)
    found = set(filter(None, service_findings(state, db.key, ignored=True)))
    everything = filter(None, policy_findings(state, ignored=True))
    assert found == {finding for finding in everything if finding.service == db.key}
    assert sorted(finding.kind for finding in found) == ["annotation", "annotation", "governing", "ineffective"]


def test_of_hidden_namespaces_there_is_no_finding() -> None:
    bad = (BadAnnotation("topodns.io/topologykeys", TOPOLOGY_KEYS),)
    zoneless = node("n9", {HOSTNAME_LABEL: "n9"})
    state = ClusterState(frozenset(), key_reader(SOURCES))
    for namespace in ("seen", "secret"):
        objects: tuple[ClusterObject, ...] = (
            Namespace(namespace, topology_keys="a b", bad=bad),
            service("db", namespace, annotation=f"zone,{ZONE_LABEL}", bad=bad),
            service("db", namespace, imported=True, annotation="zone"),
            replace(endpoint_slice("none", namespace=namespace), bad=bad),
            replace(misannotated("p", "10.0.0.1"), namespace=namespace),
        )
        for each in (*NODES, zoneless, *objects):
            state.apply(Upserted(each), 0)
    kinds = [
        *("annotation", "annotation_elsewhere", "annotation_elsewhere", "annotation_of_pods", "import"),
        *("ineffective", "keys_of_namespace", "no_slice"),
    ]

    def lines(hidden: str) -> list[tuple[str, str]]:
        found = policy_findings(state, True, lambda namespace: namespace == hidden)
        return sorted((each.kind, str(each)) for each in found if each is not None and each.kind in kinds)

    assert [kind for kind, _ in lines("secret")] == kinds[:-1]
    assert [line for _, line in lines("secret") if "secret" in line] == []
    assert len(lines("")) == 2 * len(lines("secret"))
    (partial,) = (str(each) for each in policy_findings(state, True, "seen".__eq__) if each and each.kind == "partial")
    assert partial.endswith("it is a topology key of secret/db")
