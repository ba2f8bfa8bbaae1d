"""The cluster that changes, its server, and two node caches of one node: with `push`, and with TTLs alone."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.proc import NoAnswer, free_port, pinned_to, running
from tests.support.api_objects import Object, endpoint_slice, namespace, node, service
from tests.support.fake_api.server import FakeApi

NODES: Final = 100
KEYS: Final = "topology.kubernetes.io/zone,*"
TTL: Final = 30  # seconds, unless the run is a quick one
HOST: Final = "127.62.0.1"  # of the server
PATIENCE: Final = 60.0  # seconds for each condition before the measurement

_COREFILE: Final = """\
cluster.local {{
    bind {host}
    errors
    kubernetes cluster.local {{
        endpoint {url}
        ttl {ttl}
    }}
    topology
    push
    prometheus {host}:{metrics}
    ready {host}:{ready}
}}
"""
# As the chart's, without the parts that need a node's network.
_TEMPLATE: Final = """\
cluster.local:{port} {{
    errors
    cache {{
        success 9984 {ttl}
        denial 9984 5
        {push}
    }}
    bind __PILLAR__LOCAL__DNS__
    forward . __PILLAR__CLUSTER__DNS__:{server} {{
        force_tcp
        source_address {source}
    }}
    prometheus {address}:{metrics}
}}
"""


def node_address(number: int) -> str:
    return f"127.62.1.{number + 1}"


def service_name(number: int) -> str:
    return f"web{number}"


def query_name(number: int) -> str:
    return f"{service_name(number)}.default.svc.cluster.local"


def slice_of(number: int, address: str) -> Object:
    """Two endpoints: one with this address, in the zone of the caches, and one in the other zone, always the same."""
    return endpoint_slice(service_name(number), {address: "n0", f"10.255.{number >> 8}.{number & 255}": "n1"})


def cluster(services: int) -> Iterator[Object]:
    """Headless Services, every second one with topology keys; nodes in two topology zones."""
    yield namespace("default")
    for number in range(NODES):
        yield node(f"n{number}", "ab"[number % 2], node_address(number))
    for number in range(services):
        yield service(service_name(number), keys=KEYS if number % 2 else "")
        yield slice_of(number, f"10.0.0.{number % 250}")


@dataclass(frozen=True)
class Program:
    """A running topodns. `address` and `port`: where it answers DNS. `metrics`: the port of /metrics."""

    process: subprocess.Popen[str]
    address: str
    port: int
    metrics: int

    def metric(self, name: str) -> float:
        """The sum of the samples of this metric."""
        with urllib.request.urlopen(f"http://{self.address}:{self.metrics}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


def until(condition: Callable[[], bool], what: str, pause: float = 0.05) -> None:
    """Return once the condition holds. Raises NoAnswer after PATIENCE seconds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise NoAnswer(f"not within {PATIENCE:g} s: {what}")
        time.sleep(pause)


@contextmanager
def server(directory: Path, api: FakeApi, core: int, ttl: int) -> Iterator[Program]:
    """The cluster DNS, alone on its core, once it is ready."""
    port, metrics, ready = free_port(), free_port(), free_port()
    corefile = directory / "Corefile"
    corefile.write_text(_COREFILE.format(host=HOST, url=api.url, ttl=ttl, metrics=metrics, ready=ready))
    command = (sys.executable, "-m", "topodns", "-conf", corefile, "-dns.port", str(port))
    with running(command, core) as process:
        program = Program(process, HOST, port, metrics)
        until(lambda: _is_ready(ready, process), "/ready of the server")
        yield program


def _is_ready(port: int, process: subprocess.Popen[str]) -> bool:
    if process.poll() is not None:
        assert process.stderr is not None
        raise NoAnswer(f"the server has ended: {process.stderr.read()}")
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/ready", timeout=1):
            return True
    except OSError:
        return False


@contextmanager
def node_cache(directory: Path, upstream: Program, push: bool, core: int, ttl: int) -> Iterator[Program]:
    """A node cache of the first node."""
    directory.mkdir()
    address, port, metrics = f"127.62.2.{1 + push}", free_port(), free_port()
    option = "push" if push else ""
    (directory / "Corefile.base").write_text(
        _TEMPLATE.format(
            port=port, ttl=ttl, push=option, server=upstream.port, source=node_address(0), address=address,
            metrics=metrics,
        )
    )  # fmt: skip
    command = (
        *(sys.executable, "-m", "topodns", "node-cache", f"-localip={address}", "-setupinterface=false"),
        *("-setupiptables=false", f"-dns.port={port}", f"-basecorefile={directory}/Corefile.base"),
        *(f"-conf={directory}/Corefile", f"-kubednscm={directory}/kube-dns", "-nodename=n0"),
        "-upstreamsvc=kube-dns-upstream",
        f"-metrics-listen-address={address}:{free_port()}",
    )
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = upstream.address
    try:
        started = running(command, core)
        with started as process:
            program = Program(process, address, port, metrics)
            until(lambda: _answers(program), "an answer of the node cache")
            yield program
    finally:
        os.environ.pop(_VARIABLE) if before is None else os.environ.update({_VARIABLE: before})


_VARIABLE: Final = "KUBE_DNS_UPSTREAM_SERVICE_HOST"


def _answers(program: Program) -> bool:
    if program.process.poll() is not None:
        assert program.process.stderr is not None
        raise NoAnswer(f"the node cache has ended: {program.process.stderr.read()}")
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.5)
        sock.connect((program.address, program.port))
        try:
            sock.send(question(query_name(0)))
            return bool(sock.recv(512))
        except OSError:
            return False


def question(name: str, ident: int = 1) -> bytes:
    """An A query."""
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split("."))
    return ident.to_bytes(2, "big") + b"\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"


@dataclass(frozen=True)
class Sessions:
    """The process of `bench.push.sessions`, with the sessions of all other node caches."""

    process: subprocess.Popen[str]

    def line(self) -> str:
        """The next line of its output. Raises NoAnswer if it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise NoAnswer("the process of the sessions has ended")
        return line.strip()

    def subscribe(self) -> int:
        """Let all sessions subscribe. Returns the number of refused subscriptions. Raises NoAnswer."""
        assert self.process.stdin is not None
        print(file=self.process.stdin, flush=True)
        return int(self.line().removeprefix("subscribed "))

    def stop(self) -> int:
        """End the process. Returns the number of PUSH messages since `subscribe`. Raises NoAnswer."""
        self.process.terminate()
        return int(self.line())


@contextmanager
def sessions(upstream: Program, number: int, names: Sequence[str], core: int) -> Iterator[Sessions]:
    """`number` connected sessions, each from the address of a node, without the first node."""
    sources = ",".join(node_address(each) for each in range(1, number + 1))
    command = (
        *(sys.executable, "-m", "bench.push.sessions", upstream.address),
        *(str(upstream.port), sources, ",".join(names)),
    )
    with pinned_to(core):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        made = Sessions(process)
        made.line()
        yield made
    finally:
        process.terminate()
        process.communicate(timeout=10)
