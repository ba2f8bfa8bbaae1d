"""Dependencies of answers: names of the data whose change invalidates cached answers.

Separate from the cluster's objects, so that programs without them (node-cache) need not import them.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple


class Fact(NamedTuple):
    """A dependency of an answer. `ClusterState.apply` returns the facts that a change touched."""

    kind: str
    namespace: str
    name: str | bytes


EVERYTHING: Final = Fact("everything", "", "")  # invalidates every answer, e.g. after a kind became synced


# Partials of the class, not functions: each query that misses the packet cache makes two of them.

service_fact: Final[Callable[[str, str], Fact]] = partial(Fact, "service")
"""(namespace, name) -> the Service of this name (existing or not), its slices, and the labels of its endpoints' Nodes.
"""

namespace_fact: Final[Callable[[str], Fact]] = partial(Fact, "namespace", "")
"""(name) -> whether this Namespace exists, its labels, and the topology keys that its Services inherit."""

address_fact: Final[Callable[[bytes], Fact]] = partial(Fact, "address", "")
"""(packed address) -> the Services, endpoints and Pods with this address, and the Node of a client with it."""

node_fact: Final[Callable[[str], Fact]] = partial(Fact, "node", "")
"""(name) -> the labels of this Node, on which the answers to clients on it depend."""

label_fact: Final[Callable[[str], Fact]] = partial(Fact, "label", "")
"""(name) -> which Nodes have this label, and its values, by which `max-load` shares the load of domains."""

CACHED: Final = "cached"  # kind of `cached_fact`

cached_fact: Final[Callable[[bytes], Fact]] = partial(Fact, CACHED, "")
"""(name in wire form, type and class) -> the entries of `cache` for them, to which it is subscribed at the upstream."""


def address_facts(addresses: Iterable[bytes]) -> set[Fact]:
    """The `address_fact` of each of these addresses."""
    return {Fact("address", "", address) for address in addresses}
