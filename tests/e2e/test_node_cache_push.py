"""Push to the node caches of the chart: a change of a headless Service reaches Pods at once, though answers are cached
for 30 s.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.expected_nearest import Answers
from tests.support.kube.node_caches import NodeCaches, node_caches
from tests.support.kube.objects import ZONE, Object, headless, manual_slice
from tests.support.kube.operator_commands import Operator
from tests.support.kube.waiting import becomes, eventually

pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

OWN: Final = "169.254.20.10"  # of the node cache alone, by the chart's default
SUBSCRIPTIONS: Final = "topodns_cache_push_subscriptions"
MESSAGES: Final = "topodns_cache_push_messages_total"
TTL: Final = 30  # seconds, as the chart's Corefile has it; of the Service with keys by its annotation
FAR_FROM_EXPIRY: Final = 10  # seconds that a cached answer has left, at least, when the change comes
AT_ONCE: Final = 2.0  # seconds
KEYS: Final = {"all": None, "near": ZONE}
BEFORE, AFTER = "198.51.100.", "203.0.113."  # prefixes of the endpoints' addresses


@pytest.fixture(scope="module")
def caches(installed: str, cluster: Cluster, operator: Operator) -> Iterator[NodeCaches]:
    with node_caches(cluster, operator) as caches:
        yield caches


@pytest.fixture
def services(place: Place) -> Place:
    """Headless, with an endpoint on each node: `all` is without keys, `near` is for the topology zone."""
    for name, keys in KEYS.items():
        place.create(with_ttl(headless(name, keys, app="")), manual_slice(name, name, endpoints(place, BEFORE)))
    return place


def with_ttl(service: Object) -> Object:
    service["metadata"]["annotations"]["topodns.io/ttl"] = str(TTL)
    return service


def endpoints(place: Place, prefix: str) -> list[tuple[str, str]]:
    return [(f"{prefix}{node.removeprefix('node')}", node) for node in place.cluster.nodes]


def replace(place: Place) -> None:
    """The endpoints of both Services get other addresses."""
    for name in KEYS:
        changed: dict[str, Any] = manual_slice(name, name, endpoints(place, AFTER))
        place.patch("EndpointSlice", name, {"endpoints": changed["endpoints"]})


def got(askers: Askers, place: Place) -> dict[str, Answers]:
    """By Service: the answers of the cache of each node."""
    return {name: {node: asker.addresses(place.fqdn(name), to=OWN) for node, asker in askers.items()} for name in KEYS}


def right(place: Place, prefix: str) -> dict[str, Answers]:
    zones, found = place.cluster.topology_zones, endpoints(place, prefix)
    return {
        "all": {node: {address for address, _ in found} for node in zones},
        "near": {node: {address for address, its in found if zones[its] == zones[node]} for node in zones},
    }


def seconds_left(askers: Askers, place: Place) -> list[int]:
    """The TTLs of the cached answers."""
    replies = [asker.ask(f"{place.fqdn(name)} A", OWN) for name in KEYS for asker in askers.values()]
    return [int(line.split()[1]) for reply in replies for line in reply.answer]


def test_a_new_address_of_a_service_reaches_pods_behind_the_node_caches_before_the_ttl_ends(
    caches: NodeCaches, askers: Askers, services: Place, say: Callable[[str], None]
) -> None:
    becomes(lambda: got(askers, services), right(services, BEFORE))

    def subscribed() -> bool:
        """A name is subscribed to when it is queried again while it is cached."""
        got(askers, services)
        return all(caches.metric(node, SUBSCRIPTIONS) >= len(KEYS) for node in askers)

    eventually(subscribed, "a subscription of each node cache to both names")
    pushed = {node: caches.metric(node, MESSAGES) for node in askers}
    eventually(lambda: min(seconds_left(askers, services)) > FAR_FROM_EXPIRY, "answers that are cached for long")
    assert max(seconds_left(askers, services)) <= TTL
    replace(services)
    begun = time.monotonic()
    becomes(lambda: got(askers, services), right(services, AFTER), AT_ONCE)
    say(f"node cache, a change reaches Pods on {len(askers)} nodes by push: {time.monotonic() - begun:.2f} s")
    assert {node for node in askers if caches.metric(node, MESSAGES) > pushed[node]} == set(askers)
