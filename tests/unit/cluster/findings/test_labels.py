"""Findings about labels of Nodes that are topology keys."""

from collections.abc import Generator, Mapping, Sequence

import pytest

from tests.support.model_builders import node, service
from tests.unit.cluster.findings.scene import SOURCES, findings
from topodns.cluster.findings import labels as module
from topodns.cluster.findings.finding import Finding, Severity, hides_none
from topodns.cluster.findings.labels import import_label_findings, label_findings, service_label_findings
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    ClusterObject,
    Deleted,
    Node,
    ObjectKey,
    Upserted,
)
from topodns.cluster.node_labels import ComparedValues
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader

RACK = "example.com/rack"


def state_of(*objects: ClusterObject) -> ClusterState:
    state = ClusterState(frozenset(), key_reader(SOURCES))
    for each in objects:
        state.apply(Upserted(each), 0)
    return state


def found(state: ClusterState, hidden: str = "none") -> list[Finding]:
    return [each for each in label_findings(state, hidden.__eq__) if each is not None]


@pytest.mark.parametrize(
    ("label", "severity"),
    [
        (ZONE_LABEL, Severity.WARNING),
        (REGION_LABEL, Severity.WARNING),
        ("failure-domain.beta.kubernetes.io/zone", Severity.WARNING),
        (RACK, Severity.INFO),
    ],
)
def test_nodes_that_lack_a_zone_are_one_warning_and_those_without_another_label_one_info(
    label: str, severity: Severity
) -> None:
    workers, control = [node(f"w{at}", {label: "a"}) for at in range(3)], [node(f"c{at}") for at in range(3)]
    services = [service(name, annotation=f"{label},*") for name in ("a", "b")]
    (one,) = found(state_of(*workers, *control, *services))
    assert (one.kind, one.severity, one.node_names) == ("partial", severity, ("c0", "c1", "c2"))
    assert one.text.endswith("it is a topology key of default/a and 1 more")


def test_a_label_that_is_no_key_or_that_of_a_hidden_service_alone_is_not_looked_at() -> None:
    nodes = node("n1", {ZONE_LABEL: "a"}), node("n2")
    assert found(state_of(*nodes, service("db", annotation=RACK))) == []
    assert found(state_of(*nodes, service("db", "secret", annotation=ZONE_LABEL)), "secret") == []
    assert found(state_of(*nodes, service("db", "secret", imported=True, annotation=ZONE_LABEL)), "secret") == []


def test_keys_of_a_service_import_count() -> None:
    state = state_of(node("n1", {RACK: "a", "cluster": "x"}), node("n2"), service("db", imported=True, annotation=RACK))
    (one,) = found(state)
    assert one.text.endswith("it is a topology key of ServiceImport default/db")
    imported = service("db", imported=True, annotation="cluster")
    nodes = node("n1", {"cluster": "x"}), node("n2", {"cluster": "X"}), node("n3")
    assert found(state_of(*nodes, imported)) == []
    plain = service("db", annotation="cluster")
    assert [each.kind for each in found(state_of(*nodes, plain, imported))] == ["partial", "alike_values"]


def alike(label: str, *values: str) -> list[str]:
    """The findings about a key with these values, at nodes n0, n1 and so on."""
    nodes = [node(f"n{at}", {label: value, HOSTNAME_LABEL: f"n{at}"}) for at, value in enumerate(values)]
    prefix = "all Services: "
    lines = findings(*nodes, service("db", annotation=f"{label},*"))
    assert all(kind == "alike_values" and line.startswith(prefix) for kind, line in lines)
    return [line.removeprefix(prefix) for _, line in lines]


@pytest.mark.parametrize(
    ("label", "values", "text"),
    [
        (ZONE_LABEL, ("eu-1c", "eu-1C", "eu-1c"), "zones 'eu-1C' (n1) and 'eu-1c' (n0, ...) differ in case only"),
        (REGION_LABEL, ("EU", "eu"), "regions 'EU' (n0) and 'eu' (n1) differ in case only"),
        (ZONE_LABEL, ("a", "a."), "zones 'a' (n0) and 'a.' (n1) differ in punctuation only"),
        (ZONE_LABEL, ("a", "A "), "zones 'A ' (n1) and 'a' (n0) differ in case and spaces only"),
        (ZONE_LABEL, ("eu-1a", "eu_1a"), "zones 'eu-1a' (n0) and 'eu_1a' (n1) differ in punctuation only"),
        (ZONE_LABEL, ("eu-1a", "eu.1A"), "zones 'eu-1a' (n0) and 'eu.1A' (n1) differ in case and punctuation only"),
        (ZONE_LABEL, ("eu-1", "eu--1 "), "zones 'eu--1 ' (n1) and 'eu-1' (n0) differ in spaces and punctuation only"),
        (ZONE_LABEL, ("a", "a "), "zones 'a' (n0) and 'a ' (n1) differ in spaces only"),
        (ZONE_LABEL, (" a", "a "), "zones ' a' (n0) and 'a ' (n1) differ in spaces only"),
        (ZONE_LABEL, ("eu 1", "eu  1"), "zones 'eu  1' (n1) and 'eu 1' (n0) differ in spaces only"),
        (RACK, ("R1", "r1"), f"values 'R1' (n0) and 'r1' (n1) of the label {RACK} differ in case only"),
    ],
)
def test_two_values_of_a_key_that_are_alike_are_named_with_a_node_of_each(
    label: str, values: tuple[str, ...], text: str
) -> None:
    assert alike(label, *values) == [f"{text}, and are two domains"]


