"""Clients that misuse DNS Push: floods of subscriptions, sessions and doubts, clients that do not read, and garbage."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise

import pytest

from tests.support.api_objects import endpoint_slice, service
from tests.support.program_with_fake_api import IN_A, IN_B, Scene
from tests.support.push_client import (
    FORMERR,
    KEEPALIVE,
    NOERROR,
    REFUSED,
    RETRY_DELAY,
    SERVFAIL,
    SUBSCRIBE,
    A,
    PushClient,
    dso,
    reconfirm,
    subscription,
    wire,
)
from tests.support.push_scene import CALM, client, push_scene
from tests.support.server_process import open_tcp, until
from tests.support.socket_memory import kernel_octets
from tests.support.steady_client import victim

FRONT = "front.default.svc.cluster.local."
LARGE = "large.default.svc.cluster.local."
SESSIONS = 700
LIMITS = f"push {{\n sessions {SESSIONS}\n subscriptions 5000\n memory 16\n }}"
FLOODER = "127.66.3.1"
CPU = 0.02  # seconds of the server between a question of a victim and its reply


def large_slice(generation: int) -> dict[str, object]:
    addresses = {f"10.{64 + number // 250}.{generation % 250}.{number % 250 + 1}": "n1" for number in range(900)}
    return endpoint_slice("large", addresses)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    objects = (service("large"), large_slice(0))
    with push_scene(tmp_path_factory.mktemp("push"), *objects, directives=LIMITS) as one:
        yield one
        assert "Traceback" not in one.server.output()


def nothing_is_left(there: Scene) -> bool:
    scrape = there.server.scrape()
    return not any(scrape.sum(f"topodns_push_{name}") for name in ("sessions", "subscriptions", "bytes"))


@pytest.fixture(autouse=True)
def _everything_is_given_back(there: Scene) -> Iterator[None]:
    yield
    until(lambda: nothing_is_left(there), "no session")


def test_a_flood_of_subscriptions_takes_its_share_and_no_more(there: Scene) -> None:
    """Names that do not exist below one Service, so that a change of it touches all of them."""
    before = there.server.resident_bytes()
    with client(there, FLOODER) as one, victim(there.server, *CALM, source=IN_A) as asking:
        rcodes = one.subscribe_all([f"n{number}.large.default.svc.cluster.local." for number in range(6000)])
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


def test_addresses_that_fill_the_memory_leave_enough_to_the_next_one(there: Scene) -> None:
    """Names as long as can be: the memory is used up before the number of subscriptions."""
    label = "x" * 63
    before = there.server.resident_bytes()
    held = []
    with ExitStack() as stack:
        clients: list[PushClient] = []
        for last in range(1, 5):
            for earlier in clients:  # a busy machine takes longer than a session lives without a message
                assert earlier.keepalive().rcode == NOERROR
            one = stack.enter_context(client(there, f"127.66.4.{last}"))
            clients.append(one)
            names = [f"{number:05}{last}{label[6:]}.{label}.{label}.y.cluster.local." for number in range(4900)]
            rcodes = one.subscribe_all(names)
            held.append(rcodes.count(NOERROR))
            assert rcodes == [NOERROR] * held[-1] + [REFUSED] * (4900 - held[-1])
        assert all(0.4 * more < less < 0.6 * more for more, less in pairwise(held[1:])), held
        assert there.metric("topodns_push_refused_total", reason="share") >= 4 * 4900 - sum(held)
        assert there.metric("topodns_push_bytes") < 16 << 20
        assert there.server.resident_bytes() - before < 48 << 20
        with client(there, IN_B) as other:
            names = [f"n{number}.large.default.svc.cluster.local." for number in range(200)]
            assert other.subscribe_all(names) == [NOERROR] * 200


def test_an_address_has_sixteen_sessions_and_the_connections_stay(there: Scene) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(client(there, FLOODER)) for _ in range(20)]
        assert [one.keepalive().rcode for one in clients] == [NOERROR] * 16 + [REFUSED] * 4
        with client(there, IN_B) as other:
            assert other.subscribe(FRONT).rcode == NOERROR


def in_session(there: Scene, stack: ExitStack, source: str) -> PushClient:
    one = stack.enter_context(client(there, source))
    assert one.keepalive().rcode == NOERROR
    return one


def test_idle_connections_evict_no_session_and_many_sessions_no_other_client(there: Scene) -> None:
    """As many sessions from one /24 as a listener has connections for all clients; six networks of idle clients."""
    refused = there.metric("topodns_tcp_connections_closed_total", reason="limit")
    with ExitStack() as stack:
        caches = [in_session(there, stack, f"127.67.1.{1 + number % 40}") for number in range(600)]
        for number in range(6 * 180):
            stack.enter_context(open_tcp((there.server.address, there.server.port), f"127.68.{number % 6}.1"))
        until(lambda: there.metric("topodns_tcp_connections_closed_total", reason="evicted") > 0, "evicted clients")
        assert there.metric("topodns_tcp_connections_closed_total", reason="limit") == refused
        assert there.metric("topodns_push_sessions") == 600
        assert {one.keepalive().rcode for one in caches} == {NOERROR}
        with victim(there.server, *CALM, source=IN_A, tcp=True) as asking:
            until(lambda: asking.asked >= 20, "queries of another client")
        assert (asking.wrong, asking.lost) == ([], 0)


def test_where_all_sessions_are_taken_a_new_address_gets_one_and_the_evicted_client_a_farewell(there: Scene) -> None:
    with ExitStack() as stack:
        flood = [in_session(there, stack, f"127.67.2.{1 + number // 16}") for number in range(SESSIONS)]
        with client(there, IN_B) as cache:
            assert cache.subscribe(FRONT).rcode == NOERROR
            last = flood[0].message()
            assert (last.ident, last.rcode, last.tlv(RETRY_DELAY) is None) == (0, SERVFAIL, False)
            assert flood[0].is_closed()
            assert there.metric("topodns_push_sessions") == SESSIONS
            assert there.metric("topodns_push_sessions_ended_total", reason="evicted") == 1
            cache.comes(FRONT, "10.96.0.1")


def test_a_client_that_does_not_read_its_pushes_is_dropped(there: Scene) -> None:
    """900 addresses of which all change: 15 KB for each change."""
    closed = there.metric("topodns_push_sessions_ended_total", reason="slow")
    before = there.server.resident_bytes()
    with client(there, FLOODER, receive_buffer=4096) as one, client(there, IN_B) as reading:
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
    with client(there, FLOODER, receive_buffer=4096) as one:
        one.begin()
        subscribe, cancel = dso(7, *subscription(LARGE)), dso(0, (0x42, b"\0\7"))
        one.sock.settimeout(2)
        with suppress(OSError):
            for _ in range(2000):
                one.send(*(subscribe, cancel) * 20)
        assert there.server.resident_bytes() - before < 16 << 20


def test_doubts_without_end_delay_no_other_push(there: Scene) -> None:
    with client(there, FLOODER) as one, client(there, IN_B) as other:
        one.subscribe_all([f"n{number}.large.default.svc.cluster.local." for number in range(2000)])
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
    malformed = there.metric("topodns_push_refused_total", reason="malformed")
    with client(there, FLOODER) as one:
        one.begin()
        padded = [*subscription(FRONT), (3, bytes(most - 8 - len(wire(FRONT)) - 4))]
        assert len(dso(2, *padded)) == 65535
        assert one.request(*padded).rcode == NOERROR
        one.comes(FRONT, "10.96.0.1")
        assert one.request((SUBSCRIBE, bytes(most - 4))).rcode == FORMERR
        assert one.request((SUBSCRIBE, wire("x.cluster.local.") + b"\0\1\0\1"), *[(0xF900, b"")] * 64).rcode == FORMERR
        one.send(struct.pack("!HHHHHHHH", 9, 6 << 11, 0, 0, 0, 0, SUBSCRIBE, 0xFFFF) + bytes(4))
        assert one.response(9).rcode == FORMERR
    assert there.metric("topodns_push_refused_total", reason="malformed") == malformed + 3


def test_garbage_after_the_opcode_changes_nothing(there: Scene) -> None:
    rng = random.Random(8490)
    good = [
        dso(3, *subscription(FRONT)),
        dso(4, (KEEPALIVE, bytes(8))),
        dso(0, (0x42, b"\0\3")),
        dso(0, (0x43, wire(FRONT))),
    ]
    with victim(there.server, *CALM, source=IN_A) as asking:
        for _ in range(300):
            with client(there, FLOODER) as one, suppress(OSError):
                for _ in range(20):
                    octets = bytearray(rng.choice(good))
                    for _ in range(rng.randrange(1, 4)):
                        octets[rng.randrange(len(octets))] = rng.randrange(256)
                    octets[2] = octets[2] & 0x87 | 0x30
                    one.send(bytes(octets[: rng.randrange(4, len(octets) + 1)]))
    assert not asking.wrong
    assert asking.lost == 0
