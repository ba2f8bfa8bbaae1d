"""What a node cache does in its ordinary life: start, stop, and being replaced by the next version."""

from typing import Final

from bench.node_cache.figures import Figures, Line
from bench.node_cache.life import Life, wait_for
from bench.node_cache.pod import RATE, answers, hot
from bench.node_cache.scene import START_PATIENCE, Scene
from bench.proc import NoAnswer
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL
from tests.support.stub_resolver_load import Outcome, asking

QUESTIONS: Final = 1_000  # at least, while it is replaced

_LIFE: Final = "Start and stop"
_UPGRADE: Final = "Replaced under load"
_ADDRESSES: Final = {CLUSTER_DNS[4]: "cluster DNS address", LINK_LOCAL[4]: "link-local address"}


def start_and_stop(scene: Scene, figures: Figures) -> None:
    """A life that nothing happens in."""
    life = scene.start()
    figures.note(
        Line(_LIFE, "start to a pod's first answer, s", "<= 1.5"),
        wait_for(lambda: answers(scene.pod, LINK_LOCAL[4]), START_PATIENCE),
    )
    scene.wait_until_serving(life)
    figures.note(Line(_LIFE, "teardown, s", "<= 5"), life.stop())
    figures.note(Line(_LIFE, "links, tables, rules left over", "0"), len(scene.around.node.leftovers()))
    scene.clean()


def upgrades(scene: Scene, figures: Figures, times: int) -> None:
    """One instance after the other; the pod asks both addresses by turns."""
    life = scene.start()
    scene.wait_until_serving(life)
    replace = _stop_and_start if scene.subject.is_original else _start_and_stop
    for _ in range(times):
        with asking(scene.pod, tuple(_ADDRESSES), RATE, hot) as outcome:
            _wait_for_questions(outcome, int(RATE / 4))
            life = replace(scene, life)
            _wait_for_questions(outcome, QUESTIONS)
        for address, title in _ADDRESSES.items():
            there = outcome.of(address)
            figures.count(Line(_UPGRADE, f"{title}: lost", "0"), len(there.lost), len(there.asked))
        figures.count(Line(_UPGRADE, "wrong answers", "0"), len(outcome.wrong), len(outcome.asked))
        figures.note(Line(_UPGRADE, "longest time without an answer, s"), outcome.longest_gap)
    life.stop()
    scene.clean()


def _start_and_stop(scene: Scene, old: Life) -> Life:
    """What a DaemonSet with maxSurge does."""
    new = scene.start()
    if wait_for(new.says_that_it_serves, START_PATIENCE) is None:
        raise NoAnswer("the second instance does not serve")
    old.stop()
    return new


def _stop_and_start(scene: Scene, old: Life) -> Life:
    """What a DaemonSet without it does, with the image there already."""
    old.stop()
    new = scene.start()
    scene.wait_until_serving(new)
    return new


def _wait_for_questions(outcome: Outcome, count: int) -> None:
    wait_for(lambda: len(outcome.asked) >= count, START_PATIENCE)
