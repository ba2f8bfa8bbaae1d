"""Findings about the namespaces that a `default` names, and about its keys."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from topodns.cluster.findings.finding import Finding
from topodns.cluster.model import KeySource, Namespace, ObjectKey, Policy, Replaced
from topodns.cluster.state import ClusterState
from topodns.plugins.topology.findings import default_findings, with_origin
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import DefaultKeys

NAMES = "Corefile:7: 'default' names the namespace"
ZONES = Policy(("zone", "*"), KeySource.DEFAULT)


def found(named: Sequence[str], existing: Sequence[str]) -> list[str]:
    state = ClusterState(frozenset({"Namespace"}))
    state.apply(Replaced("Namespace", tuple(map(Namespace, existing))), 0)
    settings = TopologySettings(defaults=(DefaultKeys(ZONES, tuple(named), place="Corefile:7"),))
    return [str(each) for each in default_findings(state, settings) if each is not None]


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
    assert list(default_findings(ClusterState(frozenset({"Namespace"})), settings)) == []
