"""Server blocks set up without a process: their plugins, and chains in which tests replace some of them."""

from collections.abc import Mapping
from random import Random

from tests.support.virtual_timers import VirtualTimers
from topodns.dnsserver.chain import Chain, build_chain, unanswered_rcode
from topodns.plugins.block import ServerBlock
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load
from topodns.plugins.setup import BlockListener, BlockSetup, Install, Process
from topodns.query.plugin import ChainPart

NONE: Mapping[str, tuple[ChainPart, ...]] = {}


def process(host_name: str = "host-1") -> Process:
    return Process(VirtualTimers(), Random(1), host_name)


def set_up(block: ServerBlock, of: Process | None = None) -> BlockSetup:
    """The block with its plugins set up, as the server does."""
    prepared = BlockSetup(of or process(), block)
    for name, settings in reversed(list(block.settings.items())):
        plugin = load(name)
        if plugin.setup is not None:
            plugin.setup(settings, prepared)
    return prepared


def chain_of(block: ServerBlock, instead: Mapping[str, tuple[ChainPart, ...]] = NONE) -> Chain:
    """The chain of a block at port 53, with these parts for plugins by name, in place of their own or besides."""
    prepared, listener = BlockSetup(process(), block), BlockListener("", 53)
    installs: dict[str, Install] = {}
    for name in reversed(ORDER):
        plugin = load(name)
        if name in instead or name not in block.settings or plugin.setup is None:
            continue
        if (install := plugin.setup(block.settings[name], prepared)) is not None:
            installs[name] = install
    parts: list[ChainPart] = []
    for name in ORDER:
        parts += instead[name] if name in instead else installs[name](listener) if name in installs else ()
    return build_chain(parts, unanswered_rcode([load(name) for name in block.settings]))
