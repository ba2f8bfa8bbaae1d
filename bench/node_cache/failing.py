"""What goes wrong on a node: the cache killed or hung, its link or rules taken away, and its servers gone."""

import signal
import time
from typing import Final

from bench.node_cache.figures import Figures, Line
from bench.node_cache.names import fresh, hot, some_fresh
from bench.node_cache.pod import ask_all, asking, outage
from bench.node_cache.scene import Scene, answers, wait_for
from bench.node_cache.subjects import LINK, UPSTREAMS
from tests.support.namespaces import CLUSTER_DNS, LINK_LOCAL
from tests.support.stub_load import Outcome

BEFORE: Final = 0.5  # seconds of load before anything happens
WATCHED: Final = 5.0  # seconds after a crash; nobody starts the cache again
TICK: Final = 65.0  # seconds: the longest of their ticks is a minute
EXPIRED: Final = 7.0  # seconds after which a cached record of SHORT is stale for all
SHORT: Final = 5  # seconds, the shortest time that CoreDNS's cache keeps a record
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
        with scene.serving() as life, asking(scene.pod, (CLUSTER_DNS[4],), hot()) as outcome:
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
        there = len(subject.rules(node))
        for line, spoil in ((_RULES, subject.flush_rules), (_RULE, subject.delete_a_rule)):
            spoil(node)
            figures.note(line, wait_for(lambda: len(subject.rules(node)) >= there, TICK))
        if not scene.makes_link:
            figures.say(_LINK, "cannot make one here")
            return
        with asking(scene.pod, (LINK_LOCAL[4],), hot()) as outcome:
            time.sleep(BEFORE)
            moment = time.monotonic()
            node.run("ip", f"link del {LINK}")
            wait_for(lambda: answers(scene.pod, LINK_LOCAL[4]), TICK)
            time.sleep(BEFORE)
        figures.note(_LINK, outage(outcome, moment))


def restarted_server(scene: Scene, figures: Figures) -> None:
    """One after the other; kube-proxy leads to both all the time."""
    for address in UPSTREAMS:
        with scene.serving(), asking(scene.pod, (CLUSTER_DNS[4],), fresh()) as outcome:
            time.sleep(BEFORE)
            scene.stop_upstream(address)
            scene.start_upstream(address)
            time.sleep(2 * BEFORE)
        _count(figures, _RESTART, outcome, "0")
        figures.note(Line(_RESTART, "slowest answer, s", "< 1"), outcome.slowest)


def gone_servers(scene: Scene, figures: Figures) -> None:
    """Once so that connections are refused, and once so that nothing is heard of them."""
    _ask_stale(scene, figures, "connections refused", lambda: _stop_all(scene))
    for address in UPSTREAMS:
        scene.start_upstream(address)
    _ask_stale(scene, figures, "silent", lambda: scene.cluster.run("iptables", "-I INPUT -j DROP"))
    scene.cluster.run("iptables", "-F")


def _ask_stale(scene: Scene, figures: Figures, how: str, take_away: object) -> None:
    assert callable(take_away)
    with scene.serving():
        names = some_fresh(CACHED, SHORT)
        ask_all(scene.pod, CLUSTER_DNS[4], names)
        time.sleep(EXPIRED)
        take_away()
        outcome = ask_all(scene.pod, CLUSTER_DNS[4], names)
    right = sum(each.right for each in outcome.asked)
    figures.count(Line(_GONE, f"{how}: answered within 2 s", "all"), right, len(names))
    if right:
        slowest = max(each.seconds for each in outcome.asked if each.right)
        figures.note(Line(_GONE, f"{how}: slowest of these, s", "< 2"), slowest)


def _stop_all(scene: Scene) -> None:
    for address in UPSTREAMS:
        scene.stop_upstream(address, signal.SIGKILL)


def _count(figures: Figures, part: str, outcome: Outcome, target: str) -> None:
    figures.count(Line(part, "questions lost", target), len(outcome.lost), len(outcome.asked))
    figures.count(Line(part, "wrong answers", "0"), len(outcome.wrong), len(outcome.asked))
