"""DNS Push over real TCP: a client written from the RFCs, the whole program, and a cluster that changes."""

import struct
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.api_objects import Object, endpoint_slice, service
from tests.support.event_loops import SLOWNESS
from tests.support.program_with_fake_api import CLUSTER, IN_A, IN_B, Scene, scene
from tests.support.push_client import (
    AAAA,
    ALL_REMOVED,
    ANY,
    DSOTYPENI,
    FORMERR,
    KEEPALIVE,
    NOERROR,
    NOTAUTH,
    NOTIMP,
    PADDING,
    PUSH,
    REFUSED,
    REMOVED,
    RETRY_DELAY,
    SERVFAIL,
    SOA,
    SRV,
    SUBSCRIBE,
    A,
    Notified,
    dso,
    reconfirm,
    subscription,
    unsubscribe,
    wire,
)
from tests.support.push_scene import CALM_SERVICE, PROMISES, client, push_scene
from tests.support.server_process import exchange_tcp, exchange_udp, until

FRONT, PLAIN, NEAR, NEW = (f"{name}.default.svc.cluster.local." for name in ("front", "plain", "near", "new"))
FAR_AWAY = "127.61.0.9"  # an address of no Node


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with push_scene(tmp_path_factory.mktemp("push")) as there:
        yield there


@pytest.fixture
def there(shared: Scene) -> Iterator[Scene]:
    yield shared
    extra = {value["metadata"]["name"] for value in shared.api.objects()} - {
        value["metadata"]["name"] for value in (*CLUSTER, CALM_SERVICE)
    }
    shared.api.put(*CLUSTER)
    shared.api.delete(*(value for value in shared.api.objects() if value["metadata"]["name"] in extra))


def plain_slice(*addresses: str) -> Object:
    return endpoint_slice("plain", dict.fromkeys(addresses, "n1"))


def test_a_subscriber_gets_the_present_records_and_then_each_change(there: Scene) -> None:
    with client(there) as one:
        assert one.begin() == (15_000, 15_000)
        assert one.subscribe(PLAIN).rcode == NOERROR
        assert sorted(change.data for change in one.push()) == ["10.61.1.2", "10.61.2.2"]
        there.api.put(plain_slice("10.61.1.2", "10.61.2.3"))
        assert one.push() == [
            Notified(PLAIN, A, REMOVED, "10.61.2.2"),
            Notified(PLAIN, A, 5, "10.61.2.3"),
        ]
        there.api.put(plain_slice())
        one.comes(PLAIN)


def test_what_is_pushed_is_what_a_query_would_get(there: Scene) -> None:
    with client(there) as one:
        one.subscribe(PLAIN)
        for number in range(2, 6):
            there.api.put(plain_slice(*(f"10.61.1.{last}" for last in range(2, 2 + number))))
            one.comes(PLAIN, *(f"10.61.1.{last}" for last in range(2, 2 + number)))
            assert there.data(f"{PLAIN} A") == one.addresses(PLAIN)


def test_a_name_that_does_not_exist_is_pushed_when_it_does(there: Scene) -> None:
    with client(there) as one:
        assert one.subscribe(NEW).rcode == NOERROR
        assert one.is_silent(0.2)
        there.api.put(service("new", cluster_ip="10.96.0.7"))
        assert one.push() == [Notified(NEW, A, 5, "10.96.0.7")]
        there.api.delete(service("new", cluster_ip="10.96.0.7"))
        assert one.push() == [Notified(NEW, A, ALL_REMOVED, b"")]


def test_an_empty_set_that_changes_its_kind_is_removed_once_more(there: Scene) -> None:
    """A cached NXDOMAIN is outdated once the name exists, with no record of the type."""
    with client(there) as one:
        one.subscribe(NEW, AAAA)
        there.api.put(service("new", cluster_ip="10.96.0.7"))
        assert one.push() == [Notified(NEW, AAAA, ALL_REMOVED, b"")]


def test_each_client_is_pushed_what_is_near_it(there: Scene) -> None:
    with client(there, IN_A) as in_a, client(there, IN_B) as in_b, client(there, FAR_AWAY) as nowhere:
        for one in (in_a, in_b, nowhere):
            assert one.subscribe(NEAR).rcode == NOERROR
        in_a.comes(NEAR, "10.61.1.1")
        in_b.comes(NEAR, "10.61.2.1")
        there.api.put(endpoint_slice("near", {"10.61.1.1": "n1", "10.61.1.9": "n1", "10.61.2.1": "n2"}))
        in_a.comes(NEAR, "10.61.1.1", "10.61.1.9")
        assert in_b.is_silent(0.2)
        assert nowhere.records == {}


def test_the_name_of_the_node_counts_from_a_source_that_may_claim_it(there: Scene) -> None:
    with client(there, IN_A) as own, client(there, FAR_AWAY) as foreign:
        assert own.subscribe(NEAR, node="n1").rcode == NOERROR
        assert foreign.subscribe(NEAR, node="n1").rcode == NOERROR
        own.comes(NEAR, "10.61.1.1")
        assert foreign.is_silent(0.2)


