"""Clients that misuse DNS Push: floods of subscriptions, sessions and doubts, clients that do not read, and garbage."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.support.answer_checker import promise
from tests.support.api_objects import endpoint_slice, service
from tests.support.program_with_fake_api import IN_A, IN_B, Scene, scene
from tests.support.push_client import (
    FORMERR,
    KEEPALIVE,
    NOERROR,
    REFUSED,
    SUBSCRIBE,
    A,
    PushClient,
    dso,
    push_client,
    reconfirm,
    subscription,
    wire,
)
from tests.support.server_process import until
from tests.support.socket_memory import kernel_octets
from tests.support.steady_client import victim

CALM, FRONT = "calm.default.svc.cluster.local.", "front.default.svc.cluster.local."
LARGE = "large.default.svc.cluster.local."
LIMITS = "push {\n sessions 100\n subscriptions 5000\n memory 8\n }"
FLOODER = "127.66.3.1"
CPU = 0.02  # seconds of the server between a question of a victim and its reply
RIGHT = ("calm.default.svc.cluster.local A", "10.96.0.99")


def large_slice(generation: int) -> dict[str, object]:
    addresses = {f"10.{64 + number // 250}.{generation % 250}.{number % 250 + 1}": "n1" for number in range(900)}
    return endpoint_slice("large", addresses)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    objects = (service("calm", cluster_ip="10.96.0.99"), service("large"), large_slice(0))
    with scene(tmp_path_factory.mktemp("push"), *objects, promises=(promise(*RIGHT),), directives=LIMITS) as one:
        yield one
        assert "Traceback" not in one.server.output()


@contextmanager
def client(there: Scene, source: str = FLOODER, receive_buffer: int = 0) -> Iterator[PushClient]:
    with push_client((there.server.address, there.server.port), source, receive_buffer) as one:
        yield one


def nothing_is_left(there: Scene) -> bool:
    scrape = there.server.scrape()
    return not any(scrape.sum(f"topodns_push_{name}") for name in ("sessions", "subscriptions", "bytes"))


@pytest.fixture(autouse=True)
def _everything_is_given_back(there: Scene) -> Iterator[None]:
    yield
    until(lambda: nothing_is_left(there), "no session")


def subscribe_many(one: PushClient, names: Iterator[str] | list[str], at_once: int = 200) -> list[int]:
    """The rcodes, of many requests in each write."""
    rcodes, batch = [], []
    for name in names:
        batch.append(dso(one.new_ident(), *subscription(name)))
        if len(batch) == at_once:
            one.send(*batch)
            rcodes += [_response(one) for _ in batch]
            batch = []
    if batch:
        one.send(*batch)
        rcodes += [_response(one) for _ in batch]
    return rcodes


def _response(one: PushClient) -> int:
    while not (message := one.message()).response:
        pass
    return message.rcode


def test_a_flood_of_subscriptions_takes_its_share_and_no_more(there: Scene) -> None:
    """Names that do not exist below one Service, so that a change of it touches all of them."""
    before = there.server.resident_bytes()
    with client(there) as one, victim(there.server, *RIGHT, source=IN_A) as asking:
        rcodes = subscribe_many(one, [f"n{number}.large.default.svc.cluster.local." for number in range(6000)])
        assert rcodes == [NOERROR] * 5000 + [REFUSED] * 1000
        for generation in range(1, 6):
            there.api.put(large_slice(generation))
            time.sleep(0.1)
        with client(there, IN_B) as other:
            assert other.subscribe(FRONT).rcode == NOERROR
            other.comes(FRONT, "10.96.0.1")
            there.api.put(service("front", cluster_ip="10.96.0.2"))
            other.comes(FRONT, "10.96.0.2", patience=1.0)
            there.api.put(service("front", cluster_ip="10.96.0.1"))
        time.sleep(1)
    assert not asking.wrong
    assert asking.lost == 0
    assert asking.cpu(95) < CPU, asking
    assert there.server.resident_bytes() - before < 32 << 20


def test_names_as_long_as_can_be_are_bounded_by_their_memory(there: Scene) -> None:
    label = "x" * 63
    before = there.server.resident_bytes()
    with ExitStack() as stack:
        rcodes = []
        for last in range(1, 3):
            one = stack.enter_context(client(there, f"127.66.4.{last}"))
            names = [f"{number:05}{last}{label[6:]}.{label}.{label}.y.cluster.local." for number in range(4000)]
            rcodes += subscribe_many(one, names)
        assert rcodes[:5000] == [NOERROR] * 5000
        assert rcodes[-1000:] == [REFUSED] * 1000
        assert there.metric("topodns_push_refused_total", reason="memory") >= 1000
        assert there.metric("topodns_push_bytes") < (8 << 20) + 4096
        assert there.server.resident_bytes() - before < 32 << 20


def test_an_address_has_sixteen_sessions_and_the_connections_stay(there: Scene) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(client(there)) for _ in range(20)]
        keepalive = (KEEPALIVE, struct.pack("!II", 15_000, 15_000))
        assert [one.request(keepalive).rcode for one in clients] == [NOERROR] * 16 + [REFUSED] * 4
        with client(there, IN_B) as other:
            assert other.subscribe(FRONT).rcode == NOERROR


def test_a_client_that_does_not_read_its_pushes_is_dropped(there: Scene) -> None:
    """900 addresses of which all change: 15 KB for each change."""
    closed = there.metric("topodns_push_sessions_ended_total", reason="slow")
    before = there.server.resident_bytes()
    with client(there, receive_buffer=4096) as one, client(there, IN_B) as reading:
        one.send(dso(1, *subscription(LARGE)))
        reading.subscribe(LARGE)
        most = 0
        for generation in range(10, 50):
            there.api.put(large_slice(generation))
            reading.comes(LARGE, *large_addresses(generation))
            most = max(most, kernel_octets(there.server.address, there.server.port))
        assert there.metric("topodns_push_sessions_ended_total", reason="slow") == closed + 1
        assert there.server.resident_bytes() - before < 16 << 20
        assert most < 4 << 20


def large_addresses(generation: int) -> list[str]:
    return [f"10.{64 + number // 250}.{generation % 250}.{number % 250 + 1}" for number in range(900)]


def test_a_client_that_pipelines_and_does_not_read_stops_being_read(there: Scene) -> None:
    """Each SUBSCRIBE of 40 octets is answered with 15 KB."""
    before = there.server.resident_bytes()
    with client(there, receive_buffer=4096) as one:
        one.begin()
        subscribe, cancel = dso(7, *subscription(LARGE)), dso(0, (0x42, b"\0\7"))
        one.sock.settimeout(2)
        with suppress(OSError):
            for _ in range(2000):
                one.send(*(subscribe, cancel) * 20)
        assert there.server.resident_bytes() - before < 16 << 20


def test_doubts_without_end_delay_no_other_push(there: Scene) -> None:
    with client(there) as one, client(there, IN_B) as other:
        subscribe_many(one, [f"n{number}.large.default.svc.cluster.local." for number in range(2000)])
        doubts = [reconfirm(f"n{number}.large.default.svc.cluster.local.", A, bytes(4)) for number in range(2000)]
        stop = threading.Event()

        def flood() -> None:
            with suppress(OSError):
                while not stop.is_set():
                    one.send(*doubts)

        doubting = threading.Thread(target=flood)
        doubting.start()
        try:
            other.subscribe(FRONT)
            other.comes(FRONT, "10.96.0.1")
            for last in (2, 3, 4, 1):
                there.api.put(service("front", cluster_ip=f"10.96.0.{last}"))
                other.comes(FRONT, f"10.96.0.{last}", patience=1.0)
        finally:
            stop.set()
            one.sock.shutdown(socket.SHUT_RDWR)
            doubting.join()
            one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # what is unsent, too


def test_messages_as_large_as_can_be_are_an_error_or_ignored(there: Scene) -> None:
    most = 65535 - 12
    with client(there) as one:
        one.begin()
        padded = [*subscription(FRONT), (3, bytes(most - 8 - len(wire(FRONT)) - 4))]
        assert len(dso(2, *padded)) == 65535
        assert one.request(*padded).rcode == NOERROR
        one.comes(FRONT, "10.96.0.1")
        assert one.request((SUBSCRIBE, bytes(most - 4))).rcode == FORMERR
        assert one.request((SUBSCRIBE, wire("x.cluster.local.") + b"\0\1\0\1"), *[(0xF900, b"")] * 64).rcode == FORMERR
        one.send(struct.pack("!HHHHHHHH", 9, 6 << 11, 0, 0, 0, 0, SUBSCRIBE, 0xFFFF) + bytes(4))
        assert one.response(9).rcode == FORMERR


def test_garbage_after_the_opcode_changes_nothing(there: Scene) -> None:
    rng = random.Random(8490)
    good = [
        dso(3, *subscription(FRONT)),
        dso(4, (KEEPALIVE, bytes(8))),
        dso(0, (0x42, b"\0\3")),
        dso(0, (0x43, wire(FRONT))),
    ]
    with victim(there.server, *RIGHT, source=IN_A) as asking:
        for _ in range(300):
            with client(there) as one, suppress(OSError):
                for _ in range(20):
                    octets = bytearray(rng.choice(good))
                    for _ in range(rng.randrange(1, 4)):
                        octets[rng.randrange(len(octets))] = rng.randrange(256)
                    octets[2] = octets[2] & 0x87 | 0x30
                    one.send(bytes(octets[: rng.randrange(4, len(octets) + 1)]))
    assert not asking.wrong
    assert asking.lost == 0
