"""What-ifs: texts that describe them, and the views of a cluster with them."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.support.audits import apply, run_audit
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from topodns.cluster.model import (
    ClusterObject,
    Endpoint,
    InvalidPolicy,
    KeySource,
    MaxLoad,
    Node,
    ObjectKey,
    Policy,
    Upserted,
)
from topodns.cluster.state import ClusterState
from topodns.inspect.errors import Refused
from topodns.inspect.model import ServiceView, service_view
from topodns.inspect.what_if import (
    ENDPOINTS,
    MAX_CHANGES,
    STEP,
    Defaulted,
    NodeDown,
    Rekeyed,
    ScaledDown,
    WhatIf,
    ZoneDown,
    parse_change,
    parse_change_steps,
    parse_changes,
    scenario_of_steps,
    scenario_steps,
)
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import do_at_once
from topodns.topology.guards import Guards
from topodns.topology.keys import key_reader

Z = "topology.kubernetes.io/zone"
DB = ObjectKey("data", "db")
ZONE_POLICY = Policy((Z,), KeySource.ANNOTATION)
NODES = {name: node(name, {Z: name[0]}) for name in ("a1", "a2", "b1")}


def db(*endpoints: Endpoint) -> ServiceView:
    families = {size: tuple(one for one in endpoints if len(one.address) == size) for size in (4, 16)}
    return ServiceView(DB, ZONE_POLICY, ipv4=families[4], ipv6=families[16])


def left(view: ServiceView, *changes: str, nodes: dict[str, Node] = NODES) -> list[str]:
    """The Pods of the view's endpoints after these changes."""
    [after], _ = apply(parse_changes(changes), [view], nodes)
    return [one.pod_name for _, some in after.families for one in some]


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("node=a1:down", NodeDown("a1")),
        ("zone=eu-1a:down", ZoneDown("eu-1a")),
        ("scale=data/db:-2", ScaledDown(DB, 2)),
        ("keys=data/db:topology.kubernetes.io/zone", Rekeyed(DB, ZONE_POLICY)),
        (f"keys=data/db: {Z} , *", Rekeyed(DB, Policy((Z, "*"), KeySource.ANNOTATION))),
        ("keys=data/db:none", Rekeyed(DB, None)),
        (f"default={Z},*", Defaulted(Policy((Z, "*"), KeySource.DEFAULT))),
    ],
)
def test_a_change_is_written_as(text: str, change: WhatIf) -> None:
    assert parse_change(text) == change


@pytest.mark.parametrize("before", [ZONE_POLICY, InvalidPolicy(KeySource.ANNOTATION, "wrong"), None])
def test_other_keys_have_the_guards_of_the_service(before: Policy | InvalidPolicy | None) -> None:
    load = MaxLoad(Fraction(2), ObjectKey("data", "db"))
    service = replace(db(), policy=before, guards=Guards(2, load, 16, near_only=True))
    [after], _ = apply(parse_changes(["keys=data/db:x,*"]), [service], NODES)
    assert after.policy == Policy(("x", "*"), KeySource.ANNOTATION, min_endpoints=2, max_load=load, near_only=True)
    assert after.guards == service.guards
    [after], _ = apply(parse_changes(["keys=data/db:none"]), [service], NODES)
    assert (after.policy, after.guards.max_endpoints) == (None, 16)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "found nothing, expected node=NAME:down, .*, keys=NAMESPACE/NAME:KEY,KEY, default=KEY,KEY"),
        ("default=", "found .default=., expected default=KEY,KEY"),
        ("default=none", "found .default=none., expected default=KEY,KEY"),
        ("default=a,,b", ".default=a,,b.: expected a label key or ., found nothing .a comma too many."),
        ("defaults=a", "found .defaults=a., expected .*, did you mean .default.."),
        ("nod=a1:down", "found 'nod=a1:down', expected node=NAME:down, .*, did you mean 'node'?"),
        ("node", "found 'node', expected node=NAME:down, .*, did you mean 'node'?"),
        ("node=a1", "found 'node=a1', expected node=NAME:down"),
        ("node=:down", "found 'node=:down', expected node=NAME:down"),
        ("node=a1:up", "found 'up' in 'node=a1:up', expected `down`"),
        ("zone=a:", "found 'zone=a:', expected zone=NAME:down"),
        ("scale=data/db:-x", "found '-x' in 'scale=data/db:-x', expected -N, a number of Pods fewer"),
        ("scale=data/db:-0", "found '-0' in 'scale=data/db:-0', expected -N, a number of Pods fewer"),
        ("scale=data/db:2", "found '2' in 'scale=data/db:2', expected -N, a number of Pods fewer"),
        ("scale=data/db:-1234567", "found '-1234567' in 'scale=data/db:-1234567', expected -N"),
        ("scale=data/db:+1", "expected -N: on which Nodes more Pods would run is not known"),
        ("scale=db:-1", "found 'db' in 'scale=db:-1', expected NAMESPACE/NAME"),
        ("scale=a/b/c:-1", "found 'a/b/c' in 'scale=a/b/c:-1', expected NAMESPACE/NAME"),
        ("keys=data/db:not a key", "'keys=data/db:not a key': expected a label key or .*, found 'not a key'"),
        (f"keys=data/db:{','.join(f'k{at}' for at in range(17))}", "expected at most 16 keys, found 17"),
        ("keys=data/db:" + "x" * 3000, "found a change of 3013 characters, expected at most 2000"),
        ("node=" + "x" * 300 + ":up", "found 'up' in 'node=x{75}...', expected `down`"),
    ],
)
def test_nonsense_is_refused_with_what_was_found_and_expected(text: str, problem: str) -> None:
    with pytest.raises(Refused, match=problem.replace("?", r"\?").replace("+", r"\+")):
        parse_change(text)


