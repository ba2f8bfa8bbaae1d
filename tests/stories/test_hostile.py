"""Garbage on every door: the program stays up, stays small, and goes on answering the others right."""

import random
from collections.abc import Iterator

import pytest

from tests.support.dns_messages import Opt, node_identity, query, subnet
from tests.support.server_process import METRICS, READY, ROOT, Server, open_tcp, open_udp, serving

DATAGRAMS, STREAMS = 2000, 100
MAX_GROWTH = 10 << 20  # octets

COREFILE = f"""
. {{
    bind HERE
    errors
    ready HERE:{READY}
    prometheus HERE:{METRICS}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        manifests {ROOT}/config/demo/cluster
        pods verified
        fallthrough
    }}
    topology {{
        locate nodes slices pods
        trust 127.0.0.0/8
    }}
    chaos
    any
    local
    loadbalance
    acl {{
        block type TXT net 127.66.0.0/16
    }}
    whoami
}}
"""
SEEDS = [
    query("cache.shop.svc.cluster.local A", Opt(options=[subnet("127.10.1.0/24"), node_identity("node-a1")])),
    query("_http._tcp.web.shop.svc.cluster.local SRV", Opt()),
    query("50.1.10.127.in-addr.arpa PTR"),
    query("127-10-1-100.default.pod.cluster.local AAAA"),
    query("version.bind CH TXT"),
    query("example.org ANY", Opt(size=0, version=3)),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("hostile"), COREFILE) as server:
        yield server


def mutated(rng: random.Random) -> bytes:
    """A query with some octets changed, cut, doubled or replaced altogether."""
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randrange(6)):
        data[rng.randrange(len(data))] = rng.choice((0, 0xFF, 0xC0, 0x3F, rng.randrange(256)))
    match rng.randrange(8):
        case 0:
            return bytes(data[: rng.randrange(len(data))])
        case 1:
            return bytes(data) + rng.randbytes(rng.randrange(600))
        case 2:
            return rng.randbytes(rng.randrange(5000))
        case 3:
            at = rng.randrange(len(data))
            return bytes(data[:at] * 2 + data[at:])
    return bytes(data)


def still_right(server: Server) -> None:
    assert server.ask("cache.shop.svc.cluster.local A", "127.10.1.100").data == ["127.10.1.30"]
    assert server.ask("cache.shop.svc.cluster.local A", "127.10.5.100", tcp=True).data == ["127.10.4.30"]


def unharmed(server: Server) -> None:
    assert server.process.poll() is None
    assert server.metric("coredns_panics_total") == 0
    assert "bug" not in server.output()
    assert "Exception" not in server.output()


def test_mutated_datagrams_change_nothing(server: Server) -> None:
    rng = random.Random(20240521)
    still_right(server)
    before = server.resident_bytes()
    with open_udp((server.address, server.port), "127.66.0.1") as sock:
        for number in range(DATAGRAMS):
            sock.send(mutated(rng))
            if number % 100 == 0:
                still_right(server)
    still_right(server)
    unharmed(server)
    assert server.resident_bytes() - before < MAX_GROWTH
    # All of it has been read by now, however little of it was worth an answer.
    assert server.metric("coredns_dns_requests_total", proto="udp") > DATAGRAMS / 2


def test_garbage_over_tcp_changes_nothing(server: Server) -> None:
    rng = random.Random(20240522)
    before = server.resident_bytes()
    for number in range(STREAMS):
        with open_tcp((server.address, server.port), "127.66.0.2") as sock:
            message = mutated(rng)
            length = rng.choice((len(message), rng.randrange(1 << 16)))
            sock.sendall(length.to_bytes(2, "big") + message + rng.randbytes(rng.randrange(2000)))
        if number % 10 == 0:
            still_right(server)
    unharmed(server)
    assert server.resident_bytes() - before < MAX_GROWTH


def test_garbage_over_http_changes_nothing(server: Server) -> None:
    rng = random.Random(20240523)
    for number in range(STREAMS):
        with open_tcp((server.address, rng.choice((READY, METRICS))), "127.66.0.3") as sock:
            start = rng.choice(
                (b"", b"GET /ready HTTP/1.1\r\n", b"GET /explain?name=%00&client=x HTTP/1.1\r\nHost: a\r\n\r\n")
            )
            sock.sendall(start + rng.randbytes(rng.randrange(2000)))
        if number % 10 == 0:
            assert server.get("/ready", READY) == (200, "OK")
    unharmed(server)
