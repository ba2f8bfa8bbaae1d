"""ClusterState: its answers after changes, and the facts that each change touches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.model_builders import (
    endpoint,
    endpoint_slice,
    namespace,
    node,
    packed,
    pod,
    service,
    state_of,
    stateful_set,
)
from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import (
    Change,
    ClusterObject,
    Deleted,
    Endpoint,
    EndpointSlice,
    InvalidPolicy,
    KeySource,
    Kind,
    MisannotatedPod,
    ObjectKey,
    Policy,
    Replaced,
    Service,
    Upserted,
    kind_of,
)
from topodns.cluster.state import MOST_MISANNOTATED, ClusterState
from topodns.dependency import EVERYTHING, Fact, address_fact, label_fact, namespace_fact, node_fact, service_fact

RACK = "example.com/rack"
DB = ObjectKey("default", "db")
SOURCES = (KeySource.ANNOTATION,)
KINDS: tuple[Kind, ...] = get_args(Kind)
EVERYTHING_ALONE = frozenset({EVERYTHING})


def at(address: str) -> Fact:
    return address_fact(packed(address))


def mirrored(service_name: str, *addresses: str) -> EndpointSlice:
    """The slices that decoding makes of a v1 Endpoints."""
    endpoints = tuple(endpoint(address) for address in addresses)
    return EndpointSlice("default", f"{service_name}/0/IPv4", service_name, "IPv4", endpoints=endpoints, mirrored=True)


def endpoint_addresses(state: ClusterState, key: ObjectKey = DB, imported: bool = False) -> tuple[bytes, ...]:
    return state.backends(key, imported).pools[4].everyone.addresses


def claimants(state: ClusterState, address: str) -> list[str]:
    """The Services whose endpoint has this address."""
    return [key.name for key, _ in state.endpoints_with_address(packed(address))]


# Facts


WEB = service("web", cluster_ips=["10.96.0.7", "fd00:96::7"])
DB_HEADLESS = service("db")
DB_BY_RACK = service("db", annotation=RACK)
DB_SLICE = endpoint_slice("db", endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.2", node="n2"))
N1 = node("n1", {RACK: "7"}, ["192.168.0.11"], tunnels=["10.244.1.0"])
N1_WITH_CIDR = node("n1", {RACK: "7"}, ["192.168.0.11"], pod_cidrs=["10.244.1.0/24"])
N2_WITH_CIDR = node("n2", {RACK: "8"}, ["192.168.0.12"], pod_cidrs=["10.244.2.0/24"])

SERVICE_FACTS: dict[str, tuple[list[ClusterObject], Change, set[Fact]]] = {
    "a Service comes": ([], Upserted(WEB), {service_fact("default", "web"), at("10.96.0.7"), at("fd00:96::7")}),
    "a Service goes": (
        [WEB],
        Deleted("Service", WEB.key),
        {service_fact("default", "web"), at("10.96.0.7"), at("fd00:96::7")},
    ),
    "a Service changes its ClusterIP": (
        [WEB],
        Upserted(service("web", cluster_ips=["10.96.0.8"])),
        {service_fact("default", "web"), at("10.96.0.7"), at("fd00:96::7"), at("10.96.0.8")},
    ),
    "a Service changes its policy": ([DB_HEADLESS], Upserted(DB_BY_RACK), {service_fact("default", "db")}),
    "an imported Service comes": (
        [],
        Upserted(service("web", cluster_ips=["10.97.0.1"], imported=True)),
        {service_fact("default", "web")},
    ),
    "a Service that is not there goes": ([], Deleted("Service", WEB.key), set()),
    "a Service comes again as it is": ([WEB], Upserted(service("web", cluster_ips=["10.96.0.7", "fd00:96::7"])), set()),
}
SLICE_FACTS: dict[str, tuple[list[ClusterObject], Change, set[Fact]]] = {
    "a slice comes": ([], Upserted(DB_SLICE), {service_fact("default", "db"), at("10.0.0.1"), at("10.0.0.2")}),
    "a slice goes": (
        [DB_SLICE],
        Deleted("EndpointSlice", DB_SLICE.key),
        {service_fact("default", "db"), at("10.0.0.1"), at("10.0.0.2")},
    ),
    "an endpoint goes, another comes": (
        [DB_SLICE],
        Upserted(endpoint_slice("db", endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.3", node="n2"))),
        {service_fact("default", "db"), at("10.0.0.2"), at("10.0.0.3")},
    ),
    "an endpoint changes its node": (
        [DB_SLICE],
        Upserted(endpoint_slice("db", endpoint("10.0.0.1", node="n3"), endpoint("10.0.0.2", node="n2"))),
        {service_fact("default", "db"), at("10.0.0.1")},
    ),
    "an endpoint becomes unready": (
        [DB_SLICE],
        Upserted(endpoint_slice("db", endpoint("10.0.0.1", node="n1", ready=False), endpoint("10.0.0.2", node="n2"))),
        {service_fact("default", "db"), at("10.0.0.1")},
    ),
    "an endpoint changes its hostname": (
        [DB_SLICE],
        Upserted(
            endpoint_slice("db", endpoint("10.0.0.1", node="n1", hostname="db-0"), endpoint("10.0.0.2", node="n2"))
        ),
        {service_fact("default", "db"), at("10.0.0.1")},
    ),
    "an endpoint changes its hints": (
        [DB_SLICE],
        Upserted(
            endpoint_slice("db", endpoint("10.0.0.1", node="n1", zone_hints=["a"]), endpoint("10.0.0.2", node="n2"))
        ),
        {service_fact("default", "db")},
    ),
    "a slice changes its ports": (
        [DB_SLICE],
        Upserted(endpoint_slice("db", *DB_SLICE.endpoints, ports=["sql:5432"])),
        {service_fact("default", "db")},
    ),
    "a slice changes its Service": (
        [DB_SLICE],
        Upserted(endpoint_slice("db2", *DB_SLICE.endpoints, name="db-1")),
        {service_fact("default", "db"), service_fact("default", "db2"), at("10.0.0.1"), at("10.0.0.2")},
    ),
    "a slice of no Service comes": ([], Upserted(endpoint_slice("", endpoint("10.0.0.1"), name="x")), set()),
    "a slice of an imported Service comes": (
        [],
        Upserted(endpoint_slice("db", endpoint("10.0.0.1"), imported=True, cluster_id="east")),
        {service_fact("default", "db")},
    ),
    "a slice comes where an Endpoints said the same": (
        [mirrored("db", "10.0.0.1")],
        Upserted(endpoint_slice("db", endpoint("10.0.0.1"))),
        {service_fact("default", "db")},
    ),
    "a slice comes where an Endpoints said other things": (
        [mirrored("db", "10.0.0.1", "10.0.0.8")],
        Upserted(endpoint_slice("db", endpoint("10.0.0.1"))),
        {service_fact("default", "db"), at("10.0.0.8")},
    ),
    "an Endpoints comes where there is a slice": (
        [DB_SLICE],
        Upserted(mirrored("db", "10.0.0.8")),
        {service_fact("default", "db")},
    ),
}
NODE_FACTS: dict[str, tuple[list[ClusterObject], Change, set[Fact]]] = {
    "a Node comes": ([], Upserted(N1), {node_fact("n1"), label_fact(RACK), at("192.168.0.11"), at("10.244.1.0")}),
    "a Node goes": (
        [N1],
        Deleted("Node", N1.key),
        {node_fact("n1"), label_fact(RACK), at("192.168.0.11"), at("10.244.1.0")},
    ),
    "a Node changes its address": (
        [N1],
        Upserted(node("n1", {RACK: "7"}, ["192.168.0.12"], tunnels=["10.244.1.0"])),
        {node_fact("n1"), at("192.168.0.11"), at("192.168.0.12"), at("10.244.1.0")},
    ),
    "a Node becomes unready": (
        [N1],
        Upserted(node("n1", {RACK: "7"}, ["192.168.0.11"], tunnels=["10.244.1.0"], ready=False)),
        {at("192.168.0.11"), at("10.244.1.0")},
    ),
    "a Node is made anew on another machine": (
        [N1],
        Upserted(node("n1", {RACK: "7"}, ["192.168.0.11"], tunnels=["10.244.1.0"], created="2025-01-01T00:00:00Z")),
        {at("192.168.0.11"), at("10.244.1.0")},
    ),
    "a Node changes its pod CIDR": ([N1], Upserted(N1_WITH_CIDR), {EVERYTHING}),
    "a Node with a pod CIDR comes": ([], Upserted(N1_WITH_CIDR), {EVERYTHING}),
    "a Node with a pod CIDR goes": ([N1_WITH_CIDR], Deleted("Node", N1.key), {EVERYTHING}),
    "a Node with a pod CIDR changes a label": (
        [N1_WITH_CIDR],
        Upserted(node("n1", {RACK: "8"}, ["192.168.0.11"], pod_cidrs=["10.244.1.0/24"])),
        {node_fact("n1"), label_fact(RACK), at("192.168.0.11")},
    ),
}
OTHER_FACTS: dict[str, tuple[list[ClusterObject], Change, set[Fact]]] = {
    "a Namespace comes": ([], Upserted(namespace("shop")), {namespace_fact("shop")}),
    "a Namespace changes its labels": (
        [namespace("shop")],
        Upserted(namespace("shop", {"team": "a"})),
        {namespace_fact("shop")},
    ),
    "a Namespace goes": ([namespace("shop")], Deleted("Namespace", ObjectKey("", "shop")), {namespace_fact("shop")}),
    "a Pod comes": ([], Upserted(pod("p", ["10.0.0.1", "fd00::1"], node="n1")), {at("10.0.0.1"), at("fd00::1")}),
    "a Pod changes its address": (
        [pod("p", ["10.0.0.1"], node="n1")],
        Upserted(pod("p", ["10.0.0.2"], node="n1")),
        {at("10.0.0.1"), at("10.0.0.2")},
    ),
    "a Pod goes": ([pod("p", ["10.0.0.1"])], Deleted("Pod", ObjectKey("default", "p")), {at("10.0.0.1")}),
    "a StatefulSet comes": ([], Upserted(stateful_set("db", "db")), set()),
    "a list is as before": ([WEB, DB_HEADLESS], Replaced("Service", (DB_HEADLESS, WEB)), set()),
    "a list differs in one object": (
        [WEB, DB_HEADLESS],
        Replaced("Service", (DB_BY_RACK, WEB)),
        {service_fact("default", "db")},
    ),
    "a list lacks an object": ([N1, WEB, DB_HEADLESS], Replaced("Service", (WEB,)), {service_fact("default", "db")}),
}
FACTS = SERVICE_FACTS | SLICE_FACTS | NODE_FACTS | OTHER_FACTS


@pytest.mark.parametrize(("held", "change", "facts"), FACTS.values(), ids=FACTS.keys())
def test_a_change_touches_exactly_these_facts(held: list[ClusterObject], change: Change, facts: set[Fact]) -> None:
    assert state_of(*held).apply(change, 1) == facts


RELABELLED = Upserted(node("n1", {RACK: "8"}))
AFTER_RELABELLING = {
    "a policy and an endpoint on the node": ([DB_BY_RACK, DB_SLICE], {service_fact("default", "db")}),
    "no policy, as at _near": ([DB_HEADLESS, DB_SLICE], {service_fact("default", "db")}),
    "a policy, endpoints elsewhere": ([DB_BY_RACK, endpoint_slice("db", endpoint("10.0.0.2", node="n2"))], set()),
}


@pytest.mark.parametrize(("held", "services"), AFTER_RELABELLING.values(), ids=AFTER_RELABELLING.keys())
def test_a_nodes_labels_touch_the_services_that_they_place(held: list[ClusterObject], services: set[Fact]) -> None:
    state = state_of(node("n1", {RACK: "7"}), *held)
    state.backends(DB).pools[4].matching(RACK, "7")
    assert state.apply(RELABELLED, 1) == {node_fact("n1"), label_fact(RACK)} | services


def test_a_nodes_labels_touch_no_service_of_which_no_label_was_read() -> None:
    state = state_of(node("n1", {RACK: "7"}), DB_HEADLESS, DB_SLICE)
    state.backends(DB)
    assert state.apply(RELABELLED, 1) == {node_fact("n1"), label_fact(RACK)}


@pytest.mark.parametrize("change", [RELABELLED, Deleted("Node", ObjectKey("", "n1"))])
def test_endpoints_move_with_the_labels_of_their_node(change: Change) -> None:
    state = state_of(node("n1", {RACK: "7"}), DB_BY_RACK, DB_SLICE)
    assert state.backends(DB).pools[4].matching(RACK, "7").addresses == (packed("10.0.0.1"),)
    state.apply(change, 1)
    assert state.backends(DB).pools[4].matching(RACK, "7").addresses == ()


def test_a_service_that_gets_a_policy_is_placed_by_the_labels_of_now() -> None:
    state = state_of(node("n1", {RACK: "7"}), DB_HEADLESS, DB_SLICE)
    state.backends(DB).pools[4].matching(RACK, "7")
    state.apply(RELABELLED, 1)
    state.apply(Upserted(DB_BY_RACK), 2)
    assert state.backends(DB).pools[4].matching(RACK, "8").addresses == (packed("10.0.0.1"),)


def test_pod_cidrs_that_become_verified_touch_everything() -> None:
    def slice_of(count: int) -> EndpointSlice:
        return endpoint_slice("db", *(endpoint(f"10.244.1.{number}", node="n1") for number in range(1, count + 1)))

    state = state_of(N1_WITH_CIDR, N2_WITH_CIDR, slice_of(199))
    assert not state.nodes.pod_cidrs_verified
    assert state.apply(Upserted(slice_of(200)), 1) == EVERYTHING_ALONE
    assert state.nodes.pod_cidrs_verified
    assert EVERYTHING not in state.apply(Upserted(slice_of(201)), 2)
    assert state.apply(Deleted("EndpointSlice", slice_of(1).key), 3) == EVERYTHING_ALONE


# Becoming synced


def test_a_state_is_synced_once_every_needed_kind_had_its_list() -> None:
    state = state_of(needed=["Service", "Namespace"])
    assert (state.synced, state.unsynced) == (False, ("Namespace", "Service"))
    assert state.apply(Replaced("Service", (WEB,)), 1) == EVERYTHING_ALONE
    assert (state.synced, state.unsynced) == (False, ("Namespace",))
    assert state.apply(Replaced("Namespace", ()), 1) == EVERYTHING_ALONE
    assert (state.synced, state.unsynced) == (True, ())
    assert state.apply(Replaced("Namespace", ()), 1) == frozenset()


def test_a_single_object_syncs_nothing() -> None:
    state = state_of(needed=["Service"])
    assert state.apply(Upserted(WEB), 1) == {service_fact("default", "web"), at("10.96.0.7"), at("fd00:96::7")}
    assert not state.synced


def test_a_state_that_needs_nothing_is_synced() -> None:
    assert state_of().synced


def test_a_list_of_a_kind_that_is_not_needed_touches_the_differences() -> None:
    state = state_of(needed=["Service"])
    assert state.apply(Replaced("Pod", (pod("p", ["10.0.0.1"]),)), 1) == {at("10.0.0.1")}


# The serial


def test_the_serial_is_the_second_of_the_last_change_that_coredns_counts() -> None:
    state = state_of()
    assert state.serial == 0
    state.apply(Upserted(namespace("shop")), 100)
    assert state.serial == 0
    state.apply(Upserted(DB_HEADLESS), 200)
    assert state.serial == 200
    state.apply(Upserted(DB_BY_RACK), 300)
    state.apply(Upserted(DB_BY_RACK), 400)
    state.apply(Replaced("Service", (DB_BY_RACK,)), 500)
    assert state.serial == 200
    state.apply(Replaced("Service", ()), 600)
    assert state.serial == 600


# What it answers


def test_objects_are_found_by_name() -> None:
    state = state_of(namespace("shop", {"team": "a"}), WEB, N1)
    assert state.namespaces.get(("", "shop")) == namespace("shop", {"team": "a"})
    assert state.namespaces.get(("", "default")) is None
    assert state.service(WEB.key) == WEB
    assert state.service(WEB.key, imported=True) is None
    assert state.node("n1") == N1
    assert state.node("n2") is None


def test_a_service_and_its_import_are_two() -> None:
    imported = service("db", imported=True)
    state = state_of(
        DB_HEADLESS,
        imported,
        DB_SLICE,
        endpoint_slice("db", endpoint("10.8.0.1"), name="east", imported=True, cluster_id="east"),
        endpoint_slice("db", endpoint("10.9.0.1"), name="west", imported=True, cluster_id="west"),
    )
    assert state.service(DB, imported=True) == imported
    assert endpoint_addresses(state) == (packed("10.0.0.1"), packed("10.0.0.2"))
    assert endpoint_addresses(state, imported=True) == (packed("10.8.0.1"), packed("10.9.0.1"))
    assert state.cluster_backends(DB, "west").pools[4].everyone.addresses == (packed("10.9.0.1"),)
    assert not state.cluster_backends(DB, "north").has_ready
    state.apply(Deleted("ServiceImport", DB), 1)
    assert state.service(DB) == DB_HEADLESS
    assert state.service(DB, imported=True) is None


def test_endpoints_of_an_imported_service_say_nothing_about_this_clusters_addresses() -> None:
    state = state_of(endpoint_slice("db", endpoint("10.8.0.1", node="n1"), imported=True, cluster_id="east"))
    assert state.endpoints_with_address(packed("10.8.0.1")) == ()


def test_policies_are_those_of_headless_services() -> None:
    state = state_of(
        DB_BY_RACK, service("web", cluster_ips=["10.96.0.7"], annotation=RACK), service("bad", annotation="a b")
    )
    assert state.policies.all().keys() == {DB, ObjectKey("default", "bad")}
    assert state.policies.get(DB) == Policy((RACK,), KeySource.ANNOTATION)
    assert isinstance(state.policies.get(ObjectKey("default", "bad")), InvalidPolicy)
    assert state.policies.get(WEB.key) is None
    state.apply(Upserted(DB_HEADLESS), 1)
    assert state.policies.get(DB) is None


def test_without_key_sources_there_are_no_policies() -> None:
    state = ClusterState(frozenset())
    state.apply(Upserted(DB_BY_RACK), 1)
    assert state.policies.all() == {}


def test_an_endpoints_counts_only_where_its_service_has_no_slice() -> None:
    state = state_of(mirrored("db", "10.0.0.8"))
    assert endpoint_addresses(state) == (packed("10.0.0.8"),)
    assert claimants(state, "10.0.0.8") == ["db"]
    state.apply(Upserted(DB_SLICE), 1)
    assert endpoint_addresses(state) == (packed("10.0.0.1"), packed("10.0.0.2"))
    assert claimants(state, "10.0.0.8") == []
    state.apply(Deleted("EndpointSlice", DB_SLICE.key), 2)
    assert endpoint_addresses(state) == (packed("10.0.0.8"),)
    assert claimants(state, "10.0.0.8") == ["db"]


def test_an_address_belongs_to_every_service_that_selects_its_pod() -> None:
    other = endpoint_slice("cache", endpoint("10.0.0.1", node="n1"))
    state = state_of(DB_SLICE, other)
    assert claimants(state, "10.0.0.1") == ["cache", "db"]
    assert claimants(state, "10.0.0.9") == []


def test_an_endpoint_that_is_not_ready_still_has_its_address() -> None:
    state = state_of(endpoint_slice("db", endpoint("10.0.0.1", ready=False)))
    assert claimants(state, "10.0.0.1") == ["db"]


COPIES = {
    "the ready one": (endpoint("10.0.0.1", node="old", ready=False), endpoint("10.0.0.1", node="new")),
    "the one that stays": (
        endpoint("10.0.0.1", node="old", ready=False, terminating=True),
        endpoint("10.0.0.1", node="new", ready=False),
    ),
}


@pytest.mark.parametrize("copies", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("order", [1, -1])
def test_of_the_copies_of_an_endpoint_in_a_service_the_best_has_the_address(
    copies: tuple[ClusterObject, ...], order: int
) -> None:
    slices = (
        endpoint_slice("db", one, name=name)  # type: ignore[arg-type]
        for one, name in zip(copies[::order], ("db-1", "db-2"), strict=True)
    )
    ((key, found),) = state_of(*slices).endpoints_with_address(packed("10.0.0.1"))
    assert (key, found.node_name) == (DB, "new")


@pytest.mark.parametrize("several", [False, True])
def test_an_endpoint_of_a_large_slice_is_found_as_one_of_a_small_slice(several: bool) -> None:
    endpoints = [endpoint(f"10.0.{at >> 8}.{at & 255}", node=f"n{at}") for at in range(300)]
    if several:
        endpoints.append(endpoint("10.0.0.7", node="other", hostname="h"))
    state = state_of(endpoint_slice("db", *endpoints))
    for address, node_name in (("10.0.0.7", "n7"), ("10.0.1.43", "n299")):
        ((key, found),) = state.endpoints_with_address(packed(address))
        assert (key, found.node_name) == (DB, node_name)
    assert state.endpoints_with_address(packed("10.0.9.9")) == ()
    state.apply(Upserted(endpoint_slice("db", *(replace(each, node_name="moved") for each in endpoints))), 0)
    ((_, found),) = state.endpoints_with_address(packed("10.0.0.7"))
    assert found.node_name == "moved"


def test_of_a_namespace_that_lists_an_address_very_often_a_hundred_slices_are_looked_into() -> None:
    forgeries = [
        endpoint_slice(f"x{at:03}", endpoint("10.0.0.1"), name=f"x{at:03}", namespace="evil") for at in range(150)
    ]
    state = state_of(*forgeries, endpoint_slice("db", endpoint("10.0.0.1")), *forgeries[::-1])
    services = [key for key, _ in state.endpoints_with_address(packed("10.0.0.1"))]
    assert services == [DB, *(ObjectKey("evil", f"x{at:03}") for at in range(100))]
    assert [key for key, _ in state.endpoints_with_address(packed("10.0.0.1"), besides="evil")] == [DB]
    for forgery in forgeries:
        state.apply(Deleted("EndpointSlice", forgery.key), 0)
    assert [key for key, _ in state.endpoints_with_address(packed("10.0.0.1"))] == [DB]


def test_a_cluster_ip_belongs_to_the_first_service_by_name() -> None:
    state = state_of(service("b", cluster_ips=["10.96.0.7"]), service("a", cluster_ips=["10.96.0.7"]))
    found = state.service_with_address(packed("10.96.0.7"))
    assert found is not None
    assert found.name == "a"
    assert state.service_with_address(packed("10.96.0.9")) is None


def test_all_pods_that_claim_an_address_are_kept() -> None:
    late = pod("a", ["10.0.0.1"], node="n1", terminating=True)
    new = pod("b", ["10.0.0.1"], node="n2")
    state = state_of(new, late)
    assert state.pods_with_address(packed("10.0.0.1")) == (late, new)
    state.apply(Deleted("Pod", late.key), 1)
    assert state.pods_with_address(packed("10.0.0.1")) == (new,)
    state.apply(Deleted("Pod", new.key), 1)
    assert state.pods_with_address(packed("10.0.0.1")) == ()


def test_a_governing_service_is_one_that_a_stateful_set_names() -> None:
    db = stateful_set("db", "db")
    state = state_of(db, stateful_set("more", "db"), stateful_set("cache", "", "shop"))
    assert state.policies.governs(DB)
    assert not state.policies.governs(ObjectKey("shop", "db"))
    state.apply(Deleted("StatefulSet", ObjectKey("default", "more")), 1)
    assert state.policies.governs(DB)
    state.apply(Deleted("StatefulSet", db.key), 1)
    assert not state.policies.governs(DB)


@pytest.mark.parametrize(
    ("one", "governs"),
    [
        pytest.param(endpoint("10.0.0.1", "n1", hostname="db-0", pod="db-0"), True, id="a member"),
        pytest.param(endpoint("10.0.0.1", hostname="db-0", pod="db-0", ready=False), True, id="one that is not ready"),
        pytest.param(endpoint("10.0.0.1", "n1", pod="db-0"), False, id="without a hostname: of another Service"),
        pytest.param(endpoint("10.0.0.1", "n1", hostname="db", pod="db-7d9"), False, id="a hostname of its own"),
        pytest.param(endpoint("10.0.0.1", hostname="db-0", target="db-0"), False, id="no Pod"),
    ],
)
def test_a_governing_service_is_one_whose_endpoints_have_the_names_of_their_pods(one: Endpoint, governs: bool) -> None:
    slices = endpoint_slice("db", endpoint("10.0.0.9", "n9"), name="db-a"), endpoint_slice("db", one, name="db-b")
    state = state_of(*slices)
    assert state.policies.governs(DB) is governs
    state.apply(Deleted("EndpointSlice", slices[1].key), 1)
    assert not state.policies.governs(DB)


def test_of_pods_with_annotations_of_a_service_a_bounded_number_is_kept() -> None:
    state = state_of()
    pods = [MisannotatedPod("default", f"p{at}", (packed("10.0.0.1"),)) for at in range(MOST_MISANNOTATED + 5)]
    for each in pods:
        state.apply(Upserted(each), 0)
    assert list(state.misannotated_pods.values()) == pods[:MOST_MISANNOTATED]
    state.apply(Upserted(pod("p0", ["10.0.0.1"])), 1)  # mended
    state.apply(Deleted("Pod", pods[1].key), 1)
    state.apply(Upserted(pods[-1]), 1)  # unchanged, so no event
    assert list(state.misannotated_pods.values()) == pods[2:MOST_MISANNOTATED]
    state.apply(Upserted(replace(pods[-1], node_name="n1")), 1)
    assert len(state.misannotated_pods) == MOST_MISANNOTATED - 1


def test_counts_are_the_number_of_held_objects_by_kind() -> None:
    state = state_of(WEB, DB_HEADLESS, service("db", imported=True), DB_SLICE)
    assert dict(state.counts()) == dict.fromkeys(KINDS, 0) | {"Service": 2, "ServiceImport": 1, "EndpointSlice": 1}


def test_a_name_that_does_not_exist_has_no_endpoints() -> None:
    state = state_of()
    assert not state.backends(ObjectKey("default", "nothing")).has_ready


# Any sequence of changes

NAMES = st.sampled_from(["a", "b"])
NODE_NAMES = st.sampled_from(["n1", "n2", ""])
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1"])
ALL_ADDRESSES = [packed(text) for text in ("10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1")]
LABELS = st.dictionaries(st.just(RACK), st.sampled_from(["7", "8"]))
ENDPOINTS = st.builds(
    endpoint,
    ADDRESSES,
    node=NODE_NAMES,
    hostname=st.sampled_from(["", "db-0"]),
    ready=st.booleans(),
    terminating=st.booleans(),
)
SLICES = st.builds(
    lambda service, endpoints, name, imported: endpoint_slice(
        service, *endpoints, name=name, imported=imported, cluster_id="east" if imported else ""
    ),
    st.sampled_from(["a", "b", ""]),
    st.lists(ENDPOINTS, max_size=3),
    NAMES,
    st.booleans(),
)
MIRRORS = st.builds(lambda name, addresses: mirrored(name, *addresses), NAMES, st.lists(ADDRESSES, max_size=2))
OBJECTS = st.one_of(
    SLICES,
    SLICES,
    MIRRORS,
    st.builds(namespace, NAMES, LABELS),
    st.builds(
        node,
        st.sampled_from(["n1", "n2"]),
        LABELS,
        st.lists(ADDRESSES, max_size=1),
        pod_cidrs=st.sampled_from([(), (), ("10.0.0.0/30",)]),
        ready=st.booleans(),
    ),
    st.builds(service, NAMES, annotation=st.sampled_from([None, RACK, "a b"]), imported=st.booleans()),
    st.builds(service, NAMES, cluster_ips=st.lists(ADDRESSES, min_size=1, max_size=2, unique=True)),
    st.builds(pod, NAMES, st.lists(ADDRESSES, max_size=2), node=NODE_NAMES),
    st.builds(stateful_set, NAMES, NAMES),
)


def replaced(kind: Kind, objects: Sequence[ClusterObject]) -> Replaced:
    return Replaced(kind, tuple(value for value in objects if kind_of(value) == kind))


CHANGES = st.one_of(
    st.builds(Upserted, OBJECTS),
    st.builds(Upserted, OBJECTS),
    st.builds(lambda value: Deleted(kind_of(value), value.key), OBJECTS),
    st.builds(replaced, st.sampled_from(KINDS), st.lists(OBJECTS, max_size=6)),
)


def held_after(changes: Sequence[Change]) -> dict[tuple[Kind, ObjectKey], ClusterObject]:
    """The objects left by these changes, worked out without any index."""
    held: dict[tuple[Kind, ObjectKey], ClusterObject] = {}
    for change in changes:
        match change:
            case Upserted(value):
                held[kind_of(value), value.key] = value
            case Deleted(kind, key):
                held.pop((kind, key), None)
            case Replaced(kind, objects):
                held = {place: value for place, value in held.items() if place[0] != kind}
                held |= {(kind, value.key): value for value in objects}
    return held


def answers_of(state: ClusterState) -> dict[Fact, object]:
    """All that the state has to say about a small world, under the fact that each answer rests on."""
    answers: dict[Fact, object] = {}
    for name in ("a", "b"):
        key = ObjectKey("default", name)
        answers[namespace_fact(name)] = state.namespaces.get(("", name))
        answers[service_fact(*key)] = (
            state.service(key),
            state.service(key, imported=True),
            state.policies.get(key),
            [_placed(state, key, imported) for imported in (False, True)],
            state.cluster_backends(key, "east").pools[4].everyone,
        )
    for name in ("n1", "n2"):
        found = state.node(name)
        answers[node_fact(name)] = found and (found.labels, found.addresses, found.pod_cidrs)
    for address in ALL_ADDRESSES:
        answers[address_fact(address)] = (
            state.service_with_address(address),
            [(key, each.node_name, each.hostname, each.ready) for key, each in state.endpoints_with_address(address)],
            state.pods_with_address(address),
            state.nodes.with_address(address),
        )
    owners = [state.nodes.with_pod_cidr(address) for address in ALL_ADDRESSES]
    answers[EVERYTHING] = [owner and owner.name for owner in owners]
    return answers


def _placed(state: ClusterState, key: ObjectKey, imported: bool) -> object:
    """The endpoints of a Service, and by rack where it has a policy, since only then are labels read."""
    pool = state.backends(key, imported).pools[4]
    racks = ("7", "8") if isinstance(state.policies.get(key), Policy) and not imported else ()
    return pool.everyone, [pool.matching(RACK, rack) for rack in racks]


@given(st.lists(CHANGES, max_size=12))
@settings(max_examples=60, deadline=None)
def test_after_any_changes_a_state_answers_like_one_that_was_given_the_outcome(changes: list[Change]) -> None:
    state, fresh = state_of(), state_of()
    for second, change in enumerate(changes):
        state.apply(change, second)
        answers_of(state)
    outcome = list(held_after(changes).values())
    for kind in KINDS:
        fresh.apply(replaced(kind, outcome), 0)
    assert answers_of(state) == answers_of(fresh)
    assert state.counts() == fresh.counts()
    named = [ObjectKey("default", name) for name in ("db", "web", "cache", "a", "b")]
    assert [*map(state.policies.governs, named)] == [*map(fresh.policies.governs, named)]
    assert (state.node_labels.nodes, state.node_labels.names) == (fresh.node_labels.nodes, fresh.node_labels.names)


@given(st.lists(CHANGES, max_size=8), CHANGES)
@settings(max_examples=80, deadline=None)
def test_whatever_a_change_does_to_an_answer_its_facts_say(earlier: list[Change], change: Change) -> None:
    state = state_of()
    for one in earlier:
        state.apply(one, 0)
    before = answers_of(state)
    facts = state.apply(change, 1)
    after = answers_of(state)
    changed = {fact for fact in before if before[fact] != after[fact]}
    assert changed <= facts or EVERYTHING in facts
    assert state.apply(change, 2) == frozenset(), "what is held already touches nothing"


@given(st.lists(OBJECTS, max_size=8))
@settings(max_examples=50, deadline=None)
def test_a_state_keeps_nothing_of_removed_objects(objects: list[ClusterObject]) -> None:
    state = state_of(*objects)
    for kind in KINDS:
        state.apply(Replaced(kind, ()), 1)
    assert answers_of(state) == answers_of(state_of())
    assert set(state.counts().values()) == {0}


def test_services_that_come_and_go_leave_no_endpoints_behind() -> None:
    state = state_of(DB_HEADLESS, DB_SLICE)
    assert isinstance(state.service(DB), Service)
    state.apply(Replaced("EndpointSlice", ()), 1)
    assert not state.backends(DB).has_ready


def test_the_last_step_of_a_first_list_raises_the_revision_since_it_makes_the_kind_known() -> None:
    state = ClusterState(frozenset({"Pod"}), all_pods=True)
    before = state.revision
    for step in state.replace_steps(Replaced("Pod", (pod("p", ["10.1.0.9"]),)), 1):
        if EVERYTHING not in step.facts:
            before = state.revision
            assert not state.knows_all_pods
    assert state.knows_all_pods
    assert state.revision > before


def test_files_have_all_pods_if_they_have_one() -> None:
    state = ClusterState(frozenset({"Pod"}), all_pods=True, of_files=True)
    first = pod("p", ["10.1.0.9"])
    state.apply(Replaced("Pod", ()), 1)
    assert not state.knows_all_pods
    assert state.apply(Upserted(first), 1) == {EVERYTHING}
    assert state.knows_all_pods
    assert EVERYTHING not in state.apply(Upserted(pod("q", ["10.1.0.8"])), 1)
    state.apply(Deleted("Pod", first.key, 0), 1)
    assert state.apply(Replaced("Pod", ()), 1) == {EVERYTHING}
    assert not state.knows_all_pods


def test_a_kind_that_may_not_be_listed_is_waited_for_no_longer_until_it_is_listed_after_all() -> None:
    state = ClusterState(frozenset({"Node"}))
    assert state.do_without("Node") == {EVERYTHING}
    assert (state.synced, state.denied, state.do_without("Node")) == (True, {"Node"}, frozenset())
    assert state.apply(Replaced("Node", (node("n1"),)), 1) == {EVERYTHING}
    assert (state.synced, state.denied) == (True, set())


# What a copy of a state takes of the original's changes.

SHOP_DB = service("db", "shop")


def copied(state: ClusterState, *upserted: ClusterObject, deleted: tuple[ObjectKey, ...] = ()) -> frozenset[Fact]:
    return state.take_copied("Service", upserted, deleted, 7, listing=False)


def test_objects_and_deletions_are_taken_and_touch_their_dependencies() -> None:
    state = ClusterState(frozenset())
    assert service_fact("shop", "db") in copied(state, SHOP_DB)
    assert state.service(SHOP_DB.key) == SHOP_DB
    assert service_fact("shop", "db") in copied(state, deleted=(SHOP_DB.key,))
    assert state.service(SHOP_DB.key) is None


def test_what_the_copy_has_already_touches_nothing() -> None:
    state = ClusterState(frozenset())
    copied(state, SHOP_DB)
    revision = state.revision
    assert copied(state, SHOP_DB) == copied(state, deleted=(ObjectKey("shop", "gone"),)) == frozenset()
    assert state.revision == revision


def test_the_time_of_a_change_is_the_original_s() -> None:
    state = ClusterState(frozenset())
    copied(state, SHOP_DB)
    assert state.serial == 7


class Notes:
    """A journal that notes what it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def taken(self, kind: Kind, changes: object, wall_seconds: int) -> None:
        self.lines.append(f"{kind} at {wall_seconds}")

    def synced(self, kind: Kind, denied: bool) -> None:
        self.lines.append(f"{kind} {'denied' if denied else 'complete'}")

    def restored(self, restored: Restored | None) -> None:
        self.lines.append(f"{sorted(restored.kinds)} of {restored.unix_time}" if restored else "dropped")

    def when_copied(self, action: object) -> None:
        """Not used by a state."""