def test_too_many_changes_are_refused() -> None:
    with pytest.raises(Refused, match="found 65 changes, expected at most 64"):
        parse_changes(["node=a1:down"] * (MAX_CHANGES + 1))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("node=a11:down", "no Node is named 'a11', did you mean 'a1'"),
        ("node=quite-another:down", "no Node is named 'quite-another'$"),
        ("zone=aa:down", "no zone is named 'aa', did you mean 'a'"),
        ("scale=data/dp:-1", "no headless Service is named 'data/dp', did you mean 'data/db'"),
        ("keys=date/db:none", "no headless Service is named 'date/db', did you mean 'data/db'"),
        ("scale=data/db:-3", "data/db has 2 ready Pods, fewer than the 3 that scale takes away"),
    ],
)
def test_a_name_that_does_not_exist_is_refused_with_the_nearest_one(text: str, problem: str) -> None:
    with pytest.raises(Refused, match=problem):
        left(db(endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "b1")), text)


def test_an_unknown_name_is_compared_with_few_of_many() -> None:
    nodes = {name: node(name) for name in (f"node-{at:05}" for at in range(50_000))}
    with pytest.raises(Refused, match="no Node is named 'node-12345x', did you mean 'node-12345'"):
        left(db(), "node=node-12345x:down", nodes=nodes)


def test_no_zone_is_known_in_a_cluster_without_zones() -> None:
    with pytest.raises(Refused, match="no zone is named 'a': there is none"):
        left(db(), "zone=a:down", nodes={"n": node("n")})


