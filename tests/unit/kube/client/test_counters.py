"""Requests to API servers, counted."""

from topodns.kube.client.counters import BUCKETS, NO_RESPONSE, RequestCounters


def test_requests_are_counted_by_result_and_timed_by_server() -> None:
    socket_counters = RequestCounters()
    socket_counters.count("GET", "10.96.0.1:443", "200", 0.003)
    socket_counters.count("GET", "10.96.0.1:443", "403", 0.005)
    socket_counters.count("PUT", "10.96.0.1:443", NO_RESPONSE, 30.0)
    assert socket_counters.results == {
        ("200", "GET", "10.96.0.1:443"): 1,
        ("403", "GET", "10.96.0.1:443"): 1,
        ("<error>", "PUT", "10.96.0.1:443"): 1,
    }
    read, written = socket_counters.durations["GET", "10.96.0.1:443"], socket_counters.durations["PUT", "10.96.0.1:443"]
    assert (read.counts[0], read.count(), round(read.sum, 6)) == (2, 2, 0.008)
    assert (written.counts[len(BUCKETS)], written.sum) == (1, 30.0)
