"""The declaration of a plugin: its parser, its place in a server block, and what other packages may assume of it.

Each plugin's module, or the module `setup` of its folder, has one `Plugin` with the name PLUGIN. No other package lists
plugins by name: the checks of a Corefile, the packet cache and the fast paths read these attributes.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from topodns.corefile.arguments import flag
from topodns.corefile.parser import Directive
from topodns.dns.name import Name
from topodns.metrics.registry import Published
from topodns.plugins.block import ServerBlock
from topodns.plugins.compatibility import Row
from topodns.plugins.context import Context
from topodns.plugins.setup import BlockSetup, Install, MetricsSource

S = TypeVar("S")


class Reads(IntEnum):
    """The parts of a query that may change a plugin's answer; decides which queries share a packet cache entry."""

    QUESTION = 0  # the question whatever its spelling, and the EDNS options that code here knows
    SPELLING = 1  # also the letter case of the name
    EVERYTHING = 2  # also EDNS options by number, or the size of the message


class FastPath(Enum):
    """The effect of a plugin on the fast paths of plain questions, as octets: to `forward`, and to `kubernetes`.

    For the second, only the plugins that see a query before `kubernetes` count.
    """

    ABSENT = "a plain question does not meet it"
    PASSED = "the fast path knows the plugin"
    BARRED = "a server block with it has no fast path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin(Generic[S]):
    """One directive and the plugin that it configures. S: the type of its settings.

    A server block may repeat the directive only with `adds_up`; then settings are tuples, which are joined.
    """

    name: str
    coredns: Row  # the verdict of a Corefile check
    parse: Callable[[Directive, Context], S]  # raises ConfigError
    setup: Callable[[S, BlockSetup], Install | None] | None = None  # raises one of `setup.FILE_ERRORS`
    adds_up: bool = False
    in_chain: bool = True  # False: it configures the server or the process, and takes no part in answers
    requires: tuple[str, ...] = ()  # directives that the same server block must have
    check: Callable[[Directive, S, Collection[str]], None] | None = None  # with all names in the block; ConfigError
    reads: Reads | Callable[[S], Reads] = Reads.QUESTION
    spells: frozenset[int] = frozenset()  # types of its records that have no name but the query's, spelled as there
    fast_path: FastPath = FastPath.BARRED
    unanswered: int | None = None  # rcode, as in CoreDNS, where it is the last plugin and none answered
    labels: Callable[[S], Iterable[str]] | None = None  # of metadata, that it reads
    classes: Callable[[S], Iterable[int]] | None = None  # query classes beside IN that it answers
    zones: Callable[[S], Iterable[Name]] | None = None  # without effect on names outside them; None: on all
    metrics: Callable[[MetricsSource], Iterable[Published]] | None = None

    def settings_of(self, block: ServerBlock) -> S | None:
        """The settings of the plugin in this server block; None if the block does not have its directive."""
        settings: S | None = block.settings.get(self.name)
        return settings

    def reading(self, settings: S) -> Reads:
        """The parts of a query that the plugin reads with these settings."""
        return self.reads if isinstance(self.reads, Reads) else self.reads(settings)


class HasOrigins(Protocol):
    """Settings that are for the names at and below some zones."""

    @property
    def origins(self) -> tuple[Name, ...]: ...


def origins(settings: HasOrigins) -> tuple[Name, ...]:
    """`Plugin.zones` of a plugin of one directive."""
    return settings.origins


def all_origins(settings: Iterable[HasOrigins]) -> tuple[Name, ...]:
    """`Plugin.zones` of a plugin whose directives add up."""
    return tuple(origin for each in settings for origin in each.origins)


def parse_flag(directive: Directive, _: Context) -> bool:
    """The parser of a directive without arguments and body, which raises ConfigError for either; always True."""
    flag(directive)
    return True


AnyPlugin = Plugin[Any]


def load(name: str) -> AnyPlugin:
    """The plugin of this name in ORDER.

    It is imported by name, so that a process loads only the plugins of its Corefile: a node cache has no `kubernetes`.
    """
    module = import_module(f"topodns.plugins.{name}")
    if hasattr(module, "__path__"):
        module = import_module(f"{module.__name__}.setup")
    plugin: AnyPlugin = module.PLUGIN
    return plugin
