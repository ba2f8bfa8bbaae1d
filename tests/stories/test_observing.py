"""The operator's view: CoreDNS's metrics with true counts, and its log lines."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dns_messages import DO, Opt, query
from tests.support.server_process import METRICS, ROOT, Server, open_udp, serving

COREFILE = f"""
cluster.local {{
    bind HERE
    health HERE:8080
    prometheus HERE:{METRICS}
    kubernetes {{
        manifests {ROOT}/config/demo/cluster
        pods verified
    }}
    topology {{
        locate nodes slices pods
    }}
    acl {{
        block type TXT
        drop type MX
    }}
}}
"""
CACHE, WEB = "cache.shop.svc.cluster.local A", "web.shop.svc.cluster.local A"
SHELL_A1, SHELL_B2, UNLOCATED = "127.10.1.100", "127.10.5.100", "127.99.0.1"
UNLOCATED_BESIDE, UNLOCATED_ELSEWHERE = "127.99.0.2", "127.99.1.1"
AGENT = "agent.monitoring.svc.cluster.local A"  # a Service whose only key is the client's own node


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A new one each time, with every counter at 0."""
    with serving(tmp_path, COREFILE) as server:
        yield server


def label(server: Server) -> str:
    return f"dns://{server.address}:0"  # the port that was asked for


def test_every_query_is_counted_the_ready_made_ones_too(server: Server) -> None:
    for _ in range(50):
        server.ask(WEB)
        server.ask(CACHE, SHELL_A1)
        server.ask(WEB, tcp=True)
    server.ask("missing.shop.svc.cluster.local AAAA", opt=Opt(flags=DO))
    server.ask("example.org SRV")
    server.ask("web.shop.svc.cluster.local TXT")
    here = {"server": label(server), "zone": "cluster.local.", "view": ""}
    requests, responses = "coredns_dns_requests_total", "coredns_dns_responses_total"
    seen = server.scrape()
    assert seen.sum(requests, **here, proto="udp", family="1", type="A") == 100
    assert seen.sum(requests, **here, proto="tcp", family="1", type="A") == 50
    assert seen.sum(requests, **here, proto="udp", family="1", type="AAAA") == 1
    assert seen.sum(requests, server=label(server), zone="dropped", type="SRV") == 1
    assert seen.sum(responses, **here, rcode="NOERROR", plugin="kubernetes") == 150
    assert seen.sum(responses, **here, rcode="NXDOMAIN", plugin="kubernetes") == 1
    assert seen.sum(responses, **here, rcode="REFUSED", plugin="acl") == 1
    assert seen.sum("coredns_dns_do_requests_total", **here) == 1
    assert seen.sum("coredns_acl_blocked_requests_total", **here) == 1
    for histogram in ("request_size_bytes", "response_size_bytes"):
        assert seen.sum(f"coredns_dns_{histogram}_count", **here, proto="udp") == 102
        assert seen.sum(f"coredns_dns_{histogram}_bucket", **here, proto="udp", le="+Inf") == 102
    assert seen.sum("coredns_dns_request_duration_seconds_count", **here) == 152
    assert seen.sum("coredns_dns_request_duration_seconds_sum", **here) > 0
    assert seen.sum("topodns_hot_entries") > 0
    assert seen.sum("coredns_panics_total") == 0


def test_sizes_are_counted_in_coredns_buckets(server: Server) -> None:
    server.ask(WEB)
    sent = 12 + len(b"\3web\4shop\3svc\7cluster\5local\0") + 4
    got = sent + 16
    seen = server.scrape()
    assert seen.sum("coredns_dns_request_size_bytes_sum") == sent
    assert seen.sum("coredns_dns_response_size_bytes_sum") == got
    bounds = {
        float(sample.labels["le"])
        for family in seen.families
        for sample in family.samples
        if sample.name == "coredns_dns_request_size_bytes_bucket"
    }
    assert sorted(bounds)[:-1] == [0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16000, 32000, 48000, 64000]


def test_topology_decisions_are_counted_by_their_outcome(server: Server) -> None:
    for source, times in ((SHELL_A1, 3), (SHELL_B2, 2), (UNLOCATED, 4)):
        for _ in range(times):
            server.ask(CACHE, source)
    name = "topodns_selections_total"
    seen = server.scrape()
    assert seen.sum(name, outcome="matched", key="kubernetes.io/hostname") == 3
    assert seen.sum(name, outcome="matched", key="topology.kubernetes.io/zone") == 2
    assert seen.sum(name) == 9
    assert seen.sum("topodns_policies", source="annotation", valid="true") == 6