def test_a_service_that_gets_keys_is_filtered_for_each_subscriber_from_then_on(there: Scene) -> None:
    there.api.put(endpoint_slice("plain", {"10.61.1.2": "n1", "10.61.2.2": "n2"}))
    with client(there, IN_A) as in_a, client(there, IN_B) as in_b:
        for one in (in_a, in_b):
            one.subscribe(PLAIN)
            one.comes(PLAIN, "10.61.1.2", "10.61.2.2")
        there.api.put(service("plain", keys="topology.kubernetes.io/zone"))
        in_a.comes(PLAIN, "10.61.1.2")
        in_b.comes(PLAIN, "10.61.2.2")
        there.api.put(service("plain"))
        for one in (in_a, in_b):
            one.comes(PLAIN, "10.61.1.2", "10.61.2.2")
        there.api.put(plain_slice("10.61.1.3"))
        for one in (in_a, in_b):
            one.comes(PLAIN, "10.61.1.3")


def test_new_glue_is_pushed_as_an_addition_of_a_record_that_is_there(there: Scene) -> None:
    with client(there) as one:
        one.subscribe(FRONT, SRV)
        first = one.push()
        there.api.put(service("front", cluster_ip="10.96.0.2"))
        assert one.push() == first


def test_after_unsubscribe_nothing_comes_and_the_id_is_free(there: Scene) -> None:
    with client(there) as one:
        ident = one.subscribe(PLAIN).ident
        one.push()
        one.send(unsubscribe(ident), unsubscribe(ident), unsubscribe(999))
        assert one.subscribe(FRONT).rcode == NOERROR
        one.push()
        there.api.put(plain_slice("10.61.1.9"))
        assert one.is_silent(0.2)
        one.send(dso(ident, *subscription(PLAIN)))
        assert one.response(ident).rcode == NOERROR
        assert [change.data for change in one.push()] == ["10.61.1.9"]


def test_reconfirm_has_no_response_and_a_right_record_stays(there: Scene) -> None:
    with client(there) as one:
        one.subscribe(FRONT)
        one.push()
        one.send(reconfirm(FRONT, A, bytes([10, 96, 0, 1])), reconfirm(NEAR, A, bytes(4)))
        assert one.is_silent(0.2)


def test_plain_queries_share_the_connection(there: Scene) -> None:
    with client(there) as one:
        one.subscribe(PLAIN)
        one.push()
        query = struct.pack("!HHHHHH", 77, 0x100, 1, 0, 0, 0) + wire(FRONT) + struct.pack("!HH", A, 1)
        one.send(query)
        reply = one.octets()
        assert (reply[:2], reply[-4:]) == (b"\0\x4d", bytes([10, 96, 0, 1]))
        there.api.put(plain_slice("10.61.1.7"))
        one.comes(PLAIN, "10.61.1.7")


@pytest.mark.parametrize(
    ("name", "rtype", "rclass", "rcode"),
    [
        ("example.com.", A, 1, NOTAUTH),
        (".", A, 1, NOTAUTH),
        (FRONT, ANY, 1, REFUSED),
        (FRONT, A, 255, REFUSED),
        (FRONT, A, 3, REFUSED),
        ("cluster.local.", SOA, 1, REFUSED),
    ],
)
def test_what_cannot_be_subscribed_to_is_refused(there: Scene, name: str, rtype: int, rclass: int, rcode: int) -> None:
    with client(there) as one:
        one.begin()
        assert one.subscribe(name, rtype, rclass=rclass).rcode == rcode
        assert one.subscribe(FRONT).rcode == NOERROR


def test_what_is_malformed_or_unknown_gets_an_error_and_the_session_goes_on(there: Scene) -> None:
    with client(there) as one:
        one.begin()
        assert one.request((SUBSCRIBE, wire(FRONT) + b"\0\1\0")).rcode == FORMERR
        assert one.request((SUBSCRIBE, b"\xc0\x0c\0\1\0\1")).rcode == FORMERR
        assert one.request((KEEPALIVE, b"")).rcode == FORMERR
        assert one.request((0xF802, b"what")).rcode == DSOTYPENI
        one.send(struct.pack("!HHHHHH", 50, 6 << 11, 1, 0, 0, 0) + wire(FRONT) + b"\0\1\0\1")
        assert one.response(50).rcode == FORMERR
        padded = one.request(*subscription(FRONT), (PADDING, bytes(100)), (0xF803, b"not known"))
        assert padded.rcode == NOERROR


@pytest.mark.parametrize(
    "message",
    [
        dso(0, (KEEPALIVE, struct.pack("!II", 15_000, 15_000))),
        dso(0, *subscription(FRONT)),
        dso(9, (0x42, b"\0\1")),
        dso(0, (0x42, b"\0\1\0")),
        dso(9, (0x43, wire(FRONT) + b"\0\1\0\1" + bytes(4))),
        dso(0, (0x43, wire(FRONT))),
        dso(0, (PUSH, wire(FRONT) + struct.pack("!HHIH", A, 1, 5, 4) + bytes(4))),
        dso(0, (RETRY_DELAY, bytes(4))),
        dso(9, (PADDING, bytes(4))),
        dso(0, (0xF802, b"what")),
        dso(0),
        dso(9, flags=0x8000),
        dso(1, *subscription(NEAR)),
        dso(9, *subscription(PLAIN.upper())),
    ],
    ids=range(14),
)
def test_a_client_that_breaks_the_protocol_loses_its_connection(there: Scene, message: bytes) -> None:
    with client(there) as one:
        assert one.subscribe(PLAIN).rcode == NOERROR
        one.send(message)
        assert one.is_closed()


