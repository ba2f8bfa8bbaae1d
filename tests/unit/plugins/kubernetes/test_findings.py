"""Findings about options of `kubernetes` that select nothing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.corefile_settings import settings
from tests.support.model_builders import namespace, service
from topodns.cluster.findings.finding import Finding, hides_none
from topodns.cluster.model import ClusterObject, KeySource, Kind, Policy, Replaced, kind_of
from topodns.cluster.state import ClusterState
from topodns.plugins.kubernetes.findings import NAMESPACES, corefile_findings
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.setup import PLUGIN
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import DefaultKeys

KINDS: tuple[Kind, ...] = ("Namespace", "Service")
HERE = (namespace("shop", {"env": "prod"}), namespace("data"), service("db", "shop"))


def options(*lines: str) -> KubernetesSettings:
    corefile = "\n".join(("cluster.local {", "kubernetes {", "endpoint https://10.0.0.1", *lines, "}", "}", ""))
    found = PLUGIN.settings_of(settings(corefile).blocks[0])
    assert found is not None
    return found


def state_of(*objects: ClusterObject, kinds: Sequence[Kind] = KINDS) -> ClusterState:
    state = ClusterState(frozenset(KINDS))
    for kind in kinds:
        state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)
    return state


def found(state: ClusterState, *lines: str) -> list[Finding]:
    return [each for each in corefile_findings(state, options(*lines), None, hides_none) if each is not None]


@pytest.mark.parametrize(
    "lines", [(), ("namespaces shop data",), ("namespace_labels env=prod",), ("labels tier=web",), ("labels tier",)]
)
def test_of_options_that_select_something_nothing_is_said(lines: tuple[str, ...]) -> None:
    assert found(state_of(*HERE), *lines) == []


def test_each_name_of_a_namespace_that_does_not_exist_is_named_with_its_line() -> None:
    some = found(state_of(*HERE), "namespaces shopp data", "namespaces other")
    assert [str(each) for each in some] == [
        "Corefile:5: 'namespaces' names the namespace 'other', which does not exist",
        "Corefile:4: 'namespaces' names the namespace 'shopp', which does not exist, did you mean 'shop'?",
    ]
    assert {(each.kind, each.plugin, each.may_pass) for each in some} == {("namespaces", "kubernetes", True)}


def test_labels_that_no_namespace_has_are_named() -> None:
    (one,) = found(state_of(*HERE), "namespace_labels env=prdo")
    assert str(one) == "Corefile:4: no Namespace has the labels 'env=prdo', so that every name of a Service is NXDOMAIN"
    assert (one.kind, one.plugin, one.may_pass) == ("namespace_labels", "kubernetes", True)


def test_labels_that_no_service_has_are_named_as_a_source_keeps_no_others() -> None:
    (one,) = found(state_of(*HERE[:2]), "labels tier=wbe")
    assert str(one) == "Corefile:4: no Service has the labels 'tier=wbe'"
    assert (one.kind, one.plugin, one.may_pass) == ("labels", "kubernetes", True)


@pytest.mark.parametrize("missing", KINDS)
def test_nothing_is_said_before_every_kind_is_listed(missing: Kind) -> None:
    state = state_of(kinds=[kind for kind in KINDS if kind != missing])
    assert found(state, "namespaces shop", "labels tier=web") == []


def test_the_labels_of_so_many_namespaces_are_compared_in_a_step() -> None:
    state = state_of(*(namespace(f"n{at}") for at in range(5 * NAMESPACES)), service("db"))
    steps = list(corefile_findings(state, options("namespace_labels env=prod"), None, hides_none))
    assert [each is None for each in steps] == [True] * 5 + [False]


def test_a_similar_name_is_kept_for_both_directives_and_forgotten_with_the_last_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = state_of(*HERE)
    kept: list[set[str]] = []
    monkeypatch.setattr(type(state.unknown_namespaces), "keep_only", lambda self, names: kept.append(set(names)))
    topology = TopologySettings(defaults=(DefaultKeys(Policy(("zone",), KeySource.DEFAULT), ("dta",)),))
    for _ in corefile_findings(state, replace(options(), namespaces=frozenset({"shopp"})), topology, hides_none):
        pass
    assert kept == [{"shopp", "dta"}]
