"""The memory that use adds to a server: cached answers, connections, waiting queries; and that of node caches.

Each figure is of a process of its own, since memory that one use has freed would serve the next one.
"""

import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.memory.fit import fit
from bench.outside import Outside, outside
from bench.proc import cores, free_port, peak_megabytes, resident_megabytes, running, wait_for_answer, wait_until_quiet
from bench.programs import Command, node_cache_command, server_command
from bench.questions import Question, write_questions
from tests.support.node_cache_template import node_template
from topodns.dns.rrtype import TYPE_NAMES, RRType
from topodns.net.tcp_limits import TcpLimits
from topodns.plugins.forward.waiting_limit import MAX_PER_CLIENT, MAX_TOTAL

KEPT: Final = 20_000  # answers that are kept, and copies of them
NODE_OCTETS: Final = (6 << 20, 9 << 20, 12 << 20)
LEAST_NODE_OCTETS: Final = 1 << 20  # that `-cache-octets` takes
NODE_FULL: Final = 5_000  # answers of each block and type, more than the largest cache has room for
LIMITS: Final = TcpLimits()
ORIGINS: Final = ("cluster.local", "in-addr.arpa", "ip6.arpa", "example.com")  # one for each block of the template
SETTLED_WITHIN: Final = 60.0  # seconds

_CLIENT: Final = socket.inet_aton("127.0.0.1")
_AT_ONCE: Final = 10_000  # queries in a file
_THING: Final = "octets"
_COREFILE: Final = """\
. {{
    bind 127.0.0.1
    errors
    prometheus 127.0.0.1:0
    forward . 127.0.0.1:{upstream}
    cache 300 {{
        success 204800
        denial 204800
    }}
}}
"""


class Serving(NamedTuple):
    """A process that answers on 127.0.0.1:`port`, and a folder for the files of queries."""

    pid: int
    port: int
    folder: Path

    def ask(self, peers: Outside, names: Sequence[str], rtype: int = RRType.A) -> None:
        """Send a query of this type for each name, once."""
        for first in range(0, len(names), _AT_ONCE):
            questions = (Question(_CLIENT, name, rtype) for name in names[first : first + _AT_ONCE])
            peers.ask(self.port, write_questions(self.folder / "questions", questions))

    @property
    def resident(self) -> float:
        """VmRSS in megabytes, once the process is idle."""
        wait_until_quiet((self.pid,), SETTLED_WITHIN)
        return resident_megabytes(self.pid)


