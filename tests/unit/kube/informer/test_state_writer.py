"""How what an API server sends becomes changes of the state."""

from tests.support.model_builders import endpoint, endpoint_slice, service
from tests.support.virtual_event_loop import run_virtually
from topodns.cluster.decode.stream import Event
from topodns.cluster.model import Deleted, ObjectKey, Replaced, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.kube.informer.state_writer import StateWriter

DB, WEB = service("db", "shop"), service("web", "shop")


def test_a_list_replaces_all_objects_but_those_that_changed_after_it() -> None:
    state = ClusterState(frozenset())
    writer = StateWriter(PublishingState(state, lambda: 1000.0))
    for one in (DB, WEB):
        writer.apply("Service", Event(Upserted(one), "1"))
    assert sum(writer.replace_steps("Service", (), frozenset({WEB.key}))) == 1
    assert list(state.services) == [WEB.key]


def test_a_list_comes_after_the_events_that_are_held_back() -> None:
    async def story() -> tuple[int, int]:
        state = ClusterState(frozenset())
        state.apply(Replaced("Service", (service("web"),)), 0)
        state.apply(Replaced("EndpointSlice", (endpoint_slice("web", endpoint("10.0.0.1")),)), 0)
        writer = StateWriter(PublishingState(state, lambda: 1000.0))
        writer.apply("EndpointSlice", Event(Deleted("EndpointSlice", ObjectKey("default", "web-1")), "2"))
        held = state.counts()["EndpointSlice"]
        differing = sum(writer.replace_steps("EndpointSlice", (), frozenset()))
        return held, differing

    assert run_virtually(story()) == (1, 0)


def test_a_list_keeps_the_last_version_of_what_it_has_undecodable() -> None:
    state = ClusterState(frozenset({"Service"}))
    state.apply(Upserted(WEB), 0)
    listing = StateWriter(PublishingState(state, lambda: 1000.0)).new_listing("Service")
    listing.keep(WEB.key)
    listing.keep(ObjectKey("shop", "unknown"))
    assert len(listing) == 1
    assert sum(listing.replace_steps(frozenset())) == 0
    assert state.held("Service", WEB.key) is WEB
