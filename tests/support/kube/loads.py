"""A load of questions from within a pod, and what became of it."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kubelab.lab import Lab
from tests.support.kube.cluster import PodView, exec_command
from tests.support.messages import query

_AGENT: Final = Path(__file__).with_name("load_agent.py").read_text()


@dataclass
class Load:
    """What `load_agent.py` says; all 0 until the load has ended."""

    asked: int = 0
    lost: int = 0
    failed: int = 0
    silence: float = 0.0


@contextmanager
def load(lab: Lab, pod: PodView, question: str, addresses: Sequence[str], rate: int) -> Iterator[Load]:
    """Ask these addresses in turn, `rate` questions a second, while the block runs. The pod's image needs Python."""
    words = ["python3", "-u", "-c", _AGENT, query(question).hex(), str(rate), *addresses]
    command = lab.machine(pod.node).command(*exec_command(pod, *words))
    result = Load()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield result
        finally:
            said, _ = process.communicate("\n", 30)
    vars(result).update(json.loads(said))
