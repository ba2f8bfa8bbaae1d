"""Harm that strangers in the node's network, and an unlucky end, can do to a node cache (issue 13, item 7)."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.namespaced_cluster import LISTENED, Node, NodeScene
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace
from tests.support.node_processes import NodeCache, arguments, dig, environment, node_cache, running, write_template
from tests.support.server_process import until

pytestmark = pytest.mark.usefixtures("servers")
FIREWALLS = pytest.mark.parametrize("firewall", ["nftables", "iptables"])
NOBODY = 65534
MOMENTS = 8
ENDED = 20.0  # seconds
SOCKETS, PROCESSES = 5_000, 4  # 20,000 in all
MEASURED = 3.0  # seconds
FOREIGN, INSTANCE = (f"topodns_nodecache_port_sockets{{{holder}}}" for holder in ("foreign", "instance"))

PRELUDE = """
import contextlib, os, resource, socket, sys
def there():
    print("there", flush=True)
    sys.stdin.read()
"""
SHARES_THE_PORT = """
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
sock.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
sock.bind((sys.argv[1], 53))
there()
"""
TAKES_THE_NAMES = """
import select
os.setuid(int(sys.argv[1]))
taken = []
for slot in range(8):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.bind(f"\\0topodns-host-network/nodelocaldns/{slot}")
    sock.listen()
    taken.append(sock)
print("there", flush=True)
said = []
while True:
    ready = select.select([sys.stdin, *taken], (), ())[0]
    if sys.stdin in ready:
        break
    for sock in ready:
        said.append(sock.accept()[0])
        with contextlib.suppress(OSError):  # it was not wanted
            said[-1].send(b"1 1 ")
"""
HAS_MANY_SOCKETS = f"""
resource.setrlimit(resource.RLIMIT_NOFILE, ({SOCKETS + 100}, {SOCKETS + 100}))
os.setuid({NOBODY})
held = []
for number in range({SOCKETS}):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(f"\\0stranger/{{os.getpid()}}/{{number}}")
    held.append(sock)
there()
"""


@contextmanager
def stranger(where: Namespace, code: str, *given: str) -> Iterator[None]:
    """A process of its own on the node; its code has said that it is there. Killed at the end."""
    command = [sys.executable, "-c", PRELUDE + code, *given]
    with where.entered():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "there\n"
            yield
        finally:
            process.kill()


def cpu_seconds(pid: int) -> float:
    """The CPU time that all threads of a process have used."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks) / 1e9


def used(pid: int) -> float:
    """CPU seconds within MEASURED seconds."""
    before = cpu_seconds(pid)
    time.sleep(MEASURED)
    return cpu_seconds(pid) - before


def test_twenty_thousand_sockets_of_a_stranger_cost_a_node_cache_nothing(cluster: NodeScene, tmp_path: Path) -> None:
    with node_cache(cluster.node, tmp_path) as cache:
        alone = used(cache.pid)
        with ExitStack() as strangers:
            for _ in range(PROCESSES):
                strangers.enter_context(stranger(cluster.node.namespace, HAS_MANY_SOCKETS))
            beside = used(cache.pid)
    print(f"{1000 * alone / MEASURED:.1f} ms of CPU a second alone, {1000 * beside / MEASURED:.1f} ms beside")
    assert beside < 2 * alone + 0.03


def ended(cluster: NodeScene, directory: Path, firewall: str) -> tuple[int, str]:
    """The exit status and the log of a node cache that ends by itself."""
    with running(
        cluster.node.namespace, arguments(cluster.node, directory, firewall), directory / "log", **environment()
    ) as process:
        return process.wait(ENDED), (directory / "log").read_text()


