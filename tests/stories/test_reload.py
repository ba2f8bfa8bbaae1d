"""A new Corefile under a running server, by SIGUSR1 and by the `reload` directive: taken whole, or not at all."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.dns_messages import query
from tests.support.server_process import (
    METRICS,
    READY,
    Server,
    open_tcp,
    open_udp,
    own_address,
    receive_framed,
    send_framed,
    serving,
    topodns,
    until,
)

PORT = 5353  # fixed: a listener is the same one after a reload when its address and port are
NAME, ADDRESS = "web.shop.svc.cluster.local A", bytes([10, 96, 0, 20])
MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec: {clusterIP: 10.96.0.20, clusterIPs: [10.96.0.20], ports: [{port: 80}]}
"""


def corefile(ttl: int, bind: str = "HERE", more: str = "") -> str:
    return f"""\
. {{
    bind {bind}
    ready HERE:{READY}
    prometheus HERE:{METRICS}
    kubernetes cluster.local {{
        manifests cluster.yaml
        ttl {ttl}
    }}
    {more}
}}
"""


class Story:
    """A server and its Corefile."""

    def __init__(self, server: Server, directory: Path) -> None:
        self.server = server
        self._corefile = directory / "Corefile"

    def write(self, text: str) -> None:
        self._corefile.write_text(text.replace("HERE", self.server.address))

    def reload(self, text: str) -> None:
        """By SIGUSR1; returns when it has been done."""
        done = len(self.server.lines("Reloading complete"))
        self.write(text)
        self.server.signal(signal.SIGUSR1)
        until(lambda: len(self.server.lines("Reloading complete")) > done, "the reload")

    @property
    def ttl(self) -> int:
        (line,) = self.server.ask(NAME).answer
        return int(line.split()[1])


@contextmanager
def story(directory: Path, text: str) -> Iterator[Story]:
    (directory / "cluster.yaml").write_text(MANIFEST)
    with serving(directory, text, port=PORT) as server:
        yield Story(server, directory)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Story]:
    with story(tmp_path, corefile(5)) as running:
        yield running


def test_sigusr1_takes_the_corefile_as_it_is_now(running: Story) -> None:
    assert [running.ttl, running.ttl] == [5, 5]
    running.reload(corefile(7))
    assert [running.ttl, running.ttl] == [7, 7]
    assert running.server.metric("coredns_reload_failed_total") == 0


ON_ALL = 'example. {\n    template IN A {\n        answer "{{ .Name }} 5 IN A 192.0.2.1"\n    }\n}\n'
ON_ONE = ON_ALL.replace("{\n    template", "{\n    bind HERE\n    template", 1).replace("example.", ".", 1)
ON_ONE = ON_ONE.replace("192.0.2.1", "192.0.2.2")


