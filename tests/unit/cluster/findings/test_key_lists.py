"""The findings about key lists of Services."""

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, node, service, stateful_set
from tests.unit.cluster.findings.scene import NODES, SOURCES, findings
from topodns.cluster.findings.objects import policy_findings
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    Service,
    Upserted,
)
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader

GOVERNING = (
    "Service default/db: topology keys on the governing Service of a StatefulSet hide its members from each other when "
    "they look up the Service's name; give clients a headless Service of their own"
)


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
    assert line.startswith("Service default/db: annotation 'topodns.io/topology-keys': ")
    assert "not a label key" in line
    assert line.endswith(f"; {effect}")


def test_the_source_of_an_invalid_wish_is_named() -> None:
    [(_, line)] = findings(service("db", field=("*", "kubernetes.io/hostname")))
    assert line.startswith("Service default/db: spec.topologyKeys: ")


def test_a_value_that_was_mended_is_reported() -> None:
    [(kind, line)] = findings(service("db", annotation="kubernetes.io/hostname", ttl="soon"))
    assert kind == "mended"
    assert line.startswith("Service default/db: annotation 'topodns.io/ttl': ")
    assert "soon" in line


def test_a_wish_on_a_governing_service_is_reported() -> None:
    keys = "kubernetes.io/hostname"
    assert findings(service("db", annotation=keys), stateful_set("db", "db")) == [("governing", GOVERNING)]


def test_the_governing_service_of_a_statefulset_is_known_by_its_slices() -> None:
    """So it is in a server, which watches no StatefulSets."""
    member = endpoint("10.0.0.1", "n1", hostname="db-0", pod="db-0")
    db = service("db", annotation=HOSTNAME_LABEL)
    assert findings(db, endpoint_slice("db", member)) == [("governing", GOVERNING)]
    assert findings(service("db", annotation="*"), endpoint_slice("db", member)) == [], "`*` alone hides no member"


BOUNDED = (
    "Service default/db: max-endpoints on the governing Service of a StatefulSet hides members from each other when "
    "they look up the Service's name; give clients a headless Service of their own"
)


@pytest.mark.parametrize(
    ("db", "found"),
    [
        (service("db", max_endpoints="2"), [BOUNDED]),
        (service("db", annotation="*", max_endpoints="2"), [BOUNDED]),
        (service("db", annotation=HOSTNAME_LABEL, apply_to="near"), []),
        (service("db", annotation=HOSTNAME_LABEL, apply_to="near", max_endpoints="2"), [BOUNDED]),
        (service("db", annotation=HOSTNAME_LABEL, max_endpoints="2"), [BOUNDED, GOVERNING]),
    ],
)
def test_a_bound_hides_members_from_each_other_and_keys_for_near_do_not(db: Service, found: list[str]) -> None:
    assert findings(db, stateful_set("db", "db")) == [("governing", text) for text in found]
    assert findings(db) == []


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("zone,*", f"no Node has the label zone, which therefore never matches; did you mean {ZONE_LABEL}?"),
        ("example.com/rack", "no Node has the label example.com/rack, which therefore never matches"),
        (
            f"{ZONE_LABEL},{HOSTNAME_LABEL}",
            f"the key {HOSTNAME_LABEL} never decides for clients on Nodes with the label {ZONE_LABEL}, "
            f"since {ZONE_LABEL} before it always matches there; the nearest first: {HOSTNAME_LABEL},{ZONE_LABEL}",
        ),
    ],
)
def test_a_key_that_never_matches_or_never_decides_is_reported(keys: str, text: str) -> None:
    db = service("db", annotation=keys)
    assert findings(*NODES, db) == [("ineffective", f"Service default/db: {text}")]
    assert findings(db) == [], "without Nodes nothing is known of labels"


def test_a_key_that_never_decides_is_reported_in_the_same_words_while_some_node_lacks_the_label_before_it() -> None:
    db = service("db", annotation=f"{ZONE_LABEL},{HOSTNAME_LABEL}")
    reported = findings(*NODES, db)
    with_one_more = dict(findings(*NODES, node("n8"), db))
    assert list(with_one_more) == ["ineffective", "partial"]
    assert [("ineffective", with_one_more["ineffective"])] == reported


def test_a_zone_behind_the_region_never_decides_for_clients_and_endpoints_on_nodes_with_a_region() -> None:
    nodes = [node("n1", {REGION_LABEL: "r", ZONE_LABEL: "a"}), node("n2", {ZONE_LABEL: "a"})]
    line = (
        f"Service default/db: the key {ZONE_LABEL} never decides for clients and endpoints on Nodes with the label "
        f"{REGION_LABEL}, since {REGION_LABEL} before it always matches there; "
        f"the nearest first: {ZONE_LABEL},{REGION_LABEL}"
    )
    db = service("db", annotation=f"{REGION_LABEL},{ZONE_LABEL}")
    assert dict(findings(*nodes, db))["ineffective"] == line


def test_a_label_that_some_nodes_lack_is_reported_once_for_all_services() -> None:
    services = [service(name, annotation=f"{ZONE_LABEL},*") for name in ("a", "b", "c")]
    lacking = [node("n8"), node("n9")]
    line = (
        f"all Services: 2 of 5 Nodes lack the label {ZONE_LABEL}, so it matches nothing there: n8, n9; "
        "it is a topology key of default/a and 2 more"
    )
    assert findings(*NODES, *lacking, *services) == [("partial", line)]


def test_a_label_in_another_case_on_those_nodes_is_named() -> None:
    shouting = node("n8", {"topology.kubernetes.io/Zone": "a"})
    [(_, line)] = findings(*NODES, shouting, service("db", annotation=f"{ZONE_LABEL},*"))
    text = (
        f"1 of 4 Nodes lack the label {ZONE_LABEL} (some have topology.kubernetes.io/Zone), so it matches nothing there"
    )
    assert text in line


def test_labels_count_once_all_nodes_are_listed() -> None:
    state = ClusterState(frozenset(("Node",)), key_reader(SOURCES))
    for each in (NODES[0], service("db", annotation="example.com/rack")):
        state.apply(Upserted(each), 0)
    assert [*filter(None, policy_findings(state, ignored=True))] == []
