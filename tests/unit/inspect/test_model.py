"""Views of Services, made of a state."""

from tests.support.model_builders import endpoint, endpoint_slice, service, stateful_set
from topodns.cluster.model import ClusterObject, KeySource, ObjectKey, Policy, Upserted
from topodns.cluster.state import ClusterState
from topodns.inspect.model import service_view
from topodns.topology.keys import key_reader

DB = ObjectKey("default", "db")
ZONE = "topology.kubernetes.io/zone"


def state_of(*objects: ClusterObject) -> ClusterState:
    state = ClusterState(frozenset(), key_reader((KeySource.ANNOTATION,)))
    for each in objects:
        state.apply(Upserted(each), 0)
    return state


def test_a_view_has_the_policy_and_the_ready_endpoints_by_family() -> None:
    near, far = endpoint("10.0.0.1", "n1"), endpoint("fd00::1", "n1")
    state = state_of(
        service("db", annotation=ZONE),
        endpoint_slice("db", near, endpoint("10.0.0.2", "n2", ready=False)),
        endpoint_slice("db", far, name="db-6"),
    )
    view = service_view(state, DB)
    assert view is not None
    assert view.policy == Policy((ZONE,), KeySource.ANNOTATION)
    assert list(view.families) == [(4, (near,)), (6, (far,))]
    assert not view.governing


def test_the_endpoints_are_those_of_the_state_and_no_copies() -> None:
    state = state_of(service("db", annotation=ZONE), endpoint_slice("db", endpoint("10.0.0.1")))
    view = service_view(state, DB)
    assert view is not None
    assert view.ipv4 is state.backends(DB).pools[4].everyone.endpoints


def test_a_governing_service_is_known_as_one() -> None:
    state = state_of(service("db", annotation=ZONE), stateful_set("db", "db"))
    view = service_view(state, DB)
    assert view is not None
    assert view.governing


def test_a_service_without_keys_has_a_view_and_one_that_is_not_headless_has_none() -> None:
    state = state_of(service("db"), service("web", cluster_ips=["10.96.0.1"], annotation=ZONE))
    view = service_view(state, DB)
    assert view is not None
    assert view.policy is None
    assert service_view(state, ObjectKey("default", "web")) is None
    assert service_view(state, ObjectKey("default", "gone")) is None
