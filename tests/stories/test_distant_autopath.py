"""A search path gone through in front of a cluster's DNS: two servers with sockets, the first as on a node."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.dns_messages import Reply
from tests.support.event_loops import SLOWNESS
from tests.support.server_process import METRICS, ROOT, Server, serving

PORT = 5353
SEARCHED = "example.com.shop.svc.cluster.local"
ROOT_FILE = """\
$ORIGIN .
$TTL 300
.           IN SOA ns.example. admin.example. 1 7200 1800 86400 60
.           IN NS ns.example.
example.com. IN A 192.0.2.1
"""
CLUSTER = f"""\
cluster.local:{PORT} {{
    bind HERE
    kubernetes cluster.local {{
        manifests {ROOT}/config/demo/cluster
    }}
    log
}}
.:{PORT} {{
    bind HERE
    file root
    log
    prometheus HERE:{METRICS}
}}
"""
NODE = f"""\
cluster.local:{PORT} {{
    bind HERE
    errors
    cache {{
        success 9984 30
        denial 9984 5
        serve_stale 1h verify
    }}
    loop
    autopath @kubernetes
    forward . CLUSTER_DNS:{PORT} {{
        force_tcp
    }}
    prometheus HERE:{METRICS}
}}
.:{PORT} {{
    bind HERE
    cache 30 {{
        serve_stale 1h verify
    }}
    forward . CLUSTER_DNS:{PORT}
}}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("cluster")
    (directory / "root").write_text(ROOT_FILE)
    with serving(directory, CLUSTER, port=PORT) as server:
        yield server


@pytest.fixture
def node(cluster: Server, tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path, NODE.replace("CLUSTER_DNS", cluster.address), port=PORT) as server:
        yield server


_marks = count(1)


def asked(server: Server) -> Counter[str]:
    """How often each `NAME TYPE` was asked so far: lines of the log come in order, the last one on our word."""
    mark = f"mark-{next(_marks)}.example"
    server.ask(f"{mark} TXT")
    server.wait_for_line(mark)
    words = [line.split('"')[1].split() for line in server.lines(" IN ")]
    return Counter(f"{name} {qtype}" for qtype, _, name, *_ in words if qtype != "TXT")


def got(reply: Reply) -> tuple[str, list[str]]:
    return reply.rcode, reply.answer


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_one_question_brings_the_name_outside(node: Server, tcp: bool) -> None:
    rcode, answer = got(node.ask(f"{SEARCHED} A", tcp=tcp))
    assert rcode == "NOERROR"
    assert [line.split()[0::2] for line in answer] == [
        [f"{SEARCHED}.", "IN", "example.com."],
        ["example.com.", "IN", "192.0.2.1"],
    ]
    assert node.metric("coredns_autopath_success_total") == 1


def test_once_everything_is_cached_the_search_costs_no_question_upstream(node: Server, cluster: Server) -> None:
    before = asked(cluster)
    replies = [node.ask(f"{SEARCHED} A") for _ in range(20)]  # well within the 5 s of the denials
    assert {reply.rcode for reply in replies} == {"NOERROR"}
    assert {tuple(reply.data) for reply in replies} == {("192.0.2.1", "example.com.")}
    more = asked(cluster) - before
    assert more[f"{SEARCHED}. A"] == more["shop.svc.cluster.local. A"] == more["com.shop.svc.cluster.local. A"] == 1
    assert more["example.com. A"] == 1
    assert max(more.values()) == 1


def test_another_name_of_the_same_domain_costs_fewer_questions(node: Server, cluster: Server) -> None:
    node.ask(f"{SEARCHED} A")
    before = asked(cluster)
    assert node.ask(f"www.{SEARCHED} A").rcode == "NXDOMAIN"  # there is none outside, either
    more = asked(cluster) - before
    assert more["shop.svc.cluster.local. A"] == more["com.shop.svc.cluster.local. A"] == 0
    assert more["www.example.com. A"] == 1


def test_names_of_the_cluster_are_answered_as_without_it(node: Server, cluster: Server) -> None:
    for question in (
        "web.shop.svc.cluster.local A",
        "redis.shop.svc.cluster.local A",
        "db-7.db.data.svc.cluster.local A",
    ):
        there, here = cluster.ask(question), node.ask(question)
        assert (here.rcode, here.data) == (there.rcode, there.data)


def test_while_the_cluster_dns_is_silent_names_found_before_are_still_answered_in_time(
    node: Server, cluster: Server
) -> None:
    node.ask(f"{SEARCHED} A")
    node.ask(f"{SEARCHED} A")  # each block's cache has all of it, and the ready-made answer is there
    cluster.signal(signal.SIGSTOP)
    try:
        while (seconds := timed(node)) < 1.0:  # until the denials have aged, and are asked for anew
            time.sleep(0.02)
        assert seconds < 3.0 * SLOWNESS  # five names on the way are waited for together, not one after the other
    finally:
        cluster.signal(signal.SIGCONT)


def timed(node: Server) -> float:
    began = time.monotonic()
    assert "192.0.2.1" in node.ask(f"{SEARCHED} A").data
    return time.monotonic() - began
