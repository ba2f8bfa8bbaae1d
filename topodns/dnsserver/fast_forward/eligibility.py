"""Eligibility for the fast path to `forward`: the server blocks that have one, and the one that serves a name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from topodns.dns.message import DEFAULT_UDP_SIZE, Query
from topodns.dns.name import Name, is_below_any, name_text, name_wire
from topodns.dns.rrtype import ADDRESS_TYPES
from topodns.plugins.bufsize import PLUGIN as BUFSIZE
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.setup import PLUGIN as CACHE
from topodns.plugins.cache.setup import counting_cache
from topodns.plugins.forward.flight import UpstreamAnswer
from topodns.plugins.forward.handler import Forwarding
from topodns.plugins.forward.setup import PLUGIN as FORWARD
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.loop import LoopGuard
from topodns.plugins.plugin import FastPath, load
from topodns.plugins.setup import BlockSetup
from topodns.query.plugin import Client, Resolution


@dataclass(frozen=True, slots=True, eq=False)
class FastRoute:
    """A fast path: the plugins that a plain question passes in one server block, under one of its origins."""

    forwarding: Forwarding
    cache: ResponseCache | None
    guard: LoopGuard | None
    balancer: LoadBalancer | None
    elsewhere: tuple[Name, ...]  # origins in the block whose names another plugin answers, not `forward`
    label: str  # of the origin, for metrics
    payload_size: int
    # For `relay.Tail`: heads of records by their octets, for each type.
    records: Mapping[int, dict[bytes, Any]] = field(default_factory=lambda: {rtype: {} for rtype in ADDRESS_TYPES})

    def resolution(self, answer: UpstreamAnswer, query: Query, client: Client) -> Resolution:
        """The resolution that the chain would have made from this answer."""
        resolution = self.forwarding.resolution(answer)
        if self.cache is not None:
            resolution = self.cache.arrived(query, client, resolution)
        return resolution if self.balancer is None else self.balancer(query, client, resolution)


def make_fast_route(prepared: BlockSetup, origin: Name, server: str) -> FastRoute | None:
    """The fast path for names under this origin of a block; None if a directive of the block rules it out.

    That is so if the block has no `forward` or several, if `forward` or the block's `cache` is not for all these names
    (`cache` may except origins of `kubernetes`), or if a directive bars the fast path (`FastPath.BARRED`). Names under
    the origins of the block's `kubernetes` have no fast path (`elsewhere`). `server`: CoreDNS's metric label of the
    listener.
    """
    block = prepared.block
    forwards = FORWARD.settings_of(block) or ()
    if len(forwards) != 1 or any(load(name).fast_path is FastPath.BARRED for name in block.directives):
        return None
    (forward,) = forwards
    kubernetes, cache = block.settings.get("kubernetes"), CACHE.settings_of(block)
    known = () if kubernetes is None else kubernetes.origins
    disabled = () if cache is None else (*cache.success.disabled, *cache.denial.disabled)
    everywhere = cache is None or _covered(origin, cache.origins)
    if not _covered(origin, forward.origins) or forward.excepted or not everywhere or not set(disabled) <= set(known):
        return None
    return FastRoute(
        forwarding=prepared.provided(Forwarding)[0],
        cache=counting_cache(prepared, server),
        guard=prepared.first(LoopGuard),
        balancer=prepared.first(LoadBalancer),
        elsewhere=known,
        label=name_text(origin),
        payload_size=BUFSIZE.settings_of(block) or DEFAULT_UDP_SIZE,
    )


def _covered(origin: Name, by: Iterable[Name]) -> bool:
    return is_below_any(origin, by)


class FastRoutes:
    """The fast paths of one listener, by origin; the longest origin at or above a name decides."""

    def __init__(self, fast_routes: Mapping[Name, FastRoute | None]) -> None:
        """`fast_routes` by origin, None without a fast path.

        The `elsewhere` origins of one have none either, unless another server block has such an origin.
        """
        everywhere = {
            name: None for fast_route in fast_routes.values() if fast_route is not None for name in fast_route.elsewhere
        } | {
            origin: fast_route
            for origin, fast_route in fast_routes.items()
            if fast_route is None or origin not in fast_route.elsewhere
        }
        self._fast_routes = {name_wire(origin): fast_route for origin, fast_route in everywhere.items()}
        self._parents = {name_wire(origin[1:]) for origin in everywhere if origin}

    def __bool__(self) -> bool:
        return any(self._fast_routes.values())

    def find(self, name: bytes) -> FastRoute | None:
        """The fast path for a name in wire form and lower case; None without a fast path."""
        at = 0
        while (origin := name[at:]) not in self._fast_routes:
            if not name[at]:
                return None
            at += 1 + name[at]
        return self._fast_routes[origin]

    def is_parent(self, name: bytes) -> bool:
        """Whether an origin is one label below `name`, so that names below `name` may differ in their fast path."""
        return name in self._parents
