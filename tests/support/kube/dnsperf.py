"""dnsperf in a pod of DNSTOOLS_IMAGE: what became of its questions, and what they cost those who answered."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tests.kubelab.machine import Machine
from tests.support.kube.cluster import Cluster, Place, PodView
from tests.support.kube.node_caches import processes

_CLIENTS: Final = 20  # source ports, so that kube-proxy leads to every pod of a Service
_QUESTIONS: Final = "/tmp/questions"
_WRITE: Final = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
_TICKS: Final = 100  # USER_HZ, a second (proc(5))


class Run(NamedTuple):
    """One run: how many were answered, with which RCODEs; `cpu` is microseconds for each of them."""

    answered: int
    lost: int
    rcodes: frozenset[str]
    rate: float
    latency: float  # milliseconds, on average
    cpu: float


def hand_questions(place: Place, pod: PodView, questions: Iterable[str]) -> None:
    """`NAME TYPE` each; this pod asks them from now on, from the first to the last and again."""
    place.run(pod, "python3", "-c", _WRITE, _QUESTIONS, "".join(f"{each}\n" for each in questions))


def dnsperf(place: Place, pod: PodView, address: str, servers: Sequence[PodView], seconds: float, rate: int) -> Run:
    """Ask this address from that pod, so many a second (0: as fast as they are answered)."""
    limit = ["-Q", str(rate)] if rate else []
    before = _cpu_seconds(place.cluster, servers)
    said = place.run(pod, "dnsperf", "-s", address, "-d", _QUESTIONS, "-c", str(_CLIENTS), "-l", f"{seconds:g}", *limit)
    spent = _cpu_seconds(place.cluster, servers) - before
    answered = int(_number(said, "Queries completed"))
    return Run(
        answered=answered,
        lost=int(_number(said, "Queries lost")),
        rcodes=frozenset(re.findall(r"([A-Z]+) \d+ \(", said)),
        rate=_number(said, "Queries per second"),
        latency=_number(said, r"Average Latency \(s\)") * 1000,
        cpu=spent / max(answered, 1) * 1e6,
    )


def _number(said: str, what: str) -> float:
    found = re.search(rf"{what}: +([0-9.]+)", said)
    assert found is not None, said
    return float(found[1])


def _cpu_seconds(cluster: Cluster, pods: Iterable[PodView]) -> float:
    """User and kernel, of all processes of these pods, to a hundredth."""
    return sum(_of_pod(cluster.lab.machine(pod.node), pod) for pod in pods)


def _of_pod(machine: Machine, pod: PodView) -> float:
    stats = machine.run("cat", *(f"/proc/{pid}/stat" for pid in processes(machine, pod))).splitlines()
    fields = (line.rpartition(")")[2].split() for line in stats)
    return sum(int(each[11]) + int(each[12]) for each in fields) / _TICKS
