"""Loads of questions from within pods, and what became of them."""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

from tests.kubelab.lab import Lab
from tests.support.kube.cluster import PodView, exec_command
from tests.support.kube.waiting import eventually
from tests.support.messages import query

_AGENT: Final = Path(__file__).with_name("load_agent.py").read_text()


class Question(NamedTuple):
    """As `load_agent.py` prints it; times are those of `time.monotonic()`, here as in pods."""

    number: int
    to: str
    asked: float
    answered: float | None
    rcode: int | None


@dataclass
class Outcome:
    """What became of the questions of some loads in some time; all 0 until that is known."""

    asked: int = 0
    lost: int = 0
    failed: int = 0  # answered with an RCODE
    gap: float = 0.0  # seconds: the longest time in which one pod had no answer from one address

    def __str__(self) -> str:
        return f"{self.lost} of {self.asked} questions lost, {self.failed} failed, longest gap {self.gap:.2f} s"


class Load:
    """The questions of one pod, from now on."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._ended: list[Question] = []
        self._reader = Thread(target=self._read)
        self._reader.start()

    def between(self, begin: float, end: float) -> list[Question]:
        """Those asked in this time, once it is known of each what became of it."""
        eventually(lambda: self._knows(end), "the load goes on")
        return [each for each in self._ended if begin <= each.asked < end]

    def end(self) -> None:
        """Ask no more, and wait for what is still to be answered."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._ended.append(Question(*json.loads(line)))

    def _knows(self, end: float) -> bool:
        """Whether one is known that was asked later, and all with a lower number."""
        ended = list(self._ended)
        later = min((each.number for each in ended if each.asked >= end), default=None)
        return later is not None and sum(each.number < later for each in ended) == later


@contextmanager
def load(lab: Lab, pod: PodView, question: str, addresses: Sequence[str], rate: int) -> Iterator[Load]:
    """Ask these addresses in turn, `rate` questions a second, while the block runs. The pod's image needs Python."""
    words = ["python3", "-u", "-c", _AGENT, query(question).hex(), str(rate), *addresses]
    command = lab.machine(pod.node).command(*exec_command(pod, *words))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asking = Load(process)
        try:
            yield asking
        finally:
            asking.end()


@contextmanager
def outcome(*loads: Load) -> Iterator[Outcome]:
    """Of what they ask while the block runs."""
    result, begin = Outcome(), time.monotonic()
    yield result
    vars(result).update(vars(outcome_since(begin, *loads)))


def outcome_since(begin: float, *loads: Load) -> Outcome:
    """Of what they have asked since then."""
    end = time.monotonic()
    parts = [_outcome(each.between(begin, end), begin, end) for each in loads]
    return Outcome(
        asked=sum(part.asked for part in parts),
        lost=sum(part.lost for part in parts),
        failed=sum(part.failed for part in parts),
        gap=max(part.gap for part in parts),
    )


def _outcome(questions: Sequence[Question], begin: float, end: float) -> Outcome:
    right: dict[str, list[float]] = {each.to: [begin, end] for each in questions}
    for each in questions:
        if each.answered is not None and not each.rcode:
            right[each.to].append(each.answered)
    gaps = [later - earlier for times in right.values() for earlier, later in pairwise(sorted(times))]
    return Outcome(
        asked=len(questions),
        lost=sum(each.answered is None for each in questions),
        failed=sum(bool(each.rcode) for each in questions),
        gap=max(gaps, default=end - begin),
    )
