"""A node with a pod and two servers of the cluster DNS behind a kube-proxy, and node caches that live and die on it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.node_cache.life import Life, Place, wait_for
from bench.node_cache.pod import answers
from bench.node_cache.subjects import LINK, Subject, template
from bench.proc import NoAnswer
from tests.support.namespaced_cluster import UPSTREAM_SERVICE, NodeScene, node_scene
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, namespace
from tests.support.node_processes import ClusterServer, cluster_dns

START_PATIENCE: Final = 30.0  # seconds

_counter = count(1)


class Scene:
    """One world, one subject, and its lives, one after the other or two at a time."""

    def __init__(self, subject: Subject, around: NodeScene, servers: tuple[ClusterServer, ...], folder: Path) -> None:
        self.subject, self.around, self.servers, self.folder = subject, around, servers, folder
        self.node, self.pod = around.node.namespace, around.pod
        self.makes_link = not subject.is_original or _has_dummy()
        self._lives = ExitStack()

    def start(self, text: str = "", upstream: str = UPSTREAM_SERVICE[4]) -> Life:
        """A node cache, just started, with this template, or with the default one."""
        if not self.makes_link and LINK not in self.node.run("ip", "-br link"):
            self.node.run("ip", f"link add {LINK} type bridge")
        place = Place(self.folder / f"life-{next(_counter)}")
        place.write_template(text or template())
        with self.node.entered(), place.log.open("wb") as output:
            process = subprocess.Popen(
                self.subject.command(place), stdout=output, stderr=subprocess.STDOUT, cwd=place.folder,
                env={**os.environ, "KUBE_DNS_UPSTREAM_SERVICE_HOST": upstream}, start_new_session=True,
            )  # fmt: skip
        life = Life(process, place)
        self._lives.callback(life.end)
        return life

    @contextmanager
    def serving(self) -> Iterator[Life]:
        """A node cache to which the pod's questions are led; in the end it is ended, however it is."""
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

    def clean(self) -> None:
        """Take away what a killed one left."""
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
        self._lives.close()


@contextmanager
def scene(subject: Subject, with_servers: bool = True) -> Iterator[Scene]:
    """With both servers of the cluster DNS, or with none."""
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
