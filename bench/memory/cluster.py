"""The memory of one server with one cluster: after its lists, and at most while it lists all kinds, twice.

The API server is the stand-in of `bench/scale`. The Corefile is the chart's, with `topology`.
"""

import tempfile
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
    until,
    wait_for_answer,
    wait_until_quiet,
)
from bench.programs import server_command
from bench.questions import Question
from bench.scale.servers import TOPODNS
from bench.scale.stand_in import StandIn, stand_in
from tests.support.synthetic_clusters import namespace_name, service_name

KNOWN_WITHIN: Final = 300.0  # seconds for the lists, enough for a machine with other work

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
    forward . 127.0.0.1:{unused} {{
        max_concurrent 1000
    }}
    cache 30
    reload
    loadbalance
}}
"""
_QUESTION: Final = Question(inet_aton("127.0.0.1"), f"{service_name(1)}.{namespace_name(0)}.svc.cluster.local")


class Taken(NamedTuple):
    """Memory in megabytes (10^6 octets)."""

    resident: float  # VmRSS after the first lists, or after the second ones: the larger of the two
    peak: float  # VmHWM, from the start to the end of the second lists


def measure(point: Point) -> Taken:
    """Start an API server and a server for this cluster, and measure the server. Raises NoAnswer."""
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
    """A server that has read the whole cluster; its process id."""
    corefile, port = folder / "Corefile", free_port()
    corefile.write_text(
        _COREFILE.format(
            url=api.url,
            pods="verified" if VERIFIED in uses else "insecure",
            locate="pods" if LOCATED in uses else "",
            patience=KNOWN_WITHIN,
            unused=free_port(),
        )
    )
    with running(server_command(corefile, port), core) as process:
        wait_for_answer(process, port, _QUESTION.message, KNOWN_WITHIN)
        yield process.pid


def _list_again(pid: int, api: StandIn, kinds: int) -> None:
    """End every watch so that all kinds are listed again, and wait until that is done."""
    forget_peak(pid)
    api.control("relist")
    until(lambda: api.control("lists") >= kinds, "the second lists of all kinds", KNOWN_WITHIN)
    wait_until_quiet((pid, api.pid), KNOWN_WITHIN)
