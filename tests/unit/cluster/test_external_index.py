"""Which Services the outside reaches at an address, and when that last changed."""

from dataclasses import replace

import pytest

from tests.support.model_builders import packed, service
from topodns.cluster.model import ObjectKey, Service, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import address_fact

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
