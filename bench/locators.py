"""The memory and CPU to locate 150,000 Pods on 5,000 nodes, by Pods and Nodes, PodLocators or NodeLocators.

Run with `python -m bench.locators`. Each way has a process of its own. Lists are those of an API server without
`managedFields`. Times are CPU seconds, so that other load on the machine does not count. Then the writes of `topodns
locator` for the same cluster, by a clock of their own: those of an API server that takes no time for one.
"""

import gc
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from time import thread_time
from typing import Any, Final, NamedTuple

from bench.proc import resident_megabytes
from topodns.cluster.decode.stream import Listed, read_listed
from topodns.cluster.model import Kind, NodeLocator, ObjectKey, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.locator.objects import KINDS, LocatorContent, LocatorKind, StoredLocator
from topodns.locator.pending import PendingWrites
from topodns.locator.projection import PlacedNode, PlacedPod, Projection
from topodns.topology.client_locator import ClientLocator, Method

NODES: Final = 5_000
PER_NODE: Final = 30
UPDATES: Final = 1_000
RACK: Final = "example.com/rack"

Made = Iterator[dict[str, Any]]


def _address(number: int) -> str:
    return str(ip_address(0x0A000000 + number))


def _own_address(node: int) -> str:
    return f"192.168.{node >> 8}.{node & 255}"


def _labels(node: int) -> dict[str, str]:
    """Those that locators have."""
    names = ("kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone")
    return dict(zip(names, (f"node-{node}", "region-1", f"zone-{node % 3}"), strict=True))


def _all_labels(node: int) -> dict[str, str]:
    others = {f"node.example.com/label-{at}": f"value-{at}" for at in range(15)}
    return {**_labels(node), RACK: f"rack-{node % 200}", **others}


def _nodes() -> Made:
    for number in range(NODES):
        status = {"addresses": [{"type": "InternalIP", "address": _own_address(number)}]}
        metadata = {"name": f"node-{number}", "resourceVersion": "7", "labels": _all_labels(number)}
        yield {"metadata": metadata, "spec": {}, "status": status}


def _pods() -> Made:
    for number in range(NODES * PER_NODE):
        status = {"phase": "Running", "podIP": _address(number), "startTime": "2024-01-01T00:00:00Z"}
        spec = {"nodeName": f"node-{number // PER_NODE}"}
        metadata = {"name": f"pod-{number}", "namespace": f"team-{number % 100}", "resourceVersion": "7"}
        yield {"metadata": metadata, "spec": spec, "status": status}


