"""What goes wrong on a node: the cache killed or hung, its link or rules taken away, and its servers gone."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from bench.node_cache.figures import Figures, Line
from bench.node_cache.life import wait_for
from bench.node_cache.pod import RATE, answers, ask_all, hot, outage
from bench.node_cache.scene import Scene
from bench.node_cache.subjects import LINK
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL
from tests.support.stub_resolver_load import Outcome, asking, fresh_names

BEFORE: Final = 0.5  # seconds of load before anything happens
SETTLED: Final = 2.0  # seconds after its first rule in which a node cache makes the others
WATCHED: Final = 5.0  # seconds after a crash; nobody starts the cache again
TICK: Final = 65.0  # seconds: the longest of their ticks is a minute
EXPIRED: Final = 7.0  # seconds; the records of these names live 5, the shortest time that CoreDNS's cache keeps one
CACHED: Final = 400  # names

_CRASHES: Final = ((signal.SIGKILL, "Killed (kill -9)"), (signal.SIGSTOP, "Hung (SIGSTOP)"))
_LINK: Final = Line("Removed: s until back", "link deleted: pods answered", "<= 0.2")
_RULES: Final = Line("Removed: s until back", "all rules flushed", "<= 0.2")
_RULE: Final = Line("Removed: s until back", "one rule deleted", "<= 5")
_RESTART: Final = "One of two servers restarted"
_GONE: Final = "Both servers gone"


def crash(scene: Scene, figures: Figures) -> None:
    """Under load, without anybody who starts it again: kube-proxy is what a pod can be led to."""
    for number, part in _CRASHES:
        with scene.serving() as life, asking(scene.pod, (CLUSTER_DNS[4],), RATE, hot) as outcome:
            time.sleep(BEFORE)
            moment = time.monotonic()
            life.signal(number)
            time.sleep(WATCHED)
        figures.note(Line(part, "s until a pod is answered again", "<= 2"), outage(outcome, moment))
        _count(figures, part, outcome, "")


def repair(scene: Scene, figures: Figures) -> None:
    """The pod asks the link-local address, which only the link has."""
    subject, node = scene.subject, scene.node
    with scene.serving():
        time.sleep(SETTLED)
        there = len(subject.rules(node))
        for line, spoil in ((_RULES, subject.flush_rules), (_RULE, subject.delete_a_rule)):
            spoil(node)
            figures.note(line, wait_for(lambda: len(subject.rules(node)) >= there, TICK))
        if not scene.makes_link:
            figures.say(_LINK, "cannot make one here")
            return
        with asking(scene.pod, (LINK_LOCAL[4],), RATE, hot) as outcome:
            time.sleep(BEFORE)
            moment = time.monotonic()
            node.run("ip", f"link del {LINK}")
            wait_for(lambda: answers(scene.pod, LINK_LOCAL[4]), TICK)
            time.sleep(BEFORE)
        figures.note(_LINK, outage(outcome, moment))


def restarted_server(scene: Scene, figures: Figures) -> None:
    """One after the other; kube-proxy leads to both all the time."""
    for server in scene.servers:
        with scene.serving(), asking(scene.pod, (CLUSTER_DNS[4],), RATE) as outcome:
            time.sleep(BEFORE)
            server.stop()
            server.start()
            server.wait()
            time.sleep(2 * BEFORE)
        _count(figures, _RESTART, outcome, "0")
        figures.note(Line(_RESTART, "slowest answer, s", "< 1"), outcome.slowest)


def gone_servers(scene: Scene, figures: Figures) -> None:
    """Once so that connections are refused, and once so that nothing is heard of them."""
    numbers = range(len(scene.servers))
    with _stale(scene, figures, "connections refused"):
        for server in scene.servers:
            server.stop(signal.SIGKILL)
    for server in scene.servers:
        server.start()
        server.wait()
    with _stale(scene, figures, "silent"):
        for number in numbers:
            scene.around.take_address(number)
    for number in numbers:
        scene.around.give_address(number)


@contextmanager
def _stale(scene: Scene, figures: Figures, how: str) -> Iterator[None]:
    """Names are asked for and grow stale; in the block the servers go; then they are asked for again."""
    with scene.serving():
        names = list(islice(fresh_names(), CACHED))
        ask_all(scene.pod, CLUSTER_DNS[4], names)
        time.sleep(EXPIRED)
        yield
        outcome = ask_all(scene.pod, CLUSTER_DNS[4], names)
    right = [each.seconds for each in outcome.asked if each.right]
    figures.count(Line(_GONE, f"{how}: answered", "all"), len(right), len(names))
    figures.note(Line(_GONE, f"{how}: slowest, s", "< 2"), max(right, default=None))


def _count(figures: Figures, part: str, outcome: Outcome, target: str) -> None:
    figures.count(Line(part, "questions lost", target), len(outcome.lost), len(outcome.asked))
    figures.count(Line(part, "wrong answers", "0"), len(outcome.wrong), len(outcome.asked))
