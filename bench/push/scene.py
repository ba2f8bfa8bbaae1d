"""The cluster that changes, its server, and two node caches of one node: with `push`, and with TTLs alone."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from socket import inet_aton
from typing import Final

from bench.proc import NoAnswer, free_port, pinned_to, running, wait_for_answer
from bench.programs import node_cache_command, server_command
from bench.questions import Question
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


@contextmanager
def server(directory: Path, api: FakeApi, core: int, ttl: int) -> Iterator[Program]:
    """The cluster DNS, alone on its core, once it knows the cluster."""
    port, metrics = free_port(), free_port()
    corefile = directory / "Corefile"
    corefile.write_text(_COREFILE.format(host=HOST, url=api.url, ttl=ttl, metrics=metrics))
    with running(server_command(corefile, port), core) as process:
        wait_for_answer(process, port, query(0), PATIENCE, with_records=True, address=HOST)
        yield Program(process, HOST, port, metrics)


@contextmanager
def node_cache(directory: Path, upstream: Program, push: bool, core: int, ttl: int) -> Iterator[Program]:
    """A node cache of the first node."""
    directory.mkdir()
    address, port, metrics = f"127.62.2.{1 + push}", free_port(), free_port()
    template = directory / "template"
    template.write_text(
        _TEMPLATE.format(
            port=port, ttl=ttl, push="push" if push else "", server=upstream.port, source=node_address(0),
            address=address, metrics=metrics,
        )
    )  # fmt: skip
    command = node_cache_command(template, port, "-nodename=n0", address=address, server=upstream.address)
    with running(command, core) as process:
        wait_for_answer(process, port, query(0), PATIENCE, address=address)
        yield Program(process, address, port, metrics)


@cache
def query(number: int) -> bytes:
    """The A query for a Service, with its number as the message's id."""
    question = Question(inet_aton("127.0.0.1"), query_name(number))
    return number.to_bytes(2, "big") + question.message[2:]


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
