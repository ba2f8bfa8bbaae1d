"""A client of the ports of /health, /ready and /metrics cannot delay DNS, nor keep probes out."""

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.http_flood import ASKED, HTTP_P99, PROBE_TIMEOUT, QUESTION, RIGHT, bystander, flooded, request
from tests.support.server_process import HEALTH, METRICS, READY, ROOT, Server, serving, until
from tests.support.steady_client import cpu_seconds, victim

COREFILE = f"""
. {{
    bind HERE
    errors
    health HERE:{HEALTH}
    ready HERE:{READY}
    prometheus HERE:{METRICS}
    kubernetes cluster.local {{
        manifests {ROOT}/config/demo/cluster
    }}
    topology
}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("http"), COREFILE) as server:
        yield server


def probe(server: Server, path: str = "/ready", port: int = READY) -> int:
    """The status that a probe with a connection of its own gets within its deadline."""
    connection = http.client.HTTPConnection(server.address, port, timeout=PROBE_TIMEOUT)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_20_connections_that_pipeline_do_not_delay_dns(server: Server) -> None:
    with flooded(server, (HEALTH, request("/health"), 10), (METRICS, request("/metrics"), 10)) as flood:
        fate = bystander(server)
    assert flood.answered > 100
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= HTTP_P99, fate


@pytest.mark.parametrize(
    "costly",
    [
        pytest.param(request("/health", b"a:b\r\n" * 1600), id="1,600 headers"),
        pytest.param(request("/health", b"a:b\r\n" * 90), id="90 headers"),
        pytest.param(request("/health?" + "a&" * 4000), id="4,000 arguments"),
        pytest.param(request("/explain?name=web.shop.svc.cluster.local&client=127.10.1.1"), id="explanations"),
        pytest.param(b"POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nb\r\n" * 1300,
                     id="tiny chunks"),
    ],
)  # fmt: skip
def test_requests_that_are_costly_to_read_do_not_delay_dns(server: Server, costly: bytes) -> None:
    with flooded(server, (READY, costly, 20)):
        fate = bystander(server)
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= HTTP_P99, fate


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param(b"application/openmetrics-text;version=1.0.0", id="OpenMetrics"),
        pytest.param(b"a/b;q=0.1," * 790, id="790 media ranges"),
    ],
)
def test_scrapes_of_every_form_do_not_delay_dns(server: Server, accept: bytes) -> None:
    costly = request("/metrics", b"Accept: " + accept + b"\r\n")
    with flooded(server, (METRICS, costly, 10), (METRICS, request("/metrics"), 10)) as flood:
        fate = bystander(server)
    assert flood.answered > 100
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= HTTP_P99, fate


def test_7000_requests_on_one_connection_are_all_answered_and_do_not_delay_dns(server: Server) -> None:
    with victim(server, QUESTION, RIGHT, per_second=150) as fate:
        with socket.create_connection((server.address, HEALTH), PROBE_TIMEOUT) as sock:
            sender = threading.Thread(target=sock.sendall, args=(request("/health") * 7000,))
            sender.start()
            answered = 0
            while answered < 7000:
                answered += sock.recv(1 << 16).count(b"HTTP/1.1 200")
            sender.join()
        until(lambda: fate.asked >= ASKED, "questions asked")
    assert fate.cpu(100) <= HTTP_P99, fate


def test_readiness_is_reported_while_60_connections_pipeline(server: Server) -> None:
    with flooded(server, (READY, request("/ready"), 30), (METRICS, request("/metrics"), 30)):
        for _ in range(10):
            before = cpu_seconds(server.pid)
            assert probe(server) == 200
            assert cpu_seconds(server.pid) - before <= 0.2


@pytest.mark.parametrize("said", [b"", b"GET /", request("/ready"), request("/ready") * 100])
def test_readiness_is_reported_while_connections_come_without_end(server: Server, said: bytes) -> None:
    """More than a listener has room for: each new one that says nothing, half a request or many takes a place."""
    stop = threading.Event()

    def come() -> None:
        held: list[socket.socket] = []
        while not stop.is_set():
            with suppress(OSError):
                sock = socket.create_connection((server.address, READY), PROBE_TIMEOUT)
                held.append(sock)
                sock.setblocking(False)
                sock.send(said)
            if len(held) > 100:
                held.pop(0).close()
        for sock in held:
            sock.close()

    threads = [threading.Thread(target=come) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            assert probe(server) == 200
        fate = bystander(server)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= HTTP_P99, fate


def test_replies_that_are_not_read_fill_neither_the_kernel_nor_the_server(server: Server) -> None:
    before = server.resident_bytes()
    with flooded(server, (METRICS, request("/metrics"), 50), reads=False) as flood:
        until(lambda: sum(queued(server, METRICS)) > 50 << 10, "replies wait to be read")
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            assert max(queued(server, METRICS)) <= 256 << 10  # octets
            time.sleep(0.05)
        assert server.resident_bytes() - before < 10 << 20
        assert probe(server, "/metrics", METRICS) == 200
    assert flood.answered == 0


def queued(server: Server, port: int) -> list[int]:
    """Octets that the kernel holds to be sent or read, by connection to this port of the server (proc_net_tcp(5))."""
    octets = [f"{int(octet):02X}" for octet in reversed(server.address.split("."))]
    local = f"{''.join(octets)}:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return [sum(int(part, 16) for part in row[4].split(":")) for row in rows if row[1] == local and row[3] == "01"]


def test_metrics_are_made_once_a_second_at_most(server: Server) -> None:
    begun = set()
    start = time.monotonic()
    for _ in range(200):
        _, text = server.get("/metrics", METRICS)
        begun.add(next(line for line in text.splitlines() if line.startswith("topodns_exposition_timestamp_seconds")))
    assert len(begun) <= 2 + (time.monotonic() - start)


def test_versions_and_escapings_that_a_client_makes_up_do_not_make_more_of_them(server: Server) -> None:
    begun = set()
    start = time.monotonic()
    for number in range(200):
        connection = http.client.HTTPConnection(server.address, METRICS, timeout=PROBE_TIMEOUT)
        try:
            media_type = ("text/plain", "application/openmetrics-text")[number % 2]
            accept = f"{media_type};version=1.{number};escaping={('dots', 'values', 'underscores')[number % 3]}"
            connection.request("GET", "/metrics", headers={"Accept": accept})
            response = connection.getresponse()
            assert (response.status, response.getheader("Content-Type", "").partition(";")[0]) == (200, media_type)
            lines = response.read().decode().splitlines()
        finally:
            connection.close()
        begun.add(next(line for line in lines if line.startswith("topodns_exposition_timestamp_seconds")))
    assert len(begun) <= 2 * (2 + (time.monotonic() - start))


@pytest.mark.parametrize(
    "header", [("Host", "attacker.example"), ("Origin", "http://attacker.example"), ("Sec-Fetch-Site", "cross-site")]
)
def test_a_page_in_a_browser_is_explained_nothing(server: Server, header: tuple[str, str]) -> None:
    path = "/explain?name=web.shop.svc.cluster.local&client=127.10.1.1"
    assert server.get(path, READY)[0] == 200
    connection = http.client.HTTPConnection(server.address, READY, timeout=PROBE_TIMEOUT)
    try:
        connection.request("GET", path, headers=dict([header]))
        assert connection.getresponse().status == 403
    finally:
        connection.close()
