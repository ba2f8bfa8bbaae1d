"""Loads of questions from within pods, and what became of them."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

from tests.kubelab.lab import Lab
from tests.support.dns_messages import query
from tests.support.kube.cluster import PodView, exec_command
from tests.support.kube.waiting import eventually, join_all

_AGENT: Final = Path(__file__).with_name("load_agent.py").read_text()
_PROBLEMS: Final = 20  # so many are reported


class Asked(NamedTuple):
    """`NAME TYPE`, whom, and what is right: this RCODE and, unless it is None, these addresses and no other."""

    question: str
    to: str
    holds: Sequence[str] | None = None
    rcode: int = 0
    tcp: bool = False

    def order(self) -> dict[str, object]:
        """As `load_agent.py` takes it."""
        return {"query": query(self.question).hex(), "to": self.to, "tcp": self.tcp}

    def judge(self, reply: bytes) -> str:
        """The class of a reply: "right", "failed" (it has another RCODE), or "wrong" (other addresses)."""
        if reply[3] & 15 != self.rcode:
            return "failed"
        if self.holds is None:
            return "right"
        records = [len(each).to_bytes(2, "big") + each for each in (ip_address(held).packed for held in self.holds)]
        got = int.from_bytes(reply[6:8], "big")
        return "right" if got == len(records) and all(each in reply for each in records) else "wrong"


class Question(NamedTuple):
    """One that was asked; times are those of `time.monotonic()`, here as in pods."""

    number: int
    what: Asked
    asked: float
    answered: float | None
    became: str  # "right", "failed", "wrong", or "lost"
    reply: str  # in hexadecimal, or why there is none


@dataclass
class Outcome:
    """The counts of the questions of some loads in some time; all 0 until they are known."""

    asked: int = 0
    lost: int = 0
    failed: int = 0  # answered with another RCODE
    wrong: int = 0  # answered with other addresses
    gap: float = 0.0  # seconds: the longest time in which one pod had no right answer from one address
    problems: list[str] = field(default_factory=list, repr=False)

    def __str__(self) -> str:
        became = f"{self.lost} lost, {self.failed} failed, {self.wrong} wrong"
        return f"of {self.asked} questions {became}; longest gap {self.gap:.2f} s"


class Load:
    """The questions of one pod, from now on."""

    def __init__(self, process: "subprocess.Popen[str]", asked: Sequence[Asked]) -> None:
        self._process, self._asked = process, asked
        self._ended: list[Question] = []
        self._reader = Thread(target=self._read, name="load", daemon=True)
        self._reader.start()

    def between(self, begin: float, end: float) -> list[Question]:
        """Those asked in this time, once it is known of each what became of it."""
        eventually(lambda: self._knows(end), "the load goes on")
        return [each for each in self._ended if begin <= each.asked < end]

    def end(self) -> None:
        """Ask no more, and wait for the answers still to come."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            join_all([self._reader])
        except AssertionError:
            self._process.kill()  # or its reader would wait for ever
            raise

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, asked, answered, reply = json.loads(line)
            what = self._asked[number % len(self._asked)]
            became = "lost" if answered is None else what.judge(bytes.fromhex(reply))
            self._ended.append(Question(number, what, asked, answered, became, reply))

    def _knows(self, end: float) -> bool:
        """Whether one is known that was asked later, and all with a lower number."""
        ended = list(self._ended)
        later = min((each.number for each in ended if each.asked >= end), default=None)
        return later is not None and sum(each.number < later for each in ended) == later


@contextmanager
def load(lab: Lab, pod: PodView, asked: Sequence[Asked], rate: int) -> Iterator[Load]:
    """Ask these in turn, `rate` questions a second, while the block runs. The pod's image needs Python."""
    words = ["python3", "-u", "-c", _AGENT, str(rate), json.dumps([each.order() for each in asked])]
    command = lab.machine(pod.node).command(*exec_command(pod, *words))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asking = Load(process, asked)
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
    return together(*(_outcome(each.between(begin, end), begin, end) for each in loads))


def together(*parts: Outcome) -> Outcome:
    """Their sum, and the longest gap."""
    return Outcome(
        asked=sum(part.asked for part in parts),
        lost=sum(part.lost for part in parts),
        failed=sum(part.failed for part in parts),
        wrong=sum(part.wrong for part in parts),
        gap=max(part.gap for part in parts),
        problems=[problem for part in parts for problem in part.problems][:_PROBLEMS],
    )


def _outcome(questions: Sequence[Question], begin: float, end: float) -> Outcome:
    right: dict[str, list[float]] = {each.what.to: [begin, end] for each in questions}
    for each in questions:
        if each.answered is not None and each.became == "right":
            right[each.what.to].append(each.answered)
    gaps = [later - earlier for times in right.values() for earlier, later in pairwise(sorted(times))]
    counts = Counter(each.became for each in questions)
    return Outcome(
        asked=len(questions),
        lost=counts["lost"],
        failed=counts["failed"],
        wrong=counts["wrong"],
        gap=max(gaps, default=end - begin),
        problems=[_problem(each, begin) for each in questions if each.became != "right"],
    )


def _problem(question: Question, begin: float) -> str:
    what, since = question.what, question.asked - begin
    over = "TCP" if what.tcp else "UDP"
    return f"{since:.3f} s: {what.question} over {over} to {what.to}: {question.became}: {question.reply}"
