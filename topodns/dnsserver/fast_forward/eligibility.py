"""Eligibility for the fast path to `forward`: the server blocks that have one, and the one that serves a name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from topodns.dns.message import Query
from topodns.dns.name import Name, is_subdomain, name_wire
from topodns.dnsserver.settings import ServerBlock
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.forward.flight import Answer
from topodns.plugins.forward.handler import Forwarding
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.loop import LoopGuard
from topodns.query.plugin import Client, Resolution

_BYSTANDERS: Final = {
    *("bind", "bufsize", "cancel", "debug", "errors", "health", "metadata", "multisocket", "pprof", "prometheus"),
    *("ready", "reload", "timeouts"),
}
_PASSED: Final = {"cache", "forward", "kubernetes", "loadbalance", "loop", "topology"}


@dataclass(frozen=True, slots=True, eq=False)
class Road:
    """A fast path: the plugins that a plain question passes in one server block, under one of its origins."""

    forwarding: Forwarding
    cache: ResponseCache | None
    guard: LoopGuard | None
    balancer: LoadBalancer | None
    elsewhere: tuple[Name, ...]  # origins in the block whose names another plugin answers, not `forward`
    label: str  # of the origin, for metrics
    payload_size: int

    def resolution(self, answer: Answer, query: Query, client: Client) -> Resolution:
        """The resolution that the chain would have made from this answer."""
        resolution = self.forwarding.resolution(answer)
        if self.cache is not None:
            resolution = self.cache.arrived(query, client, resolution)
        return resolution if self.balancer is None else self.balancer(query, client, resolution)


def is_road(block: ServerBlock, origin: Name) -> bool:
    """Whether names under this origin of the block pass no plugin but those of a `Road`.

    Names under the origins of its `kubernetes` are excepted.
    """
    if len(block.forward) != 1 or not set(block.directives) <= _BYSTANDERS | _PASSED:
        return False
    (forward,) = block.forward
    kept = () if block.cache is None else (*block.cache.success.disabled, *block.cache.denial.disabled)
    known = () if block.kubernetes is None else block.kubernetes.origins
    everywhere = block.cache is None or _covered(origin, block.cache.origins)
    return _covered(origin, forward.origins) and not forward.excepted and everywhere and set(kept) <= set(known)


def _covered(origin: Name, by: Iterable[Name]) -> bool:
    return any(is_subdomain(origin, each) for each in by)


class RoadMap:
    """The fast paths (roads) of one listener, by origin; the longest origin at or above a name decides."""

    def __init__(self, roads: Mapping[Name, Road | None]) -> None:
        """`roads` by origin, None without a fast path. The `elsewhere` origins of a road have none either."""
        everywhere = {name: None for road in roads.values() if road is not None for name in road.elsewhere} | {
            origin: road for origin, road in roads.items() if road is None or origin not in road.elsewhere
        }
        self._roads = {name_wire(origin): road for origin, road in everywhere.items()}
        self._parents = {name_wire(origin[1:]) for origin in everywhere if origin}

    def __bool__(self) -> bool:
        return any(self._roads.values())

    def find(self, name: bytes) -> Road | None:
        """The road for a name in wire form and lower case; None without a fast path."""
        at = 0
        while (origin := name[at:]) not in self._roads:
            if not name[at]:
                return None
            at += 1 + name[at]
        return self._roads[origin]

    def is_parent(self, name: bytes) -> bool:
        """Whether an origin is one label below `name`, so that the road of names below `name` depends on that label."""
        return name in self._parents
