"""Scenarios: an instance starts and stops, instances replace each other under load, and faults.

These are: the cache is killed or hangs, its link or rules are removed, its upstreams are gone.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from bench.node_cache.figures import Figures, Line
from bench.node_cache.instance import LINK, Instance, wait_for
from bench.node_cache.scene import RATE, START_PATIENCE, Scene, answers, ask_all, hot, outage
from bench.proc import NoAnswer
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL
from tests.support.stub_resolver_load import Outcome, asking, fresh_names

QUESTIONS: Final = 1_000  # sent at least, while an instance is replaced
BEFORE: Final = 0.5  # seconds of load before the fault
SETTLED: Final = 2.0  # seconds after its first rule in which a node cache makes the others
WATCHED: Final = 5.0  # seconds of load after a crash; no program restarts the cache
TICK: Final = 65.0  # seconds: the longest interval between two checks of rules is a minute, NodeLocal DNSCache's
EXPIRED: Final = 7.0  # seconds; the TTL of these names is 5, the shortest that CoreDNS's cache keeps
CACHED: Final = 400  # names

_START_STOP: Final = "Start and stop"
_UPGRADE: Final = "Replaced under load"
_ADDRESSES: Final = {CLUSTER_DNS[4]: "cluster DNS address", LINK_LOCAL[4]: "link-local address"}
_CRASHES: Final = ((signal.SIGKILL, "Killed (kill -9)"), (signal.SIGSTOP, "Hung (SIGSTOP)"))
_LINK: Final = Line("Removed: s until back", "link deleted: pods answered", "<= 0.2")
_RULES: Final = Line("Removed: s until back", "all rules flushed", "<= 0.2")
_RULE: Final = Line("Removed: s until back", "one rule deleted", "<= 5")
_RESTART: Final = "One of two servers restarted"
_GONE: Final = "Both servers gone"


def start_and_stop(scene: Scene, figures: Figures) -> None:
    """Start one instance and stop it: the seconds of both, and what is left of its rules and link."""
    instance = scene.start()
    figures.note(
        Line(_START_STOP, "start to a pod's first answer, s", "<= 1.5"),
        wait_for(lambda: answers(scene.pod, LINK_LOCAL[4]), START_PATIENCE),
    )
    scene.wait_until_serving(instance)
    figures.note(Line(_START_STOP, "teardown, s", "<= 5"), instance.stop())
    figures.note(Line(_START_STOP, "links, tables, rules left over", "0"), len(scene.around.node.leftovers()))
    scene.clean()


def upgrades(scene: Scene, figures: Figures, times: int) -> None:
    """Replace the instance so many times, while the pod queries both addresses alternately."""
    instance = scene.start()
    scene.wait_until_serving(instance)
    replace = _stop_and_start if scene.subject.is_original else _start_and_stop
    for _ in range(times):
        with asking(scene.pod, tuple(_ADDRESSES), RATE, hot) as outcome:
            _wait_for_questions(outcome, int(RATE / 4))
            instance = replace(scene, instance)
            _wait_for_questions(outcome, QUESTIONS)
        for address, title in _ADDRESSES.items():
            there = outcome.of(address)
            figures.count(Line(_UPGRADE, f"{title}: lost", "0"), len(there.lost), len(there.asked))
        figures.count(Line(_UPGRADE, "wrong answers", "0"), len(outcome.wrong), len(outcome.asked))
        figures.note(Line(_UPGRADE, "longest time without an answer, s"), outcome.longest_gap)
    instance.stop()
    scene.clean()


def _start_and_stop(scene: Scene, old: Instance) -> Instance:
    """Replace the instance as a DaemonSet with `maxSurge` does: the new one serves before the old one stops."""
    new = scene.start()
    if wait_for(new.has_pid_file, START_PATIENCE) is None:
        raise NoAnswer("the second instance does not serve")
    old.stop()
    return new


def _stop_and_start(scene: Scene, old: Instance) -> Instance:
    """Replace the instance as a DaemonSet without `maxSurge` does: the old one stops first; no image is pulled."""
    old.stop()
    new = scene.start()
    scene.wait_until_serving(new)
    return new


def _wait_for_questions(outcome: Outcome, count: int) -> None:
    wait_for(lambda: len(outcome.asked) >= count, START_PATIENCE)


def crash(scene: Scene, figures: Figures) -> None:
    """Kill the cache, and hang it, under load; it is not restarted, and kube-proxy leads the pod to the cluster DNS."""
    for number, part in _CRASHES:
        with scene.serving() as instance, asking(scene.pod, (CLUSTER_DNS[4],), RATE, hot) as outcome:
            time.sleep(BEFORE)
            moment = time.monotonic()
            instance.signal(number)
            time.sleep(WATCHED)
        figures.note(Line(part, "s until a pod is answered again", "<= 2"), outage(outcome, moment))
        _count(figures, part, outcome, "")


def repair(scene: Scene, figures: Figures) -> None:
    """Flush all rules, delete one rule, delete the link: the seconds until each is back.

    For the link, the pod queries the link-local address, which only the link has.
    """
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
    """Restart both servers of the cluster DNS, one after the other, under load; kube-proxy leads to both meanwhile."""
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
    """Stop both servers of the cluster DNS: once killed, so that connections are refused, and once without replies."""
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
    """Query names until they are cached and expired, let the block stop the servers, then query them again."""
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
