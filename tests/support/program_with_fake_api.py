"""The whole program on a fake API server: two nodes in two topology zones, a Service of each sort.

`front` has a ClusterIP, `plain` is headless, `near` follows the topology zone. A client with a node's address is there.
"""

import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.answer_checker import Promise, Witness, promise
from tests.support.api_objects import Object, endpoint_slice, namespace, node, service
from tests.support.event_loops import PATIENCE
from tests.support.fake_api.server import FakeApi, running
from tests.support.server_process import READY, Server, own_address, serving, until

IN_A, IN_B = "127.61.0.1", "127.61.0.2"  # the nodes n1 and n2
FRONT, PLAIN, NEAR = (f"{name}.default.svc.cluster.local A" for name in ("front", "plain", "near"))
ALWAYS: Final = (
    promise(FRONT, "10.96.0.1"),
    promise(PLAIN, "10.61.1.2", "10.61.2.2"),
    promise(NEAR, "10.61.1.1", "10.61.2.1"),
)

DEFAULT, N1, N2 = namespace("default"), node("n1", "a", IN_A), node("n2", "b", IN_B)
FRONT_SERVICE = service("front", cluster_ip="10.96.0.1")
NEAR_SLICE = endpoint_slice("near", {"10.61.1.1": "n1", "10.61.2.1": "n2"})
PLAIN_SLICE = endpoint_slice("plain", {"10.61.1.2": "n1", "10.61.2.2": "n2"})
CLUSTER: Final[Sequence[Object]] = (
    DEFAULT,
    N1,
    N2,
    FRONT_SERVICE,
    service("near", keys="topology.kubernetes.io/zone"),
    NEAR_SLICE,
    service("plain"),
    PLAIN_SLICE,
)

_COREFILE: Final = """
ORIGINS {
    bind HERE
    health HERE:8080
    ready HERE:8181 {
        monitor continuously
    }
    prometheus HERE:9153
    kubernetes {
        SOURCE
        OPTIONS
    }
    topology {
        locate METHODS MORE
    }
    DIRECTIVES
}
"""


@dataclass
class Scene:
    """`witness` asks all the time, from node n1."""

    api: FakeApi
    server: Server
    witness: Witness = field(init=False)

    def data(self, question: str, source: str = IN_A) -> list[str]:
        """The sorted addresses, or else the RCODE alone."""
        reply = self.server.ask(question, source)
        return reply.data if reply.rcode == "NOERROR" else [reply.rcode]

    def comes(self, question: str, *expected: str, source: str = IN_A, patience: float = PATIENCE) -> None:
        """Wait for this answer."""
        until(
            lambda: self.data(question, source) == list(expected),
            f"{question}: {expected}; there is {self.data(question, source)}\n{self.server.output()}",
            patience,
        )

    def metric(self, name: str, **labels: str) -> float:
        return self.server.metric(name, **labels)

    def shows(self, name: str, value: float = 1.0, **labels: str) -> None:
        """Wait for a metric to be at least this."""
        until(lambda: self.metric(name, **labels) >= value, f"{name}{labels} >= {value}\n{self.server.output()}")

    def ready(self) -> tuple[int, str]:
        return self.server.get("/ready", READY)

    def is_ready(self, patience: float = PATIENCE) -> None:
        until(lambda: self.ready()[0] == 200, f"/ready; it says {self.ready()}", patience)


@contextmanager
def scene(
    directory: Path,
    *more: Object,
    promises: Iterable[Promise] = ALWAYS,
    source: str = "endpoint URL",
    options: str = "",
    origins: str = "cluster.local",
    locate: str = "",
    methods: str = "nodes podcidr slices",
    directives: str = "",
    prepare: Callable[[FakeApi], None] = lambda api: None,
    synced: bool = True,
    tls: ssl.SSLContext | None = None,
    tries: int = 1,
    patience: float = PATIENCE,
) -> Iterator[Scene]:
    """A server that knows the cluster, or one that does not (`synced`); `prepare` comes before its first request.

    `tries`: of each question of the witness. `patience`: seconds until it has to be ready.
    """
    with running((*CLUSTER, *more), own_address(), tls=tls) as api:
        prepare(api)
        text = _COREFILE
        words = {"ORIGINS": origins, "SOURCE": source, "OPTIONS": options, "DIRECTIVES": directives}
        words |= {"METHODS": methods, "MORE": locate}
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        with serving(directory, text.replace("URL", api.url)) as server:
            there = Scene(api, server)
            with Witness(server, tuple(promises), IN_A, tries) as there.witness:
                if synced:
                    there.is_ready(patience)
                    there.witness.synced = True
                yield there
