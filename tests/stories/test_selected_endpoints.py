"""How far answered endpoints are from the clients, in the metrics of the program with the cluster of `make run`."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server_process import ROOT, Server, serving, until

DEMO = ROOT / "config" / "demo"
METRIC = "topodns_selected_endpoints_total"
A1, B2, C1, UNLOCATED = "127.10.1.100", "127.10.5.100", "127.10.7.100", "127.99.0.1"
FEW = 5  # queries from each client: so few that the sample has all


@pytest.fixture
def corefile() -> str:
    text = (DEMO / "Corefile").read_text().replace("127.0.0.1", "HERE")
    return text.replace("manifests cluster", f"manifests {DEMO / 'cluster'}").replace(":5390", ":9153")


@pytest.fixture
def demo(tmp_path: Path, corefile: str) -> Iterator[Server]:
    with serving(tmp_path, corefile) as server:
        yield server


def ask_few(server: Server, question: str, source: str) -> None:
    for _ in range(FEW):
        server.ask(question, source)


def test_few_queries_are_counted_exactly_by_distance_and_service(demo: Server) -> None:
    ask_few(demo, "cache.shop.svc.cluster.local A", A1)  # on its own node
    ask_few(demo, "cache.shop.svc.cluster.local A", B2)  # in its zone
    ask_few(demo, "cache.shop.svc.cluster.local A", C1)  # all three, which are in other zones of its region
    ask_few(demo, "db.data.svc.cluster.local A", UNLOCATED)
    ask_few(demo, "web.shop.svc.cluster.local A", A1)  # not headless
    ask_few(demo, "none.shop.svc.cluster.local A", A1)  # NXDOMAIN
    for _ in range(2):
        scrape = demo.scrape()
        found = {far: scrape.sum(METRIC, distance=far) for far in ("node", "zone", "region", "farther", "unknown")}
        assert found == pytest.approx({"node": FEW, "zone": FEW, "region": FEW, "farther": 0, "unknown": FEW})
        assert scrape.sum(METRIC, namespace="shop", service="cache") == pytest.approx(3 * FEW)
        assert scrape.sum(METRIC, namespace="data", service="db") == pytest.approx(FEW)


@pytest.mark.skipif(shutil.which("dig") is None, reason="NO DIG HERE: queries of dig are not counted")
def test_a_query_of_dig_is_one_answer(demo: Server) -> None:
    port = str(demo.port)
    for _ in range(FEW):
        command = ["dig", "-b", A1, f"@{demo.address}", "-p", port, "+short", "cache.shop.svc.cluster.local"]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "127.10.1.30\n"
    assert demo.scrape().sum(METRIC, distance="node") == FEW


def test_a_reload_loses_no_counts(demo: Server, tmp_path: Path) -> None:
    ask_few(demo, "cache.shop.svc.cluster.local A", A1)
    assert demo.metric(METRIC, distance="node") == FEW
    ask_few(demo, "cache.shop.svc.cluster.local A", A1)
    corefile = tmp_path / "Corefile"
    corefile.write_text(corefile.read_text().replace("pods verified", "pods verified\n ttl 7"))
    demo.signal(signal.SIGUSR1)
    until(lambda: demo.lines("Reloading complete"), "the reload")
    assert demo.metric(METRIC, distance="node") == 2 * FEW
    ask_few(demo, "cache.shop.svc.cluster.local A", A1)
    assert demo.metric(METRIC, distance="node") == 3 * FEW


def test_the_counts_of_several_processes_add_up(tmp_path: Path, corefile: str) -> None:
    several = corefile.replace("    reload\n", "    reload\n    multisocket 2\n")
    assert several != corefile
    with serving(tmp_path, several) as server:
        until(lambda: server.get("/ready", 5381)[0] == 200, "/ready")
        for _ in range(4):
            ask_few(server, "cache.shop.svc.cluster.local A", A1)
        until(lambda: server.metric(METRIC, distance="node") == 4 * FEW, "all queries are counted")
        scrape = server.scrape()
        each = [scrape.sum("topodns_multisocket_requests_total", process=number) for number in "12"]
        assert min(each) > 0
