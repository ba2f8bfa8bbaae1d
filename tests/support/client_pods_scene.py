"""A server of one Corefile in memory, with the Pods of a cluster as its clients: `shop/web` is at 10.1.0.1, say."""

from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.support.corefile_settings import settings
from tests.support.deferred_results import at_once
from tests.support.dns_messages import Opt, Reply, query
from tests.support.generation_builder import read_whole
from topodns.app.generation import Assembly, Machine
from topodns.cluster.decode.objects import decode_whole
from topodns.cluster.model import Deleted, ObjectKey, Upserted
from topodns.dns.addresses import packed_address
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.lookup import ready_reply
from topodns.dnsserver.packet_cache.table import PacketCache
from topodns.query.counters import QueryCounters

ADDRESSES = {"shop/web": "10.1.0.1", "shop/db": "10.1.0.2", "bank/web": "10.1.0.3"}
LABELS = {"shop/web": {"app": "web", "tier": "front"}, "shop/db": {"app": "db"}, "bank/web": {"app": "web"}}
STRANGER = "192.0.2.1"
PORT = 40212


def pod_object(name: str, address: str, labels: dict[str, str], node: str = "node-a", **spec: Any) -> dict[str, Any]:
    """A running Pod `NAMESPACE/NAME` as the API has it."""
    namespace, own = name.split("/")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": own, "namespace": namespace, "labels": labels},
        "spec": {"nodeName": node, **spec},
        "status": {"phase": "Running", "podIP": address},
    }


def objects() -> list[dict[str, Any]]:
    node = {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
    return [
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("shop", "bank")),
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}, "status": node},
        *(pod_object(name, address, LABELS[name]) for name, address in ADDRESSES.items()),
        pod_object("bank/host", "10.0.0.1", {"app": "web"}, hostNetwork=True),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "http", "port": 80}]},
        },
    ]


class PodServer:
    """The listener of a Corefile, in which `CLUSTER` is a `kubernetes` with the objects."""

    def __init__(self, directory: Path, corefile: str) -> None:
        (directory / "cluster.yaml").write_text(yaml.safe_dump_all(objects()))
        text = corefile.replace("CLUSTER", "kubernetes cluster.local {\n manifests cluster.yaml\n}")
        self.lines: list[str] = []
        assembly = Assembly(Machine("here", "", frozenset(), Random(0)), self.lines.append)
        self.generation = read_whole(assembly, settings(text, str(directory)))
        (self.blocks,) = self.generation.tables.values()
        self.table = PacketCache(self.generation.view_key, Random(1), lambda: 0.0)
        for cluster in self.generation.clusters:
            cluster.feed.subscribe(self.table.forget)
        counters = QueryCounters("dns://:53", "udp", "1")
        self.handler = Handler(self.blocks, self.table, counters, lambda: 0.0, 53)
        self.ready_made = 0  # replies of the packet cache

    def ask(self, question: str, asker: str, opt: Opt | None = None) -> Reply | None:
        """The reply to `NAME TYPE` from a Pod or an address; the packet cache comes first."""
        data, source = query(question, opt), packed_address(ADDRESSES.get(asker, asker))
        ready = ready_reply(self.table, data[2:], source)
        if ready is not None:
            self.ready_made += 1
            return Reply(data[:2] + ready[0])
        wire = at_once(self.handler.answer(data, source, PORT))
        return None if wire is None else Reply(wire)

    def rcode(self, question: str, asker: str) -> str:
        """The rcode of the reply, "" for none."""
        reply = self.ask(question, asker)
        return "" if reply is None else reply.rcode

    def put(self, value: dict[str, Any]) -> None:
        """Add an object to the cluster of the first `kubernetes`, or change it there."""
        feed = self.generation.clusters[0].feed
        decoded = decode_whole(value["kind"], value, pod_labels=feed.settings.pod_labels)
        assert decoded is not None
        for each in decoded.objects:
            feed.published.apply(Upserted(each))

    def delete_pod(self, name: str) -> None:
        self.generation.clusters[0].feed.published.apply(Deleted("Pod", ObjectKey(*name.split("/")), 0))
