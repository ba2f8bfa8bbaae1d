"""Which objects have an address."""

from dataclasses import replace

import pytest

from tests.support.model_builders import packed, service
from topodns.cluster.address_index import AddressIndex
from topodns.cluster.model import ObjectKey, Service, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import address_fact

A, B, C = (ObjectKey("default", name) for name in "abc")
ONE, TWO = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02"


def test_objects_with_one_address_are_ordered_by_namespace_and_name() -> None:
    index: AddressIndex[ObjectKey] = AddressIndex()
    for key in (C, A, B, ObjectKey("apps", "z")):
        index.move(key, (), (ONE,))
    assert index.keys(ONE) == (ObjectKey("apps", "z"), A, B, C)


def test_an_object_leaves_the_addresses_that_it_no_longer_has() -> None:
    index: AddressIndex[ObjectKey] = AddressIndex()
    index.move(A, (), (ONE, TWO))
    index.move(B, (), (ONE,))
    index.move(A, (ONE, TWO), (TWO,))
    assert (index.keys(ONE), index.keys(TWO)) == ((B,), (A,))
    index.move(B, (ONE,), ())
    assert index.keys(ONE) == ()


def test_shared_addresses_are_those_of_several_objects() -> None:
    index: AddressIndex[ObjectKey] = AddressIndex()
    index.move(A, (), (ONE, TWO))
    index.move(B, (), (TWO,))
    assert list(index.shared({ONE, TWO, b"\x0a\x00\x00\x03"})) == [(TWO, [A, B])]


def test_of_each_namespace_the_first_keys_are_found() -> None:
    index: AddressIndex[ObjectKey] = AddressIndex()
    keys = [ObjectKey(namespace, name) for namespace in ("a", "b", "b-c", "c") for name in "xyz"]
    for key in keys:
        index.move(key, (), (ONE,))
    assert list(index.first_of_namespaces([ONE], 3)) == keys
    assert list(index.first_of_namespaces([ONE], 2)) == [key for key in keys if key.name != "z"]
    assert {key.namespace for key in index.first_of_namespaces([ONE], 1, besides="b")} == {"a", "b-c", "c"}
    assert list(index.first_of_namespaces([TWO], 1)) == []
    index.move(A, (), (TWO,))
    assert list(index.first_of_namespaces([TWO], 1)) == [A]
    assert list(index.first_of_namespaces([TWO], 1, besides="default")) == []


WEB = service("web", cluster_ips=["10.96.0.7"], ports=["http:80"], external_ips=["192.0.2.1"])
ADDRESS = packed("192.0.2.1")


def test_services_are_found_by_their_external_addresses() -> None:
    state = ClusterState(frozenset())
    other = service("api", cluster_ips=["10.96.0.8"], external_ips=["192.0.2.1", "2001:db8::1"])
    state.apply(Upserted(WEB), 1)
    state.apply(Upserted(other), 1)
    assert state.external.at(ADDRESS) == (ObjectKey("default", "api"), ObjectKey("default", "web"))
    state.apply(Upserted(replace(other, external_ips=())), 1)
    assert state.external.at(ADDRESS) == (ObjectKey("default", "web"),)
    assert state.external.at(packed("2001:db8::1")) == ()


def test_a_change_of_address_touches_both() -> None:
    state = ClusterState(frozenset())
    state.apply(Upserted(WEB), 1)
    facts = state.apply(Upserted(replace(WEB, external_ips=(packed("192.0.2.2"),))), 2)
    assert {address_fact(ADDRESS), address_fact(packed("192.0.2.2"))} <= facts


SEEN_OUTSIDE = {
    "an address": (replace(WEB, external_ips=(packed("192.0.2.2"),)), True),
    "a load balancer's name": (replace(WEB, external_hostnames=("lb.example",)), True),
    "the last address": (replace(WEB, external_ips=()), True),
    "a port": (replace(WEB, ports=()), True),
    "a ClusterIP": (replace(WEB, cluster_ips=(packed("10.96.0.9"),)), False),
}


@pytest.mark.parametrize(("changed", "moves"), SEEN_OUTSIDE.values(), ids=SEEN_OUTSIDE)
def test_the_serial_moves_with_changes_visible_outside(changed: Service, moves: bool) -> None:
    state = ClusterState(frozenset())
    state.apply(Upserted(WEB), 1)
    state.apply(Upserted(changed), 2)
    assert state.external.serial == (2 if moves else 1)


def test_services_inside_only_leave_the_serial() -> None:
    state = ClusterState(frozenset())
    state.apply(Upserted(service("db")), 1)
    assert state.external.serial == 0
