"""Findings about the namespaces that a `default` names, and about its keys."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.model_builders import node, service
from topodns.cluster.findings.finding import Finding, hides_none
from topodns.cluster.label_selector import parse_selector
from topodns.cluster.model import (
    ClusterObject,
    KeySource,
    Kind,
    Namespace,
    ObjectKey,
    Policy,
    Replaced,
    kind_of,
)
from topodns.cluster.state import ClusterState
from topodns.plugins.topology.findings import SERVICES, default_findings, with_origin
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import DefaultKeys, key_reader

NAMES = "Corefile:7: 'default' names the namespace"
ZONES = Policy(("zone", "*"), KeySource.DEFAULT)


def found(named: Sequence[str], existing: Sequence[str]) -> list[str]:
    state = ClusterState(frozenset({"Namespace"}))
    state.apply(Replaced("Namespace", tuple(map(Namespace, existing))), 0)
    settings = TopologySettings(defaults=(DefaultKeys(ZONES, tuple(named), place="Corefile:7"),))
    return lines(state, settings)


def lines(state: ClusterState, settings: TopologySettings, hidden: str = "") -> list[str]:
    return [str(each) for each in default_findings(state, settings, hidden.__eq__, set()) if each is not None]


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (("shop",), []),
        ((), []),
        (("plian",), [f"{NAMES} 'plian', which does not exist, did you mean 'plain'?"]),
        (("shop", "other"), [f"{NAMES} 'other', which does not exist"]),
    ],
)
def test_a_namespace_that_does_not_exist_is_named(named: Sequence[str], expected: list[str]) -> None:
    assert found(named, ["plain", "shop"]) == expected


@pytest.mark.parametrize(
    ("source", "namespaces", "keys", "places"),
    [
        (KeySource.DEFAULT, (), ("zone",), "Corefile:7"),
        (KeySource.DEFAULT, ("shop",), ("zone",), "Corefile:7"),
        (KeySource.DEFAULT, ("web",), ("zone",), ""),
        (KeySource.DEFAULT, (), (), ""),
        (KeySource.ANNOTATION, (), ("zone",), ""),
    ],
)
def test_a_finding_about_keys_of_a_default_has_its_place(
    source: KeySource, namespaces: tuple[str, ...], keys: tuple[str, ...], places: str
) -> None:
    settings = TopologySettings(defaults=(DefaultKeys(ZONES, namespaces, place="Corefile:7"),))
    about = Finding(ObjectKey("shop", "db"), "ineffective", "no Node has it", keys=keys)
    said = with_origin(about, replace(ZONES, source=source), settings).text
    assert said == "no Node has it" + (f" (keys of 'default', {places})" if places else "")


def test_before_the_namespaces_are_listed_nothing_is_said_of_them() -> None:
    settings = TopologySettings(defaults=(DefaultKeys(ZONES, ("shop",), place="Corefile:7"),))
    assert lines(ClusterState(frozenset({"Namespace"})), settings) == []


def test_a_namespace_that_is_hidden_is_named() -> None:
    settings = TopologySettings(defaults=(DefaultKeys(ZONES, ("shop", "web"), place="Corefile:7"),))
    state = state_of(Namespace("shop"), Namespace("web"), defaults=settings.defaults)
    assert lines(state, settings, "web") == [f"{NAMES} 'web', which 'kubernetes' hides"]


RACKS, RAKS = Policy(("rack", "*"), KeySource.DEFAULT), Policy(("rak", "*"), KeySource.DEFAULT)
NO_RAK = "Corefile:7: 'default': no Node has the label rak, which therefore never matches; did you mean rack?"


def state_of(*objects: ClusterObject, defaults: Sequence[DefaultKeys]) -> ClusterState:
    kinds: tuple[Kind, ...] = ("Namespace", "Node", "Service")
    state = ClusterState(frozenset(kinds), key_reader((KeySource.ANNOTATION,), defaults))
    for kind in kinds:
        state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)
    return state


def idle(policy: Policy, labels: str, *namespaces: str) -> list[str]:
    """The findings about one line `default` in a cluster with a headless Service in `shop` that is without keys, one
    with keys, and one with a ClusterIP.
    """
    defaults = (DefaultKeys(policy, namespaces, parse_selector(labels), place="Corefile:7"),)
    objects: tuple[ClusterObject, ...] = (
        *map(Namespace, ("shop", "web")),
        node("n1", {"rack": "1"}),
        replace(service("db", "shop"), labels={"tier": "data"}),
        replace(service("queue", "shop", annotation="rack"), labels={"tier": "queue"}),
        replace(service("front", "web", ["10.96.0.1"]), labels={"tier": "front"}),
    )
    return lines(state_of(*objects, defaults=defaults), TopologySettings(defaults=defaults))


@pytest.mark.parametrize(("labels", "namespaces"), [("", ()), ("", ("web",)), ("tier=data", ()), ("tier", ("shop",))])
def test_of_a_default_that_holds_for_a_service_or_has_no_labels_nothing_is_said(
    labels: str, namespaces: tuple[str, ...]
) -> None:
    assert idle(RACKS, labels, *namespaces) == []


@pytest.mark.parametrize(
    ("labels", "namespaces", "which"),
    [
        ("tier=dta", (), "headless Service"),
        ("tier=front", (), "headless Service"),
        ("tier=data", ("web",), "headless Service of its namespaces"),
    ],
)
def test_a_default_for_labels_that_no_headless_service_has_is_named(
    labels: str, namespaces: tuple[str, ...], which: str
) -> None:
    assert idle(RACKS, labels, *namespaces) == [
        f"Corefile:7: 'default' has the labels {labels!r}, which no {which} has"
    ]


def test_keys_that_no_node_has_are_named_where_the_default_gives_them_to_no_service() -> None:
    assert idle(RAKS, "tier=queue") == [NO_RAK]  # that Service has keys of its own
    assert idle(RAKS, "", "web") == [NO_RAK]
    assert idle(RAKS, "") == [], "it is a finding about the Service"


def test_of_a_namespace_that_does_not_exist_the_labels_are_no_further_finding() -> None:
    assert idle(RACKS, "tier=data", "shpo") == [f"{NAMES} 'shpo', which does not exist, did you mean 'shop'?"]


def test_twenty_services_are_compared_in_a_step() -> None:
    defaults = (DefaultKeys(RACKS, labels=parse_selector("tier=data"), place="Corefile:7"),)
    state = state_of(*(service(f"s{at}", "shop") for at in range(100)), defaults=defaults)
    settings = TopologySettings(defaults=defaults)
    assert len(list(default_findings(state, settings, hides_none, set()))) == 100 // SERVICES + 1
