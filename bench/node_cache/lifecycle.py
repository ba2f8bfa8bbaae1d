"""Scenarios without a fault: an instance starts and stops, and instances replace each other under load."""

from typing import Final

from bench.node_cache.figures import Figures, Line
from bench.node_cache.instance import Instance, wait_for
from bench.node_cache.pod import RATE, answers, hot
from bench.node_cache.scene import START_PATIENCE, Scene
from bench.proc import NoAnswer
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL
from tests.support.stub_resolver_load import Outcome, asking

QUESTIONS: Final = 1_000  # sent at least, while an instance is replaced

_START_STOP: Final = "Start and stop"
_UPGRADE: Final = "Replaced under load"
_ADDRESSES: Final = {CLUSTER_DNS[4]: "cluster DNS address", LINK_LOCAL[4]: "link-local address"}


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
