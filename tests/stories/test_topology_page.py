"""The topology page of the whole program: what a browser is served, live, and what others are refused."""

import http.client
import json
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import DOCUMENTS
from tests.support.event_loops import PATIENCE
from tests.support.runnable_blocks import block
from tests.support.server_process import ROOT, Server, serving, until

PAGE = 8182
COREFILE = """
. {
    bind HERE
    errors
    prometheus HERE:9153
    reload 2s 1s
    kubernetes cluster.local {
        manifests cluster
    }
    topology {
        page HERE:8182
    }
}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    shutil.copytree(ROOT / "config/demo/cluster", tmp_path / "cluster")
    with serving(tmp_path, COREFILE) as server:
        yield server


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(server.address, PAGE, timeout=PATIENCE)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def state(server: Server) -> Any:
    status, _, body = ask(server, "/topology/state")
    assert status == 200
    return json.loads(body)


class Events:
    """An event stream, read as a browser does."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self._response = response

    def next(self) -> tuple[str, Any]:
        """The name and the data of the next event; ("", None) at the end."""
        name, data = "", None
        while line := self._response.readline():
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text[7:]
            elif text.startswith("data: "):
                data = json.loads(text[6:])
            elif not text and name:
                return name, data
        return "", None


@contextmanager
def events(server: Server) -> Iterator[Events]:
    connection = http.client.HTTPConnection(server.address, PAGE, timeout=PATIENCE)
    connection.request("GET", "/topology/events")
    response = connection.getresponse()
    try:
        yield Events(response)
    finally:
        response.close()
        connection.close()


def test_a_browser_gets_one_page_and_its_data(server: Server) -> None:
    status, headers, body = ask(server, "/topology")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert body.startswith(b"<!doctype html>")
    assert sorted(row["id"] for row in state(server)["rows"])[:2] == ["data/db-far", "data/db-near"]
    assert json.loads(ask(server, "/topology/service?service=shop/cache")[2])["endpoints"] == 3
    found = json.loads(ask(server, "/topology/what-if?change=node=node-b1:down&change=node=node-b2:down")[2])
    assert (found["nodes"], [one["id"] for one in found["worse"]]) == (7, ["data/db-far", "data/db-near", "shop/cache"])


def test_a_what_if_has_up_to_64_changes(server: Server) -> None:
    def supposed(changes: int) -> tuple[int, bytes]:
        status, _, body = ask(server, f"/topology/what-if?cluster=0{'&change=node=node-b1:down' * changes}")
        return status, body

    assert supposed(64)[0] == 200
    assert supposed(65) == (400, b"found 65 changes, expected at most 64\n")


def test_a_change_of_a_manifest_and_a_miss_reach_an_open_page(server: Server, tmp_path: Path) -> None:
    with events(server) as stream:
        assert stream.next() == ("hello", {})
        revision = state(server)["revision"]
        shop = tmp_path / "cluster/shop.yaml"
        shop.write_text(
            shop.read_text().replace(
                'topodns.io/topology-keys: "kubernetes.io/hostname,', 'topodns.io/topology-keys: "'
            )
        )
        name, data = stream.next()
        assert (name, data["from"], data["to"]) == ("change", revision, revision + 1)
        ((changed, keys),) = [(row["id"], row["keys"]) for row in data["rows"]]
        assert (changed, keys) == ("shop/cache", ["topology.kubernetes.io/zone", "*"])
        server.ask("db-near.data.svc.cluster.local A", "127.10.7.100")
        name, data = stream.next()
        assert (name, data["summary"]["misses"]) == ("change", {"data/db-near": 1})


def test_a_reload_ends_the_streams_and_may_move_or_end_the_page(server: Server, tmp_path: Path) -> None:
    corefile = tmp_path / "Corefile"
    with events(server) as stream:
        assert stream.next() == ("hello", {})
        corefile.write_text(corefile.read_text().replace(":8182", ":8183"))
        until(lambda: server.lines("Reloading complete"), "the reload")
        assert stream.next() == ("", None)
    assert server.get("/topology", 8183)[0] == 200
    with pytest.raises(ConnectionRefusedError):
        ask(server, "/topology")


