"""Refuses server blocks that are certain to forward to themselves, and warns of those that may.

CoreDNS serves both, and finds a loop by `loop` while it serves (`plugins.loop`).
"""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from topodns.corefile.errors import ConfigError
from topodns.dns.addresses import is_of_machine, packed_address
from topodns.dns.name import Name, is_subdomain
from topodns.plugins.block import ServerBlock, Settings
from topodns.plugins.forward.settings import Forward, UpstreamAddress, UpstreamTransport
from topodns.plugins.forward.setup import PLUGIN as FORWARD

_DECIDING: Final = ("acl", "file", "template", "view")
"""Directives that may drop, answer or pass on a query when it comes back."""


class _SelfForwarding(NamedTuple):
    """An upstream that has the address of its own server block."""

    block: ServerBlock
    forward: Forward
    upstream: UpstreamAddress
    certain: bool  # whether each query to the directive's upstreams comes back to it as it was


def refuse_self_forwarding(settings: Settings, own_addresses: Collection[bytes]) -> tuple[str, ...]:
    """Log lines about upstreams that may be the forwarding block itself. Raises ConfigError for the first that is.

    `own_addresses` are those of the machine, packed. An upstream is the block itself where the block has the address in
    `bind`; a block on all addresses only may be, as the packet filter may redirect the address to another program, as
    in containers on a network of Docker's own (127.0.0.11). Forwarding to another block is allowed: it may have an
    answer.
    """
    warnings = []
    for block, forward, upstream, certain in _self_forwardings(settings, own_addresses):
        if certain:
            problem = f"'forward' has {upstream.name}, which is this server block itself: a loop"
            raise ConfigError(forward.file, forward.line, problem)
        finds = (
            "`loop` finds out" if "loop" in block.settings else "`loop` would find out, which the block does not have"
        )
        warnings.append(
            f"plugin/forward: {upstream.name} may be this server block itself, a loop: {finds} "
            f"({forward.file}:{forward.line})"
        )
    return tuple(warnings)


def _self_forwardings(settings: Settings, own_addresses: Collection[bytes]) -> Iterator[_SelfForwarding]:
    listening = _Listening(settings, own_addresses)
    for block in settings.blocks:
        for forward in FORWARD.settings_of(block) or ():
            names = list(_forwarded(block, forward))
            found = [
                (upstream, at)
                for upstream in forward.upstreams
                if (at := listening.at(upstream)) is not None and any(at.origins.get(name) is block for name in names)
            ]
            certain = (
                len(found) == len(forward.upstreams)
                and all(at.bound for _, at in found)
                and not any(name in block.settings for name in _DECIDING)
                and not _renames(block)
            )
            for upstream, _ in found:
                yield _SelfForwarding(block, forward, upstream, certain)


def _renames(block: ServerBlock) -> bool:
    """Whether the block may forward another name than that of the query, which another block may have."""
    if "rewrite" not in block.settings:
        return False
    from topodns.plugins.rewrite.settings import NameRule  # here: most blocks have no rules, so they are not loaded

    return any(isinstance(rule.change, NameRule) for rule in block.settings["rewrite"])


def _forwarded(block: ServerBlock, forward: Forward) -> Iterator[Name]:
    """The topmost forwarded names: each is at or below both an origin of the block and one of the directive."""
    for key in block.keys:
        for origin in forward.origins:
            for name in {key.origin, origin}:
                within = is_subdomain(name, origin) and is_subdomain(name, key.origin)
                if within and not any(is_subdomain(name, excepted) for excepted in forward.excepted):
                    yield name


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


class _Listener(NamedTuple):
    """A listener that an upstream's address is one of: by `bind`, or as one of all addresses of the machine."""

    origins: _Origins
    bound: bool


class _Listening:
    """The blocks by listen address, indexed once, as a node-cache may have a block for each stub domain."""

    def __init__(self, settings: Settings, own_addresses: Collection[bytes]) -> None:
        self._own_addresses = own_addresses
        self._at: dict[tuple[bytes, str, int, bool], _Origins] = {}  # b"" for all addresses of the machine
        for block in settings.blocks:
            hosts = {_place(host) if host else (b"", "") for host in block.bound_hosts}
            for key in block.keys:
                for packed, scope in hosts:
                    self._at.setdefault((packed, scope, key.port, key.tls), _Origins()).add(block, key.origin)

    def at(self, upstream: UpstreamAddress) -> _Listener | None:
        """The listener at this address, or None; one bound to the address goes before one on all addresses.

        None for a host name, which may have any, and for HTTPS, which no block serves.
        """
        if upstream.is_name or upstream.transport is UpstreamTransport.HTTPS:
            return None
        tls = upstream.transport is UpstreamTransport.TLS
        packed, scope = _place(upstream.host)
        bound = self._at.get((packed, scope, upstream.port, tls))
        if bound is not None:
            return _Listener(bound, bound=any(packed))
        if not is_of_machine(packed, self._own_addresses):
            return None
        unspecified = bytes(len(packed))
        wild = self._at.get((b"", "", upstream.port, tls)) or self._at.get((unspecified, "", upstream.port, tls))
        return _Listener(wild, bound=False) if wild is not None else None


def _place(host: str) -> tuple[bytes, str]:
    """The packed address and its interface, "" for none: a link-local one may be another machine's on another link."""
    return packed_address(host), host.partition("%")[2]