def free_port() -> int:
    """A port that no other server has on any address."""
    with socket.socket() as free:
        free.bind(("", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize("first", [ON_ALL, ON_ONE], ids=["all first", "one first"])
def test_a_port_may_be_open_on_all_addresses_and_in_another_block_on_one_of_them(tmp_path: Path, first: str) -> None:
    with serving(tmp_path, first, port=free_port()) as server:
        Story(server, tmp_path).reload(first + (ON_ONE if first == ON_ALL else ON_ALL))
        for tcp in (False, True):
            assert server.ask("a.example A", tcp=tcp).data == ["192.0.2.2"]
            assert server.ask("a.example A", tcp=tcp, to="127.0.0.1").data == ["192.0.2.1"]


@pytest.mark.parametrize("everywhere", [ON_ALL, ON_ALL.replace("{\n", "{\n    bind 0.0.0.0\n", 1)], ids=["", "0.0.0.0"])
def test_a_server_starts_with_a_port_on_all_addresses_and_on_one(tmp_path: Path, everywhere: str) -> None:
    with serving(tmp_path, ON_ONE + everywhere, port=free_port()) as server:
        assert server.ask("a.example A").data == ["192.0.2.2"]
        assert server.ask("a.example A", to="127.0.0.1").data == ["192.0.2.1"]


def test_so_it_does_over_ipv6(tmp_path: Path) -> None:
    on_all = ON_ALL.replace("{\n", "{\n    bind ::\n", 1)
    with serving(tmp_path, on_all + ON_ONE.replace("HERE", "HERE ::1"), port=free_port()) as server:
        for tcp in (False, True):
            assert server.ask("a.example A", tcp=tcp, to="::1").data == ["192.0.2.2"]


def test_two_blocks_with_a_port_on_all_addresses_each_in_its_own_way_share_no_queries(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text(ON_ALL + ON_ONE.replace("HERE", "0.0.0.0"))
    port = free_port()
    ended = topodns("-conf", str(tmp_path / "Corefile"), "-dns.port", str(port))
    assert (ended.returncode, ended.stderr) == (1, f"listen udp 0.0.0.0:{port}: address already in use\n")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "0.0.0.0 ::"])
def test_the_unspecified_address_of_one_family_is_that_of_both(tmp_path: Path, address: str) -> None:
    with serving(tmp_path, ON_ONE.replace("HERE", address), port=free_port()) as server:
        for tcp in (False, True):
            for to in ("127.0.0.1", "::1"):
                assert server.ask("a.example A", tcp=tcp, to=to).data == ["192.0.2.2"]


def test_where_each_family_has_a_block_it_is_that_of_its_own(tmp_path: Path) -> None:
    other = ON_ONE.replace("HERE", "::").replace("192.0.2.2", "192.0.2.3")
    with serving(tmp_path, ON_ONE.replace("HERE", "0.0.0.0") + other, port=free_port()) as server:
        assert server.ask("a.example A", to="127.0.0.1").data == ["192.0.2.2"]
        assert server.ask("a.example A", to="::1").data == ["192.0.2.3"]


BAD = [
    ("a directive that nobody knows", corefile(9, more="kubernetse"), "Corefile:9: "),
    ("a wrong argument", corefile(9999), "Corefile:7: "),
    ("a path that is not there", corefile(9).replace("cluster.yaml", "missing.yaml"), "Corefile:6: "),
    ("nothing", "", "Corefile: "),
    ("an address that is nobody's", corefile(9, bind="HERE 192.0.2.1"), "listen udp 192.0.2.1:5353: "),
]


@pytest.fixture(scope="module")
def steadfast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """One server for all the bad Corefiles."""
    with story(tmp_path_factory.mktemp("steadfast"), corefile(5)) as running:
        yield running


@pytest.mark.parametrize(("text", "why"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_corefile_that_cannot_be_served_leaves_the_old_one_in_force(steadfast: Story, text: str, why: str) -> None:
    server, ttl = steadfast.server, steadfast.ttl
    refused, enabled = server.metric("coredns_reload_failed_total"), server.metric("coredns_plugin_enabled")
    steadfast.write(text)
    server.signal(signal.SIGUSR1)
    until(lambda: server.metric("coredns_reload_failed_total") == refused + 1, "the refusal")
    line = server.lines("[ERROR]")[-1]
    assert line.startswith("[ERROR] plugin/reload: ")
    assert why in line
    assert steadfast.ttl == ttl
    assert server.metric("coredns_plugin_enabled") == enabled
    assert server.get("/ready", READY)[0] == 200
    steadfast.reload(corefile(ttl + 1))
    assert steadfast.ttl == ttl + 1


def test_the_reload_directive_looks_by_itself_and_keeps_the_old_corefile_over_a_bad_one(tmp_path: Path) -> None:
    looking = "reload 2s 1s"
    with story(tmp_path, corefile(5, more=looking)) as running:
        digest = running.server.wait_for_line("SHA512 = ").split()[-1]
        assert running.server.metric("coredns_reload_version_info", hash="sha512", value=digest) == 1
        running.write(corefile(9999, more=looking))
        assert "Corefile:7: " in running.server.wait_for_line("[ERROR] plugin/reload: ")
        assert running.ttl == 5
        running.write(corefile(8, more=looking))
        running.server.wait_for_line("Reloading complete")
        assert running.ttl == 8
        assert running.server.metric("coredns_reload_failed_total") == 1
        assert running.server.metric("coredns_reload_version_info", value=digest) == 0


def test_the_admin_listeners_follow_the_corefile(running: Story) -> None:
    text = corefile(5).replace(f":{READY}", ":8182")
    running.reload(text)
    assert running.server.get("/ready", 8182) == (200, "OK")
    with pytest.raises(ConnectionRefusedError):
        running.server.get("/ready", READY)
    running.reload(text.replace(f"ready HERE:{8182}", ""))
    with pytest.raises(ConnectionRefusedError):
        running.server.get("/ready", 8182)


def test_counters_never_fall_at_a_reload(running: Story) -> None:
    for _ in range(20):
        running.server.ask(NAME)
    running.reload(corefile(6))
    assert running.server.metric("coredns_dns_requests_total") == 20
    running.server.ask(NAME)
    assert running.server.metric("coredns_dns_requests_total") == 21


def test_manifests_are_followed_on_after_a_reload(running: Story, tmp_path: Path) -> None:
    edits = "topodns_manifest_reloads_total"
    for ttl, address in ((6, "10.96.0.21"), (7, "10.96.0.22")):
        counted = running.server.metric(edits)
        running.reload(corefile(ttl))
        assert (running.ttl, running.server.metric(edits)) == (ttl, counted)
        (tmp_path / "cluster.yaml").write_text(MANIFEST.replace("10.96.0.20", address))
        until(partial(shows, running.server, address), "the edit")


def shows(server: Server, address: str) -> bool:
    return server.ask(NAME).data == [address]


class Stream(threading.Thread):
    """Asks over one socket, a window of queries at a time, until it is stopped. `failure` is the first problem.

    Little is done with the replies, so that there is nearly always something waiting in the server's socket.
    """

    WINDOW = 150

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock = sock
        self._ended = threading.Event()
        self._datagrams = sock.type == socket.SOCK_DGRAM
        self._asked = [query(NAME, ident=ident) for ident in range(self.WINDOW)]
        self.answered = 0
        self.failure = ""

    def run(self) -> None:
        try:
            while not self._ended.is_set() and not self.failure:
                self._ask_window()
        except OSError as lost:
            self.failure = f"after {self.answered} answers: {lost!r}"

    def stop(self) -> None:
        self._ended.set()
        self.join()
        self._sock.close()

    def _ask_window(self) -> None:
        if self._datagrams:
            for message in self._asked:
                self._sock.send(message)
            got = [self._sock.recv(65535) for _ in self._asked]
        else:
            send_framed(self._sock, *self._asked)
            got = [receive_framed(self._sock) for _ in self._asked]
        self._check(got)

    def _check(self, got: list[bytes]) -> None:
        if {wire[:2] for wire in got} != {message[:2] for message in self._asked}:
            self.failure = f"wrong ids after {self.answered} answers"
        elif not all(wire.endswith(ADDRESS) for wire in got):
            self.failure = f"a wrong answer after {self.answered}: {got[0].hex()}"
        self.answered += len(got)


def test_no_query_is_lost_while_listeners_come_stay_and_go(running: Story) -> None:
    server, second = running.server, own_address()
    at = (server.address, PORT)
    streams = [Stream(open_udp(at)), Stream(open_udp(at)), Stream(open_tcp(at))]
    for stream in streams:
        stream.start()
    try:
        running.reload(corefile(6))
        running.reload(corefile(7, bind=f"HERE {second}"))
        assert server.ask(NAME, to=second).answer == server.ask(NAME, to=second, tcp=True).answer
        running.reload(corefile(8, bind=f"HERE {second}"))
        running.reload(corefile(9))
        with pytest.raises(ConnectionRefusedError):
            server.ask(NAME, to=second)
        with pytest.raises(ConnectionRefusedError):
            server.ask(NAME, to=second, tcp=True)
        running.reload(corefile(10))
        asked = [stream.answered for stream in streams]
        until(lambda: all(s.failure or s.answered > n for s, n in zip(streams, asked, strict=True)), "answers after it")
    finally:
        for stream in streams:
            stream.stop()
    assert [stream.failure for stream in streams] == ["", "", ""]
    assert running.ttl == 10
    counted = server.metric("coredns_dns_requests_total", server=f"dns://{server.address}:{PORT}", proto="tcp")
    assert counted == streams[2].answered
