"""The settings of a server block: its keys, and the parsed settings of each of its directives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from topodns.corefile.lexer import Token
from topodns.corefile.zones import BlockKey
from topodns.plugins.cache.settings import Cache
from topodns.query.counters import server_label


@dataclass(frozen=True, slots=True)
class ServerBlock:
    """One server block. Its plugins see a query in the order of `plugins.order`, not in that of the Corefile."""

    keys: tuple[BlockKey, ...]
    source: str  # the file that contains it
    line: int
    settings: Mapping[str, Any]  # by directive, in the order of `plugins.order`: what the plugin's `parse` returned

    @property
    def directives(self) -> tuple[str, ...]:
        """The names of the directives that the block has."""
        return tuple(self.settings)

    @property
    def bound_hosts(self) -> tuple[str, ...]:
        """The addresses of `bind`; ("",) without it: all addresses of the machine. Interfaces are resolved already."""
        return tuple(dict.fromkeys(self.settings.get("bind") or ("",)))

    @property
    def view_name(self) -> str:
        """The value of CoreDNS's metric label `view`: the name of the block's `view`, "" without one."""
        view = self.settings.get("view")
        return view.name if view is not None else ""

    @property
    def servers(self) -> tuple[str, ...]:
        """The values of CoreDNS's metric label `server`, in the order of the Corefile."""
        return tuple(dict.fromkeys(server_label(key.at(host)) for host in self.bound_hosts for key in self.keys))


@dataclass(frozen=True, slots=True)
class ExpandedCorefile:
    """A Corefile without imports and variables: another process reads the same settings of it, whatever the files are
    by then.
    """

    tokens: tuple[Token, ...]
    file: str
    default_port: int  # of keys without one
    digest: str
    files: tuple[str, ...]
    cache: Cache | None = None  # as in `Context`
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of `plugins.forward.host_names`


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a Corefile. `digest`: SHA-512 of its text with all imports, for `reload` and its metric."""

    blocks: tuple[ServerBlock, ...]
    digest: str
    files: tuple[str, ...]  # the Corefile and all imported files
    expanded: ExpandedCorefile | None = None  # None without `multisocket`

    @property
    def version(self) -> str:
        """What changes with the Corefile, and with the files of `tls`."""
        of_blocks = (block.settings.get("tls") for block in self.blocks)
        of_metrics = (getattr(block.settings.get("prometheus"), "tls", None) for block in self.blocks)
        return " ".join([self.digest, *(tls.digest for tls in (*of_blocks, *of_metrics) if tls is not None)])
