"""`python -m bench.audit [SERVICES]`: prints the CPU, the steps and the memory of an audit of a large cluster.

No figure passes or fails; README.md says what the figures mean.
"""

import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

from bench.proc import resident_megabytes
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    ClusterObject,
    Endpoint,
    EndpointSlice,
    Node,
    Service,
    TopologyInputs,
    Upserted,
)
from topodns.cluster.state import ClusterState
from topodns.inspect.audit import AuditSubject, document_steps
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import key_reader

NODES: Final = 5000
LARGE, SMALL, LARGE_SERVICES = 5000, 50, 20  # endpoints of a large and of a small Service, and how many are large
SLICE: Final = 100
ROUNDS: Final = 3
KEYS: Final = (
    HOSTNAME_LABEL,
    f"{HOSTNAME_LABEL},{ZONE_LABEL},*",
    ZONE_LABEL,
    f"example.com/rack,{ZONE_LABEL}",
)


def objects(services: int) -> Iterator[ClusterObject]:
    """5,000 Nodes in 3 zones and 100 racks, and these Services, the first 20 of them large."""
    for at in range(NODES):
        labels = {HOSTNAME_LABEL: f"n{at}", ZONE_LABEL: f"z{at % 3}", "example.com/rack": f"r{at % 100}"}
        yield Node(f"n{at}", labels)
    for number in range(services):
        name = f"s{number}"
        yield Service("d", name, headless=True, topology=TopologyInputs(annotation=KEYS[number % len(KEYS)]))
        count = LARGE if number < LARGE_SERVICES else SMALL
        for first in range(0, count, SLICE):
            some = tuple(endpoint(number, at) for at in range(first, min(first + SLICE, count)))
            yield EndpointSlice("d", f"{name}-{first}", name, "IPv4", (), some)


def endpoint(service: int, number: int) -> Endpoint:
    address = bytes((10, service % 250, number >> 8, number & 255))
    return Endpoint(address, node_name=f"n{(number * 7 + service) % NODES}", pod_name=f"s{service}-{number}")


def audit(state: ClusterState, changes: Sequence[str]) -> tuple[float, list[float], int]:
    """(CPU seconds, those of each step in order of size, octets of the document) of an audit with these changes."""
    steps = document_steps([AuditSubject(state, TopologySettings())], changes)
    took: list[float] = []
    while True:
        began = time.thread_time()
        try:
            next(steps)
        except StopIteration as done:
            took.append(time.thread_time() - began)
            return sum(took), sorted(took), len(done.value)
        took.append(time.thread_time() - began)


def main() -> None:
    services = int(sys.argv[1]) if len(sys.argv) > 1 else 1020
    settings = TopologySettings()
    state = ClusterState(frozenset(), key_reader(settings.keys))
    endpoints = 0
    for each in objects(services):
        endpoints += len(each.endpoints) if isinstance(each, EndpointSlice) else 0
        state.apply(Upserted(each), 0)
    gc.collect()
    gc.freeze()  # as a server does after a list
    gc.disable()
    before = resident_megabytes(os.getpid())
    print(f"{NODES} Nodes, {services} Services with keys, {endpoints} endpoints, {before:.0f} MB resident")
    for changes in ROUNDS * [()] + ROUNDS * [("node=n1:down", "zone=z1:down")]:
        seconds, took, octets = audit(state, changes)
        share = took[len(took) * 99 // 100]
        what = "what-if" if changes else "audit"
        grown = resident_megabytes(os.getpid()) - before
        print(
            f"{what}: {seconds:.2f} s of CPU in {len(took)} steps, 99 of 100 at most {share * 1000:.2f} ms, the "
            f"longest {took[-1] * 1000:.2f} ms; document of {octets} octets; {grown:+.0f} MB"
        )


if __name__ == "__main__":
    main()
