"""A node with a pod and two cluster DNS servers behind a kube-proxy, and node caches that live and die on it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.node_cache.names import SERVER, question
from bench.node_cache.pod import is_answered
from bench.node_cache.subjects import LINK, UPSTREAM_SERVICE, UPSTREAMS, Place, Subject, environment, template
from bench.proc import NoAnswer
from tests.support.namespaces import CLUSTER_DNS, LINK_LOCAL, Namespace, World, namespace, world

START_PATIENCE: Final = 30.0  # seconds
STOP_PATIENCE: Final = 20.0

_BEYOND: Final = "10.50.0.2"
_LOOK: Final = 0.002  # seconds between two looks at something that is waited for
_counter = count(1)


def wait_for(condition: Callable[[], object], patience: float) -> float | None:
    """Seconds until it holds; None where it does not within `patience`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + patience:
            return None
        time.sleep(_LOOK)
    return time.monotonic() - began


class Life:
    """A node cache that was started. `pid` is the process that answers, not its supervisor."""

    def __init__(self, process: subprocess.Popen[bytes], place: Place) -> None:
        self._process, self.place = process, place

    @property
    def pid(self) -> int:
        return next(iter(children(self._process.pid)), self._process.pid)

    @property
    def supervisor(self) -> int | None:
        return self._process.pid if self.pid != self._process.pid else None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def says_that_it_serves(self) -> bool:
        if self._process.poll() is not None:
            raise NoAnswer(f"ended with {self._process.returncode}: {self.last_words()}")
        return self.place.pid_file.exists()

    def stop(self) -> float:
        """End as the kubelet ends it; the seconds that it takes. Raises NoAnswer."""
        began = time.monotonic()
        self._process.terminate()
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"does not stop: {self.last_words()}") from None
        return time.monotonic() - began

    def last_words(self) -> str:
        """The end of its log."""
        return "\n".join(self.place.log.read_text().splitlines()[-5:])

    def end(self) -> None:
        """However it is."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Scene:
    """One world, one subject, and its lives, one after the other or two at a time."""

    def __init__(self, subject: Subject, around: World, folder: Path, stack: ExitStack) -> None:
        self.subject, self.node, self.pod, self.cluster = subject, around.node, around.pod, around.cluster
        self.makes_link = not subject.is_original or _has_dummy()
        self.folder = folder
        self._stack = stack
        self._servers: dict[str, subprocess.Popen[bytes]] = {}

    def start_upstream(self, address: str) -> None:
        """Return when it answers. Raises NoAnswer."""
        corefile = self.folder / f"Corefile-{address}"
        corefile.write_text(SERVER.format(address=address))
        command: Sequence[str | Path] = (sys.executable, "-m", "topodns", "-conf", corefile)
        process = self._start(self.cluster, command, self.folder / f"log-{address}", {})
        self._servers[address] = process
        if wait_for(lambda: answers(self.cluster, address), START_PATIENCE) is None:
            raise NoAnswer(f"the server {address} does not answer")

    def stop_upstream(self, address: str, number: signal.Signals = signal.SIGTERM) -> None:
        """Return when it is gone."""
        server = self._servers[address]
        server.send_signal(number)
        server.wait(STOP_PATIENCE)

    def start(self, text: str = "", upstream: str = UPSTREAM_SERVICE) -> Life:
        """A node cache, just started, with this template."""
        if not self.makes_link and LINK not in self.node.run("ip", "-br link"):
            self.node.run("ip", f"link add {LINK} type bridge")
        place = Place(self.folder / f"life-{next(_counter)}")
        place.write_template(text or template())
        process = self._start(self.node, self.subject.command(place), place.log, environment(upstream))
        return Life(process, place)

    @contextmanager
    def serving(self) -> Iterator[Life]:
        """A node cache at which the rules lead the pod's questions; it is ended in the end, however it is."""
        life = self.start()
        try:
            self.wait_until_serving(life)
            yield life
        finally:
            life.end()
            self.clean()

    def wait_until_serving(self, life: Life) -> None:
        """Raises NoAnswer."""
        for condition in (
            life.says_that_it_serves,
            lambda: self.subject.rules(self.node),
            lambda: answers(self.pod, LINK_LOCAL[4]) and answers(self.pod, CLUSTER_DNS[4]),
        ):
            if wait_for(condition, START_PATIENCE) is None:
                raise NoAnswer(f"does not serve: {life.last_words()}")

    def leftovers(self) -> list[str]:
        """What a node cache made and did not take away: links, tables, chains and rules."""
        found = [line for line in self.node.run("ip", "-br link").splitlines() if line.startswith(LINK)]
        found += [line for line in self.node.run("nft", "list tables").splitlines() if "topodns" in line]
        saved = self.node.run("iptables-save", "").splitlines()
        return found + [line for line in saved if "NodeLocal" in line or "TOPODNS" in line]

    def clean(self) -> None:
        """Take away what a killed one left."""
        left = self.leftovers()
        if any(line.startswith(LINK) for line in left):
            self.node.run("ip", f"link del {LINK}")
        if any("topodns" in line for line in left if line.startswith("table")):
            self.node.run("nft", "delete table inet topodns")
        for table in ("raw", "filter"):
            self.node.run("iptables", f"-t {table} -F")
            self.node.run("iptables", f"-t {table} -X")

    def _start(
        self, where: Namespace, command: Sequence[str | Path], log: Path, environ: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        with where.entered(), log.open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent, env={**os.environ, **environ},
                start_new_session=True,
            )  # fmt: skip
        self._stack.callback(_end_group, process)
        return process


@contextmanager
def scene(subject: Subject, with_servers: bool = True) -> Iterator[Scene]:
    """With both servers of the cluster DNS, which its address and that for node caches lead to by chance."""
    with TemporaryDirectory(prefix="topodns-bench-") as folder, world() as around, ExitStack() as stack:
        for address in UPSTREAMS:
            around.cluster.run("ip", f"addr add {address}/24 dev eth0")
        around.node.run("ip", f"route add default via {_BEYOND}")  # where the addresses of Services seem to be
        around.node.run("iptables", "-t nat -F")  # the world's own cluster DNS does not speak DNS
        around.node.run("iptables-restore", "--noflush", _kube_proxy())
        made = Scene(subject, around, Path(folder), stack)
        for address in UPSTREAMS if with_servers else ():
            made.start_upstream(address)
        yield made


def answers(where: Namespace, server: str) -> bool:
    """Whether a question there is answered at once, and rightly."""
    return is_answered(where, server, question(0, 30))


def children(pid: int) -> list[int]:
    """Of its first thread."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _has_dummy() -> bool:
    """Whether this kernel has links of type dummy, the only ones that NodeLocal DNSCache makes."""
    with namespace("probe") as probe, suppress(subprocess.CalledProcessError):
        probe.run("ip", "link add probe type dummy")
        return True
    return False


def _kube_proxy() -> str:
    """What kube-proxy in iptables mode comes to, for two Services that have the two servers behind them."""
    first, second = UPSTREAMS
    lines = [
        f"-A {chain} -d {service} -p {protocol} -m {protocol} --dport 53 {chance}-j DNAT --to-destination {backend}:53"
        for service in (CLUSTER_DNS[4], UPSTREAM_SERVICE)
        for chain in ("PREROUTING", "OUTPUT")
        for protocol in ("udp", "tcp")
        for chance, backend in (("-m statistic --mode random --probability 0.5 ", first), ("", second))
    ]
    return "\n".join(("*nat", *lines, "-A POSTROUTING -o out0 -j MASQUERADE", "COMMIT", ""))