def test_misses_and_unlocated_clients_are_counted_by_name_also_for_packet_cache_hits(server: Server) -> None:
    for _ in range(5):
        for source in (UNLOCATED, UNLOCATED_BESIDE, UNLOCATED_ELSEWHERE):
            server.ask(AGENT, source)
    name, sources = "topodns_misses_total", "topodns_unlocated_sources_total"
    seen = server.scrape()
    assert seen.sum(name, name="monitoring/agent", outcome="unknown_client") == seen.sum(name) == 15
    assert seen.sum(sources, prefix="127.99.0.0/24") == 10
    assert seen.sum(sources, prefix="127.99.1.0/24") == 5
    assert seen.sum("topodns_unlocated_queries_total") == 15


def test_policies_are_counted_by_where_they_come_from(server: Server) -> None:
    assert server.metric("topodns_policies", source="openyurt", valid="true") == 1


def test_a_dropped_query_is_counted_and_has_no_response(server: Server) -> None:
    with open_udp((server.address, server.port)) as sock:
        sock.send(query("web.shop.svc.cluster.local MX"))
        sock.send(query(WEB, ident=4711))  # datagrams of one socket are answered in their order
        assert sock.recv(65535)[:2] == (4711).to_bytes(2, "big")
    here = {"server": label(server), "zone": "cluster.local."}
    seen = server.scrape()
    assert seen.sum("coredns_dns_requests_total", **here, type="MX") == 1
    assert seen.sum("coredns_dns_responses_total", **here) == 1
    assert seen.sum("coredns_acl_dropped_requests_total", **here) == 1


def test_build_information_and_object_counts_are_exposed_in_prometheus_format(server: Server) -> None:
    seen = server.scrape()
    enabled = {
        name: seen.sum("coredns_plugin_enabled", server=label(server), zone="cluster.local.", name=name)
        for name in ("kubernetes", "topology", "acl", "prometheus", "whoami")
    }
    assert enabled == {"kubernetes": 1, "topology": 1, "acl": 1, "prometheus": 1, "whoami": 0}
    assert seen.sum("coredns_build_info") == 1
    assert seen.sum("coredns_reload_failed_total") == 0
    assert seen.sum("topodns_state_synced") == 1
    assert seen.sum("topodns_state_objects", kind="Node") == 9
    assert seen.sum("process_resident_memory_bytes") > 1 << 20
    assert 0 <= seen.sum("topodns_state_age_seconds") < 60
    families = seen.families
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    assert all(family.documentation and family.type != "unknown" for family in families)


LINE = re.compile(
    r'\[INFO\] (?P<remote>\S+):(?P<port>\d+) - (?P<id>\d+) "(?P<type>\S+) IN (?P<name>\S+) (?P<proto>udp|tcp) '
    r'(?P<size>\d+) (?P<do>true|false) (?P<bufsize>\d+)" (?P<rcode>\S+) (?P<flags>\S+) (?P<rsize>\d+) \d+(\.\d+)?s'
)


@pytest.fixture
def logging_server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path, COREFILE.replace("    topology", "    log\n    topology", 1)) as server:
        yield server


def test_each_exchange_is_one_line_of_coredns_shape(logging_server: Server) -> None:
    server = logging_server
    replies = [
        server.ask(WEB),
        server.ask(WEB),
        server.ask("missing.cluster.local AAAA", SHELL_A1, Opt(flags=DO), tcp=True),
    ]
    server.wait_for_line("AAAA IN missing")
    lines = [LINE.fullmatch(line) for line in server.lines(" IN ")]
    got = [line.groupdict() for line in lines if line is not None]
    assert [int(line["id"]) for line in got] == [reply.ident for reply in replies]
    assert [int(line["rsize"]) for line in got] == [len(reply.wire) for reply in replies]
    assert got[0]["flags"] == "qr,aa,rd"
    last = {name: got[2][name] for name in ("remote", "type", "name", "proto", "do", "bufsize", "rcode")}
    assert last == {
        "remote": SHELL_A1,
        "type": "AAAA",
        "name": "missing.cluster.local.",
        "proto": "tcp",
        "do": "true",
        "bufsize": "65535",
        "rcode": "NXDOMAIN",
    }


def test_only_the_classes_asked_for_are_logged(tmp_path: Path) -> None:
    rule = '    log . "{name} {/log/type}" {\n        class denial\n    }\n    topology'
    with serving(tmp_path, COREFILE.replace("    topology", rule, 1)) as server:
        for question in (WEB, "missing.shop.svc.cluster.local A", "web.shop.svc.cluster.local NS"):
            for _ in range(2):
                server.ask(question)
        server.wait_for_line("web.shop")
        got = [line.removeprefix("[INFO] ") for line in server.lines("shop.svc")]
    missing, web = "missing.shop.svc.cluster.local. NXDOMAIN", "web.shop.svc.cluster.local. NODATA"
    assert got == [missing, missing, web, web]
