"""The memory of subscriptions (`push`): octets allocated for them, beside the octets that they count for the limit.

Run with `python -m bench.push_memory`. The overheads in `dnsserver.push.answers` and `budget` come from here.
Connections are not part of it.
"""

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from tests.support.push_server import ClientConnection, PushServer
from topodns.cluster.model import Change, Upserted
from topodns.dns.rrtype import ADDRESS_TYPES

ENDPOINTS: Final = 10
ZONE: Final = "topology.kubernetes.io/zone"


def _address(number: int) -> str:
    return f"10.0.{number // 250}.{number % 250 + 1}"


def _cluster(clients: int, services: int, keys: str | None) -> Iterator[Change]:
    yield Upserted(namespace("default"))
    for number in range(clients):
        yield Upserted(node(f"n{number}", {ZONE: f"z{number % 3}"}, [_address(number)]))
    for number in range(services):
        places = (endpoint(f"10.1.{number // 250}.{place + 1}", f"n{place % clients}") for place in range(ENDPOINTS))
        yield Upserted(service(f"s{number}", annotation=keys))
        yield Upserted(endpoint_slice(f"s{number}", *places))


def _subscribe(client: ClientConnection, services: int) -> None:
    for number in range(services):
        for qtype in ADDRESS_TYPES:
            assert client.subscribe(f"s{number}.default.svc.cluster.local.", qtype) == 0
    for received in (client.records, client.responses, client.messages):
        received.clear()


class PushMemory(NamedTuple):
    """Number of subscriptions, octets allocated for them, and octets that they count for the limit."""

    subscribed: int
    allocated: int
    counted: int


def measure(clients: int, services: int, keys: str | None) -> PushMemory:
    """So many clients, each subscribed to A and AAAA of so many headless Services, with or without topology keys."""
    server = PushServer()
    server.apply(*_cluster(clients, services, keys))
    first, connections = server.connect("10.9.9.9"), [server.connect(_address(number)) for number in range(clients)]
    _subscribe(first, services)  # the state of the cluster builds indexes for answers: these are not measured
    first.close()
    server.settle()
    gc.collect()
    tracemalloc.start()
    for client in connections:
        _subscribe(client, services)
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return PushMemory(server.counts.subscriptions, allocated, server.counts.octets)


def main() -> None:
    print(
        f"{'clients':>8} {'Services':>9} {'keys':>5} {'subscribed':>11} {'allocated':>10} {'counted':>10} {'each':>6}"
    )
    for clients, services, keys in ((1, 500, None), (20, 500, None), (100, 100, None), (20, 200, ZONE)):
        subscribed, allocated, counted = measure(clients, services, keys)
        zone, each = "zone" if keys else "none", allocated // subscribed
        print(f"{clients:8} {services:9} {zone:>5} {subscribed:11} {allocated:10} {counted:10} {each:6}")


if __name__ == "__main__":
    main()