def _pod_locators() -> Made:
    for number, pod in enumerate(_pods()):
        labels = _labels(number // PER_NODE)
        spec = {"addresses": [pod["status"]["podIP"]], "nodeName": pod["spec"]["nodeName"], "nodeLabels": labels}
        yield {"metadata": pod["metadata"], "spec": spec}


def _node_locators() -> Made:
    for number in range(NODES):
        addresses = [_address(number * PER_NODE + at) for at in range(PER_NODE)]
        spec = {"podIPs": addresses, "addresses": [_own_address(number)], "labels": _labels(number)}
        yield {"metadata": {"name": f"node-{number}", "resourceVersion": "7"}, "spec": spec}


class Way(NamedTuple):
    """A way to locate clients: the lists that it needs, and the method."""

    lists: Mapping[Kind, Callable[[], Made]]
    method: Method


WAYS: Final[Mapping[str, Way]] = {
    "Pod, Node": Way({"Pod": _pods, "Node": _nodes}, Method.PODS),
    "PodLocator": Way({"PodLocator": _pod_locators}, Method.PODLOCATOR),
    "NodeLocator": Way({"NodeLocator": _node_locators}, Method.NODELOCATOR),
}


def measure(name: str) -> str:
    """A row: objects, MB of their JSON, CPU seconds to take the lists, MB resident, microseconds to locate a client."""
    way = WAYS[name]
    lists = {kind: [json.dumps(each).encode() for each in make()] for kind, make in way.lists.items()}
    gc.disable()
    before, begun = resident_megabytes(os.getpid()), thread_time()
    state = ClusterState(frozenset(lists))
    for kind, lines in lists.items():
        listed = (read_listed(kind, line) for line in lines)
        whole = Replaced(kind, tuple(each.object for each in listed if isinstance(each, Listed)))
        for _ in state.replace_steps(whole, 0):
            pass
    taken = thread_time() - begun
    held = resident_megabytes(os.getpid()) - before
    locator = ClientLocator(state, [way.method])
    clients = [ip_address(_address(number)).packed for number in range(0, NODES * PER_NODE, 7)]
    begun = thread_time()
    found = [locator.node_name_by(way.method, client) for client in clients]
    each_us = (thread_time() - begun) / len(clients) * 1e6
    assert all(found)
    assert len(state.all_nodes()) == NODES
    lines = [line for several in lists.values() for line in several]
    sizes = sum(map(len, lines)) / 1e6
    return f"{name:12} {len(lines):8,} {sizes:8.1f} {taken:8.2f} {held:8.1f} {each_us:8.1f}{_update_cost(state)}"


def _update_cost(state: ClusterState) -> str:
    """Microseconds of a change of one NodeLocator, in which one address takes the place of another."""
    one = next(iter(state.locators.node_locators.values()), None)
    if one is None:
        return ""
    begun = thread_time()
    for number in range(UPDATES):
        assert isinstance(one, NodeLocator)
        one = replace(one, pod_ips=(*one.pod_ips[1:], ip_address(0x0B000000 + number).packed))
        state.apply(Upserted(one), 0)
    return f" {(thread_time() - begun) / UPDATES * 1e6:8.1f}"


class Writer:
    """A controller whose writes are done at once."""

    def __init__(self, kind: LocatorKind) -> None:
        self.projection = Projection(kind)
        self._pending = PendingWrites(0.5, self.projection.locator)
        self._now = 0.0
        self._version = 0

    def write(self, keys: set[ObjectKey]) -> tuple[int, float]:
        """(writes, seconds until the last one) after a change of the locators with these keys."""
        self._now += 60.0
        self._pending.touch(keys, self._now)
        began, writes = self._now, 0
        while (wait := self._pending.wait(self._now)) < math.inf:
            self._now += wait
            while (write := self._pending.take(self._now)) is not None:
                writes += 1
                self._pending.succeeded(write, self._stored(write.content), self._now)
        return writes, self._now - began

    def _stored(self, content: LocatorContent | None) -> StoredLocator | None:
        self._version += 1
        if content is None:
            return None
        return StoredLocator("u", str(self._version), content.ips, content, frozenset((content.owner_uid,)))


def _place_of_pod(number: int) -> PlacedPod:
    address = ip_address(_address(number)).packed
    return PlacedPod(f"uid-{number}", f"node-{number // PER_NODE}", (address,), (True, "2024-01-01T00:00:00Z"))


def measure_writes(word: str) -> str:
    """A row: writes of this kind of locator for a new Pod, a changed label of a Node, and a new topology key."""
    writer = Writer(KINDS[word])
    projection = writer.projection
    places = [PlacedNode(f"u-{at}", (ip_address(_own_address(at)).packed,), _all_labels(at)) for at in range(NODES)]
    touched = set[ObjectKey]()
    for at, place in enumerate(places):
        touched |= projection.set_node(ObjectKey("", f"node-{at}"), place)
    for number in range(NODES * PER_NODE):
        touched |= projection.set_pod(ObjectKey(f"team-{number % 100}", f"pod-{number}"), _place_of_pod(number))
    writer.write(touched)
    key = ObjectKey("team-0", "new")
    started, _ = writer.write(
        projection.set_pod(key, _place_of_pod(NODES * PER_NODE - 1)._replace(ips=(b"\x0b\0\0\1",)))
    )
    moved = places[0]._replace(labels={**places[0].labels, "topology.kubernetes.io/zone": "zone-9"})
    relabelled, seconds = writer.write(projection.set_node(ObjectKey("", "node-0"), moved))
    keyed, all_seconds = writer.write(projection.set_keyed("Service", ObjectKey("team-0", "s"), (RACK,)))
    again, _ = writer.write(projection.set_keyed("Service", ObjectKey("team-0", "s"), None))
    return f"{word:12} {started:8,} {relabelled:8,} {seconds:8.1f} {keyed:8,} {all_seconds:8.1f} {again:8,}"


def main(words: Sequence[str]) -> None:
    if words:
        (chosen,) = words
        print(measure_writes(chosen) if chosen in KINDS else measure(chosen))
        return
    print(f"{'read':12} {'objects':>8} {'MB JSON':>8} {'s CPU':>8} {'MB kept':>8} {'us each':>8} {'us change':>8}")
    for each in WAYS:
        subprocess.run([sys.executable, "-m", "bench.locators", each], check=True)
    print("\nwrites for a new Pod, a label of a Node, a new key (with seconds), and a key that goes:")
    print(f"{'written':12} {'pod':>8} {'label':>8} {'s':>8} {'key':>8} {'s':>8} {'gone':>8}")
    for word in KINDS:
        subprocess.run([sys.executable, "-m", "bench.locators", word], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
