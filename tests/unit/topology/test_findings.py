"""The findings about key lists of Services."""

from collections.abc import Sequence

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, node, packed, service, stateful_set
from topodns.cluster.annotations import SUPEREDGE, TOPOLOGY_KEYS, TTL, BadAnnotation
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    ClusterObject,
    KeySource,
    MisannotatedPod,
    Service,
    StatefulSet,
    Upserted,
)
from topodns.cluster.state import ClusterState
from topodns.topology.findings import policy_findings, service_findings
from topodns.topology.keys import key_reader

SOURCES = (KeySource.ANNOTATION, KeySource.FIELD, KeySource.OPENYURT)
GOVERNING = (
    "Service default/db: topology keys on the governing Service of a StatefulSet hide its members from each other when "
    "they look up the Service's name; give clients a headless Service of their own"
)
MISPLACED = "Service default/web: topology keys have no effect here: the Service is not headless"


def findings(
    *objects: ClusterObject, ignored: bool = True, sources: Sequence[KeySource] = SOURCES
) -> list[tuple[str, str]]:
    """(kind, line) of each finding, sorted."""
    state = ClusterState(frozenset(), key_reader(sources))
    for each in objects:
        state.apply(Upserted(each), 0)
    return sorted((finding.kind, str(finding)) for finding in policy_findings(state, ignored) if finding is not None)


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


@pytest.mark.parametrize(
    ("ignored", "effect"),
    [
        (True, "the Service stays unfiltered"),
        (False, "no client gets an endpoint (on_invalid deny)"),
    ],
)
def test_an_invalid_wish_is_reported_with_its_rule_and_its_effect(ignored: bool, effect: str) -> None:
    [(kind, line)] = findings(service("db", annotation="not a label key"), ignored=ignored)
    assert kind == "invalid"
    assert line.startswith("Service default/db: topology annotation: ")
    assert "not a label key" in line
    assert line.endswith(f"; {effect}")


def test_the_source_of_an_invalid_wish_is_named() -> None:
    [(_, line)] = findings(service("db", field=("*", "kubernetes.io/hostname")))
    assert line.startswith("Service default/db: topology field: ")


def test_a_value_that_was_mended_is_reported() -> None:
    [(kind, line)] = findings(service("db", annotation="kubernetes.io/hostname", ttl="soon"))
    assert kind == "mended"
    assert line.startswith("Service default/db: topology annotation: ")
    assert "soon" in line


def test_a_wish_on_a_governing_service_is_reported() -> None:
    keys = "kubernetes.io/hostname"
    assert findings(service("db", annotation=keys), stateful_set("db", "db")) == [("governing", GOVERNING)]


def test_a_wish_where_it_has_no_effect_is_reported() -> None:
    web = service("web", cluster_ips=["10.96.0.1"], annotation="kubernetes.io/hostname")
    assert findings(web) == [("misplaced", MISPLACED)]


def test_two_annotations_with_keys_are_reported_with_the_one_that_wins() -> None:
    both = service("db", annotation="none", openyurt="kubernetes.io/hostname")
    [(kind, line)] = findings(both)
    assert kind == "overridden"
    assert line == (
        "Service default/db: both topodns.io/topology-keys and openyurt.io/topologyKeys are set; "
        "`annotation` is first in `keys`, and wins"
    )


def test_all_findings_are_reported_at_once() -> None:
    found = findings(
        service("a", annotation="not a label key"),
        service("db", annotation="kubernetes.io/hostname", ttl="soon"),
        service("web", cluster_ips=["10.96.0.1"], annotation="kubernetes.io/hostname"),
        stateful_set("db", "db"),
    )
    assert [kind for kind, _ in found] == ["governing", "invalid", "mended", "misplaced"]


def test_the_governing_service_of_a_statefulset_is_known_by_its_slices() -> None:
    """So it is in a server, which watches no StatefulSets."""
    member = endpoint("10.0.0.1", "n1", hostname="db-0", pod="db-0")
    db = service("db", annotation=HOSTNAME_LABEL)
    assert findings(db, endpoint_slice("db", member)) == [("governing", GOVERNING)]
    assert findings(service("db", annotation="*"), endpoint_slice("db", member)) == [], "`*` alone hides nobody"


def misannotated(name: str, address: str, annotation: str = TOPOLOGY_KEYS) -> MisannotatedPod:
    return MisannotatedPod("default", name, (packed(address),), bad=(BadAnnotation(annotation, TOPOLOGY_KEYS),))


