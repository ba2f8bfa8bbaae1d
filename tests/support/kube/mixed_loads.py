"""A load of different questions from within a pod, over UDP and TCP, whose answers are looked at."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

from tests.kubelab.lab import Lab
from tests.support.kube.cluster import PodView, exec_command
from tests.support.messages import query

_AGENT: Final = Path(__file__).with_name("mixed_load_agent.py").read_text()

NXDOMAIN: Final = 3


class Asked(NamedTuple):
    """`NAME TYPE`, whom, and the right answer: these addresses and no other, with this RCODE."""

    question: str
    to: str
    holds: Sequence[str]
    rcode: int = 0
    tcp: bool = False

    def order(self) -> dict[str, object]:
        """As `mixed_load_agent.py` takes it."""
        holds = [ip_address(each).packed.hex() for each in self.holds]
        own = {"to": self.to, "tcp": self.tcp, "rcode": self.rcode, "holds": holds}
        return own | {"query": query(self.question).hex()}


@dataclass
class Load:
    """What `mixed_load_agent.py` says; all 0 until the load has ended."""

    asked: int = 0
    lost: int = 0
    failed: int = 0
    wrong: int = 0
    silence: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        became = f"{self.lost} lost, {self.failed} failed, {self.wrong} wrong"
        return f"of {self.asked} questions {became}; longest silence {self.silence * 1000:.0f} ms"


@contextmanager
def mixed_load(lab: Lab, pod: PodView, asked: Sequence[Asked], rate: int) -> Iterator[Load]:
    """Ask these in turn, `rate` questions a second, while the block runs. The pod's image needs Python."""
    words = ["python3", "-u", "-c", _AGENT, str(rate), json.dumps([each.order() for each in asked])]
    command = lab.machine(pod.node).command(*exec_command(pod, *words))
    result = Load()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield result
        finally:
            said, _ = process.communicate("\n", 30)
    vars(result).update(json.loads(said))


def together(loads: Sequence[Load]) -> Load:
    """Their sum, and the longest silence."""
    return Load(
        sum(each.asked for each in loads),
        sum(each.lost for each in loads),
        sum(each.failed for each in loads),
        sum(each.wrong for each in loads),
        max(each.silence for each in loads),
        [problem for each in loads for problem in each.problems],
    )
