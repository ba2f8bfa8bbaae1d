"""Refuses server blocks that forward to themselves, before anything is served (CoreDNS's `loop` finds it later)."""

from collections.abc import Collection, Iterator
from ipaddress import ip_address

from topodns.corefile.errors import ConfigError
from topodns.dns.name import Name, is_subdomain
from topodns.plugins.block import ServerBlock, Settings
from topodns.plugins.forward.settings import Forward, UpstreamAddress
from topodns.plugins.forward.setup import PLUGIN as FORWARD


def refuse_circles(settings: Settings, own_addresses: Collection[bytes]) -> None:
    """Raise ConfigError for the first upstream that is the forwarding block itself.

    `own_addresses` are those of the machine, packed. Forwarding to another block is allowed: it may have an answer.
    """
    listening = _Listening(settings, own_addresses)
    for block in settings.blocks:
        for forward in block.get(FORWARD) or ():
            names = list(_forwarded(block, forward))
            for upstream in forward.upstreams:
                there = listening.at(upstream)
                if there is not None and any(there.get(name) is block for name in names):
                    problem = f"'forward' has {upstream.name}, which is this server block itself: a loop"
                    raise ConfigError(forward.file, forward.line, problem)


def _forwarded(block: ServerBlock, forward: Forward) -> Iterator[Name]:
    """The topmost forwarded names: each is at or below both an origin of the block and one of the directive."""
    for key in block.keys:
        for origin in forward.origins:
            if is_subdomain(key.origin, origin):
                yield key.origin
            elif is_subdomain(origin, key.origin):
                yield origin


class _Origins:
    """The blocks of one listener by origin."""

    def __init__(self) -> None:
        self._blocks: dict[Name, ServerBlock] = {}
        self._viewed = False

    def add(self, block: ServerBlock, origin: Name) -> None:
        self._blocks.setdefault(origin, block)
        self._viewed = self._viewed or "view" in block.settings

    def get(self, name: Name) -> ServerBlock | None:
        """The block of the longest origin at or above this name; None if there is none.

        Also None if a block of this listener has a view, as the choice then depends on more than the name.
        """
        if self._viewed:
            return None
        above = (name[depth:] for depth in range(len(name) + 1))
        return next((self._blocks[origin] for origin in above if origin in self._blocks), None)


class _Listening:
    """The blocks by listen address, indexed once, as a node-cache may have a block for each stub domain."""

    def __init__(self, settings: Settings, own_addresses: Collection[bytes]) -> None:
        self._own_addresses = own_addresses
        self._at: dict[tuple[bytes, int], _Origins] = {}  # b"" for all addresses of the machine
        for block in settings.blocks:
            hosts = {_packed(host) if host else b"" for host in block.bound_hosts}
            for key in block.keys:
                for host in hosts:
                    self._at.setdefault((host, key.port), _Origins()).add(block, key.origin)

    def at(self, upstream: UpstreamAddress) -> _Origins | None:
        """The listener at this address, or None; one bound to the address goes before one on all addresses."""
        address = ip_address(upstream.host.partition("%")[0])
        found = self._at.get((address.packed, upstream.port))
        if found is None and (address.is_loopback or address.packed in self._own_addresses):
            found = self._at.get((b"", upstream.port))
        return found


def _packed(host: str) -> bytes:
    return ip_address(host.partition("%")[0]).packed
