"""Server blocks that would forward to themselves, seen before anything is served (CoreDNS's `loop` sees it later)."""

from collections.abc import Collection, Iterator
from ipaddress import ip_address

from topodns.config.errors import ConfigError
from topodns.dns.names import Name, is_subdomain
from topodns.settings.forward import Forward, UpstreamAddress
from topodns.settings.server import ServerBlock, Settings


def refuse_circles(settings: Settings, own_addresses: Collection[bytes]) -> None:
    """Raise ConfigError for the first upstream that is the very block that forwards to it.

    `own_addresses` are those of the machine, packed. Forwarding to another block is fine: that one may know more.
    """
    for block in settings.blocks:
        for forward in block.forward:
            for upstream in forward.upstreams:
                if _is_itself(block, forward, upstream, settings, own_addresses):
                    problem = f"'forward' has {upstream.name}, which is this server block itself: a loop"
                    raise ConfigError(block.source, block.line, problem)


def _is_itself(
    block: ServerBlock,
    forward: Forward,
    upstream: UpstreamAddress,
    settings: Settings,
    own_addresses: Collection[bytes],
) -> bool:
    there = [other for other in settings.blocks if _listens_at(other, upstream, own_addresses)]
    return any(_takes(there, name) is block for name in _forwarded(block, forward))


def _forwarded(block: ServerBlock, forward: Forward) -> Iterator[Name]:
    """What the block forwards is below both: an origin of its own and one of the directive."""
    for key in block.keys:
        for origin in forward.origins:
            if is_subdomain(key.origin, origin):
                yield key.origin
            elif is_subdomain(origin, key.origin):
                yield origin


def _listens_at(block: ServerBlock, upstream: UpstreamAddress, own_addresses: Collection[bytes]) -> bool:
    if all(key.port != upstream.port for key in block.keys):
        return False
    address = ip_address(upstream.host.partition("%")[0])
    if block.bind:
        return address in {ip_address(host.partition("%")[0]) for host in block.bind}
    return address.is_loopback or address.packed in own_addresses


def _takes(blocks: Collection[ServerBlock], name: Name) -> ServerBlock | None:
    """The block that a question for this name, or one below it, is for; None where a view has a say."""
    if any(block.view is not None for block in blocks):
        return None
    matching = [(key.origin, block) for block in blocks for key in block.keys if is_subdomain(name, key.origin)]
    return max(matching, key=lambda match: len(match[0]))[1] if matching else None
