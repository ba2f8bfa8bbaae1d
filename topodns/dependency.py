"""Dependencies of answers: names of the data whose change invalidates cached answers.

Separate from the cluster's objects, so that programs without them (node-cache) need not import them.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple


class Fact(NamedTuple):
    """A dependency of an answer. `ClusterState.apply` returns the facts that a change touched."""

    kind: str
    namespace: str
    name: str | bytes


EVERYTHING: Final = Fact("everything", "", "")  # invalidates every answer, e.g. after a kind became synced


def service_fact(namespace: str, name: str) -> Fact:
    """The Service of this name (existing or not), its slices, and the labels of its endpoints' Nodes."""
    return Fact("service", namespace, name)


def namespace_fact(name: str) -> Fact:
    """Whether this Namespace exists, and its labels."""
    return Fact("namespace", "", name)


def address_fact(address: bytes) -> Fact:
    """The Services, endpoints and Pods with this address, and the Node of a client with it."""
    return Fact("address", "", address)


def address_facts(addresses: Iterable[bytes]) -> set[Fact]:
    """The `address_fact` of each of these addresses."""
    return {Fact("address", "", address) for address in addresses}


def node_fact(name: str) -> Fact:
    """The labels of this Node, on which the answers to clients on it depend."""
    return Fact("node", "", name)
