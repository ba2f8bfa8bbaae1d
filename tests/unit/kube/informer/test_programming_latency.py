"""coredns_kubernetes_dns_programming_duration_seconds, as CoreDNS measures it."""

from collections.abc import Callable

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, service
from tests.support.virtual_event_loop import run_virtually
from topodns.cluster.decode.stream import Event
from topodns.cluster.model import ClusterObject, Deleted, Kind, Replaced, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.kube.informer.programming_latency import BUCKETS
from topodns.kube.informer.state_writer import StateWriter

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

    bounds = [*BUCKETS, float("inf")]
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
    assert (len(BUCKETS), BUCKETS[0], round(BUCKETS[-1], 3)) == (20, 0.001, 524.288)


class Copies:
    """A journal of copies that take their time."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], object]] = []

    def taken(self, kind: Kind, changes: object, wall_seconds: int) -> None:
        """Not of interest here."""

    def synced(self, kind: Kind, denied: bool) -> None:
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
