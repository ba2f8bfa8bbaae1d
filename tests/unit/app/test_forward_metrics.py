"""What a scrape shows of forwarding."""

from dataclasses import dataclass

from tests.support.scraping import only, scraped
from topodns.app.counters import Counted
from topodns.app.forward_metrics import forward_readings
from topodns.dns.rrtype import Rcode
from topodns.plugins.forward.limits import InFlight
from topodns.query.upstream import Transport

ONE, OTHER = "10.0.0.10:53", "[2001:db8::1]:853"


@dataclass(eq=False)
class Waits:
    address: bytes

    def preempt(self) -> None:
        """There is nothing to do."""


def shown(counted: Counted, name: str) -> dict[str, float]:
    return only(scraped(readings=forward_readings(counted)), name)


def replied() -> Counted:
    """One upstream has replied three times, another once."""
    counted = Counted()
    for to, rcode, seconds in (
        (ONE, Rcode.NOERROR, 0.0002),
        (ONE, Rcode.NOERROR, 0.001),
        (ONE, Rcode.SERVFAIL, 100.0),
        (OTHER, Rcode.NOERROR, 0.0),
    ):
        counted.forward.upstream(to).replied(rcode, seconds)
    return counted


def test_replies_are_a_histogram_by_upstream_and_rcode() -> None:
    name = "coredns_proxy_request_duration_seconds"
    assert shown(replied(), f"{name}_count") == {
        f'{{proxy_name="forward",rcode="NOERROR",to="{ONE}"}}': 2,
        f'{{proxy_name="forward",rcode="SERVFAIL",to="{ONE}"}}': 1,
        f'{{proxy_name="forward",rcode="NOERROR",to="{OTHER}"}}': 1,
    }
    assert shown(replied(), f"{name}_sum")[f'{{proxy_name="forward",rcode="SERVFAIL",to="{ONE}"}}'] == 100.0
    buckets = shown(replied(), f"{name}_bucket")
    found = [
        buckets[f'{{le="{le}",proxy_name="forward",rcode="{rcode}",to="{ONE}"}}']
        for rcode in ("NOERROR", "SERVFAIL")
        for le in ("0.00025", "8.192", "+Inf")
    ]
    assert found == [1, 2, 2, 0, 0, 1]


def test_replies_have_their_old_names_too() -> None:
    assert shown(replied(), "coredns_forward_requests_total") == {f'{{to="{ONE}"}}': 3, f'{{to="{OTHER}"}}': 1}
    by_rcode = {
        f'{{rcode="NOERROR",to="{ONE}"}}': 2,
        f'{{rcode="SERVFAIL",to="{ONE}"}}': 1,
        f'{{rcode="NOERROR",to="{OTHER}"}}': 1,
    }
    assert shown(replied(), "coredns_forward_responses_total") == by_rcode
    assert shown(replied(), "coredns_forward_request_duration_seconds_count") == by_rcode


def test_probes_that_failed_are_counted_by_upstream_under_both_names() -> None:
    counted = Counted()
    counted.forward.upstream(ONE).healthcheck_failures = 4
    counted.forward.healthcheck_broken = 2
    proxied = shown(counted, "coredns_proxy_healthcheck_failures_total")
    assert proxied == {f'{{proxy_name="forward",to="{ONE}"}}': 4}
    assert shown(counted, "coredns_forward_healthcheck_failures_total") == {f'{{to="{ONE}"}}': 4}
    assert shown(counted, "coredns_forward_healthcheck_broken_total") == {"": 2}


def test_connections_are_counted_by_upstream_and_transport() -> None:
    counted = Counted()
    for transport, hits, misses in ((Transport.UDP, 0, 5), (Transport.TCP, 3, 1)):
        counts = counted.connections[ONE][transport]
        counts.hits, counts.misses = hits, misses
    counted.connections[OTHER][Transport.TLS].hits = 2
    assert shown(counted, "coredns_proxy_conn_cache_hits_total") == {
        f'{{proto="udp",proxy_name="forward",to="{ONE}"}}': 0,
        f'{{proto="tcp",proxy_name="forward",to="{ONE}"}}': 3,
        f'{{proto="tcp-tls",proxy_name="forward",to="{OTHER}"}}': 2,
    }
    assert sorted(shown(counted, "coredns_proxy_conn_cache_misses_total").values()) == [0, 1, 5]


def test_what_waits_and_what_was_not_asked_is_counted() -> None:
    in_flight = InFlight(max_total=3, max_per_client=1)
    counted = Counted(in_flight=in_flight)
    for address, admitted in ((b"a", True), (b"a", False), (b"b", True), (b"c", True), (b"d", False), (b"e", False)):
        assert in_flight.enter(Waits(address)) is admitted
        if not admitted:
            in_flight.note_drop(address)
    in_flight.preempted = 5
    counted.forward.max_concurrent_rejects = 7
    assert shown(counted, "topodns_forward_in_flight") == {"": 3}
    dropped = {'{reason="client"}': 1, '{reason="total"}': 2, '{reason="preempted"}': 5}
    assert shown(counted, "topodns_forward_dropped_total") == dropped
    assert shown(counted, "coredns_forward_max_concurrent_rejects_total") == {"": 7}


def test_loops_are_counted() -> None:
    counted = Counted()
    counted.loop.detected, counted.loop.refused = 1, 30
    assert shown(counted, "topodns_loop_detected_total") == {"": 1}
    assert shown(counted, "topodns_loop_refused_total") == {"": 30}
