"""The memory of a node cache, empty and full, and its CPU time per answer.

The program that queries it is on the node, is also its upstream, and never sleeps (`outside.c`).
"""

import http.client
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Final

from bench.node_cache.figures import Figures, Line
from bench.node_cache.instance import Instance, template, wait_for
from bench.node_cache.scene import START_PATIENCE, Scene
from bench.outside import Outside, outside
from bench.proc import NoAnswer, cpu_seconds, pinned_to, resident_megabytes, waiting_seconds
from bench.questions import Question, write_questions
from tests.support.namespaced_node import LINK_LOCAL
from topodns.dns.rrtype import TYPE_NAMES, RRType

FULL: Final = 9_984  # entries of the default cache, for answers with records and for those without, in each block
SETTLING: Final = 1.0  # seconds between the first answer and the measurement
AGAIN: Final = 20_000  # queries for one cached name
ORIGINS: Final = ("cluster.local", "in-addr.arpa", "ip6.arpa", "example.com")  # one for each block of the template
NEVER_ASKED: Final = 10_000  # names
WARM_UP: Final = 500

_NODE: Final = socket.inet_aton("10.60.1.1")
_MEMORY: Final = "MB resident (VmRSS)"
_CPU: Final = "CPU, us per answer"
_METRICS: Final = 9253


def memory(scene: Scene, figures: Figures, core: int) -> None:
    """With the default template: after the start, and after FULL queries of each sort in every block."""
    with _serving(scene, core) as (instance, peers):
        figures.note(Line(_MEMORY, "empty", "<= 36"), resident_megabytes(instance.pid))
        for questions in _fill(scene.folder):
            _ask(peers, questions)
        figures.note(Line(_MEMORY, "full", "<= 43"), resident_megabytes(instance.pid))
        figures.note(Line(_MEMORY, "full: entries"), _entries(scene))
        if instance.supervisor is not None:
            figures.note(Line(_MEMORY, "its supervisor"), resident_megabytes(instance.supervisor))


def cpu(scene: Scene, figures: Figures, core: int) -> None:
    """Microseconds of CPU, user and kernel, per answer: of new names over TCP, and of one cached name."""
    chance = Random(1)
    names = ["".join(chance.choices(ascii_lowercase, k=12)) + ".cluster.local" for _ in range(WARM_UP + NEVER_ASKED)]
    first = _write(scene.folder / "first", names[:WARM_UP])
    never_asked = _write(scene.folder / "never-asked", names[WARM_UP:])
    cached = _write(scene.folder / "cached", names[:1] * AGAIN)
    with _serving(scene, core) as (instance, peers):
        for before, measured, line in (
            (first, never_asked, Line(_CPU, "forwarded over TCP", "<= 17")),
            (cached, cached, Line(_CPU, "cached", "<= 6")),
        ):
            _ask(peers, before)
            spent, waited = cpu_seconds(instance.pid), waiting_seconds(instance.pid)
            answers = _ask(peers, measured)
            figures.note(line, (cpu_seconds(instance.pid) - spent) * 1e6 / answers)
            figures.note(Line(_CPU, "seconds its core was taken", "0"), waiting_seconds(instance.pid) - waited)


@contextmanager
def _serving(scene: Scene, core: int) -> Iterator[tuple[Instance, Outside]]:
    """A node cache on this core, and the program that queries it and is its only upstream."""
    with scene.node.entered(), outside() as peers:
        text = template(f"127.0.0.1:{peers.upstream_port}").replace(
            "__PILLAR__CLUSTER__DNS__", f"__PILLAR__CLUSTER__DNS__:{peers.upstream_port}"
        )
        with pinned_to(core):
            instance = scene.start(text, "127.0.0.1")
        try:
            if wait_for(lambda: instance.has_pid_file() and scene.subject.rules(scene.node), START_PATIENCE) is None:
                raise NoAnswer(f"does not serve: {instance.log_tail()}")
            time.sleep(SETTLING)
            yield instance, peers
        finally:
            instance.kill()
            scene.clean()


def _ask(peers: Outside, questions: Path) -> int:
    """Send all queries of the file; the number of answers. Raises NoAnswer if more than one in a hundred is lost."""
    outcome = peers.ask(53, questions, LINK_LOCAL[4])
    if outcome.lost > outcome.answers // 100:
        raise NoAnswer(f"{outcome.lost} questions lost, {outcome.answers} answered")
    return outcome.answers


def _fill(folder: Path) -> Iterator[Path]:
    """Files of questions that fill the caches: names with an address, then names without."""
    for origin in ORIGINS:
        for rtype in (RRType.A, RRType.AAAA):
            names = [f"{TYPE_NAMES[rtype].lower()}-{number}.{origin}" for number in range(FULL)]
            yield _write(folder / f"{TYPE_NAMES[rtype]}-{origin}", names, rtype)


def _write(path: Path, names: Sequence[str], rtype: int = RRType.A) -> Path:
    return write_questions(path, (Question(_NODE, name, rtype) for name in names))


def _entries(scene: Scene) -> float:
    """The entries by the metrics, at the address queried: a cache with several addresses may be counted for each."""
    with scene.node.entered():
        connection = http.client.HTTPConnection("127.0.0.1", _METRICS, timeout=5)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
    asked = (line for line in lines if line.startswith("coredns_cache_entries{") and LINK_LOCAL[4] in line)
    return sum(float(line.split()[-1]) for line in asked)
