"""The memory and CPU to locate 150,000 Pods on 5,000 nodes, by Pods, PodLocators or NodeLocators.

Run with `python -m bench.locators`. Each kind has a process of its own. Lists are those of an API server without
`managedFields`. Times are CPU seconds, so that other load on the machine does not count.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address
from time import thread_time
from typing import Any, Final

from bench.proc import resident_megabytes
from topodns.cluster.decode.stream import Listed, read_listed
from topodns.cluster.model import Kind, NodeLocator, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.topology.client_locator import ClientLocator, Method

NODES: Final = 5_000
PER_NODE: Final = 30
UPDATES: Final = 1_000

Made = Iterator[dict[str, Any]]


def _address(number: int) -> str:
    return str(ip_address(0x0A000000 + number))


def _pods() -> Made:
    for number in range(NODES * PER_NODE):
        status = {"phase": "Running", "podIP": _address(number), "startTime": "2024-01-01T00:00:00Z"}
        spec = {"nodeName": f"node-{number // PER_NODE}"}
        metadata = {"name": f"pod-{number}", "namespace": f"team-{number % 100}", "resourceVersion": "7"}
        yield {"metadata": metadata, "spec": spec, "status": status}


def _pod_locators() -> Made:
    for pod in _pods():
        spec = {"ips": [pod["status"]["podIP"]], "nodeName": pod["spec"]["nodeName"]}
        yield {"metadata": pod["metadata"], "spec": spec}


def _node_locators() -> Made:
    for number in range(NODES):
        name = f"node-{number}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        addresses = [_address(number * PER_NODE + at) for at in range(PER_NODE)]
        spec = {"podIPs": addresses, "addresses": [f"192.168.{number >> 8}.{number & 255}"], "labels": labels}
        yield {"metadata": {"name": name, "resourceVersion": "7"}, "spec": spec}


KINDS: Final[Mapping[Kind, tuple[Callable[[], Made], Method]]] = {
    "Pod": (_pods, Method.PODS),
    "PodLocator": (_pod_locators, Method.PODLOCATOR),
    "NodeLocator": (_node_locators, Method.NODELOCATOR),
}


def measure(kind: Kind) -> str:
    """A row: objects, MB of their JSON, CPU seconds to take the list, MB resident, microseconds to locate a client."""
    make, method = KINDS[kind]
    lines = [json.dumps(each).encode() for each in make()]
    gc.disable()
    before, begun = resident_megabytes(os.getpid()), thread_time()
    state = ClusterState(frozenset({kind}))
    listed = (read_listed(kind, line) for line in lines)
    state.apply(Replaced(kind, tuple(each.object for each in listed if isinstance(each, Listed))), 0)
    taken = thread_time() - begun
    held = resident_megabytes(os.getpid()) - before
    locator = ClientLocator(state, [method])
    clients = [ip_address(_address(number)).packed for number in range(0, NODES * PER_NODE, 7)]
    begun = thread_time()
    found = [locator.node_name_by(method, client) for client in clients]
    each_us = (thread_time() - begun) / len(clients) * 1e6
    assert all(found)
    sizes = sum(map(len, lines)) / 1e6
    return f"{kind:12} {len(lines):8,} {sizes:8.1f} {taken:8.2f} {held:8.1f} {each_us:8.1f}{_update_cost(state, kind)}"


def _update_cost(state: ClusterState, kind: Kind) -> str:
    """Microseconds of a change of one NodeLocator, in which one address takes the place of another."""
    one = next(iter(state.locators.node_locators.values()), None)
    if kind != "NodeLocator" or one is None:
        return ""
    begun = thread_time()
    for number in range(UPDATES):
        assert isinstance(one, NodeLocator)
        one = replace(one, pod_ips=(*one.pod_ips[1:], ip_address(0x0B000000 + number).packed))
        state.apply(Upserted(one), 0)
    return f" {(thread_time() - begun) / UPDATES * 1e6:8.1f}"


if __name__ == "__main__":
    if sys.argv[1:]:
        (chosen,) = (kind for kind in KINDS if kind == sys.argv[1])
        print(measure(chosen))
    else:
        print(f"{'kind':12} {'objects':>8} {'MB JSON':>8} {'s CPU':>8} {'MB kept':>8} {'us each':>8} {'us change':>8}")
        for each in KINDS:
            subprocess.run([sys.executable, "-m", "bench.locators", each], check=True)
