"""One server that follows one cluster: what it holds when all is known, and the most on its way there and back.

The cluster is the stand-in for an API server of `bench/scale`. The Corefile is the chart's, with `topology`.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import inet_aton
from typing import Final, NamedTuple

from bench.memory.grid import LOCATED, VERIFIED, Point
from bench.proc import (
    cores,
    forget_peak,
    free_port,
    peak_megabytes,
    resident_megabytes,
    running,
    wait_for_answer,
    wait_until_quiet,
)
from bench.questions import Question
from bench.scale.servers import TOPODNS
from bench.scale.stand_in import StandIn, stand_in
from tests.support.synthetic_clusters import namespace_name, service_name

KNOWN_WITHIN: Final = 300.0  # seconds, on a machine that does other things too

_COREFILE: Final = """\
. {{
    bind 127.0.0.1
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        endpoint {url}
        pods {pods}
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
        startup_timeout {patience:.0f}s
    }}
    topology {{
        locate nodes podcidr {locate} slices
    }}
    prometheus 127.0.0.1:0
    forward . 127.0.0.1:{nobody} {{
        max_concurrent 1000
    }}
    cache 30
    reload
    loadbalance
}}
"""
_QUESTION: Final = Question(inet_aton("127.0.0.1"), f"{service_name(1)}.{namespace_name(0)}.svc.cluster.local")
_LOOK_EVERY: Final = 0.25  # seconds


class Taken(NamedTuple):
    """In megabytes."""

    resident: float  # when all is known, or known once more: the larger of the two
    peak: float  # at most, from the start to the end of a list of everything


def measure(point: Point) -> Taken:
    """Raises NoAnswer."""
    server_core, other_core = cores()
    with (
        tempfile.TemporaryDirectory(prefix="topodns-bench-") as directory,
        stand_in(point.cluster, other_core) as api,
        _server(Path(directory), api, point.uses_of_pods, server_core) as pid,
    ):
        wait_until_quiet((pid, api.pid), KNOWN_WITHIN)
        first = Taken(resident_megabytes(pid), peak_megabytes(pid))
        _list_again(pid, api, TOPODNS.kinds + bool(point.uses_of_pods))
        again = Taken(resident_megabytes(pid), peak_megabytes(pid))
    return Taken(max(first.resident, again.resident), max(first.peak, again.peak))


@contextmanager
def _server(folder: Path, api: StandIn, uses: Sequence[str], core: int) -> Iterator[int]:
    """One that knows all of the cluster; its process."""
    corefile, port = folder / "Corefile", free_port()
    corefile.write_text(
        _COREFILE.format(
            url=api.url,
            pods="verified" if VERIFIED in uses else "insecure",
            locate="pods" if LOCATED in uses else "",
            patience=KNOWN_WITHIN,
            nobody=free_port(),
        )
    )
    with running(TOPODNS.command(corefile, port), core) as process:
        wait_for_answer(process, port, _QUESTION.message, KNOWN_WITHIN)
        yield process.pid


def _list_again(pid: int, api: StandIn, kinds: int) -> None:
    """Every watch ends at once, and none can go on from where it was."""
    forget_peak(pid)
    api.control("relist")
    deadline = time.monotonic() + KNOWN_WITHIN
    while api.control("lists") < kinds and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY)
    wait_until_quiet((pid, api.pid), KNOWN_WITHIN)
