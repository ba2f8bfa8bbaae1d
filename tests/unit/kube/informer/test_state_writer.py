"""How what an API server sends becomes changes of the state."""

from collections.abc import Callable

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, service
from tests.support.virtual_event_loop import run_virtually
from topodns.cluster.decode.stream import Event
from topodns.cluster.model import ClusterObject, Deleted, Kind, ObjectKey, Replaced, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.kube.informer.state_writer import LATENCY_BUCKETS, StateWriter

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


SLICE = endpoint_slice("web", endpoint("10.0.0.1"))
CLUSTER_IP = service("web", cluster_ips=["10.96.0.1"])


def measured(event: Event[ClusterObject], *services: ClusterObject) -> dict[str, list[float]]:
    """The upper bounds of the buckets that were hit, by service kind. It is second 1000 now."""

    async def story() -> StateWriter:
        state = ClusterState(frozenset())
        state.apply(Replaced("Service", services), 0)
        writer = StateWriter(PublishingState(state, lambda: 1000.0))
        writer.apply("EndpointSlice", event)
        return writer

    bounds = [*LATENCY_BUCKETS, float("inf")]
    found = run_virtually(story()).latency.by_kind
    return {
        kind: [bounds[at] for at, count in enumerate(latencies.counts) if count]
        for kind, latencies in found.items()
        if latencies.count()
    }


@pytest.mark.parametrize(
    ("triggered", "bucket"), [(999.75, 0.256), (999.9985, 0.002), (1000.5, 0.001), (998.5, 2.048), (0.0, float("inf"))]
)
def test_the_time_since_the_trigger_is_counted(triggered: float, bucket: float) -> None:
    found = measured(Event(Upserted(SLICE), "1", triggered), service("web"))
    assert found == {"headless_with_selector": [bucket]}


def test_services_with_a_cluster_ip_are_counted_apart() -> None:
    assert measured(Event(Upserted(SLICE), "1", 999.0), CLUSTER_IP) == {"cluster_ip": [1.024]}


@pytest.mark.parametrize(
    ("event", "services"),
    [
        pytest.param(Event(Upserted(SLICE), "1"), [service("web")], id="a slice without the time"),
        pytest.param(Event(Upserted(SLICE), "1", 999.0), [], id="a Service that is not known"),
        pytest.param(Event(Deleted("EndpointSlice", SLICE.key), "1"), [service("web")], id="a deletion"),
    ],
)
def test_nothing_else_is(event: Event[ClusterObject], services: list[ClusterObject]) -> None:
    assert measured(event, *services) == {}


def test_the_buckets_are_coredns_s() -> None:
    assert (len(LATENCY_BUCKETS), LATENCY_BUCKETS[0], round(LATENCY_BUCKETS[-1], 3)) == (20, 0.001, 524.288)


class Copies:
    """A journal of copies that take their time."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], object]] = []

    def taken(self, kind: Kind, changes: object, wall_seconds: int) -> None:
        """Not of interest here."""

    def synced(self, kind: Kind, denied: bool) -> None:
        """Not of interest here."""

    def restored(self, restored: object) -> None:
        """Not of interest here."""

    def when_copied(self, action: Callable[[], object]) -> None:
        self.actions.append(action)


def test_with_copies_the_time_until_all_have_the_change_is_counted() -> None:
    async def story() -> None:
        state = ClusterState(frozenset())
        state.apply(Replaced("Service", (service("web"),)), 0)
        copies = state.journal = Copies()
        now = [1000.0]
        writer = StateWriter(PublishingState(state, lambda: now[0]))
        writer.apply("EndpointSlice", Event(Upserted(SLICE), "1", 999.9))
        latencies = writer.latency.by_kind["headless_with_selector"]
        assert latencies.count() == 0
        now[0] = 1002.0
        for action in copies.actions:
            action()
        assert (latencies.count(), round(latencies.sum, 1)) == (1, 2.1)

    run_virtually(story())
