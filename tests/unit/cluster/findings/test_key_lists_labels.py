"""Topology keys beside the labels that Nodes have."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest

from tests.support.model_builders import endpoint, node
from topodns.cluster.endpoints import Pool, Segment
from topodns.cluster.findings import key_lists
from topodns.cluster.findings.key_lists import (
    MAX_NEAREST,
    absent_keys,
    key_findings,
    nearest_label,
    nodes_without,
    partial_keys,
    shadowed_keys,
)
from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, KeySource, MaxLoad, ObjectKey, Policy
from topodns.cluster.node_labels import NodeLabels
from topodns.topology.select import Location, select

REGION, RACK = "topology.kubernetes.io/region", "example.com/rack"
BETA = "failure-domain.beta.kubernetes.io"
EVERYWHERE = dict.fromkeys((REGION, ZONE_LABEL, HOSTNAME_LABEL), "x")


def labels_of(*nodes: Mapping[str, str]) -> NodeLabels:
    labels = NodeLabels()
    for at, each in enumerate(nodes):
        labels.move(None, node(f"n{at}", each))
    return labels


def policy(*keys: str, otherwise: tuple[str, ...] | None = None) -> Policy:
    return Policy(keys, KeySource.ANNOTATION, keys_if_unlabelled=otherwise)


def test_keys_that_no_node_has_are_absent_and_those_that_some_have_partial() -> None:
    labels = labels_of({**EVERYWHERE, RACK: "r1"}, EVERYWHERE)
    keys = (HOSTNAME_LABEL, RACK, "zone", ZONE_LABEL, "*")
    assert absent_keys(keys, labels) == ("zone",)
    assert absent_keys(("!zone", f"!{RACK}"), labels) == ("!zone",)
    assert partial_keys(policy(f"!{RACK}", RACK), labels) == (RACK,)
    assert partial_keys(policy(*keys), labels) == (RACK,)
    assert partial_keys(policy(RACK, otherwise=(HOSTNAME_LABEL,)), labels) == ()


def test_a_node_without_a_hostname_has_its_name() -> None:
    assert absent_keys((HOSTNAME_LABEL,), labels_of({RACK: "r1"})) == ()


def test_nodes_that_are_not_ready_may_lack_a_label_for_a_moment() -> None:
    nodes = [node("c"), node("b", {RACK: "r1"}), node("a"), node("new", ready=False)]
    assert nodes_without(RACK, nodes) == ["a", "c"]


@pytest.mark.parametrize(
    ("keys", "shadowed"),
    [
        ((ZONE_LABEL, HOSTNAME_LABEL), [(HOSTNAME_LABEL, ZONE_LABEL)]),
        ((ZONE_LABEL, HOSTNAME_LABEL, "*"), [(HOSTNAME_LABEL, ZONE_LABEL)]),
        ((REGION, ZONE_LABEL, HOSTNAME_LABEL), [(ZONE_LABEL, REGION), (HOSTNAME_LABEL, REGION)]),
        (("failure-domain.beta.kubernetes.io/region", ZONE_LABEL), []),  # no Node has the first
        ((HOSTNAME_LABEL, ZONE_LABEL, REGION, "*"), []),
        ((ZONE_LABEL, f"!{ZONE_LABEL}"), []),
        ((f"!{HOSTNAME_LABEL}", f"!{ZONE_LABEL}"), [(f"!{ZONE_LABEL}", f"!{HOSTNAME_LABEL}")]),
        ((f"!{ZONE_LABEL}", f"!{HOSTNAME_LABEL}"), []),
        ((ZONE_LABEL, RACK), []),  # the zones of racks are not known
        ((RACK, HOSTNAME_LABEL), []),  # a Node without a rack still has a hostname
        ((HOSTNAME_LABEL, "*"), []),
    ],
)
def test_a_key_behind_one_of_a_wider_domain_never_decides(
    keys: tuple[str, ...], shadowed: list[tuple[str, str]]
) -> None:
    policy = Policy(keys, KeySource.ANNOTATION)
    assert list(shadowed_keys(policy, labels_of({**EVERYWHERE, RACK: "r1"}, EVERYWHERE))) == shadowed


def test_any_label_of_all_nodes_before_the_hostname_always_matches() -> None:
    labels = labels_of({RACK: "r1"}, {RACK: "r2"})
    policy = Policy((RACK, HOSTNAME_LABEL), KeySource.ANNOTATION)
    assert list(shadowed_keys(policy, labels)) == [(HOSTNAME_LABEL, RACK)]


def test_behind_a_zone_that_some_nodes_have_the_hostname_decides_only_for_clients_on_the_others() -> None:
    nodes = [node("zoned", {ZONE_LABEL: "a", HOSTNAME_LABEL: "zoned"}), node("bare", {HOSTNAME_LABEL: "bare"})]
    labels = labels_of(*(each.labels for each in nodes))
    keys = policy(ZONE_LABEL, HOSTNAME_LABEL)
    assert list(shadowed_keys(keys, labels)) == [(HOSTNAME_LABEL, ZONE_LABEL)]

    endpoints = (endpoint("10.1.0.1", "zoned"), endpoint("10.1.0.2", "bare"))
    pool = Pool([Segment(endpoints)], {each.name: each for each in nodes}.get)
    winners = {each.name: select(pool, keys, Location(each.name, each)).key for each in nodes}
    assert winners == {"zoned": ZONE_LABEL, "bare": HOSTNAME_LABEL}


def test_behind_a_zone_that_no_node_has_every_key_may_decide() -> None:
    assert list(shadowed_keys(policy(ZONE_LABEL, HOSTNAME_LABEL), labels_of({}, {}))) == []


def test_a_key_that_takes_nodes_beyond_the_load_of_a_wider_one_may_decide() -> None:
    labels = labels_of(EVERYWHERE, EVERYWHERE)
    guarded = Policy(
        (ZONE_LABEL, HOSTNAME_LABEL, f"!{HOSTNAME_LABEL}", f"!{ZONE_LABEL}"),
        KeySource.ANNOTATION,
        max_load=MaxLoad(Fraction(2), ObjectKey("default", "db")),
    )
    assert list(shadowed_keys(guarded, labels)) == [(f"!{ZONE_LABEL}", f"!{HOSTNAME_LABEL}")]


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("zone", ZONE_LABEL),
        ("topology.kubernetes.io/Zone", ZONE_LABEL),
        ("topology.kubernetes.io/zonee", ZONE_LABEL),
        ("failure-domain.beta.kubernetes.io/zone", ZONE_LABEL),
        ("topology.kubernets.io/zone", ZONE_LABEL),
        ("topology.kubernetes.io/region", ""),
        ("topology.kubernetes.io/hostname", HOSTNAME_LABEL),
        ("kubernetes.io/hostnme", HOSTNAME_LABEL),
        ("rack", RACK),
        ("example.com/racks", RACK),
        ("example.org/floor", ""),
        ("os", "kubernetes.io/os"),
    ],
)
def test_the_nearest_label_is_that_of_a_like_name_in_any_domain(key: str, nearest: str) -> None:
    names = ("beta.kubernetes.io/os", RACK, HOSTNAME_LABEL, "kubernetes.io/os", ZONE_LABEL)
    assert nearest_label(key, names) == nearest


@pytest.mark.parametrize(
    ("keys", "order", "how"),
    [
        ((REGION, ZONE_LABEL, HOSTNAME_LABEL), (HOSTNAME_LABEL, ZONE_LABEL, REGION), "the nearest first"),
        ((ZONE_LABEL, REGION, HOSTNAME_LABEL, "*"), (HOSTNAME_LABEL, ZONE_LABEL, REGION, "*"), "the nearest first"),
        ((REGION, RACK, ZONE_LABEL), (ZONE_LABEL, REGION, RACK), "the nearest first"),  # racks stand where they stood
        ((f"!{HOSTNAME_LABEL}", f"!{ZONE_LABEL}"), (f"!{ZONE_LABEL}", f"!{HOSTNAME_LABEL}"), "in this order"),
    ],
)
def test_every_line_about_a_shadowed_key_ends_with_the_one_order_in_which_each_key_may_decide(
    keys: tuple[str, ...], order: tuple[str, ...], how: str
) -> None:
    labels = labels_of(EVERYWHERE)
    findings = key_findings(ObjectKey("default", "db"), policy(*keys), False, False, True, labels)
    texts = [each.text for each in findings if "never decides" in each.text]
    assert {text.rpartition("; ")[2] for text in texts} == {f"{how}: {','.join(order)}"}
    assert list(shadowed_keys(policy(*order), labels)) == [], "there each may decide"


@pytest.mark.parametrize("part", ["zone", "region"])
def test_the_other_well_known_spelling_of_a_label_is_meant_before_any_like_name(part: str) -> None:
    old, new, other = (f"{domain}/{part}" for domain in (BETA, "topology.kubernetes.io", "topology.gke.io"))
    assert nearest_label(old, (HOSTNAME_LABEL, f"failure-domain.beta.gke.io/{part}", new, other)) == new
    assert nearest_label(new, (old, HOSTNAME_LABEL, other)) == old
    assert nearest_label(new, (HOSTNAME_LABEL, other)) == other


def test_a_flood_of_wrong_keys_takes_no_comparison_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 Services with 16 keys each would keep the loop at work for minutes, and again after each change."""
    compared: list[str] = []
    nearest = key_lists._nearest

    def counted(key: str, names: Sequence[str]) -> str:
        compared.append(key)
        return nearest(key, names)

    monkeypatch.setattr(key_lists, "_nearest", counted)
    names = labels_of({RACK: "1"}, EVERYWHERE).names
    for _ in range(2):
        found = {nearest_label(f"example.com/rac{at}", names) for at in range(MAX_NEAREST + 10)}
    assert found == {RACK, ""}
    assert len(compared) == MAX_NEAREST