def test_of_more_than_two_each_is_compared_with_the_first() -> None:
    assert len(alike(ZONE_LABEL, "eu", "EU", "Eu")) == 2


def test_of_thousands_ten_are_named() -> None:
    assert len(alike(RACK, *(f"{'r' * at}{'R' * (20 - at)}" for at in range(20)))) == 10


def test_values_that_differ_within_and_names_of_nodes_are_not_alike() -> None:
    assert alike(ZONE_LABEL, "eu-1", "eu1", "e-u1", "eu-2") == []
    nodes = node("n1", {HOSTNAME_LABEL: "a"}), node("n2", {HOSTNAME_LABEL: "A"})
    assert findings(*nodes, service("db", annotation=HOSTNAME_LABEL)) == []


def test_nodes_are_compared_once_until_a_label_of_one_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    steps = module._compared_steps

    def counted(label: str, nodes: Sequence[Node]) -> Generator[None, None, ComparedValues]:
        compared.append(label)
        return steps(label, nodes)

    monkeypatch.setattr(module, "_compared_steps", counted)

    def zones(first: str, second: str) -> Mapping[str, str]:
        return {ZONE_LABEL: first, RACK: second}

    state = state_of(node("n1", zones("a", "1")), service("db", annotation=f"{ZONE_LABEL},{RACK}"))
    assert found(state) == found(state) == []
    assert sorted(compared) == [RACK, ZONE_LABEL]
    state.apply(Upserted(node("n2", zones("A", "2"))), 0)
    state.apply(Upserted(node("n2", zones("A", "1"))), 0)
    compared.clear()
    (one,) = found(state)
    assert (one.kind, one.node_names, one.keys, one.severity) == (
        "alike_values",
        ("n2", "n1"),
        (ZONE_LABEL,),
        Severity.WARNING,
    )
    state.apply(Upserted(node("n1", zones("a", "9"))), 0)
    assert found(state) == [one]
    assert compared == [RACK, ZONE_LABEL, RACK]
    state.apply(Deleted("Node", ObjectKey("", "n2")), 0)
    assert found(state) == []


def test_a_step_looks_at_a_bounded_number_of_nodes() -> None:
    nodes = [node(f"n{at}", {ZONE_LABEL: f"z{at}"}) for at in range(5000)]
    state = state_of(*nodes, node("n"), service("db", annotation=ZONE_LABEL))
    assert len(list(label_findings(state, hides_none))) > 3 * 5000 // (10 * module.STEP)


def of_service(state: ClusterState, name: str = "db") -> list[str]:
    """The findings about labels that an explanation has of one Service, all of which are about it."""
    key = ObjectKey("default", name)
    some = [each for each in service_label_findings(state, key, state.policies.get(key)) if each is not None]
    assert {each.service for each in some} <= {key}
    return [each.text for each in some]


def test_a_service_has_the_findings_about_labels_of_its_own_keys_in_the_words_of_an_audit() -> None:
    nodes = node("n1", {ZONE_LABEL: "EU-1A", RACK: "r"}), node("n2", {ZONE_LABEL: "eu-1a", RACK: "R"})
    state = state_of(*nodes, service("db", annotation=f"{ZONE_LABEL},*"), service("web", annotation="none"))
    said = "zones 'EU-1A' (n1) and 'eu-1a' (n2) differ in case only, and are two domains"
    assert of_service(state) == [said] == [each.text for each in found(state)]
    assert of_service(state, "web") == of_service(state, "missing") == []


def test_a_service_has_the_finding_about_a_label_that_some_nodes_have_in_another_case() -> None:
    nodes = node("n1", {ZONE_LABEL: "a"}), node("n2", {"topology.kubernetes.io/Zone": "a"})
    state = state_of(*nodes, service("db", annotation=ZONE_LABEL))
    (said,) = of_service(state)
    assert said == (
        f"1 of 2 Nodes lack the label {ZONE_LABEL} (some have topology.kubernetes.io/Zone), "
        "so it matches nothing there: n2"
    )
    assert found(state)[0].text == f"{said}; it is a topology key of default/db"


def test_a_service_has_no_finding_about_a_label_that_some_nodes_lack_in_any_case() -> None:
    state = state_of(node("n1", {ZONE_LABEL: "a"}), node("n2"), service("db", annotation=ZONE_LABEL))
    assert of_service(state) == []


