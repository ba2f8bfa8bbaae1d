"""Earlier queries do not make later scrapes expensive: sizes are counted in buckets, and cells are few."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dns_messages import Opt, query
from tests.support.server_process import METRICS, ROOT, Server, open_udp, serving, until
from tests.support.steady_client import MIN_ASKED, cpu_seconds, victim
from topodns.query.label_limiter import MAX_NAMED, OTHERS

COREFILE = f"""
. {{
    bind HERE
    prometheus HERE:{METRICS}
    kubernetes cluster.local {{
        manifests {ROOT}/config/demo/cluster
    }}
    topology
    whoami
}}
"""
ODD = 24_000  # questions
PADDING = 12  # option code (RFC 7830)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path, COREFILE) as server:
        yield server


def cost(server: Server) -> float:
    """CPU seconds of the server for an exposition made now, the lesser of two."""
    server.scrape()  # the next one is not made before a second is over, and then by one request alone
    costs = []
    for _ in range(2):
        before = cpu_seconds(server.pid)
        server.scrape()
        costs.append(cpu_seconds(server.pid) - before)
    return min(costs)


def ask_oddly(server: Server) -> tuple[int, int]:
    """Questions of nearly as many sizes, types and answers; the octets sent and received."""
    names = ["web.shop.svc.cluster.local", "cache.shop.svc.cluster.local", "gone.shop.svc.cluster.local", "example.org"]
    types = ["A", "AAAA", "SRV", "TXT", "MX", "PTR"]
    sent = got = 0
    with open_udp((server.address, server.port)) as sock:
        waiting = 0
        for number in range(ODD):
            name, rtype = names[number % 4], types[number // 4 % 6]
            message = query(
                f"{name} {rtype}", Opt(options=[(PADDING, bytes(number // 24 % 1000))]), ident=number % 65536
            )
            sock.send(message)
            sent += len(message)
            waiting += 1
            if waiting == 50:
                got += receive(sock, waiting)
                waiting = 0
        got += receive(sock, waiting)
    return sent, got


def receive(sock: socket.socket, number: int) -> int:
    return sum(len(sock.recv(65535)) for _ in range(number))


def test_a_scrape_after_24000_odd_queries_costs_at_most_twice_as_much_as_before(server: Server) -> None:
    server.ask("web.shop.svc.cluster.local A")
    before, asked = cost(server), server.scrape()
    sent, got = ask_oddly(server)
    after, seen = cost(server), server.scrape()
    assert after <= 2 * before, (before, after)
    for what, octets in (("request", sent), ("response", got)):
        name = f"coredns_dns_{what}_size_bytes"
        assert seen.sum(f"{name}_count") - asked.sum(f"{name}_count") == ODD
        assert seen.sum(f"{name}_sum") - asked.sum(f"{name}_sum") == octets


# Clients of no known node, from many networks, beside those of a Node that is called what metrics call the former. No
# Node can be called what they call a network, with a slash.

VIEWS_COREFILE = """
. {
    bind HERE
    kubernetes cluster.local {
        manifests cluster.yaml
    }
    topology {
        locate nodes
    }
}
"""
MANIFESTS = """
apiVersion: v1
kind: NodeList
items:
- {metadata: {name: "%s"}, status: {addresses: [{type: InternalIP, address: 127.31.0.1}]}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: db, annotations: {topodns.io/topology-keys: kubernetes.io/hostname}}
spec: {clusterIP: None, clusterIPs: [None]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: db-1, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints:
- {addresses: [127.31.1.1], nodeName: "%s"}
- {addresses: [127.31.2.1], nodeName: elsewhere}
"""
DB = "db.shop.svc.cluster.local A"


def test_strangers_of_many_networks_take_nothing_from_the_clients_of_a_node_called_others(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(MANIFESTS % (OTHERS, OTHERS))
    with serving(tmp_path, VIEWS_COREFILE) as server:

        def strangers_ask() -> list[str]:
            networks = (f"127.{41 + number // 200}.{number % 200}.9" for number in range(MAX_NAMED + 20))
            return [" ".join(server.ask(DB, source).data) for source in networks for _ in range(2)]

        got = strangers_ask()
        with victim(server, DB, "127.31.1.1", per_second=200, source="127.31.0.1") as on_others:
            until(lambda: on_others.asked >= MIN_ASKED, "questions asked")
            got += strangers_ask()
        assert (on_others.lost, on_others.wrong) == (0, []), on_others
        assert set(got) == {""}
