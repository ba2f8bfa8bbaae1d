"""`make bench`: measure and print. Nothing here passes or fails; README.md says what the figures mean.

Each round has a server of its own, so that names which were never asked are really new to it, and measures the
yardstick beside it, so that both meet the same weather on the machine.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from socket import inet_ntoa
from typing import Final, NamedTuple

from bench import questions
from bench.cluster import FEW, MANY, NODES, NODES_WITH_ONE, client_on, write_cluster
from bench.figures import Series, table
from bench.load import Target, Tools, ask, dnsperf, find_tools, microseconds_per_answer
from bench.proc import NoAnswer, cores, free_port, resident_megabytes, running, wait_for_answer
from bench.questions import Question

ROUNDS: Final = 5
STARTS: Final = 5
HOT_SECONDS: Final = 1.0
SHORT_SECONDS: Final = 0.5
WARM_UP_PASSES: Final = 3  # the second asking lets a name in, and now and then one loses its place at the door
DNSPERF_SECONDS: Final = 1
DNSPERF_CLIENT: Final = client_on(0)

DEMO: Final = Path(__file__).parents[1] / "config" / "demo"
DEMO_QUESTION: Final = Question(bytes((127, 10, 1, 100)), "cache.shop.svc.cluster.local")


class Load(NamedTuple):
    title: str
    target: str
    asked: list[Question]
    seconds: float = 0.0  # asked again and again for so long once they are hot; 0: once through


def loads(rng: Random) -> list[Load]:
    """In the order in which each round's server meets them: what was never asked comes first."""
    once, elsewhere = questions.hot_questions_about, range(NODES_WITH_ONE, NODES)
    return [
        Load("never asked: Services", "<= 20", questions.first_asked_services(rng)),
        Load("never asked: names that do not exist", "<= 20", questions.first_asked_strangers(rng)),
        Load("hot: headless, ClusterIP and NXDOMAIN mixed", "<= 7", questions.hot_questions(rng), HOT_SECONDS),
        Load("hot: 1 match of 5,000 endpoints", "<= next line", once(MANY), SHORT_SECONDS),
        Load("hot: 1 match of 10 endpoints", "", once(FEW), SHORT_SECONDS),
        Load("not hot: 1 match of 5,000 endpoints", "<= next line", questions.distinct_questions_about(MANY)),
        Load("not hot: 1 match of 10 endpoints", "", questions.distinct_questions_about(FEW)),
        Load("not hot: 250 matches of 5,000, cut to 1,232 octets", "", _wide(elsewhere)),
    ]


def _wide(nodes: range) -> list[Question]:
    return questions.distinct_questions_about(MANY, nodes)


class Bench:
    """All that is measured, with its files in a directory of its own."""

    def __init__(self, tools: Tools, directory: Path) -> None:
        self._tools = tools
        self._directory = directory
        self._server_core, self._asking_core = cores()
        self._corefile = write_cluster(directory)
        self._loads = [(load, self._file(load.asked), Series(load.title, load.target)) for load in loads(Random(1))]
        self._hot = questions.hot_questions(Random(1))

        ...
