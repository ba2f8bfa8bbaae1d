"""The demo of `make run`: config/demo served by the program, asked as its Pods and nodes."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.support.dns_messages import Opt, Reply, subnet
from tests.support.server_process import ROOT, Server, serving

DEMO = ROOT / "config" / "demo"
SOA = "cluster.local. 5 IN SOA ns.dns.cluster.local. hostmaster.cluster.local."

SHELL_A1, SHELL_B2, SHELL_C1 = "127.10.1.100", "127.10.5.100", "127.10.7.100"
NODE_B2, NODE_C3 = "127.10.0.5", "127.10.0.9"
UNLOCATED = "127.99.0.1"

needs_dig = pytest.mark.skipif(shutil.which("dig") is None, reason="dig is not installed: the story of `dig -b` is not")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    corefile = (DEMO / "Corefile").read_text().replace("127.0.0.1", "HERE")
    corefile = corefile.replace("manifests cluster", f"manifests {DEMO / 'cluster'}")
    with serving(tmp_path_factory.mktemp("demo"), corefile) as server:
        yield server


TOLD_BY_PLACE = [
    ("a Pod on a node with an endpoint: that one", SHELL_A1, "cache.shop", "A", ["127.10.1.30"]),
    ("a Pod whose node has only an unready one: its zone's", SHELL_B2, "cache.shop", "A", ["127.10.4.30"]),
    ("a process on that node itself", NODE_B2, "cache.shop", "A", ["127.10.4.30"]),
    ("a zone without any: all, by *", SHELL_C1, "cache.shop", "A", ["127.10.1.30", "127.10.2.30", "127.10.4.30"]),
    ("the client is unlocated: all, by *", UNLOCATED, "cache.shop", "A", ["127.10.1.30", "127.10.2.30", "127.10.4.30"]),
    ("a JSON list: the same rack", SHELL_A1, "search.shop", "A", ["127.10.1.40"]),
    ("AAAA by its own endpoints", SHELL_A1, "search.shop", "AAAA", ["fd00:10:1::40"]),
    ("no one in the rack: the zone", SHELL_B2, "search.shop", "A", ["127.10.6.40"]),
    ("another zone than the client's", SHELL_B2, "db-far.data", "A", ["127.10.1.50", "127.10.2.50"]),
    ("a client in no zone: all, by *", UNLOCATED, "db-far.data", "A", ["127.10.1.50", "127.10.2.50", "127.10.4.50"]),
    ("OpenYurt's node pool", SHELL_B2, "kiosk.shop", "A", ["127.10.5.60", "127.10.6.60"]),
    ("a hard key, of the Namespace: the zone's", SHELL_A1, "db-near.data", "A", ["127.10.1.50", "127.10.2.50"]),
    (
        "a governing Service, so no keys: all, for everyone",
        SHELL_C1,
        "db.data",
        "A",
        ["127.10.1.50", "127.10.2.50", "127.10.4.50"],
    ),
    ("a member by name, never filtered", SHELL_C1, "db-0.db.data", "A", ["127.10.1.50"]),
    ("the near view of a Service without keys", SHELL_A1, "_near.db.data", "A", ["127.10.1.50"]),
    ("keys for the near view alone: the zone's", SHELL_A1, "_near.queue.data", "A", ["127.10.2.80", "127.10.3.80"]),
    (
        "keys for the near view alone: all at the plain name",
        SHELL_A1,
        "queue.data",
        "A",
        [f"127.10.{at}.80" for at in (2, 3, 5, 6)],
    ),
    (
        "the whole view of a Service with keys",
        SHELL_A1,
        "_all.cache.shop",
        "A",
        ["127.10.1.30", "127.10.2.30", "127.10.4.30"],
    ),
    (
        "a node beyond the load of its zone",
        SHELL_B2,
        "sessions.shop",
        "A",
        [f"127.10.{at}" for at in ("7.70", "7.71", "8.70", "9.70")],
    ),
]


@pytest.mark.parametrize(
    ("source", "service", "qtype", "expected"), [case[1:] for case in TOLD_BY_PLACE], ids=[c[0] for c in TOLD_BY_PLACE]
)
@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_a_headless_service_is_answered_by_the_client_s_location(
    demo: Server, tcp: bool, source: str, service: str, qtype: str, expected: list[str]
) -> None:
    for _ in range(2):  # made, then ready-made
        reply = demo.ask(f"{service}.svc.cluster.local {qtype}", source, tcp=tcp)
        assert (reply.rcode, reply.data) == ("NOERROR", expected)
        assert reply.flag_names == {"qr", "aa", "rd"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [(SHELL_A1, ["127.10.1.90"]), (SHELL_B2, ["127.10.5.90"]), (SHELL_C1, ["127.10.1.90", "127.10.5.90"])],
    ids=["the zone's", "the other zone's", "none in the zone: the cluster's"],
)
def test_a_service_import_is_answered_by_zone_and_cluster(demo: Server, source: str, expected: list[str]) -> None:
    for _ in range(2):  # made, then ready-made
        assert demo.ask("catalog.shop.svc.clusterset.local A", source).data == expected


@needs_dig
@pytest.mark.parametrize(
    ("source", "service", "expected"),
    [(SHELL_A1, "cache.shop", "127.10.1.30"), (SHELL_B2, "cache.shop", "127.10.4.30")],
)
def test_the_same_with_the_real_dig(demo: Server, source: str, service: str, expected: str) -> None:
    dig = ["dig", "-b", source, f"@{demo.address}", "-p", str(demo.port), f"{service}.svc.cluster.local"]
    assert subprocess.run([*dig, "+short"], capture_output=True, text=True, check=True).stdout == f"{expected}\n"
    whole = subprocess.run(dig, capture_output=True, text=True, check=True).stdout
    assert "status: NOERROR" in whole
    assert "flags: qr aa rd;" in whole
    assert ";; WARNING: recursion requested but not available" in whole
    assert "ERROR" not in whole.replace("NOERROR", "")


@needs_dig
def test_the_three_lines_that_make_run_prints_have_answers(demo: Server) -> None:
    """`make run` prints the lines of the Corefile's comment by a command of the Makefile, which is run here."""
    (command,) = re.findall(r"^\t@(sed -n .* config/demo/Corefile)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    printed = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    answers = {}
    for line in printed.splitlines():
        words, comment = shlex.split(line.partition("#")[0]), line.partition("#")[2].strip()
        assert (words[3], words[4:6]) == ("@127.0.0.1", ["-p", "5300"])
        words[3:6] = [f"@{demo.address}", "-p", str(demo.port)]
        ended = subprocess.run([*words, "+short"], capture_output=True, text=True, check=True)
        answers[comment] = sorted(ended.stdout.split())
    assert answers == {
        "as the Pod shell-a1, in zone eu-1a": ["127.10.1.30"],
        "as the Pod shell-c1, in zone eu-1c": ["127.10.1.30", "127.10.2.30", "127.10.4.30"],
        "as a process on node-b2 itself": ["127.10.4.30"],
    }


def test_the_topology_page_is_where_the_banner_and_the_documents_say_and_shows_the_services(demo: Server) -> None:
    (line,) = demo.lines("topology page ")
    address = line.removeprefix("topology page ")
    url = urlsplit(address)
    assert (url.scheme, url.hostname, url.path) == ("http", demo.address, "/topology")
    status, page = demo.get(url.path, url.port or 80)
    assert (status, "<title>topodns: topology</title>" in page) == (200, True)
    status, state = demo.get(f"{url.path}/state", url.port or 80)
    assert status == 200
    assert {"shop/cache", "data/db-near"} <= {row["id"] for row in json.loads(state)["rows"]}
    of_make_run = address.replace(demo.address, "127.0.0.1")
    assert f"`{of_make_run}` with `make run`" in (ROOT / "README.md").read_text()
    assert f"topology page on {of_make_run.split('/')[2]}" in (ROOT / "Makefile").read_text()


@pytest.fixture(scope="module")
def demo_in_a_container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The Corefile of the image, at addresses and ports of this test."""
    corefile = (DEMO / "container/Corefile").read_text().replace("0.0.0.0:5382", "HERE:5382")
    corefile = corefile.replace("manifests ../cluster", f"manifests {DEMO / 'cluster'}")
    for directive, listening in (
        (". {", ". {\n    bind HERE"),
        ("    health\n", "    health HERE:8080\n"),
        ("    ready\n", "    ready HERE:8181\n"),
        ("prometheus :9153", "prometheus HERE:9153"),
    ):
        assert corefile.count(directive) == 1
        corefile = corefile.replace(directive, listening)
    with serving(tmp_path_factory.mktemp("container"), corefile) as server:
        yield server


def test_in_a_container_a_client_of_the_demo_names_itself_by_client_subnet(demo_in_a_container: Server) -> None:
    """As the digs in the Corefile's comment: +subnet takes the place of -b."""
    text = (DEMO / "container/Corefile").read_text()
    lines = re.findall(r"^# +dig \+subnet=(\S+) +@127.0.0.1 -p 5300 (\S+) ", text, re.MULTILINE)
    answers = {}
    for client, name in lines:
        reply = demo_in_a_container.ask(f"{name} A", opt=Opt(options=(subnet(f"{client}/32"),)))
        answers[client] = reply.data
    everywhere = ["127.10.1.30", "127.10.2.30", "127.10.4.30"]
    assert answers == {SHELL_A1: ["127.10.1.30"], SHELL_C1: everywhere, NODE_B2: ["127.10.4.30"]}
    assert demo_in_a_container.ask("cache.shop.svc.cluster.local A").data == everywhere


def test_in_a_container_the_topology_page_is_for_browsers_of_the_host(demo_in_a_container: Server) -> None:
    status, page = demo_in_a_container.get("/topology", 5382)
    assert (status, "<title>topodns: topology</title>" in page) == (200, True)


def test_the_readme_shows_a_picture_of_the_topology_page() -> None:
    (picture,) = re.findall(r"^!\[[^]]+\]\((\S*topology\S*)\)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert picture == "docs/operate/topology-page.png"
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


SRV_OF_DB = [
    "_sql._tcp.db.data.svc.cluster.local. 5 IN SRV 0 33 5432 db-0.db.data.svc.cluster.local.",
    "_sql._tcp.db.data.svc.cluster.local. 5 IN SRV 0 33 5432 db-1.db.data.svc.cluster.local.",
    "_sql._tcp.db.data.svc.cluster.local. 5 IN SRV 0 33 5432 db-2.db.data.svc.cluster.local.",
]
REVERSED_V6 = "0.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.0.1.0.0.0.0.d.f.ip6.arpa"

SCHEMA = [
    ("web.shop.svc.cluster.local A", ["web.shop.svc.cluster.local. 5 IN A 10.96.10.20"], []),
    ("web.shop.svc.cluster.local AAAA", ["web.shop.svc.cluster.local. 5 IN AAAA fd00:10:96::20"], []),
    (
        "_http._tcp.web.shop.svc.cluster.local SRV",
        ["_http._tcp.web.shop.svc.cluster.local. 5 IN SRV 0 50 80 web.shop.svc.cluster.local."],
        ["web.shop.svc.cluster.local. 5 IN A 10.96.10.20", "web.shop.svc.cluster.local. 5 IN AAAA fd00:10:96::20"],
    ),
    (
        "_sql._tcp.db.data.svc.cluster.local SRV",
        SRV_OF_DB,
        [
            "db-0.db.data.svc.cluster.local. 5 IN A 127.10.1.50",
            "db-1.db.data.svc.cluster.local. 5 IN A 127.10.2.50",
            "db-2.db.data.svc.cluster.local. 5 IN A 127.10.4.50",
        ],
    ),
    ("20.10.96.10.in-addr.arpa PTR", ["20.10.96.10.in-addr.arpa. 5 IN PTR web.shop.svc.cluster.local."], []),
    (f"{REVERSED_V6} PTR", [f"{REVERSED_V6}. 5 IN PTR web.shop.svc.cluster.local."], []),
    (
        "50.1.10.127.in-addr.arpa PTR",
        [
            "50.1.10.127.in-addr.arpa. 5 IN PTR 127-10-1-50.db-far.data.svc.cluster.local.",
            "50.1.10.127.in-addr.arpa. 5 IN PTR 127-10-1-50.db-near.data.svc.cluster.local.",
            "50.1.10.127.in-addr.arpa. 5 IN PTR db-0.db.data.svc.cluster.local.",
        ],
        [],
    ),
    (
        "127-10-1-100.default.pod.cluster.local A",
        ["127-10-1-100.default.pod.cluster.local. 5 IN A 127.10.1.100"],
        [],
    ),
    (
        "payments.shop.svc.cluster.local A",
        [
            "payments.shop.svc.cluster.local. 5 IN CNAME web.shop.svc.cluster.local.",
            "web.shop.svc.cluster.local. 5 IN A 10.96.10.20",
        ],
        [],
    ),
    ("dns-version.cluster.local TXT", ['dns-version.cluster.local. 28800 IN TXT "1.1.0"'], []),
]


@pytest.mark.parametrize(("question", "answer", "additional"), SCHEMA, ids=[case[0] for case in SCHEMA])
def test_the_rest_of_the_schema_is_as_coredns_answers_it(
    demo: Server, question: str, answer: list[str], additional: list[str]
) -> None:
    reply = demo.ask(question)
    assert (reply.rcode, sorted(reply.answer)) == ("NOERROR", answer)
    assert sorted(reply.additional) == additional


def denial(reply: Reply) -> tuple[str, str]:
    """`NXDOMAIN`, `NODATA` or else the rcode; and the SOA without its numbers."""
    assert reply.answer == []
    (soa,) = reply.authority
    return "NODATA" if reply.rcode == "NOERROR" else reply.rcode, " ".join(soa.split()[:6])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("missing.shop.svc.cluster.local A", "NXDOMAIN"),
        ("web.missing.svc.cluster.local A", "NXDOMAIN"),
        ("127-10-1-99.default.pod.cluster.local A", "NXDOMAIN"),
        ("web.shop.svc.cluster.local MX", "NODATA"),
        ("shop.svc.cluster.local A", "NODATA"),
        ("cluster.local A", "NODATA"),
    ],
)
def test_a_missing_name_is_denied_with_the_soa(demo: Server, question: str, expected: str) -> None:
    assert denial(demo.ask(question)) == (expected, SOA)


@pytest.mark.parametrize(
    ("source", "service", "why"),
    [
        (SHELL_C1, "db-near.data", "no endpoint matches topologyKeys topology.kubernetes.io/zone for node node-c1"),
        (NODE_C3, "agent.monitoring", "no endpoint matches topologyKeys kubernetes.io/hostname for node node-c3"),
        (UNLOCATED, "db-near.data", "client location unknown"),
    ],
)
def test_nothing_in_the_clients_place_is_nodata_and_says_why(demo: Server, source: str, service: str, why: str) -> None:
    question = f"{service}.svc.cluster.local A"
    reply = demo.ask(question, source, Opt())
    assert (denial(reply), reply.ede) == (("NODATA", SOA), why)
    assert demo.ask(question, source).options is None


def test_a_name_that_no_directive_of_its_block_answers_is_servfail_and_one_line(demo: Server) -> None:
    assert demo.ask("example.org A").rcode == "SERVFAIL"
    line = demo.wait_for_line("example.org")
    assert line.startswith("[ERROR] plugin/errors: 2 example.org. A: ")


def test_nothing_in_the_example_is_complained_about(demo: Server) -> None:
    assert demo.lines("[WARNING]") == []