def test_a_wrong_host_method_site_or_size_is_refused_and_counted(server: Server) -> None:
    assert ask(server, "/topology/state", Host="attacker.example")[0] == 403
    assert ask(server, "/topology/state", Host="localhost", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server, "/topology/state", Origin="http://attacker.example")[0] == 403
    status, headers, body = ask(server, "/topology/what-if", "POST")
    assert (status, headers["allow"], body) == (405, "GET, HEAD", b"only GET and HEAD\n")
    assert ask(server, f"/topology/what-if?change={'x' * 9000}")[0] == 431
    assert ask(server, f"/topology/what-if?change={'&change='.join('x' * 40)}")[0] == 400
    status, _, body = ask(server, "/topology/what-if?change=node=node-a9:down")
    assert (status, body) == (400, b"no Node is named 'node-a9', did you mean 'node-a3'?\n")
    scrape = server.scrape()
    assert {
        status: scrape.sum("topodns_http_refused_total", status=status) for status in ("400", "403", "405", "431")
    } == {
        "400": 2,
        "403": 3,
        "405": 1,
        "431": 1,
    }


EVENTS = b"GET /topology/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


def live(server: Server, source: str, request: bytes = EVENTS) -> tuple[socket.socket, bytes]:
    """A connection from this address, and the beginning of the reply."""
    sock = socket.create_connection((server.address, PAGE), PATIENCE, (source, 0))
    sock.sendall(request)
    return sock, sock.recv(4096)


def test_the_ninth_live_page_of_one_address_is_refused_and_counted_and_other_addresses_are_not(server: Server) -> None:
    with ExitStack() as stack:
        ours = [stack.enter_context(live(server, "127.0.0.1")[0]) for _ in range(8)]
        refused, reply = live(server, "127.0.0.1")
        refused.close()
        assert reply.startswith(b"HTTP/1.1 429 ")
        assert reply.endswith(b"\r\n\r\n8 pages are live already from your address: close one\n")
        assert server.scrape().sum("topodns_http_refused_total", status="429") == 1
        sock, reply = live(server, "127.0.0.1", EVENTS.replace(b"/events", b"/state"))
        sock.close()
        assert reply.startswith(b"HTTP/1.1 200 ")
        for _ in range(8):
            sock, reply = live(server, "127.0.0.2")
            stack.enter_context(sock)
            assert reply.startswith(b"HTTP/1.1 200 ")
        ours.pop().close()
        until(lambda: server.metric("topodns_http_streams") == 15, "a stream less")
        sock, reply = live(server, "127.0.0.1")
        stack.enter_context(sock)
        assert reply.startswith(b"HTTP/1.1 200 ")


def test_the_seventeenth_live_page_is_refused_and_another_may_follow_one_that_closes(server: Server) -> None:
    with ExitStack() as stack:
        sockets = [stack.enter_context(live(server, f"127.0.0.{1 + at % 4}")[0]) for at in range(16)]
        refused, reply = live(server, "127.0.0.5")
        refused.close()
        assert reply.startswith(b"HTTP/1.1 503 ")
        assert reply.endswith(b"\r\n\r\n16 pages are live already: close one\n")
        assert server.metric("topodns_http_streams") == 16
        assert server.scrape().sum("topodns_topology_page_rejects_total", reason="streams") == 1
        assert server.scrape().sum("topodns_topology_page_rejects_total", reason="queue") == 0
        sockets.pop().close()
        until(lambda: server.metric("topodns_http_streams") == 15, "a stream less")
        sock, reply = live(server, "127.0.0.5")
        stack.enter_context(sock)
        assert reply.startswith(b"HTTP/1.1 200 ")


def test_a_page_that_is_not_read_takes_no_more_than_the_kernel_does(server: Server, tmp_path: Path) -> None:
    before = server.resident_bytes()
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect((server.address, PAGE))
    slow.sendall(b"GET /topology/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with events(server) as quick:
        assert quick.next() == ("hello", {})
        nodes = tmp_path / "cluster/nodes.yaml"
        text = nodes.read_text()
        for number in range(3):
            nodes.write_text(text.replace("eu-1c", f"eu-{number}c"))
            assert quick.next()[0] == "change"
    assert server.resident_bytes() - before < 20 << 20
    slow.close()


def printed_in(document: str, name: str) -> str:
    """What a document says that its marked block prints: the next block of text."""
    return DOCUMENTS[document].partition(f"<!-- run: {name} -->")[2].partition("```text\n")[2].partition("```")[0]


def test_the_documented_requests_print_what_is_documented(server: Server) -> None:
    environment = {"PAGE": f"http://{server.address}:{PAGE}"}
    document = "docs/operate/topology-page.md"
    found = block("docs/operate/topology-page.md", "page-what-if").run(environment)
    assert found == printed_in(document, "page-what-if") != ""
    found = block("docs/operate/topology-page.md", "page-service").run(environment)
    assert found == printed_in(document, "page-service") != ""
