"""Metrics of forwarding in a scrape."""

from dataclasses import dataclass

from tests.support import plugin_metrics
from topodns.dns.rrtype import Rcode
from topodns.plugins.forward.single_flight import ForwardShared
from topodns.plugins.forward.waiting_limit import InFlight
from topodns.plugins.setup import Shared
from topodns.query.upstream import Transport

ONE, OTHER = "10.0.0.10:53", "[2001:db8::1]:853"


@dataclass(eq=False)
class Waits:
    address: bytes

    def preempt(self) -> None:
        """There is nothing to do."""


def shown(counted: ForwardShared, name: str) -> dict[str, float]:
    shared = Shared()
    shared.get(ForwardShared, make=lambda: counted)
    return plugin_metrics.shown("forward", name, shared)


def replied() -> ForwardShared:
    """One upstream has replied three times, another once."""
    counted = ForwardShared()
    for to, rcode, seconds in (
        (ONE, Rcode.NOERROR, 0.0002),
        (ONE, Rcode.NOERROR, 0.001),
        (ONE, Rcode.SERVFAIL, 100.0),
        (OTHER, Rcode.NOERROR, 0.0),
    ):
        counted.counts.upstream(to).replied(rcode, seconds)
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
    counted = ForwardShared()
    counted.counts.upstream(ONE).healthcheck_failures = 4
    counted.counts.healthcheck_broken = 2
    proxied = shown(counted, "coredns_proxy_healthcheck_failures_total")
    assert proxied == {f'{{proxy_name="forward",to="{ONE}"}}': 4}
    assert shown(counted, "coredns_forward_healthcheck_failures_total") == {f'{{to="{ONE}"}}': 4}
    assert shown(counted, "coredns_forward_healthcheck_broken_total") == {"": 2}


def test_connections_are_counted_by_upstream_and_transport() -> None:
    counted = ForwardShared()
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


def test_waiting_and_suppressed_queries_are_counted() -> None:
    in_flight = InFlight(max_total=3, max_per_client=1)
    counted = ForwardShared()
    counted.in_flight = in_flight
    for address, admitted in ((b"a", True), (b"a", False), (b"b", True), (b"c", True), (b"d", False), (b"e", False)):
        assert in_flight.enter(Waits(address)) is admitted
        if not admitted:
            in_flight.note_drop(address)
    in_flight.preempted = 5
    counted.counts.max_concurrent_rejects = 7
    assert shown(counted, "topodns_forward_in_flight") == {"": 3}
    dropped = {'{reason="client"}': 1, '{reason="total"}': 2, '{reason="preempted"}': 5}
    assert shown(counted, "topodns_forward_dropped_total") == dropped
    assert shown(counted, "coredns_forward_max_concurrent_rejects_total") == {"": 7}