def test_a_node_that_is_down_takes_its_clients_and_endpoints_with_it() -> None:
    view = db(endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a2"), endpoint("fd00::1", "a1"))
    [after], nodes = apply([NodeDown("a1")], [view], NODES)
    assert [one.pod_name for one in after.ipv4] == ["pod-10.0.0.2"]
    assert after.ipv6 == ()
    assert sorted(nodes) == ["a2", "b1"]
    assert sorted(NODES) == ["a1", "a2", "b1"]


def test_a_zone_that_is_down_takes_endpoints_of_its_nodes_and_those_that_only_their_slice_places_there() -> None:
    view = db(
        endpoint("10.0.0.1", "a1"),
        endpoint("10.0.0.2", "b1", topology_zone="a"),  # its Node's label counts
        endpoint("10.0.0.3", "gone", topology_zone="a"),
        endpoint("10.0.0.4", topology_zone="a", pod="external"),
    )
    assert left(view, "zone=a:down") == ["pod-10.0.0.2"]


def test_scaling_down_takes_pods_of_the_node_that_has_most_first() -> None:
    view = db(
        endpoint("10.0.0.1", "b1"),
        endpoint("10.0.0.2", "a1"),
        endpoint("10.0.0.3", "a1"),
        endpoint("10.0.0.4", "a1"),
        endpoint("10.0.0.5", "b1"),
    )
    assert left(view, "scale=data/db:-1") == ["pod-10.0.0.1", "pod-10.0.0.2", "pod-10.0.0.3", "pod-10.0.0.5"]
    assert left(view, "scale=data/db:-2") == ["pod-10.0.0.1", "pod-10.0.0.2", "pod-10.0.0.5"]
    assert left(view, "scale=data/db:-3") == ["pod-10.0.0.1", "pod-10.0.0.2"]
    assert left(view, "scale=data/db:-5") == []


def test_several_scales_of_one_service_are_one_by_their_sum() -> None:
    """So that 64 of them look at its endpoints once, in a step of milliseconds, and not 64 times."""
    view = db(endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a1"), endpoint("10.0.0.3", "b1"))
    assert left(view, "scale=data/db:-1", "scale=data/db:-1") == left(view, "scale=data/db:-2") == ["pod-10.0.0.3"]
    with pytest.raises(Refused, match="data/db has 3 ready Pods, fewer than the 4 that scale takes away"):
        left(view, "scale=data/db:-2", "scale=data/db:-2")


def test_both_addresses_of_a_pod_go_together() -> None:
    view = db(
        endpoint("10.0.0.1", "a1", pod="db-0"),
        endpoint("10.0.0.2", "a1", pod="db-1"),
        endpoint("fd00::1", "a1", pod="db-0"),
        endpoint("fd00::2", "a1", pod="db-1"),
    )
    assert left(view, "scale=data/db:-1") == ["db-0", "db-0"]


def test_a_service_is_scaled_down_to_what_the_down_nodes_leave() -> None:
    view = db(endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a2"), endpoint("10.0.0.3", "b1"))
    assert left(view, "scale=data/db:-1", "node=a1:down") == ["pod-10.0.0.3"]


def test_other_keys_replace_those_of_the_service() -> None:
    [after], _ = apply(parse_changes(["keys=data/db:x,*"]), [db()], NODES)
    assert after.policy == Policy(("x", "*"), KeySource.ANNOTATION)


def test_other_services_stay_as_they_are() -> None:
    other = ServiceView(ObjectKey("data", "web"), ZONE_POLICY, ipv4=(endpoint("10.0.0.9", "b1"),))
    [_, after], _ = apply(
        parse_changes(["keys=data/db:none", "scale=data/db:-1"]), [db(endpoint("10.0.0.1")), other], NODES
    )
    assert after == other


def test_each_change_is_read_in_a_step_of_its_own() -> None:
    texts = [f"keys=data/db:{Z}"] * MAX_CHANGES
    assert len(list(parse_change_steps(texts))) == MAX_CHANGES
    assert do_at_once(parse_change_steps(texts)) == parse_changes(texts)


def test_no_step_looks_at_more_than_some_nodes_or_endpoints() -> None:
    nodes = {f"n{at}": node(f"n{at}", {Z: "a"}) for at in range(3 * STEP)}
    view = db(*(endpoint(f"10.0.{at // 200}.{at % 200}", f"n{at}") for at in range(4 * ENDPOINTS)))
    changes = parse_changes(["node=n0:down", f"scale=data/db:-{2 * ENDPOINTS}"])
    assert len(list(scenario_of_steps(changes, nodes, {DB}))) == 3
    scenario = do_at_once(scenario_of_steps(changes, nodes, {DB}))
    looked_at = [len(list(scenario.view_steps(view)))]
    assert looked_at[0] >= 4 + 3 + 2 + 4  # those that are down, the Pods, the scaling, those that are left
    assert len(do_at_once(scenario.view_steps(view)).ipv4) == 2 * ENDPOINTS - 1


def test_a_default_gives_keys_to_the_services_without_and_to_no_governing_one() -> None:
    """The others keep theirs: their own, or those of their Namespace."""
    state = ClusterState(frozenset(), key_reader(TopologySettings().keys))
    on = [endpoint("10.0.0.1", node="a1"), endpoint("10.0.0.2", node="b1")]
    member = endpoint("10.0.0.3", node="b1", hostname="s-0", pod="s-0")
    objects: list[ClusterObject] = [
        *NODES.values(),
        replace(namespace("team"), topology_keys="*"),
        service("plain", "data"),
        endpoint_slice("plain", *on, namespace="data"),
        service("own", "data", annotation="*"),
        service("of-team", "team"),
        service("sts", "data"),
        endpoint_slice("sts", member, namespace="data"),
        service("web", "data", cluster_ips=["10.96.0.1"]),
    ]
    for each in objects:
        state.apply(Upserted(each), 0)
    scenario = do_at_once(scenario_steps(state, NODES, parse_changes([f"default={Z}"])))
    assert scenario.services == {ObjectKey("data", "plain")}
    view = service_view(state, ObjectKey("data", "plain"))
    assert view is not None
    assert do_at_once(scenario.view_steps(view)).policy == Policy((Z,), KeySource.DEFAULT)
    before, after = run_audit(state, TopologySettings(), parse_changes([f"default={Z}"]))
    assert after is not None
    others = {"data/own": ("*",), "team/of-team": ("*",)}
    assert {str(each.service): each.keys for each in before.services} == {**others, "data/plain": ()}
    assert {str(each.service): each.keys for each in after.services} == {**others, "data/plain": (Z,)}


def test_a_default_is_none_of_the_pages_changes() -> None:
    with pytest.raises(Refused, match="`default` is a what-if of `topodns audit`, not of the page"):
        do_at_once(scenario_of_steps(parse_changes([f"default={Z}"]), NODES, ()))