@FIREWALLS
def test_a_foreign_process_with_our_socket_names_makes_no_start_share_a_foreign_port(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    write_template(tmp_path)
    where = cluster.node.namespace
    with stranger(where, TAKES_THE_NAMES, str(NOBODY)), stranger(where, SHARES_THE_PORT, LINK_LOCAL[4]):
        status, log = ended(cluster, tmp_path, firewall)
    assert status == 1, log
    assert "in use" in log
    assert f"belongs to user {NOBODY}" in log
    assert cluster.node.leftovers() == []


def test_with_the_names_taken_a_second_start_ends_and_the_first_instance_keeps_everything(
    cluster: NodeScene, tmp_path: Path
) -> None:
    where = cluster.node.namespace
    with stranger(where, TAKES_THE_NAMES, str(NOBODY)), node_cache(cluster.node, tmp_path) as cache:
        before = links(cluster.node)
        write_template(tmp_path / "second")
        status, log = ended(cluster, tmp_path / "second", "nftables")
        assert status == 1, log
        assert links(cluster.node) == before
        assert cache.switched_on()
        assert repairs(cache) == 0


def test_a_foreign_process_that_shares_the_port_is_counted_and_named_in_the_log(
    cluster: NodeScene, tmp_path: Path
) -> None:
    with node_cache(cluster.node, tmp_path) as cache:
        until(lambda: cache.metrics().get(FOREIGN) == 0, "looked", ENDED)
        with stranger(cluster.node.namespace, SHARES_THE_PORT, LINK_LOCAL[4]):
            until(lambda: cache.metrics()[FOREIGN] == 1, "seen", ENDED)
            assert f"another program takes a part of the questions to {LINK_LOCAL[4]} port 53" in cache.log.read_text()
            assert "udp socket of user 0, inode" in cache.log.read_text()
        until(lambda: cache.metrics()[FOREIGN] == 0, "gone", ENDED)


def test_another_instance_at_the_port_is_counted_and_not_foreign(cluster: NodeScene, tmp_path: Path) -> None:
    write_template(tmp_path / "second")
    with node_cache(cluster.node, tmp_path) as cache:
        command = [*arguments(cluster.node, tmp_path / "second"), f"-pidfile={tmp_path}/pid"]
        with running(cluster.node.namespace, command, tmp_path / "log", **environment()) as process:
            until((tmp_path / "pid").exists, "it serves", ENDED)
            until(lambda: cache.metrics()[INSTANCE] == 2 * len(LISTENED), "seen", ENDED)  # by either
            process.terminate()
            assert process.wait(ENDED) == 0
        until(lambda: cache.metrics()[INSTANCE] == 0, "gone", ENDED)
        assert "another program" not in cache.log.read_text() + (tmp_path / "log").read_text()


def links(node: Node) -> str:
    return node.namespace.run("ip", "-o addr show dev nodelocaldns")


class Leftovers:
    """Rules and links left on the node by a node cache that was killed with its supervisor, to be put there again."""

    def __init__(self, cluster: NodeScene, directory: Path, firewall: str) -> None:
        self._where = where = cluster.node.namespace
        with node_cache(cluster.node, directory, firewall) as cache:
            for pid in sorted({cache.process.pid, cache.pid}):  # the supervisor first
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            cache.process.wait()
        self._table = where.run("nft", "list table inet topodns") if firewall == "nftables" else ""
        self._saved = [
            ("iptables-restore", where.run("iptables-save", "-t raw") + where.run("iptables-save", "-t filter")),
            ("ip6tables-restore", where.run("ip6tables-save", "-t raw") + where.run("ip6tables-save", "-t filter")),
        ]
        self._kind = next(
            kind for kind in ("dummy", "ifb", "bridge") if where.run("ip", f"-o link show type {kind}").strip()
        )

    def restore(self) -> None:
        """The same once more, after all was removed."""
        self._where.run("ip", f"link add nodelocaldns type {self._kind}")
        self._where.run("ip", "link set nodelocaldns alias topodns up")
        for address in LISTENED:
            self._where.run("ip", f"addr add {address}/{128 if ':' in address else 32} dev nodelocaldns")
        if self._table:
            self._where.run("nft", "-f -", self._table)
        for program, text in self._saved:
            self._where.run(program, "", text)


def minds_sigterm(pid: int) -> bool:
    """Whether the process holds SIGTERM back or has a handler for it: its interpreter has come to our code."""
    with suppress(OSError):
        lines = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        masks = int(lines["SigBlk"], 16) | int(lines["SigCgt"], 16)
        return bool(masks >> (signal.SIGTERM - 1) & 1)
    return False


def started(cluster: NodeScene, directory: Path, firewall: str, moment: float) -> tuple[int, str]:
    """A start that gets SIGTERM this many seconds after its first line of code; its exit status and its log."""
    log = directory / f"log{moment:.3f}"
    with running(cluster.node.namespace, arguments(cluster.node, directory, firewall), log, **environment()) as process:
        until(lambda: minds_sigterm(process.pid) or process.poll() is not None, "started", ENDED)
        time.sleep(moment)  # to be early or late on purpose
        process.terminate()
        return process.wait(ENDED), log.read_text()


@FIREWALLS
def test_a_start_that_is_stopped_at_any_moment_leaves_nothing_of_a_life_that_was_killed(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    left = Leftovers(cluster, tmp_path, firewall)
    assert cluster.node.leftovers() != []
    write_template(tmp_path)
    began = time.monotonic()
    with node_cache(cluster.node, tmp_path, firewall) as cache:
        whole = 1.2 * (time.monotonic() - began)
        assert cache.stop() == 0
    bad: list[str] = []
    for number in range(MOMENTS):
        left.restore()
        moment = whole * number / MOMENTS
        status, log = started(cluster, tmp_path, firewall, moment)
        if status != 0 or cluster.node.leftovers():
            bad.append(f"{moment:.2f} s: status {status}, {len(cluster.node.leftovers())} left\n{log}")
        clear(cluster.node.namespace)
    assert bad == [], "\n".join(bad)
    assert dig(cluster.pod, CLUSTER_DNS[4], "web.shop.svc.cluster.local") == ["10.96.10.20"]


def clear(where: Namespace) -> None:
    """Nothing of a node cache is there, whatever was."""
    with suppress(subprocess.CalledProcessError):
        where.run("ip", "link del nodelocaldns")
    where.run("nft", "-f -", "add table inet topodns\ndelete table inet topodns\n")
    for program in ("iptables", "ip6tables"):
        for table in ("raw", "filter"):
            where.run(f"{program}-restore", "", f"*{table}\nCOMMIT\n")


@FIREWALLS
def test_a_start_with_a_faulty_template_leaves_nothing_of_a_life_that_was_killed(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    Leftovers(cluster, tmp_path, firewall)
    assert cluster.node.leftovers() != []
    write_template(tmp_path / "faulty", "cluster.local:53 {\n    no-such-directive\n}\n")
    status, log = ended(cluster, tmp_path / "faulty", firewall)
    assert status == 1, log
    assert cluster.node.leftovers() == []


@FIREWALLS
def test_a_start_that_is_stopped_or_faulty_takes_nothing_from_an_instance_that_serves(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    write_template(tmp_path / "second")
    write_template(tmp_path / "faulty", "cluster.local:53 {\n    no-such-directive\n}\n")
    with node_cache(cluster.node, tmp_path, firewall) as cache:
        before = links(cluster.node)
        assert ended(cluster, tmp_path / "faulty", firewall)[0] == 1
        for moment in (0.0, 0.15, 0.3, 0.6):
            status, log = started(cluster, tmp_path / "second", firewall, moment)
            assert status == 0, log
        assert links(cluster.node) == before
        assert cache.switched_on()
        assert repairs(cache) == 0, cache.log.read_text()


def repairs(cache: NodeCache) -> float:
    return sum(value for name, value in cache.metrics().items() if "_repairs_total" in name)
