"""The Nodes whose clients asked for a Service, by the sample of the queries to config/demo."""

from collections import Counter
from ipaddress import ip_address
from typing import Any, Final

import pytest

from tests.support.demo import Demo
from tests.support.dns_messages import NODE_IDENTITY, Opt, node_identity, query
from tests.support.model_builders import service
from topodns.cluster.model import ObjectKey, Upserted
from topodns.dns.addresses import IPV4_MAPPED
from topodns.inspect.askers import FEWEST, REUSED, Askers, RecentAskers
from topodns.query.query_sample import QuerySample
from topodns.time_slices import do_at_once

CACHE: Final = ObjectKey("shop", "cache")
X: Final = ObjectKey("shop", "x")
SHELL_A1: Final = "127.10.1.100"


class Asked:
    """Queries that the demo's server receives, so few that each is sampled."""

    def __init__(self) -> None:
        self.now = 1.0
        self.sample = QuerySample()
        self.cluster = Demo().generation.clusters[0]
        self.recent = RecentAskers(self.cluster, self.sample, lambda: self.now)

    def receive(self, message: bytes, source: str = SHELL_A1, times: int = 1) -> None:
        for _ in range(times):
            self.sample.add(self.now, 1, message, ip_address(source).packed, None)
            self.now += 0.1

    def askers(self, key: ObjectKey = CACHE) -> Askers | None:
        return do_at_once(self.recent.steps()).get(key)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_queries_count_for_the_node_of_their_client(asked: Asked) -> None:
    asked.receive(query("cache.shop.svc.cluster.local A"), times=3)
    asked.receive(query("CACHE.shop.svc.cluster.local AAAA"), source="127.10.0.5")
    asked.receive(query("_redis._tcp.cache.shop.svc.cluster.local SRV"), source="203.0.113.1")
    assert asked.askers() == Askers(5, 5, Counter({"node-a1": 3, "node-b2": 1, "": 1}))


def test_a_query_counts_for_the_node_that_a_trusted_client_names(asked: Asked) -> None:
    asked.receive(query("cache.shop.svc.cluster.local A", Opt(options=[node_identity("node-c1")])), source="127.10.0.7")
    assert asked.askers() == Askers(1, 1, Counter({"node-c1": 1}))


def test_an_ipv4_address_mapped_into_ipv6_is_that_address(asked: Asked) -> None:
    mapped = IPV4_MAPPED + ip_address(SHELL_A1).packed
    asked.sample.add(asked.now, 1, query("cache.shop.svc.cluster.local A"), mapped, None)
    assert asked.askers() == Askers(1, 1, Counter({"node-a1": 1}))


OTHER_MESSAGES: Final = {
    "another zone": query("www.example.org A"),
    "the apex": query("cluster.local NS"),
    "a namespace": query("shop.svc.cluster.local A"),
    "an endpoint": query("cache-0.cache.shop.svc.cluster.local A"),
    "an address": query("1.0.10.127.in-addr.arpa PTR"),
    "a response": query("cache.shop.svc.cluster.local A", flags=0x8000),
    "a notification": query("cache.shop.svc.cluster.local A", flags=0x2000),
    "a question cut off": query("cache.shop.svc.cluster.local A")[:-1],
    "an option cut off": query("cache.shop.svc.cluster.local A", Opt(options=[(NODE_IDENTITY, b"\xff")]))[:-2],
    "nothing": b"",
    "a piece of a header": b"idfl",
}


@pytest.mark.parametrize("name", OTHER_MESSAGES)
def test_a_message_that_asks_for_no_service_counts_for_none(asked: Asked, name: str) -> None:
    asked.receive(OTHER_MESSAGES[name])
    assert do_at_once(asked.recent.steps()) == {}


NAMES: Final = {
    "keys": ({"annotation": "zone"}, {"x": 1, "_near.x": 1, "_all.x": 0}),
    "keys for near alone": ({"annotation": "zone", "apply_to": "near"}, {"x": 0, "_near.x": 1, "_all.x": 0}),
    "a bound alone": ({"max_endpoints": "2"}, {"x": 1, "_near.x": 0, "_all.x": 1}),
}


@pytest.mark.parametrize(("annotations", "counted"), NAMES.values(), ids=NAMES)
def test_queries_for_names_that_the_keys_do_not_apply_to_are_not_counted(
    asked: Asked, annotations: dict[str, Any], counted: dict[str, int]
) -> None:
    """The flows of a Service are those by its keys."""
    asked.cluster.state.apply(Upserted(service("x", "shop", **annotations)), 0)
    for name, times in counted.items():
        asked.now += REUSED
        before = asked.askers(X) or Askers()
        asked.receive(query(f"{name}.shop.svc.cluster.local A"))
        asked.now += REUSED
        after = asked.askers(X) or Askers()
        assert after.queries - before.queries == times, name


def test_shares_are_known_from_some_sampled_queries_on(asked: Asked) -> None:
    asked.receive(query("cache.shop.svc.cluster.local A"), times=FEWEST - 1)
    few = asked.askers()
    asked.now += REUSED
    asked.receive(query("cache.shop.svc.cluster.local A"))
    enough = asked.askers()
    assert few is not None
    assert not few.is_known
    assert enough is not None
    assert enough.is_known


def test_a_result_is_given_again_for_some_seconds(asked: Asked) -> None:
    asked.receive(query("cache.shop.svc.cluster.local A"))
    first = asked.askers()
    asked.receive(query("cache.shop.svc.cluster.local A"))
    assert asked.askers() is first
