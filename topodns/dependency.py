"""The facts that an answer can rest on: what may change, by name. Apart from the objects, which few programs have."""

from typing import Final, NamedTuple


class Fact(NamedTuple):
    """Something an answer rests on. `ClusterState.apply` returns the facts that a change touched."""

    kind: str
    namespace: str
    name: str | bytes


EVERYTHING: Final = Fact("everything", "", "")  # e.g. a kind became synced: every answer may differ


def service_fact(namespace: str, name: str) -> Fact:
    """The Service of this name (existing or not), its slices, and the labels of the nodes under its endpoints."""
    return Fact("service", namespace, name)


def namespace_fact(name: str) -> Fact:
    """Whether this Namespace exists, and its labels."""
    return Fact("namespace", "", name)


def address_fact(address: bytes) -> Fact:
    """Who owns this address: Services, endpoints, Pods, and which node a client with it is on."""
    return Fact("address", "", address)


def node_fact(name: str) -> Fact:
    """The labels of this Node: what a client located there is given."""
    return Fact("node", "", name)
