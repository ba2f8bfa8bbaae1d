"""Clients of no known node, from many networks, beside those of Nodes that are called what metrics call the former."""

from pathlib import Path

from tests.support.server_process import serving, until
from tests.support.steady_client import MIN_ASKED, victim
from topodns.query.label_limiter import MAX_NAMED, OTHERS

COREFILE = """
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
- {metadata: {name: 127.41.7.0/24}, status: {addresses: [{type: InternalIP, address: 127.31.0.2}]}}
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
- {addresses: [127.31.2.1], nodeName: 127.41.7.0/24}
"""
DB = "db.shop.svc.cluster.local A"


def test_strangers_of_many_networks_take_nothing_from_the_clients_of_a_node_called_others(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(MANIFESTS % (OTHERS, OTHERS))
    with serving(tmp_path, COREFILE) as server:

        def strangers_ask() -> list[str]:
            networks = (f"127.{41 + number // 200}.{number % 200}.9" for number in range(MAX_NAMED + 20))
            return [" ".join(server.ask(DB, source).data) for source in networks for _ in range(2)]

        got = strangers_ask()
        with (
            victim(server, DB, "127.31.1.1", per_second=200, source="127.31.0.1") as on_others,
            victim(server, DB, "127.31.2.1", per_second=200, source="127.31.0.2") as on_prefix,
        ):
            until(lambda: min(on_others.asked, on_prefix.asked) >= MIN_ASKED, "questions asked")
            got += strangers_ask()
        assert (on_others.lost, on_others.wrong) == (0, []), on_others
        assert (on_prefix.lost, on_prefix.wrong) == (0, []), on_prefix
        assert set(got) == {""}
