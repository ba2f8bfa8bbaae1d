"""Which server blocks have a short way for plain questions to their `forward`, and which of them a name is for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from topodns.dns.message import Query
from topodns.dns.names import Name, is_subdomain, name_wire
from topodns.resolve.cache import ResponseCache
from topodns.resolve.forward import Answer, Forwarding
from topodns.resolve.loadbalance import LoadBalancer
from topodns.resolve.loop import LoopGuard
from topodns.resolve.step import Client, Resolution
from topodns.settings.server import ServerBlock

_BYSTANDERS: Final = {
    *("bind", "bufsize", "cancel", "debug", "errors", "health", "metadata", "multisocket", "pprof", "prometheus"),
    *("ready", "reload", "timeouts"),
}
_PASSED: Final = {"cache", "forward", "kubernetes", "loadbalance", "loop", "topology"}


@dataclass(frozen=True, slots=True, eq=False)
class Road:
    """What a plain question passes in one server block, under one of its origins."""

    forwarding: Forwarding
    cache: ResponseCache | None
    guard: LoopGuard | None
    balancer: LoadBalancer | None
    elsewhere: tuple[Name, ...]  # origins in the block whose names are not for the `forward`
    label: str  # of the origin, for metrics
    payload_size: int

    def resolution(self, answer: Answer, query: Query, client: Client) -> Resolution:
        """What the chain would have made of this answer."""
        resolution = self.forwarding.resolution(answer)
        if self.cache is not None:
            resolution = self.cache.arrived(query, client, resolution)
        return resolution if self.balancer is None else self.balancer(query, client, resolution)


def is_road(block: ServerBlock, origin: Name) -> bool:
    """Whether names under this origin of the block meet nothing in it that a `Road` does not have.

    But for those under the origins of its `kubernetes`.
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
    """The roads of one listener: the longest origin that a name is at or below says which one it takes, if any."""

    def __init__(self, roads: Mapping[Name, Road | None]) -> None:
        """`roads` by origin, None where there is none; those that a road has `elsewhere` have none either."""
        everywhere = {name: None for road in roads.values() if road is not None for name in road.elsewhere} | {
            origin: road for origin, road in roads.items() if road is None or origin not in road.elsewhere
        }
        self._roads = {name_wire(origin): road for origin, road in everywhere.items()}
        self._parents = {name_wire(origin[1:]) for origin in everywhere if origin}

    def __bool__(self) -> bool:
        return any(self._roads.values())

    def find(self, name: bytes) -> Road | None:
        """The road of a name in wire form and lower case."""
        at = 0
        while (origin := name[at:]) not in self._roads:
            if not name[at]:
                return None
            at += 1 + name[at]
        return self._roads[origin]

    def is_parent(self, name: bytes) -> bool:
        """Whether the name with one label more before it may take another road than with another label."""
        return name in self._parents
