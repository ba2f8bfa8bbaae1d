"""A what-if reports what an audit reports once the change has happened."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.audits import run_audit
from tests.support.model_builders import endpoint, endpoint_slice, node, service
from topodns.cluster.findings.finding import Finding
from topodns.cluster.model import ClusterObject, Deleted, Endpoint, KeySource, Node, ObjectKey, Upserted
from topodns.cluster.state import ClusterState
from topodns.inspect.audit import AuditReport
from topodns.inspect.what_if import parse_changes
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import key_reader
from topodns.topology.select import OnInvalid, UnknownClient

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
NAMES = ("n1", "n2", "n3", "n4")
NODES = st.dictionaries(
    st.sampled_from(NAMES), st.dictionaries(st.sampled_from([H, Z]), st.sampled_from(["a", "b", "n1"])), max_size=4
).map(lambda labels: {name: node(name, some) for name, some in labels.items()})
ENDPOINTS = st.lists(
    st.builds(
        endpoint,
        address=st.integers(0, 9).map(lambda number: f"10.0.0.{number}"),
        node=st.sampled_from(NAMES) | st.just(""),
        topology_zone=st.none() | st.sampled_from(["a", "b"]),
        ready=st.booleans(),
    ),
    max_size=6,
    unique_by=lambda each: each.address,
).map(tuple)
KEYS = st.sampled_from((H, Z, f"{H},{Z}", f"{Z},*", "none", "not a key", f"x,{H},*"))


GUARDS = st.fixed_dictionaries(
    {},
    optional={
        "min_endpoints": st.just("2"),
        "max_load": st.sampled_from(["1", "1.5"]),
        "max_endpoints": st.sampled_from(["1", "2"]),
        "apply_to": st.just("near"),
    },
)


def state_of(
    nodes: Mapping[str, Node], keys: str, endpoints: tuple[Endpoint, ...], guards: Mapping[str, Any]
) -> ClusterState:
    state = ClusterState(frozenset(), key_reader((KeySource.ANNOTATION,)))
    db = service("db", annotation=keys, **guards)
    objects: list[ClusterObject] = [db, endpoint_slice("db", *endpoints), *nodes.values()]
    for each in objects:
        state.apply(Upserted(each), 0)
    return state


def without_state(report: AuditReport) -> list[Finding]:
    """The findings about no Service, without annotations and labels of Nodes: these are of the cluster as it is."""
    of_objects = ("annotation", "partial", "alike_values", "empty_value", "shared_hostname")
    return [each for each in report.others if each.kind not in of_objects]


RULES = st.builds(
    TopologySettings,
    locate=st.just(()),
    unknown_client=st.sampled_from(UnknownClient),
    on_invalid=st.sampled_from(OnInvalid),
)


@settings(max_examples=80, deadline=None)
@given(nodes=NODES, keys=KEYS, endpoints=ENDPOINTS, guards=GUARDS, rules=RULES, name=st.sampled_from(NAMES))
def test_a_node_that_goes_down(
    nodes: Mapping[str, Node],
    keys: str,
    endpoints: tuple[Endpoint, ...],
    guards: Mapping[str, Any],
    rules: TopologySettings,
    name: str,
) -> None:
    if name not in nodes:
        return
    state = state_of(nodes, keys, endpoints, guards)
    _, supposed = run_audit(state, rules, parse_changes([f"node={name}:down"]))
    state.apply(Deleted("Node", ObjectKey("", name)), 0)
    state.apply(Upserted(endpoint_slice("db", *(each for each in endpoints if each.node_name != name))), 0)
    happened, _ = run_audit(state, rules)
    assert supposed is not None
    assert (supposed.nodes, supposed.services) == (happened.nodes, happened.services)
    assert without_state(supposed) == without_state(happened)


@settings(max_examples=80, deadline=None)
@given(nodes=NODES, keys=KEYS, other=KEYS, endpoints=ENDPOINTS, guards=GUARDS, rules=RULES)
def test_other_keys(
    nodes: Mapping[str, Node],
    keys: str,
    other: str,
    endpoints: tuple[Endpoint, ...],
    guards: Mapping[str, Any],
    rules: TopologySettings,
) -> None:
    if other == "not a key":
        return
    state = state_of(nodes, keys, endpoints, guards)
    _, supposed = run_audit(state, rules, parse_changes([f"keys=default/db:{other}"]))
    happened, _ = run_audit(state_of(nodes, other, endpoints, guards), rules)
    assert supposed is not None
    assert without_state(supposed) == without_state(happened), "these are of the Service as it is"
    if happened.services:
        assert supposed.services == happened.services
    else:
        assert [(each.keys, each.source, each.findings) for each in supposed.services] == [((), "", ())]


@settings(max_examples=50, deadline=None)
@given(nodes=NODES, keys=KEYS, endpoints=ENDPOINTS, guards=GUARDS, rules=RULES)
def test_an_audit_changes_nothing(
    nodes: Mapping[str, Node],
    keys: str,
    endpoints: tuple[Endpoint, ...],
    guards: Mapping[str, Any],
    rules: TopologySettings,
) -> None:
    """Neither the state nor what a later audit of it says."""
    state = state_of(nodes, keys, endpoints, guards)
    revision, pool = state.revision, state.backends(ObjectKey("default", "db")).pools[4]
    first = run_audit(state, rules, parse_changes(["keys=default/db:none"]))
    assert first == run_audit(state, replace(rules), parse_changes(["keys=default/db:none"]))
    assert state.revision == revision
    assert state.backends(ObjectKey("default", "db")).pools[4] is pool
