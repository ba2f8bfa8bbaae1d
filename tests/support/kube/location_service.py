"""A Service that shows a client its location in the server's view: one endpoint a node, each for its node alone."""

from collections.abc import Iterable
from typing import Final

from tests.support.kube.objects import HOSTNAME, Object, headless, manual_slice

NAME: Final = "whereabouts"
NOWHERE: Final = ""


def whereabouts(nodes: Iterable[str]) -> list[Object]:
    """The Service and its endpoints: documentation addresses (RFC 5737), which no client ever connects to."""
    return [headless(NAME, HOSTNAME, app=""), manual_slice(NAME, NAME, [(_address(node), node) for node in nodes])]


def node_of(addresses: set[str], nodes: Iterable[str]) -> str:
    """The node whose endpoint an answer has; NOWHERE for none at all."""
    got = [node for node in nodes if _address(node) in addresses]
    assert {_address(node) for node in got} == addresses, addresses
    assert len(got) <= 1, got
    return got[0] if got else NOWHERE


def _address(node: str) -> str:
    return f"192.0.2.{node.removeprefix('node')}"
