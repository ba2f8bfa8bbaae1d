"""`make bench-scale`: measure topodns on the largest clusters, beside CoreDNS, and print. No figure fails."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

from bench.proc import NoAnswer, cores, go_first, say
from bench.scale.scenario import OutOfTime, Scenario
from bench.scale.servers import TOPODNS, Server, coredns
from bench.scale.sheet import Sheet
from tests.support.synthetic_clusters import Cluster

NODES, SERVICES, ENDPOINTS, PODS = 5_000, 10_000, 150_000, 150_000
RUN_SECONDS: Final = 350.0  # of all that is measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The exit status: 1 if a program could not be run, whatever the figures are; else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, to try")
    parser.add_argument("--alone", action="store_true", help="without CoreDNS")
    options = parser.parse_args(arguments)
    other = None if options.alone else coredns(say)
    servers = [TOPODNS, other] if other is not None else [TOPODNS]
    sheets = list(_sheets(10 if options.quick else 1, servers))
    began, problem = time.monotonic(), ""
    try:
        _measure(sheets, servers, began + RUN_SECONDS)
    except OutOfTime as reached:
        say(str(reached))
    except NoAnswer as caught:
        problem = f"bench: {caught}"
    print("\n\n".join(str(sheet) for _, sheet in sheets))
    print(f"\nlatencies are p50 / p99 / worst in ms; {time.monotonic() - began:.0f} s in all")
    if problem:
        say(problem)
    return bool(problem)


def _measure(sheets: Sequence[tuple[Cluster, Sheet]], servers: Sequence[Server], deadline: float) -> None:
    server_core, other_core = cores()
    if server_core == other_core:
        say("one core only: the server shares it with everything else")
    os.sched_setaffinity(0, {other_core})
    go_first()
    for server in servers:
        for cluster, sheet in sheets:
            say(f"{server.title}, {sheet.head}")
            Scenario(server, cluster, sheet, deadline).run(server_core, other_core)


def _sheets(part: int, servers: Sequence[Server]) -> Iterator[tuple[Cluster, Sheet]]:
    """The clusters, their sizes divided by `part`, with a sheet for each."""
    size = f"{NODES // part:,} nodes, {SERVICES // part:,} Services, {ENDPOINTS // part:,} endpoints"
    titles = [server.title for server in servers]
    for pods, head in ((0, size), (PODS // part, f"The same with {PODS // part:,} Pods")):
        yield Cluster(NODES // part, SERVICES // part, ENDPOINTS // part, pods), Sheet(head, titles)


if __name__ == "__main__":
    sys.exit(main())