def test_a_journal_has_all_changes_in_order_and_nothing_that_changed_nothing() -> None:
    state = ClusterState(frozenset[Kind]({"Service", "Pod"}))
    notes = state.journal = Notes()
    for _ in range(2):
        state.apply(Upserted(SHOP_DB), 7)
    state.do_without("Pod")
    state.restore(Restored(frozenset[Kind]({"Service"}), 5))
    state.do_without("Pod")
    state.complete("Service")
    assert notes.lines == ["Service at 7", "Pod denied", "['Service'] of 5", "Service complete"]


def test_after_a_first_list_or_a_snapshot_all_slices_are_to_be_checked() -> None:
    shared = endpoint("10.0.0.1", node="n1")
    slices = (endpoint_slice("db", shared, name="db-1"), endpoint_slice("web", shared, name="web-1"))
    keys = {one.key for one in slices}
    listed = ClusterState(frozenset[Kind](("EndpointSlice",)))
    listed.apply(Replaced("EndpointSlice", slices), 7)
    assert listed.unchecked_slices == keys
    restored = ClusterState(frozenset[Kind](("EndpointSlice",)))
    assert restored.take_copied("EndpointSlice", slices, (), 7, listing=True) == frozenset()
    restored.unchecked_slices.clear()
    assert restored.restore(Restored(restored.needed, 5)) == {EVERYTHING}
    assert restored.unchecked_slices == keys


def test_the_list_after_a_snapshot_names_what_it_changes() -> None:
    state = ClusterState(frozenset[Kind](("Service",)))
    state.take_copied("Service", [SHOP_DB, service("old", "shop")], (), 7, listing=True)
    state.restore(Restored(state.needed, 5))
    steps = [step.facts for step in state.replace_steps(Replaced("Service", (SHOP_DB,)), 8)]
    assert service_fact("shop", "old") in steps[-2]
    assert steps[-1] == {EVERYTHING}


def test_the_serial_does_not_go_back_with_the_clock() -> None:
    state = ClusterState(frozenset())
    for now in (100, 40, 101):
        state.apply(Upserted(service(f"at{now}", "shop", cluster_ips=("10.96.0.7",))), now)
    assert state.serial == 101
    state.apply(Upserted(service("late", "shop")), 7)
    assert state.serial == 101
