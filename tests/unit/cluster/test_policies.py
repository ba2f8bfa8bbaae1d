"""Topology keys of administrators (semantics 10.1): of a Namespace, and of the Corefile's `default`."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from topodns.cluster.findings.objects import annotation_findings
from topodns.cluster.label_selector import parse_selector
from topodns.cluster.model import (
    ClusterObject,
    Deleted,
    InvalidPolicy,
    KeySource,
    Namespace,
    ObjectKey,
    Policy,
    Service,
    Upserted,
)
from topodns.cluster.state import ClusterState
from topodns.dependency import namespace_fact, service_fact
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import DefaultKeys, key_reader

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
DB = ObjectKey("shop", "db")
SOURCES = TopologySettings().keys
MEMBER = endpoint_slice("db", endpoint("10.0.0.1", hostname="db-0", pod="db-0", ready=False), namespace="shop")
CLIENT = endpoint_slice("db", endpoint("10.0.0.1", hostname="db", pod="db-0"), namespace="shop")


def default(keys: str, namespaces: Sequence[str] = (), labels: str = "") -> DefaultKeys:
    return DefaultKeys(Policy(tuple(keys.split(",")), KeySource.DEFAULT), tuple(namespaces), parse_selector(labels))


def of_namespace(keys: str | None) -> ClusterObject:
    return replace(namespace("shop"), topology_keys=keys)


def state_of(
    *objects: ClusterObject, defaults: Sequence[DefaultKeys] = (), sources: Sequence[KeySource] = SOURCES
) -> ClusterState:
    state = ClusterState(frozenset(), key_reader(sources, defaults))
    for each in objects:
        state.apply(Upserted(each), 0)
    return state


def keys_of(state: ClusterState, key: ObjectKey = DB) -> str:
    """The keys, with commas, and their source in front; "" for no filtering."""
    policy = state.policies.get(key)
    if isinstance(policy, InvalidPolicy):
        return "invalid"
    return f"{policy.source.value} {','.join(policy.keys)}" if policy is not None else ""


def db(annotation: str | None = None, **others: str) -> Service:
    return service("db", "shop", annotation=annotation, **others)  # type: ignore[arg-type]  # texts alone


CASES: dict[str, tuple[Service, str | None, Sequence[DefaultKeys], str]] = {
    "the Service's own": (db(H), f"{Z},*", (), f"annotation {H}"),
    "the Namespace's before the Corefile's": (db(), f"{Z},*", (default("*"),), f"namespace {Z},*"),
    "the Corefile's": (db(), None, (default(f"{Z},*"),), f"default {Z},*"),
    "the first line that holds": (db(), None, (default(H, ["other"]), default(Z), default("*")), f"default {Z}"),
    "a line of the namespace": (db(), None, (default(H, ["other", "shop"]),), f"default {H}"),
    "no line": (db(), None, (default(H, ["other"]),), ""),
    "an invalid list of the Namespace": (db(), f"{Z},,*", (default(f"{Z},*"),), f"default {Z},*"),
    "a list of the Namespace that says none": (db(), "none", (default("*"),), ""),
    "a blank list of the Namespace": (db(), " ", (default(Z),), f"default {Z}"),
    "anti-affinity of the Namespace": (db(), f"!{Z},*", (), f"namespace !{Z},*"),
    "a Service that opts out": (db("*"), Z, (default(H),), "annotation *"),
    "a Service that says none": (db("none"), Z, (default(H),), ""),
    "an invalid list of the Service": (db("a b"), Z, (default(H),), "invalid"),
    "a blank list of the Service": (db(" "), Z, (), f"namespace {Z}"),
    "a ClusterIP": (service("db", "shop", ["10.96.0.1"]), Z, (default(H),), ""),
    "an ExternalName": (service("db", "shop", external_name="example.com"), Z, (default(H),), ""),
}


@pytest.mark.parametrize(("one", "of_ns", "defaults", "expected"), CASES.values(), ids=CASES)
def test_keys_come_from_the_first_that_has_some(
    one: Service, of_ns: str | None, defaults: Sequence[DefaultKeys], expected: str
) -> None:
    for objects in ((of_namespace(of_ns), one), (one, of_namespace(of_ns))):
        assert keys_of(state_of(*objects, CLIENT, defaults=defaults)) == expected


@pytest.mark.parametrize(("labels", "expected"), [("app=db", f"default {Z}"), ("app!=db", ""), ("tier", "")])
def test_a_default_goes_by_the_labels_of_the_service(labels: str, expected: str) -> None:
    labelled = replace(db(), labels={"app": "db"})
    assert keys_of(state_of(labelled, defaults=[default(Z, labels=labels)])) == expected


def test_ttl_and_guards_of_a_service_hold_for_default_keys() -> None:
    policy = state_of(db(ttl="9", min_endpoints="2"), of_namespace(Z)).policies.get(DB)
    assert isinstance(policy, Policy)
    assert (policy.keys, policy.ttl, policy.min_endpoints) == ((Z,), 9, 2)


def test_without_the_source_annotation_that_of_a_namespace_is_not_read() -> None:
    assert keys_of(state_of(db(), of_namespace(Z), sources=[KeySource.FIELD])) == ""


# Governing Services


def test_a_governing_service_has_its_own_keys_alone() -> None:
    assert keys_of(state_of(of_namespace(Z), db(), MEMBER, defaults=[default(H)])) == ""
    assert keys_of(state_of(of_namespace(H), db(Z), MEMBER)) == f"annotation {Z}"


def test_a_service_governs_once_an_endpoint_has_the_name_of_its_pod() -> None:
    state = state_of(of_namespace(Z), db(), CLIENT)
    assert keys_of(state) == f"namespace {Z}"
    assert service_fact("shop", "db") in state.apply(Upserted(MEMBER), 1)
    assert keys_of(state) == ""
    state.apply(Deleted("EndpointSlice", MEMBER.key), 2)
    assert keys_of(state) == f"namespace {Z}"


# Changes


def test_a_change_of_a_namespace_touches_its_answers_by_one_fact_however_many_services_it_has() -> None:
    other = replace(namespace("other"), topology_keys=H)
    state = state_of(of_namespace(None), other, db(), service("own", "shop", annotation=H), service("x", "other"))
    assert keys_of(state) == ""
    assert state.apply(Upserted(of_namespace(Z)), 1) == {namespace_fact("shop")}
    assert keys_of(state) == f"namespace {Z}"
    assert state.apply(Deleted("Namespace", ObjectKey("", "shop")), 2) == {namespace_fact("shop")}
    assert keys_of(state) == ""
    assert keys_of(state, ObjectKey("other", "x")) == f"namespace {H}"


@given(st.permutations([0, 1, 2, 3]), st.sampled_from([MEMBER, CLIENT]), st.booleans())
def test_the_order_of_objects_makes_no_difference(order: list[int], one: ClusterObject, own: bool) -> None:
    objects = [of_namespace(Z), db(H if own else None), one, namespace("other")]
    assert keys_of(state_of(*(objects[at] for at in order))) == keys_of(state_of(*objects))


# What is wrong


def findings(state: ClusterState) -> list[str]:
    return [str(found) for found in annotation_findings(state) if found is not None]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (f"{Z},,*", "expected a label key or *, found nothing (a comma too many); it has no effect"),
        (f"*,{Z}", f"keys after * are ignored: {Z}"),
    ],
)
def test_a_list_of_a_namespace_that_breaks_a_rule_is_named_once(keys: str, problem: str) -> None:
    state = state_of(of_namespace(keys), db(), service("web", "shop"))
    assert findings(state) == [f"all Services: namespace 'shop': annotation 'topodns.io/topology-keys': {problem}"]
    state.apply(Upserted(of_namespace(Z)), 1)
    assert findings(state) == []


def test_keys_that_come_back_meet_the_labels_that_nodes_have_by_then() -> None:
    on = endpoint_slice("db", endpoint("10.0.0.1", "n1"), namespace="shop")
    state = state_of(of_namespace(Z), node("n1", {Z: "a"}), service("db", "shop"), on)
    assert state.backends(DB).pools[4].matching(Z, "a").endpoints == on.endpoints
    for change in (of_namespace(None), node("n1", {Z: "b"}), of_namespace(Z)):
        state.apply(Upserted(change), 0)
    assert state.backends(DB).pools[4].matching(Z, "a").endpoints == ()


class Reads:
    """A state that counts how often it reads what a Service inherits."""

    def __init__(self, *objects: ClusterObject, defaults: Sequence[DefaultKeys] = ()) -> None:
        reader, self.services = key_reader(SOURCES, defaults), list[str]()

        def inherited(service: Service, namespace: Namespace | None) -> Policy | None:
            self.services.append(service.name)
            return reader.inherited(service, namespace)

        self.state = ClusterState(frozenset(), reader._replace(inherited=inherited))
        for each in objects:
            self.state.apply(Upserted(each), 0)


def test_a_change_of_a_namespace_reads_its_services_again_when_they_are_looked_up() -> None:
    reads = Reads(of_namespace(Z), *(service(name, "shop") for name in ("db", "web")))
    state = reads.state
    for labels, keys, times in (({}, Z, 1), ({"team": "a"}, Z, 1), ({"team": "a"}, H, 2), ({}, None, 2)):
        state.apply(Upserted(Namespace("shop", labels, keys)), 0)
        assert [keys_of(state), keys_of(state)] == [f"namespace {keys}" if keys else ""] * 2
        assert reads.services == ["db"] * times
    state.apply(Upserted(of_namespace(H)), 0)
    list(state.policies.look_up_steps())
    assert sorted(reads.services) == ["db", "db", "db", "web"]
    assert state.policies.all().keys() == {DB, ObjectKey("shop", "web")}
    assert len(reads.services) == 4


def test_policies_are_looked_up_a_service_in_each_step() -> None:
    names = [f"s{number}" for number in range(9)]
    reads = Reads(of_namespace(Z), *(service(name, "shop") for name in names))
    for at, _ in enumerate(reads.state.policies.look_up_steps(), 1):
        assert len(reads.services) == min(at, 9)
    assert sorted(reads.services) == names


def test_a_ttl_is_without_effect_as_long_as_no_keys_come_from_the_namespace() -> None:
    state = state_of(of_namespace(None), db(ttl="9"))
    text = "Service shop/db: annotation 'topodns.io/ttl' has no effect without topology keys"
    assert findings(state) == [text]
    state.apply(Upserted(of_namespace(Z)), 1)
    assert findings(state) == []
    state.apply(Upserted(MEMBER), 2)
    assert findings(state) == [text]


@pytest.mark.parametrize(("keys", "defaults", "reads"), [(None, (), 0), (Z, (), 1), (None, (default(Z),), 1)])
def test_a_change_of_slices_reads_a_service_again_only_where_it_may_inherit_keys(
    keys: str | None, defaults: Sequence[DefaultKeys], reads: int
) -> None:
    counted = Reads(of_namespace(keys), db(), defaults=defaults)
    keys_of(counted.state)
    counted.services.clear()
    counted.state.apply(Upserted(CLIENT), 1)
    keys_of(counted.state)
    assert len(counted.services) == reads