@pytest.mark.parametrize("message", [dso(0, (0x42, b"\0\1")), dso(0, (0x43, wire(FRONT) + b"\0\1\0\1" + bytes(4)))])
def test_nothing_unidirectional_begins_a_session(there: Scene, message: bytes) -> None:
    with client(there) as one:
        one.send(message)
        assert one.is_closed()


def test_over_udp_dso_is_not_implemented(there: Scene) -> None:
    reply = exchange_udp(dso(7, (KEEPALIVE, bytes(8))), (there.server.address, there.server.port))
    assert (reply[:2], reply[3] & 15) == (b"\0\7", NOTIMP)


def test_without_the_directive_dso_is_not_implemented(tmp_path: Path) -> None:
    with push_scene(tmp_path, directives="") as there:
        reply = exchange_tcp(dso(7, (KEEPALIVE, bytes(8))), (there.server.address, there.server.port))
        assert (reply[:2], reply[3] & 15, len(reply)) == (b"\0\7", NOTIMP, 12)
        until(lambda: there.witness.asked, "an answer to a query")


def test_before_the_first_sync_a_subscription_is_servfail_and_later_accepted(tmp_path: Path) -> None:
    options = "startup_timeout 100ms"
    with (
        scene(
            tmp_path,
            CALM_SERVICE,
            promises=PROMISES,
            directives="push",
            options=options,
            prepare=lambda api: api.error("services"),
            synced=False,
        ) as there,
        client(there) as one,
    ):
        assert one.subscribe(NEW).rcode == SERVFAIL
        there.api.heal()
        until(lambda: one.subscribe(FRONT).rcode == NOERROR, "a subscription")
        one.comes(FRONT, "10.96.0.1")


THOUSANDS = 3000


def address_of(number: int, generation: int) -> str:
    return f"10.{generation}.{number // 250}.{number % 250 + 1}"


def numbered_services(generation: int) -> list[Object]:
    return [service(f"s{number}", cluster_ip=address_of(number, generation)) for number in range(THOUSANDS)]


def test_a_change_of_three_thousand_names_of_one_session_arrives_in_bounded_time_and_memory(tmp_path: Path) -> None:
    """Each Service gets another address, at the pace of the API server; other clients are answered meanwhile."""
    names = [f"s{number}.default.svc.cluster.local." for number in range(THOUSANDS)]
    with push_scene(tmp_path, *numbered_services(100)) as there, client(there) as one:
        assert one.subscribe_all(names) == [NOERROR] * THOUSANDS
        one.comes(names[-1], address_of(THOUSANDS - 1, 100))
        before, pushed = there.server.resident_bytes(), one.pushes
        began = time.monotonic()
        there.api.put(*numbered_services(101))
        for number, name in enumerate(names):
            one.comes(name, address_of(number, 101))
        assert time.monotonic() - began < 30 * SLOWNESS
        assert pushed < one.pushes <= pushed + 2 * THOUSANDS
        assert there.server.resident_bytes() - before < 16 << 20
        assert one.is_silent(0.2)


def is_gone(there: Scene, metric: str) -> bool:
    return there.metric(metric) == 0


def test_metrics_count_sessions_subscriptions_and_what_was_refused(tmp_path: Path) -> None:
    limits = "push {\n sessions 2\n subscriptions 2\n }"
    with push_scene(tmp_path, directives=limits) as there:
        with client(there) as one, client(there, IN_B) as two, client(there, FAR_AWAY) as three:
            one.begin()
            assert [one.subscribe(name).rcode for name in (FRONT, PLAIN, NEAR)] == [NOERROR, NOERROR, REFUSED]
            two.begin()
            refused = three.keepalive()
            assert refused.rcode == REFUSED
            assert refused.tlv(RETRY_DELAY) == struct.pack("!I", 60_000)
            assert there.metric("topodns_push_sessions") == 2
            assert there.metric("topodns_push_subscriptions") == 2
            assert there.metric("topodns_push_bytes") > 0
            assert there.metric("topodns_push_messages_total") == 2
            assert there.metric("topodns_push_refused_total", reason="subscriptions") == 1
            assert there.metric("topodns_push_refused_total", reason="sessions") == 1
            two.send(dso(0))
            assert two.is_closed()
        for name in ("sessions", "subscriptions", "bytes"):
            until(partial(is_gone, there, f"topodns_push_{name}"), f"no {name}")
        assert there.metric("topodns_push_sessions_ended_total", reason="closed") == 1
        assert there.metric("topodns_push_sessions_ended_total", reason="error") == 1