def test_a_service_import_has_the_findings_about_labels_without_those_about_the_key_cluster() -> None:
    nodes = node("n1", {RACK: "r", "cluster": "x"}), node("n2", {RACK: "R", "cluster": "X"})
    state = state_of(*nodes, service("db", imported=True, annotation=f"{RACK},cluster"))
    some = import_label_findings(state, ObjectKey("default", "db"))
    assert [each.text for each in some if each is not None] == [
        f"values 'R' (n2) and 'r' (n1) of the label {RACK} differ in case only, and are two domains"
    ]


def test_the_values_of_a_label_are_compared_once_for_one_service_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(node("n1", {RACK: "r"}), node("n2", {RACK: "R"}), service("db", annotation=RACK))
    first = found(state)
    monkeypatch.setattr(module, "_compared_steps", None)
    assert of_service(state) == [each.text for each in first]
    state.apply(Deleted("Service", ObjectKey("default", "db")), 0)
    assert (found(state), state.node_labels.compared) == ([], {}), "forgotten with the last key"


def sharing(*values: str | None, key: str = HOSTNAME_LABEL) -> list[str]:
    """The findings about a Service with this key and nodes n1, n2 and so on with these hostnames; None: no label."""
    nodes = [node(f"n{at}", {HOSTNAME_LABEL: value} if value else {}) for at, value in enumerate(values, 1)]
    return [str(each) for each in found(state_of(*nodes, service("db", annotation=f"{key},*")))]


@pytest.mark.parametrize(
    ("hostnames", "text"),
    [
        (("n1", "n1"), "Nodes n1 and n2 both have kubernetes.io/hostname=n1"),
        ((None, "n1"), "Nodes n1 and n2 both have kubernetes.io/hostname=n1 (n1 by its name)"),
        (("x", "n2", "x"), "Nodes n1 and n3 both have kubernetes.io/hostname=x"),
        (("x", "x", "x"), "Nodes n1, n2, n3 all have kubernetes.io/hostname=x"),
        (("x",) * 7, "Nodes n1, n2, n3, n4, n5 and 2 more all have kubernetes.io/hostname=x"),
    ],
)
def test_a_hostname_that_several_nodes_have_is_named_with_the_first_of_them(
    hostnames: tuple[str | None, ...], text: str
) -> None:
    assert sharing(*hostnames) == [f"all Services: {text}: one domain"]


def test_nodes_with_hostnames_of_their_own_share_none_whether_these_are_their_names_or_not() -> None:
    assert sharing("n1", "n2", None) == sharing("a", "b") == sharing("n2", "n1") == []


def test_a_shared_hostname_has_no_effect_where_it_is_no_key() -> None:
    assert sharing("n1", "n1", key="!other") == []


def test_a_service_whose_key_is_the_hostname_has_the_finding_about_a_shared_one() -> None:
    nodes = [node(name, {HOSTNAME_LABEL: "n1", ZONE_LABEL: "a"}) for name in ("n1", "n2")]
    state = state_of(*nodes, service("db", annotation=HOSTNAME_LABEL), service("web", annotation=ZONE_LABEL))
    (one,) = found(state)
    assert of_service(state) == [one.text]
    assert of_service(state, "web") == []
    assert (one.kind, one.severity, one.nodes, one.node_names) == ("shared_hostname", Severity.WARNING, 2, ("n1", "n2"))


def test_of_thousands_of_shared_hostnames_the_first_are_named_in_small_steps() -> None:
    nodes = [node(f"n{at}", {HOSTNAME_LABEL: f"x{at % 2500}"}) for at in range(5000)]
    steps = list(label_findings(state_of(*nodes, service("db", annotation=HOSTNAME_LABEL)), hides_none))
    assert len([each for each in steps if each is not None]) == module.MAX_SHARED
    assert len(steps) >= module.MAX_SHARED + 2500 // module.STEP


def empty(label: str, *values: str) -> list[str]:
    """The findings about an empty value of a key, where nodes n0, n1 and so on have these values."""
    nodes = [node(f"n{at}", {label: value}) for at, value in enumerate(values)]
    some = found(state_of(*nodes, service("db", annotation=label)))
    assert {each.kind for each in some} <= {"empty_value"}
    return [each.text for each in some]


def test_nodes_whose_zone_is_the_empty_text_are_named_as_a_domain() -> None:
    own = "with an empty value, which is a domain of its own"
    assert empty(ZONE_LABEL, "a", "", "") == [f"2 Nodes have {ZONE_LABEL} {own}: n1, n2"]
    assert empty(ZONE_LABEL, "a", "") == [f"1 Node has {ZONE_LABEL} {own}: n1"]
    assert empty(ZONE_LABEL, "", "") == [f"2 Nodes have {ZONE_LABEL} {own}: n0, n1"]
    assert empty(RACK, "1", "") == [f"1 Node has {RACK} {own}: n1"]


def test_a_label_without_any_value_is_a_mark_that_nodes_have_or_lack() -> None:
    assert empty("node-role.kubernetes.io/worker", "", "") == []
