"""Guards: annotations of a Service that pass over a topology key although it matches, or bound an answer's endpoints.

`min-endpoints` and `max-load` act in `topology.select`: where no key passes them, the keys alone decide, so that a
guard leaves no client without an answer. `max-endpoints` takes a subset of what all other rules leave. The order of
Nodes and of endpoints is that of a hash, blake2b of 8 octets, so that all replicas and versions agree, and a Node or
endpoint that comes or goes changes the answers of few clients. Specification: docs/reference/topology.md#guards.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar

from topodns.cluster.annotations import APPLY_TO, MAX_ENDPOINTS, MAX_LOAD, MIN_ENDPOINTS
from topodns.cluster.endpoints import Group, Pool, group_of
from topodns.cluster.model import (
    ANY_KEY,
    CLUSTER_KEY,
    HOSTNAME_LABEL,
    OTHER,
    Endpoint,
    MaxLoad,
    Node,
    ObjectKey,
    Policy,
    Service,
)
from topodns.cluster.node_labels import NodeLabels

T = TypeVar("T")

MOST_ENDPOINTS: Final = 1000  # of min-endpoints and max-endpoints
GREATEST_LOAD: Final = 100

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_DECIMAL: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,9})?")
_SHOWN: Final = 80  # characters of a value in a message
_NEAR, _NAME = "near", "name"
_MAX_RANKED: Final = 1 << 18  # Nodes whose order is kept, of 8 octets each
_MAX_SUBSETS: Final = 256  # of one group that are kept
_MAX_IN_SUBSETS: Final = 1 << 16  # endpoints in them, of 16 octets each: a client may have any address


class Guards(NamedTuple):
    """The guards of one Service. `problems`: a message about each annotation whose value is not valid."""

    min_endpoints: int = 1
    max_load: MaxLoad | None = None
    max_endpoints: int | None = None
    near_only: bool = False
    problems: tuple[str, ...] = ()


def guards_of(service: Service) -> Guards:
    """The guards by the annotations of a Service; one with a value that is not valid has no effect."""
    inputs = service.topology
    problems: list[str] = []
    least = _read(MIN_ENDPOINTS, inputs.min_endpoints, _count, f"1 to {MOST_ENDPOINTS}", problems)
    factor = _read(MAX_LOAD, inputs.max_load, _factor, f"a decimal from 1 to {GREATEST_LOAD}", problems)
    most = _read(MAX_ENDPOINTS, inputs.max_endpoints, _count, f"1 to {MOST_ENDPOINTS}", problems)
    near = _read(APPLY_TO, inputs.apply_to, {_NEAR: True, _NAME: False}.get, f"{_NEAR} or {_NAME}", problems)
    return Guards(
        min_endpoints=least or 1,
        max_load=None if factor is None else MaxLoad(factor, service.key),
        max_endpoints=most,
        near_only=bool(near),
        problems=tuple(problems),
    )


def _read(
    name: str, text: str | None, parse: Callable[[str], T | None], expected: str, problems: list[str]
) -> T | None:
    """The value of an annotation; None, and a problem, for a text that `parse` does not take. `text` None: None."""
    if text is None:
        return None
    value = parse(text.strip())
    if value is None:
        problems.append(f"annotation {name!r}: expected {expected}, found {text[:_SHOWN]!r}; it has no effect")
    return value


def _count(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) and 1 <= int(text) <= MOST_ENDPOINTS else None


def _factor(text: str) -> Fraction | None:
    """Exact: 1.4 times 30 times 2 / 14 is 6, where a float has less."""
    factor = Fraction(text) if _DECIMAL.fullmatch(text) else None
    return factor if factor is not None and 1 <= factor <= GREATEST_LOAD else None


def idle_guards(policy: Policy) -> Iterator[str]:
    """The annotations of guards that change no answer by the keys of this policy, whatever matches them.

    Where no key passes the guards, `*` decides, else the first key with a match: so a guard of one key alone is idle,
    and `max-load` if at most the last of several is one that it counts, none of them `*`.
    """
    if policy.min_endpoints > 1 and len(policy.keys) == 1:
        yield MIN_ENDPOINTS
    counted = [key for key in policy.keys if not (key in (ANY_KEY, HOSTNAME_LABEL) or key.startswith(OTHER))]
    only_last = counted == [*policy.keys[-1:]] and policy.min_endpoints == 1
    if policy.max_load is not None and policy.keys and (not counted or only_last or len(policy.keys) == 1):
        yield MAX_LOAD


class Load(NamedTuple):
    """The load of one value of a topology key: its share of the Nodes and of the matching endpoints."""

    nodes: int  # with this value
    of_nodes: int  # with the label
    endpoints: int
    of_endpoints: int
    capacity: int  # of these Nodes, the number that keep the key


class Domains:
    """The Nodes of a cluster by the value of a label, in the order in which `max-load` admits them.

    `nodes`: all Nodes by name, which is read again for a label whose revision in `labels` has changed.
    """

    def __init__(self, nodes: Callable[[], Mapping[str, Node]], labels: NodeLabels) -> None:
        self._nodes, self._labels = nodes, labels
        self._by_label: dict[str, tuple[int, dict[str, list[str]]]] = {}  # with the revision of the label
        self._order: dict[tuple[ObjectKey, str, str], tuple[list[str], array[int]]] = {}  # with the names of the Nodes
        self._ranked = 0

    def load(self, pool: Pool, label: str, value: str, factor: Fraction) -> Load:
        """The load of a value for the endpoints of `pool`."""
        by_value, counts = self._values(label), pool.counts(label)
        nodes, of_nodes = len(by_value.get(value, ())), sum(map(len, by_value.values()))
        endpoints, of_endpoints = counts.get(value, 0), sum(counts.values())
        capacity = max(1, factor * of_nodes * endpoints // of_endpoints) if of_endpoints else 1
        return Load(nodes, of_nodes, endpoints, of_endpoints, capacity)

    def admits(self, pool: Pool, key: str, node: Node, max_load: MaxLoad) -> bool:
        """Whether a client on this Node keeps a key that matches for it: the Node is one of the first `capacity`.

        Each value of kubernetes.io/hostname has one Node, and `!KEY` spreads its clients over many.
        """
        if key == HOSTNAME_LABEL or key.startswith(OTHER):
            return True
        value = node.labels[key]
        load = self.load(pool, key, value, max_load.factor)
        if load.nodes <= load.capacity:
            return True
        before = bisect_left(self._ordered(max_load.service, key, value), _rank(max_load.service, node.name))
        return before < load.capacity

    def _values(self, label: str) -> Mapping[str, list[str]]:
        revision = self._labels.revisions[label]
        found = self._by_label.get(label)
        if found is None or found[0] != revision:
            found = self._by_label[label] = revision, {}
            for node in self._nodes().values():
                if (value := node.labels.get(label)) is not None:
                    found[1].setdefault(value, []).append(node.name)
        return found[1]

    def _ordered(self, service: ObjectKey, label: str, value: str) -> "array[int]":
        """The hashes of the Nodes with this value, in order; of the last order as much as possible stays."""
        place, names = (service, label, value), self._values(label).get(value, [])
        known, order = self._order.get(place, (None, array("Q")))
        if known is names:
            return order
        before, after, size = set(known or ()), set(names), len(order)
        for name in before - after:
            del order[bisect_left(order, _rank(service, name))]
        added = [_rank(service, name) for name in after - before]
        order = array("Q", sorted([*order, *added]))
        if self._ranked + len(order) - size > _MAX_RANKED:
            self._order, self._ranked, size = {}, 0, 0
        self._order[place] = names, order
        self._ranked += len(order) - size
        return order


def _rank(service: ObjectKey, node_name: str) -> int:
    return int.from_bytes(_digest("\0".join((*service, node_name))), "big")


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


def bounded(group: Group, most: int, service: ObjectKey, client: str) -> Group:
    """At most so many endpoints of a group, by the highest hash of (Service, client, endpoint): rendezvous hashing.

    `client`: the name of its Node, or its address. An endpoint is the Pod of that name, in whichever family and slice,
    else its address.
    """
    if len(group.endpoints) <= most:
        return group
    subsets = group.subsets
    if subsets is None:
        subsets = group.subsets = {}
    place = most, client
    subset = subsets.get(place)
    if subset is None:
        if len(subsets) >= min(_MAX_SUBSETS, _MAX_IN_SUBSETS // most):
            subsets.clear()
        subset = subsets[place] = _highest(group, most, service, client)
    return subset


def _highest(group: Group, most: int, service: ObjectKey, client: str) -> Group:
    """Written for 5,000 endpoints and as many clients: the first query of each after a change waits for it."""
    members = group.members
    if members is None:
        members = group.members = tuple([_member(service, endpoint) for endpoint in group.endpoints])
    begun = blake2b("\0".join((*service, client, "")).encode(), digest_size=8)
    ranks: dict[bytes, bytes] = {}
    for member in members:
        hashed = begun.copy()
        hashed.update(member)
        ranks[member] = hashed.digest()
    if len(ranks) <= most:
        return group
    least = sorted(ranks.values())[-most]
    return group_of(
        [endpoint for endpoint, member in zip(group.endpoints, members, strict=True) if ranks[member] >= least]
    )


def _member(service: ObjectKey, endpoint: Endpoint) -> bytes:
    """Pods of several clusters may have the same name."""
    if not endpoint.pod_name:
        return endpoint.address
    of_cluster = f"/{endpoint.topology[CLUSTER_KEY]}" if CLUSTER_KEY in endpoint.topology else ""
    return f"{service.namespace}/{endpoint.pod_name}{of_cluster}".encode()
