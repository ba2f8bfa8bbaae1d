"""Processes for dashboards to show: a server with a cluster, upstreams and clients of every kind, and a node cache.

Each is scraped while it is asked, round after round, so that every counter has moved in front of Prometheus.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final

from tests.support.api_objects import Object, endpoint_slice, node_locator, service
from tests.support.dns_messages import DO, Opt
from tests.support.fake_api.object_file import objects_of
from tests.support.fake_api.server import FakeApi, running
from tests.support.faulty_upstream import Act, Asked, BadUpstream, bad_upstream
from tests.support.namespaced_cluster import NodeScene, node_scene
from tests.support.namespaced_node import CLUSTER_DNS
from tests.support.node_processes import OWN_METRICS, READY, NodeCache, cluster_dns, dig, node_cache
from tests.support.prometheus import Prometheus, prometheus
from tests.support.push_client import ANY, PushClient, push_client
from tests.support.server_process import METRICS, ROOT, Server, own_address, serving, until
from tests.support.upstream_faults import question_of, reply_to

SERVER_JOB, NODE_JOB = "topodns-metrics", "node-local-dns"

_DEMO: Final = ROOT / "config/demo/cluster"
_COREFILE: Final = """
.:0 {
    bind HERE
    errors
    health HERE:8080
    ready HERE:8181
    prometheus HERE:9153
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint API
        pods verified
    }
    topology {
        locate nodes slices pods nodelocator
        on_invalid deny
    }
    push
    cache 30
    forward . 127.0.0.1:UPSTREAM 127.0.0.1:CLOSED
    loop
    reload
}
"""
_ROUNDS: Final = 4
_SHELL_A1, _SHELL_B2, _NODE_C3, _UNLOCATED = "127.10.1.100", "127.10.5.100", "127.10.0.9", "127.99.0.1"
_REFUSED_FLAGS: Final = {b"fail": 0x8182, b"refuse": 0x8185, b"none": 0x8183}  # by the first label of a name
_BROKEN: Final = (
    service("broken", "shop", keys="not a key!"),
    endpoint_slice("broken", {"10.61.4.1": "node-a1"}, "shop"),
)
_LOCATED: Final = {"node-a1": ("127.0.0.1", "10.61.9.1"), "node-b1": ("10.61.9.1",)}  # refused, contradicted
_TRIGGER: Final = "endpoints.kubernetes.io/last-change-trigger-time"


def _upstream(asked: Asked) -> Sequence[Act]:
    label = question_of(asked.message)[1:].split(b"\7example", 1)[0]
    flags = next((flags for word, flags in _REFUSED_FLAGS.items() if label.startswith(word)), 0x8180)
    return [Act(lambda: asked.channel.send(reply_to(asked.message, flags=flags)))]


def _ask_all(server: Server, number: int) -> None:
    """The queries of each kind of client, over both transports, some of them twice."""
    for source in (_SHELL_A1, _SHELL_B2, _NODE_C3, _UNLOCATED):
        for tcp in (False, True):
            server.ask("cache.shop.svc.cluster.local A", source, tcp=tcp)
            server.ask("agent.monitoring.svc.cluster.local A", source, tcp=tcp)
            server.ask("web.shop.svc.cluster.local AAAA", source, opt=Opt(flags=DO), tcp=tcp)
            server.ask("broken.shop.svc.cluster.local A", source, tcp=tcp)
            for label in ("www", f"new{number}", f"fail{number}", f"refuse{number}", f"none{number}", "none"):
                server.ask(f"{label}.example.org A", source, tcp=tcp)


def _ask_from_afar(server: Server) -> None:
    """Until an answer with endpoints in another zone is among the sampled ones: of many queries, not all are."""

    def sampled() -> float:
        return server.metric("topodns_selected_endpoints_total", distance="region")

    before = sampled()

    def is_sampled() -> bool:
        server.ask("cache.shop.svc.cluster.local A", _NODE_C3)
        return sampled() > before

    until(is_sampled, "a query for endpoints in another zone is sampled")


def _change(api: FakeApi, number: int) -> None:
    """A Pod is there, which the control plane has just seen."""
    for name, cluster_ip in (("fresh", "None"), ("front", "10.96.0.77")):
        changed = endpoint_slice(name, {f"10.61.3.{number}": "node-a1"}, "shop")
        changed["metadata"]["annotations"] = {_TRIGGER: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        api.put(service(name, "shop", cluster_ip), changed)


@contextmanager
def asked_server(directory: Path) -> Iterator[Prometheus]:
    """The example of config/demo behind an API server, asked and changed; one watch of it fails in the end."""
    with (
        bad_upstream(_upstream) as upstream,
        bad_upstream(_upstream) as closed,
        running(_whole(), own_address()) as api,
    ):
        corefile = _COREFILE.replace("API", api.url).replace("UPSTREAM", str(upstream.port))
        with serving(directory, corefile.replace("CLOSED", str(closed.port))) as server:
            until(lambda: server.get("/ready", 8181)[0] == 200, "ready")
            with (
                prometheus(directory, f"{own_address()}:9090", {SERVER_JOB: f"{server.address}:{METRICS}"}) as scraping,
                push_client((server.address, server.port)) as client,
            ):
                client.begin()
                client.subscribe("fresh.shop.svc.cluster.local")
                _drive(server, api, closed, scraping, client)
                yield scraping.as_of_now()


def _whole() -> list[Object]:
    demo = [each for path in sorted(_DEMO.glob("*.yaml")) for each in objects_of(path)]
    nodes = [each["metadata"]["name"] for each in demo if each["kind"] == "Node"]
    return [*demo, *_BROKEN, *(node_locator(name, _LOCATED.get(name, ())) for name in nodes)]


def _drive(server: Server, api: FakeApi, closed: BadUpstream, scraping: Prometheus, client: PushClient) -> None:
    for number in range(1, _ROUNDS + 1):
        client.subscribe("fresh.shop.svc.cluster.local", ANY)  # refused
        _change(api, number)
        _ask_all(server, number)
        _ask_from_afar(server)
        if number == _ROUNDS // 2:
            closed.behaviour = lambda asked: []
            api.gone("services")
            api.deny("pods")
            api.end_watches("pods")
        scraping.look_twice()
    names = count()

    def probed() -> bool:
        client.keepalive()
        server.ask(f"again{next(names)}.example.org A")  # at random of either upstream, one of which is silent now
        return server.metric("coredns_proxy_healthcheck_failures_total") >= 1

    until(probed, "a probe fails")
    seen = ("topodns_watch_failing", "topodns_relists_total", "topodns_service_events_total")
    until(lambda: all(server.metric(metric) for metric in seen), f"{seen} have been counted")
    scraping.look_twice()


@contextmanager
def asked_node_cache(directory: Path) -> Iterator[Prometheus]:
    """A node whose Pods ask its cache, which has to mend its link once (root)."""
    with (
        node_scene("node-a1", pods=2) as scene,
        cluster_dns(scene, directory),
        node_cache(scene.node, directory) as cache,
        prometheus(directory, "127.0.0.1:9090", {NODE_JOB: OWN_METRICS}, scene.node.namespace.entered) as scraping,
    ):
        _drive_node(scene, cache, scraping)
        yield scraping.as_of_now()


def _drive_node(scene: NodeScene, cache: NodeCache, scraping: Prometheus) -> None:
    for number in range(1, _ROUNDS + 1):
        for pod in scene.node.pods:
            for name in (READY, "www.shop.svc.cluster.local", f"none{number}.shop.svc.cluster.local"):
                dig(pod, CLUSTER_DNS[4], name)
                dig(pod, CLUSTER_DNS[4], name, "+tcp +dnssec")
            dig(pod, CLUSTER_DNS[4], f"www{number}.example.org")  # no server is there: see `namespaced_cluster.OUTSIDE`
            dig(
                pod, CLUSTER_DNS[4], f"{number}.2.0.192.in-addr.arpa", "-t PTR"
            )  # REFUSED: the servers have no such zone
        if number == _ROUNDS // 2:
            scene.node.namespace.run("ip", "link del nodelocaldns")
            until(lambda: cache.metrics()["topodns_nodecache_repairs_total{link}"] >= 1, "the link is added back")
        scraping.look_twice()
