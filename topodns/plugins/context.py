"""The parse context of a directive: its server block, the Corefile's directory and the host's interfaces."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

from topodns.corefile.errors import shown
from topodns.corefile.files import unreadable
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dns.name import Name
from topodns.netlink.route import addresses_of
from topodns.plugins.cache.settings import Cache


@dataclass(frozen=True, slots=True)
class Context:
    """The server block and the host around a directive."""

    origins: tuple[Name, ...]  # the zones of the block's keys
    directory: str = ""  # the Corefile's; relative paths are resolved against it
    interface_addresses: Callable[[str], tuple[str, ...] | None] = addresses_of  # None: no such interface
    cache: Cache | None = None  # the settings of a `cache` without options; None: CoreDNS's
    warn: Callable[[str], object] = str  # takes a log line about a valid directive that may not mean what was intended

    def path(self, directive: Directive, text: str) -> str:
        """`text` resolved against the Corefile's directory.

        Raises ConfigError for an empty word, which an unset variable leaves and which would mean that directory.
        """
        if not text:
            raise directive.error(f"'{directive.name}' has {shown(text)}, expected a path")
        return os.path.join(self.directory, text)

    def readable_path(self, directive: Directive, text: str) -> str:
        """`path` of a file or directory. Raises ConfigError if it cannot be read."""
        path = self.path(directive, text)
        if (problem := unreadable(path)) is not None:
            raise directive.error(problem)
        return path

    def readable_file(self, directive: Directive, text: str) -> str:
        """`path` of a file. Raises ConfigError if it cannot be read or is a directory."""
        path = self.readable_path(directive, text)
        if os.path.isdir(path):
            raise directive.error(f"cannot read {shown(path)}: {os.strerror(errno.EISDIR)}")
        return path

    def origins_of(self, directive: Directive) -> tuple[Name, ...]:
        """The zones that the arguments are; without arguments, those of the server block. Raises ConfigError."""
        return parse_origins(directive, directive.args) or self.origins
