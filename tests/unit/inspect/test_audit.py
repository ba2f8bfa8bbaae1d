"""Audits of a whole cluster, as it is and for a what-if."""

from dataclasses import replace

import pytest

from tests.support.audits import run_audit
from tests.support.model_builders import endpoint, endpoint_slice, node, node_locator, pod, service
from topodns.cluster.annotations import TOPOLOGY_KEYS, BadAnnotation
from topodns.cluster.findings.finding import Severity
from topodns.cluster.model import ClusterObject, Deleted, KeySource, Namespace, ObjectKey, Upserted
from topodns.cluster.state import ClusterState
from topodns.inspect.audit import STEP, AuditReport, ServiceDifference, audit_steps, difference_steps
from topodns.inspect.errors import Refused
from topodns.inspect.what_if import parse_changes
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import do_at_once
from topodns.topology.client_locator import Method
from topodns.topology.keys import key_reader
from topodns.topology.select import OnInvalid, UnknownClient

Z = "topology.kubernetes.io/zone"
RULES = TopologySettings(locate=(Method.NODES, Method.PODS))
NODES = [node("a1", {Z: "a"}), node("a2", {Z: "a"}), node("b1", {Z: "b"})]
BOTH = [endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a2"), endpoint("10.0.0.3", "b1")]


def state_of(*objects: ClusterObject) -> ClusterState:
    state = ClusterState(frozenset(), key_reader((KeySource.ANNOTATION,)))
    for each in objects:
        state.apply(Upserted(each), 0)
    return state


def audited(*objects: ClusterObject, rules: TopologySettings = RULES) -> AuditReport:
    return run_audit(state_of(*NODES, *objects), rules)[0]


def test_the_difference_is_made_a_service_in_a_step() -> None:
    services = [service(name, annotation=Z) for name in "abc"]
    report = audited(*services)
    assert list(difference_steps(report, report)) == [None] * 3


def changed(before: AuditReport, after: AuditReport) -> list[ServiceDifference]:
    return [each for each in difference_steps(before, after) if each is not None]


def test_services_with_keys_are_reported_the_worst_first() -> None:
    report = audited(
        service("good", annotation=f"{Z},*"),
        endpoint_slice("good", *BOTH),
        service("lost", annotation=Z),
        endpoint_slice("lost", *BOTH[:2]),
        service("none"),
        service("empty", annotation=Z),
    )
    assert [(each.service.name, each.endpoints, each.covered, each.nodes) for each in report.services] == [
        ("empty", 0, 0, 3),
        ("lost", 2, 2, 3),
        ("good", 3, 3, 3),
    ]
    assert report.services[0].findings[0].severity is Severity.ERROR
    assert [each.kind for each in report.findings] == ["empty", "uncovered"]


def test_a_service_with_a_bound_is_reported_also_without_keys() -> None:
    report = audited(
        service("bound", max_endpoints="1"),
        endpoint_slice("bound", *BOTH),
        service("least", min_endpoints="2"),
        service("near", annotation=Z, apply_to="near", max_load="1.50"),
        endpoint_slice("near", *BOTH[:2]),
    )
    near, bound = report.services
    assert (bound.service.name, bound.keys, bound.guards) == ("bound", (), {"max-endpoints": "1"})
    assert (bound.covered, bound.endpoints) == (3, 3)
    assert (near.service.name, near.guards, near.covered) == ("near", {"max-load": "1.5", "apply-to": "near"}, 2)
    assert [found.text.partition(" ")[0] for found in near.findings] == ["_near.near:", "annotation"]
    assert [(found.service.name, found.text) for found in report.others] == [
        ("least", "annotation 'topodns.io/min-endpoints' has no effect without topology keys")
    ]


def test_nodes_that_only_node_locators_describe_are_counted() -> None:
    locators = [node_locator(each.name, labels=each.labels) for each in NODES[:2]]
    state = state_of(*locators, NODES[2], service("lost", annotation=Z), endpoint_slice("lost", *BOTH[:2]))
    (report,) = run_audit(state, RULES)[0].services
    assert (report.endpoints, report.covered, report.nodes) == (2, 2, 3)


def test_without_a_node_nothing_is_known_of_clients_which_is_an_error() -> None:
    report, _ = run_audit(state_of(service("db", annotation=Z), endpoint_slice("db", *BOTH)), RULES)
    assert [(each.kind, each.severity) for each in report.others] == [("no_nodes", Severity.ERROR)]
    without_keys, _ = run_audit(state_of(service("db"), endpoint_slice("db", *BOTH)), RULES)
    assert without_keys.others == ()


def test_a_service_that_loses_every_endpoint_in_a_what_if_is_an_error() -> None:
    state = state_of(*NODES, service("db", annotation=f"{Z},*"), endpoint_slice("db", *BOTH[:2]))
    after = run_audit(state, RULES, parse_changes(["zone=a:down"]))[1]
    assert after is not None
    assert [(each.kind, each.severity) for each in after.findings] == [("empty", Severity.ERROR)]


def test_a_cluster_without_keys_has_nothing_to_report() -> None:
    report = audited(service("db"), endpoint_slice("db", *BOTH))
    assert (report.services, report.others) == ((), ())


def test_findings_about_no_service_with_keys_are_apart() -> None:
    report = audited(service("web", cluster_ips=["10.96.0.1"], annotation=Z), pod("p", ["10.0.0.9"]))
    assert report.services == ()
    assert [(each.service, each.kind) for each in report.others] == [
        (("", ""), "unlocated"),
        (("default", "web"), "misplaced"),
    ]


def test_findings_about_annotations_are_apart_and_those_about_keys_are_with_their_service() -> None:
    """Keys of a governing Service hide its members; it is known by the names of its endpoints."""
    bad = BadAnnotation("topology-keys", TOPOLOGY_KEYS)
    members = [endpoint(f"10.0.0.{at}", f"a{at}", hostname=f"db-{at}", pod=f"db-{at}") for at in (1, 2)]
    db = service("db", annotation=f"zone,{Z},*", bad=(bad,))
    report = audited(*NODES, db, endpoint_slice("db", *members))
    assert [(each.service.name, each.kind) for each in report.others] == [("db", "annotation")]
    kinds = {each.kind for each in report.services[0].findings}
    assert {"governing", "ineffective"} <= kinds


@pytest.mark.parametrize(
    ("keys", "unknown_client", "severity"),
    [
        (Z, UnknownClient.STRICT, Severity.ERROR),
        (Z, UnknownClient.ALL, Severity.WARNING),
        (f"{Z},*", UnknownClient.STRICT, Severity.WARNING),
        ("not a key", UnknownClient.STRICT, Severity.WARNING),
    ],
)
def test_an_unlocated_client_is_an_error_if_some_service_gives_it_nothing(
    keys: str, unknown_client: UnknownClient, severity: Severity
) -> None:
    rules = replace(RULES, unknown_client=unknown_client)
    report = audited(service("db", annotation=keys), endpoint_slice("db", *BOTH), pod("p", ["10.0.0.9"]), rules=rules)
    assert [(each.kind, each.severity) for each in report.others] == [("unlocated", severity)]


def test_invalid_keys_that_deny_every_client_are_reported_once() -> None:
    rules = replace(RULES, on_invalid=OnInvalid.DENY)
    report = audited(service("db", annotation="not a key"), endpoint_slice("db", *BOTH), rules=rules)
    assert [(each.kind, each.severity) for each in report.findings] == [("invalid", Severity.ERROR)]
    assert report.services[0].covered == 0


def test_a_what_if_is_reported_beside_the_present() -> None:
    state = state_of(
        *NODES,
        service("db", annotation=Z),
        endpoint_slice("db", *BOTH),
        service("soft", annotation=f"{Z},*"),
        endpoint_slice("soft", BOTH[0], endpoint("10.0.1.2", "a2")),
    )
    before, after = run_audit(state, RULES, parse_changes(["scale=default/db:-1"]))
    assert after is not None
    [change] = changed(before, after)
    assert change.before.service == change.after.service == ("default", "db")
    assert (change.before.endpoints, change.after.endpoints) == (3, 2)
    assert change.gone == ()
    assert [(each.kind, each.severity) for each in change.new] == [("single_point", Severity.WARNING)]


def test_a_node_that_is_down_has_no_clients_that_could_go_without() -> None:
    state = state_of(*NODES, service("db", annotation=Z), endpoint_slice("db", *BOTH))
    before, after = run_audit(state, RULES, parse_changes(["node=b1:down"]))
    assert after is not None
    assert (before.services[0].nodes, after.services[0].nodes, after.services[0].covered) == (3, 2, 2)


def test_keys_of_a_service_that_has_none_can_be_supposed() -> None:
    state = state_of(*NODES, service("db"), endpoint_slice("db", *BOTH[:2]))
    before, after = run_audit(state, RULES, parse_changes([f"keys=default/db:{Z}"]))
    assert after is not None
    [change] = changed(before, after)
    assert (change.before.keys, change.after.keys) == ((), (Z,))
    assert [each.kind for each in change.new] == ["uncovered"]


def test_a_what_if_of_a_service_with_a_cluster_ip_is_refused() -> None:
    with pytest.raises(Refused, match="Service default/web is not headless: expected a headless one"):
        run_audit(
            state_of(*NODES, service("web", cluster_ips=["10.96.0.1"])), RULES, parse_changes(["keys=default/web:*"])
        )


def test_services_that_vanish_between_two_steps_are_left_out() -> None:
    state = state_of(*NODES, service("a", annotation=Z), endpoint_slice("a", *BOTH), service("b", annotation=Z))
    steps = audit_steps(state, RULES)
    next(steps)
    state.apply(Deleted("Service", ObjectKey("default", "b")), 0)
    report, _ = do_at_once(steps)
    assert [each.service.name for each in report.services] == ["a"]


def test_services_whose_keys_have_no_effect_may_come_and_go_between_any_two_steps() -> None:
    without_effect = [service(f"web{n}", cluster_ips=["10.96.0.1"], annotation=Z) for n in range(3)]
    whole = len(list(audit_steps(state_of(*NODES, *without_effect), RULES)))
    for done in range(1, whole):
        state = state_of(*NODES, *without_effect)
        steps = audit_steps(state, RULES)
        for _ in range(done):
            next(steps)
        state.apply(Deleted("Service", ObjectKey("default", "web1")), 0)
        state.apply(Upserted(service("web7", cluster_ips=["10.96.0.2"], annotation=Z)), 0)
        report, _ = do_at_once(steps)
        assert {"web0", "web2"} <= {each.service.name for each in report.others}


def test_thousands_of_services_are_in_order() -> None:
    names = [f"s{n % 7}{n:03}" for n in range(2 * STEP + 7)]
    report = audited(*(service(name, annotation="no key!") for name in names))
    assert [each.service.name for each in report.services] == sorted(names)
    report = audited(*(service(name, cluster_ips=["10.96.0.1"], annotation=Z) for name in names))
    assert [each.service.name for each in report.others] == sorted(names)


def test_a_what_if_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(Refused, match="no headless Service is named 'default/web'"):
        run_audit(state_of(*NODES), RULES, parse_changes(["keys=default/web:*"]))


def test_services_of_hidden_namespaces_are_left_out() -> None:
    seen = (service("db", "seen", annotation=f"{Z},*"), endpoint_slice("db", *BOTH, namespace="seen"))
    hidden = (service("db", "secret", annotation=Z), endpoint_slice("db", *BOTH, namespace="secret"))
    others = (service("web", "secret", cluster_ips=["10.96.0.1"], annotation=Z), pod("p", ["10.0.0.9"]))
    state = state_of(*NODES, Namespace("seen"), Namespace("secret"), *seen, *hidden, *others)
    only = KubernetesSettings((), namespaces=frozenset({"seen"}))
    report, _ = do_at_once(audit_steps(state, RULES, kubernetes=only))
    assert [str(each.service) for each in report.services] == ["seen/db"]
    assert [(each.kind, each.severity) for each in report.others] == [("unlocated", Severity.WARNING)]
    everything, _ = do_at_once(audit_steps(state, RULES))
    assert [each.kind for each in everything.others if each.severity is Severity.ERROR] == ["unlocated"]
    with pytest.raises(Refused, match="hides namespace 'secret': names of secret/db are NXDOMAIN"):
        do_at_once(audit_steps(state, RULES, parse_changes(["keys=secret/db:none"]), only))


def test_nodes_that_lack_a_zone_are_one_warning_beside_the_information_about_each_service() -> None:
    services = [each for name in "ab" for each in (service(name, annotation=f"{Z},*"), endpoint_slice(name, *BOTH))]
    report = audited(node("new"), *services)
    assert [(each.kind, each.severity) for each in report.others] == [("partial", Severity.WARNING)]
    partial = [each.severity for one in report.services for each in one.findings if each.kind == "partial"]
    assert partial == [Severity.INFO, Severity.INFO]
    rack = audited(
        node("racked", {Z: "a", "rack": "1"}), service("db", annotation="rack,*"), endpoint_slice("db", *BOTH)
    )
    assert rack.others == ()
