"""The memory of subscriptions (`push`): octets allocated for them, beside the octets that they count for the limit.

Run with `python -m bench.push_memory`. The overheads in `dnsserver.push.answers` and `clients` come from here.
Connections are not part of it.
"""

import gc
import tracemalloc
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from tests.support.push_server import ClientConnection, PushServer
from topodns.cluster.model import Change, Upserted
from topodns.dns.rrtype import ADDRESS_TYPES, RRType, type_text

ENDPOINTS: Final = 10
ZONE: Final = "topology.kubernetes.io/zone"
SRV: Final = (RRType.SRV,)


def _address(number: int) -> str:
    return f"10.0.{number // 250}.{number % 250 + 1}"


def _cluster(clients: int, services: int, keys: str | None) -> Iterator[Change]:
    yield Upserted(namespace("default"))
    for number in range(clients):
        yield Upserted(node(f"n{number}", {ZONE: f"z{number % 3}"}, [_address(number)]))
    for number in range(services):
        places = (endpoint(f"10.1.{number // 250}.{place + 1}", f"n{place % clients}") for place in range(ENDPOINTS))
        yield Upserted(service(f"s{number}", annotation=keys))
        yield Upserted(endpoint_slice(f"s{number}", *places, ports=["http:80"]))


def _subscribe(client: ClientConnection, services: int, qtypes: Collection[int]) -> None:
    for number in range(services):
        for qtype in qtypes:
            assert client.subscribe(f"s{number}.default.svc.cluster.local.", qtype) == 0
    for received in (client.records, client.responses, client.messages):
        received.clear()


class PushMemory(NamedTuple):
    """Number of subscriptions, octets allocated for them, and octets that they count for the limit."""

    subscribed: int
    allocated: int
    counted: int


def measure(clients: int, services: int, keys: str | None, qtypes: Collection[int] = ADDRESS_TYPES) -> PushMemory:
    """So many clients, each subscribed to these types of so many headless Services, with or without topology keys."""
    server = PushServer()
    server.apply(*_cluster(clients, services, keys))
    first, connections = server.connect("10.9.9.9"), [server.connect(_address(number)) for number in range(clients)]
    _subscribe(first, services, qtypes)  # the state of the cluster builds indexes for answers: these are not measured
    first.close()
    server.settle()
    gc.collect()
    tracemalloc.start()
    for client in connections:
        _subscribe(client, services, qtypes)
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return PushMemory(server.counts.subscriptions, allocated, server.counts.octets)


def main() -> None:
    print(
        f"{'clients':>8} {'Services':>9} {'keys':>5} {'types':>9} {'subscribed':>11} {'allocated':>10} "
        f"{'counted':>10} {'each':>6}"
    )
    addresses = tuple(ADDRESS_TYPES)
    for clients, services, keys, qtypes in (
        (1, 500, None, addresses),
        (20, 500, None, addresses),
        (100, 100, None, addresses),
        (20, 200, ZONE, addresses),
        (1, 500, None, SRV),
        (20, 200, ZONE, SRV),
    ):
        subscribed, allocated, counted = measure(clients, services, keys, qtypes)
        zone, types, each = "zone" if keys else "none", " ".join(map(type_text, qtypes)), allocated // subscribed
        print(f"{clients:8} {services:9} {zone:>5} {types:>9} {subscribed:11} {allocated:10} {counted:10} {each:6}")


if __name__ == "__main__":
    main()