def server_lines(part: int = 1) -> Iterator[str]:
    """Measure the memory of a server beside its cluster, a printed line each. `part` divides all numbers.

    Raises NoAnswer.
    """
    yield "What use adds to a server"
    kept, copied = _kept(KEPT // part)
    yield f"  {kept:.2f} KB for an answer that is kept, {copied:.2f} KB more for a copy at hand"
    count = LIMITS.connections // part
    yield f"  {_connections(count):.1f} MB for {count:,} open connections"
    clients = MAX_TOTAL // MAX_PER_CLIENT // part
    yield f"  {_waiting(clients):.0f} MB at most for {clients * MAX_PER_CLIENT:,} questions that wait for an upstream"


def node_cache_lines(part: int = 1) -> Iterator[str]:
    """Measure the memory of node caches by `-cache-octets`, a printed line each, with a formula.

    `part` divides all numbers, by 6 at most: no cache has fewer octets than the flag allows. Raises NoAnswer.
    """
    yield "MB of a node cache"
    full = []
    part = min(part, min(NODE_OCTETS) // LEAST_NODE_OCTETS)
    for octets in NODE_OCTETS:
        empty, resident = _node(octets // part, NODE_FULL // part)
        full.append(({_THING: octets // part / 1e6}, resident))
        yield f"  -cache-octets {octets // part}: {empty:.1f} empty, {resident:.1f} full"
    formula = fit((_THING,), full)
    yield f"  full: {formula.base:.1f} + {formula.each[_THING]:.2f} times the megabytes of -cache-octets"


def _kept(count: int) -> tuple[float, float]:
    """(Kilobytes of an answer in the cache, kilobytes of its ready-made copy)."""
    with _server() as (serving, peers):
        names = _names("kept", count)
        before = serving.resident
        serving.ask(peers, names)
        kept = serving.resident
        for _ in range(2):  # the packet cache keeps a reply made of a cached answer the second time
            serving.ask(peers, names)
        return (kept - before) * 1e3 / count, (serving.resident - kept) * 1e3 / count


def _connections(count: int) -> float:
    with _server() as (serving, _), ExitStack() as stack:
        before = serving.resident
        for number in range(count):
            source = (f"127.0.{number // LIMITS.per_prefix}.{2 + number // LIMITS.per_address}", 0)
            stack.enter_context(socket.create_connection(("127.0.0.1", serving.port), source_address=source))
        return serving.resident - before


def _waiting(clients: int) -> float:
    """The peak of memory in megabytes while so many clients have as many queries waiting as each may have.

    The upstream never answers.
    """
    with socket.socket(type=socket.SOCK_DGRAM) as silent, ExitStack() as stack:
        silent.bind(("127.0.0.1", 0))
        serving, _ = stack.enter_context(_server(silent.getsockname()[1]))
        before = serving.resident
        for client in range(clients):
            sock = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            sock.bind((f"127.0.0.{2 + client}", 0))
            for name in _names(f"client{client}", MAX_PER_CLIENT):
                sock.sendto(Question(_CLIENT, name).message, ("127.0.0.1", serving.port))
        wait_until_quiet((serving.pid,), SETTLED_WITHIN)
        return peak_megabytes(serving.pid) - before


def _node(octets: int, count: int) -> tuple[float, float]:
    """(Megabytes of a node cache with an empty cache, megabytes with a full one)."""
    with tempfile.TemporaryDirectory(prefix="topodns-bench-") as folder, outside() as peers:
        command, port = _node_command(Path(folder), peers.upstream_port, octets)
        with _started(command, port, Path(folder)) as serving:
            empty = serving.resident
            for origin in ORIGINS:
                for rtype in (RRType.A, RRType.AAAA):
                    for _ in range(3):
                        serving.ask(peers, _names(TYPE_NAMES[rtype].lower(), count, origin), rtype)
            return empty, serving.resident


def _node_command(folder: Path, upstream: int, octets: int) -> tuple[Command, int]:
    """(The command of a node cache without a link and rules, its port)."""
    port, capacities = free_port(), "{\n        success 99840\n        denial 99840\n    }"
    template = (
        node_template()
        .replace(":53 {", f":{port} {{")
        .replace("    loop\n", "")
        .replace("success 9984", "success 99840")
        .replace("denial 9984", "denial 99840")
        .replace("cache 30\n", f"cache 30 {capacities}\n")
        .replace("prometheus :9253", f"prometheus 127.0.0.1:{free_port()}")
        .replace("__PILLAR__LOCAL__DNS__:8080", f"__PILLAR__LOCAL__DNS__:{free_port()}")
        .replace("__PILLAR__CLUSTER__DNS__", f"127.0.0.1:{upstream}")
        .replace("__PILLAR__UPSTREAM__SERVERS__", f"127.0.0.1:{upstream}")
    )
    path = folder / "template"
    path.write_text(template)
    return node_cache_command(path, port, f"-cache-octets={octets}"), port


@contextmanager
def _server(upstream: int = 0) -> Iterator[tuple[Serving, Outside]]:
    """(A server without a cluster, the clients and its upstream). `upstream`: another port to forward to; 0: none."""
    with tempfile.TemporaryDirectory(prefix="topodns-bench-") as folder, outside() as peers:
        corefile, port = Path(folder) / "Corefile", free_port()
        corefile.write_text(_COREFILE.format(upstream=upstream or peers.upstream_port))
        with _started(server_command(corefile, port), port, Path(folder)) as serving:
            yield serving, peers


@contextmanager
def _started(command: Command, port: int, folder: Path) -> Iterator[Serving]:
    with running(command, cores()[0]) as process:
        wait_for_answer(process, port, Question(_CLIENT, "version.bind").message)
        yield Serving(process.pid, port, folder)


def _names(prefix: str, count: int, origin: str = "example.com") -> list[str]:
    return [f"{prefix}-{number:06}.{origin}" for number in range(count)]
