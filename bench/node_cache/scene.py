"""A node, a pod and its queries, two servers of the cluster DNS behind a kube-proxy, and instances of a node cache."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.node_cache.instance import LINK, Instance, InstanceFiles, Subject, template, wait_for
from bench.proc import NoAnswer
from tests.support.dns_messages import query
from tests.support.namespaced_cluster import UPSTREAM_SERVICE, NodeScene, node_scene
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace, namespace
from tests.support.node_processes import ClusterServer, cluster_dns
from tests.support.stub_resolver_load import Outcome, Question, asking, fresh_names

RATE: Final = 1_000.0  # queries a second of a pod
START_PATIENCE: Final = 30.0  # seconds

_HOT: Final = tuple(islice(fresh_names(), 50))
_AT_ONCE: Final = 0.02  # seconds for the answer to a query that is repeated until it is answered

_counter = count(1)


class Scene:
    """The node of one subject, and the subject's instances, one after the other or two at a time."""

    def __init__(self, subject: Subject, around: NodeScene, servers: tuple[ClusterServer, ...], folder: Path) -> None:
        self.subject, self.around, self.servers, self.folder = subject, around, servers, folder
        self.node, self.pod = around.node.namespace, around.pod
        self.makes_link = not subject.is_original or _has_dummy()
        self._instances = ExitStack()

    def start(self, text: str = "", upstream: str = UPSTREAM_SERVICE[4]) -> Instance:
        """Start an instance with this template, "" for the default one, and this address of the cluster DNS."""
        if not self.makes_link and LINK not in self.node.run("ip", "-br link"):
            self.node.run("ip", f"link add {LINK} type bridge")
        files = InstanceFiles(self.folder / f"instance-{next(_counter)}")
        files.write_template(text or template())
        with self.node.entered(), files.log.open("wb") as output:
            process = subprocess.Popen(
                self.subject.command(files), stdout=output, stderr=subprocess.STDOUT, cwd=files.folder,
                env={**os.environ, "KUBE_DNS_UPSTREAM_SERVICE_HOST": upstream}, start_new_session=True,
            )  # fmt: skip
        instance = Instance(process, files)
        self._instances.callback(instance.kill)
        return instance

    @contextmanager
    def serving(self) -> Iterator[Instance]:
        """An instance that answers the pod's queries; it is killed at the end of the context."""
        instance = self.start()
        try:
            self.wait_until_serving(instance)
            yield instance
        finally:
            instance.kill()
            self.clean()

    def wait_until_serving(self, instance: Instance) -> None:
        """Return once the rules exist and the pod gets answers at both addresses. Raises NoAnswer."""
        for condition in (
            instance.has_pid_file,
            lambda: self.subject.rules(self.node),
            lambda: answers(self.pod, LINK_LOCAL[4]) and answers(self.pod, CLUSTER_DNS[4]),
        ):
            if wait_for(condition, START_PATIENCE) is None:
                raise NoAnswer(f"does not serve: {instance.log_tail()}")

    def clean(self) -> None:
        """Remove the link and the rules that a killed instance has left."""
        with suppress(subprocess.CalledProcessError):
            self.node.run("ip", f"link del {LINK}")
        with suppress(subprocess.CalledProcessError):
            self.node.run("nft", "delete table inet topodns")
        for table in ("raw", "filter"):
            saved = self.node.run("iptables-save", f"-t {table}").splitlines()
            rules = [line.replace("-A", "-D", 1) for line in saved if line.startswith("-A") and _is_a_caches(line)]
            chains = [f"-X {line[1:].split()[0]}" for line in saved if line.startswith(":TOPODNS")]
            self.node.run("iptables-restore", "--noflush -w 5", "\n".join((f"*{table}", *rules, *chains, "COMMIT", "")))

    def close(self) -> None:
        self._instances.close()


@contextmanager
def scene(subject: Subject, with_servers: bool = True) -> Iterator[Scene]:
    """A scene of this subject, with both servers of the cluster DNS or with none."""
    with TemporaryDirectory(prefix="topodns-bench-") as name, node_scene("node-b2") as around, ExitStack() as stack:
        folder = Path(name)
        servers = stack.enter_context(cluster_dns(around, folder)) if with_servers else ()
        made = Scene(subject, around, servers, folder)
        stack.callback(made.close)
        yield made


def _is_a_caches(rule: str) -> bool:
    return "NodeLocal DNS Cache" in rule or "topodns" in rule.lower()


def _has_dummy() -> bool:
    """Whether this kernel has links of type dummy, the only ones that NodeLocal DNSCache makes."""
    with namespace("probe") as probe, suppress(subprocess.CalledProcessError):
        probe.run("ip", "link add probe type dummy")
        return True
    return False


def hot() -> Iterator[Question]:
    """The same 50 queries, repeated without end."""
    return cycle(_HOT)


def ask_all(pod: Namespace, server: str, questions: Sequence[Question]) -> Outcome:
    """Send each query once, at RATE, from the pod to this server (an IPv4 address); the results."""
    with asking(pod, (server,), RATE, lambda: cycle(questions)) as outcome:
        while len(outcome.asked) < len(questions):
            time.sleep(0.01)
    return Outcome(outcome.asked[: len(questions)])


def outage(outcome: Outcome, moment: float) -> float | None:
    """Seconds from `moment` (monotonic) to the last failed query: 0.0 if none failed, None if none later succeeded."""
    last = max((each.sent for each in outcome.asked if not each.right), default=moment)
    return max(0.0, last - moment) if outcome.right_after(last) else None


def answers(where: Namespace, server: str) -> bool:
    """Whether a query from this namespace to this server gets the right answer within 20 ms."""
    with where.entered(), socket.socket(type=socket.SOCK_DGRAM) as sock, suppress(OSError):
        sock.settimeout(_AT_ONCE)
        sock.connect((server, 53))
        sock.send(query(f"{_HOT[0].name} A"))
        return sock.recv(4096).endswith(socket.inet_aton(_HOT[0].right))
    return False
