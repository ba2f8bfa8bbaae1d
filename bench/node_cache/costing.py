"""What a node cache costs: memory, empty and full, and CPU time per answer."""

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Final

from bench.node_cache.figures import Figures, Line
from bench.node_cache.names import ORIGINS, question
from bench.node_cache.scene import Scene, wait_for
from bench.node_cache.subjects import template
from bench.outside import Outside, outside
from bench.proc import NoAnswer, cpu_seconds, pinned_to, resident_megabytes
from bench.questions import Question, write_questions
from tests.support.namespaces import CLUSTER_DNS, LINK_LOCAL

FULL: Final = 9_984  # entries of the default cache, for answers with records and for those without, in each block
SETTLING: Final = 1.0  # seconds
AGAIN: Final = 20_000  # how often a cached name is asked for
NEVER_ASKED: Final = 10_000  # names
WARM_UP: Final = 500

_POD: Final = socket.inet_aton("10.244.1.2")
_NODE: Final = socket.inet_aton("10.50.0.1")
_MEMORY: Final = "MB resident (VmRSS)"
_CPU: Final = "CPU, us per answer"
_METRICS: Final = 9253


def memory(scene: Scene, figures: Figures) -> None:
    """With the default template: after the start, and when every block's cache had more than it is to hold."""
    with scene.serving() as life:
        time.sleep(SETTLING)
        figures.note(Line(_MEMORY, "empty"), resident_megabytes(life.pid))
        with scene.pod.entered(), outside() as asker:
            for path in _fill(scene.folder):
                asker.ask(53, path, CLUSTER_DNS[4])
        figures.note(Line(_MEMORY, "full", "<= 40"), resident_megabytes(life.pid))
        figures.note(Line(_MEMORY, "full: entries"), _entries(scene))
        if life.supervisor is not None:
            figures.note(Line(_MEMORY, "its supervisor"), resident_megabytes(life.supervisor))


def cpu(scene: Scene, figures: Figures, core: int) -> None:
    """Asked on the node, by a program that is its upstream too and never sleeps."""
    with scene.node.entered(), outside() as world:
        text = template().replace("__PILLAR__CLUSTER__DNS__", f"__PILLAR__CLUSTER__DNS__:{world.upstream_port}")
        with pinned_to(core):
            life = scene.start(text, "127.0.0.1")
        try:
            if wait_for(lambda: life.says_that_it_serves() and scene.subject.rules(scene.node), 30.0) is None:
                raise NoAnswer(f"does not serve: {life.last_words()}")
            time.sleep(SETTLING)
            _measure(world, life.pid, scene.folder, figures)
        finally:
            life.end()
            scene.clean()


def _measure(world: Outside, pid: int, folder: Path, figures: Figures) -> None:
    chance = Random(1)
    names = ["".join(chance.choices(ascii_lowercase, k=12)) + ".cluster.local" for _ in range(NEVER_ASKED + WARM_UP)]
    hot = _write(folder / "hot", names[:1] * AGAIN)
    world.ask(53, _write(folder / "first", names[:WARM_UP]), LINK_LOCAL[4])
    _note(world, pid, _write(folder / "fresh", names[WARM_UP:]), figures, Line(_CPU, "forwarded over TCP", "<= 17"))
    world.ask(53, hot, LINK_LOCAL[4])
    _note(world, pid, hot, figures, Line(_CPU, "cached", "<= 6"))


def _note(world: Outside, pid: int, questions: Path, figures: Figures, line: Line) -> None:
    before = cpu_seconds(pid)
    outcome = world.ask(53, questions, LINK_LOCAL[4])
    if outcome.failed:
        raise NoAnswer(f"{outcome.failed} of {outcome.answers} without records")
    figures.note(line, (cpu_seconds(pid) - before) * 1e6 / outcome.answers)


def _fill(folder: Path) -> Iterator[Path]:
    """Files of names that fill the caches: first those that exist, then those that do not."""
    for origin in ORIGINS:
        there = (question(number, 30, origin).name for number in range(FULL))
        missing = (f"missing-{number}.{origin}" for number in range(FULL))
        for kind, names in (("there", there), ("missing", missing)):
            yield write_questions(folder / f"{kind}-{origin}", (Question(_POD, name) for name in names))


def _write(path: Path, names: list[str]) -> Path:
    return write_questions(path, (Question(_NODE, name) for name in names))


def _entries(scene: Scene) -> float:
    """As its metrics have it."""
    with scene.node.entered():
        connection = http.client.HTTPConnection("127.0.0.1", _METRICS, timeout=5)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("coredns_cache_entries{"))