UNKNOWN = "Service default/db: annotation 'topodns.io/topologykeys' is unknown and has no effect, "


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        (BadAnnotation("topodns.io/topologykeys", TOPOLOGY_KEYS), f"{UNKNOWN}did you mean 'topodns.io/topology-keys'?"),
        (
            BadAnnotation("topodns.io/topologykeys", ""),
            f"{UNKNOWN}expected 'topodns.io/topology-keys' or 'topodns.io/ttl'",
        ),
        (
            BadAnnotation(TTL, TTL, "30"),
            "Service default/db: annotation 'topodns.io/ttl': expected text, found 30: put it in quotes; "
            "it has no effect",
        ),
        (
            BadAnnotation(TOPOLOGY_KEYS, TOPOLOGY_KEYS, '["rack", "hall"]'),
            'Service default/db: annotation \'topodns.io/topology-keys\': expected text, found ["rack", "hall"]: '
            "write its items as one text, such as 'a,b'; it has no effect",
        ),
    ],
)
def test_an_annotation_that_has_no_effect_is_reported_with_the_one_that_is_meant(bad: BadAnnotation, line: str) -> None:
    assert findings(service("db", bad=(bad,))) == [("annotation", line)]


@pytest.mark.parametrize(
    ("one", "sources", "text"),
    [
        (service("db", ttl="30"), SOURCES, "annotation 'topodns.io/ttl' has no effect without topology keys"),
        (
            service("db", superedge='["zone"]'),
            SOURCES,
            f"annotation {SUPEREDGE!r} has no effect: `superedge` is not in `keys` of the Corefile",
        ),
        (
            service("db", annotation="zone"),
            (KeySource.FIELD,),
            f"annotation {TOPOLOGY_KEYS!r} has no effect: `annotation` is not in `keys` of the Corefile",
        ),
        (
            service("db", openyurt="zone"),
            SOURCES,
            "annotation 'openyurt.io/topologyKeys' has no effect: expected kubernetes.io/hostname, "
            "openyurt.io/nodepool or kubernetes.io/zone, found 'zone'",
        ),
    ],
)
def test_an_annotation_that_is_not_read_here_is_reported(one: Service, sources: Sequence[KeySource], text: str) -> None:
    assert findings(one, sources=sources) == [("annotation", f"Service default/db: {text}")]


def test_annotations_of_pods_are_reported_once_for_each_headless_service_of_theirs() -> None:
    pods = [misannotated(f"db-{at}", f"10.0.0.{at}") for at in range(1, 4)]
    slices = [endpoint_slice(name, *(endpoint(f"10.0.0.{at}", "n1") for at in range(1, 4))) for name in ("db", "web")]
    web = service("web", cluster_ips=["10.96.0.1"])
    effect = "its Pods have the annotation 'topodns.io/topology-keys', which has no effect on a Pod"
    line = f"{effect}: put 'topodns.io/topology-keys' on the Service"
    assert findings(service("db"), web, *slices, *pods) == [("annotation", f"Service default/db: {line}")]
    assert findings(web, *slices, *pods) == [("annotation", f"Service default/web: {line}")]


def test_annotations_of_pods_without_a_service_are_reported_once_for_a_namespace() -> None:
    pods = [misannotated(f"db-{at}", f"10.0.0.{at}", "topology-keys") for at in range(1, 4)]
    elsewhere = service("db", "shop"), endpoint_slice("db", endpoint("10.0.0.1", "n1"), namespace="shop")
    [(kind, line)] = findings(*pods, *elsewhere)
    assert kind == "annotation_of_pods"
    assert line == (
        "all Services: Pods of namespace 'default' that no Service has as endpoints have the annotation "
        "'topology-keys', which has no effect on a Pod: put 'topodns.io/topology-keys' on a headless Service"
    )


NODES = [node(f"n{at}", {ZONE_LABEL: "a", HOSTNAME_LABEL: f"n{at}"}) for at in range(3)]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("zone,*", f"no Node has the label zone, which therefore never matches; did you mean {ZONE_LABEL}?"),
        ("example.com/rack", "no Node has the label example.com/rack, which therefore never matches"),
        (
            f"{ZONE_LABEL},{HOSTNAME_LABEL}",
            f"the key {HOSTNAME_LABEL} never decides, since {ZONE_LABEL} before it always matches; "
            f"put {HOSTNAME_LABEL} first",
        ),
    ],
)
def test_a_key_that_never_matches_or_never_decides_is_reported(keys: str, text: str) -> None:
    db = service("db", annotation=keys)
    assert findings(*NODES, db) == [("ineffective", f"Service default/db: {text}")]
    assert findings(db) == [], "without Nodes nothing is known of labels"


def test_a_label_that_some_nodes_lack_is_reported_once_for_all_services() -> None:
    services = [service(name, annotation=f"{ZONE_LABEL},*") for name in ("a", "b", "c")]
    lacking = [node("n8"), node("n9")]
    line = (
        f"all Services: 2 of 5 Nodes lack the label {ZONE_LABEL}, so it matches nothing there: n8, n9; "
        "it is a topology key of default/a and 2 more"
    )
    assert findings(*NODES, *lacking, *services) == [("partial", line)]


def test_labels_count_once_all_nodes_are_listed() -> None:
    state = ClusterState(frozenset(("Node",)), key_reader(SOURCES))
    for each in (NODES[0], service("db", annotation="example.com/rack")):
        state.apply(Upserted(each), 0)
    assert [*filter(None, policy_findings(state, ignored=True))] == []


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
