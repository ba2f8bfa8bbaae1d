"""What a directive's parser may know beside its own lines."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

from topodns.config.corefile import Directive
from topodns.config.errors import shown
from topodns.config.files import unreadable
from topodns.config.interfaces import addresses_of
from topodns.config.keys import parse_origins
from topodns.dns.names import Name
from topodns.settings.cache import AS_COREDNS, Cache


@dataclass(frozen=True, slots=True)
class Context:
    """The server block and the machine around a directive."""

    origins: tuple[Name, ...]  # of the block's keys
    directory: str = ""  # the Corefile's; relative paths start there
    interface_addresses: Callable[[str], tuple[str, ...] | None] = addresses_of  # None: no such interface
    cache: Cache = AS_COREDNS  # what a `cache` without options means to the command that reads the Corefile

    def path(self, directive: Directive, text: str) -> str:
        """`text` seen from the Corefile's directory. Raises ConfigError for an empty word, as an unset variable leaves
        one: it would stand for that directory.
        """
        if not text:
            raise directive.error(f"'{directive.name}' has '', expected a path")
        return os.path.join(self.directory, text)

    def readable_path(self, directive: Directive, text: str) -> str:
        """The path of a file or directory. Raises ConfigError where it cannot be read."""
        path = self.path(directive, text)
        if (problem := unreadable(path)) is not None:
            raise directive.error(problem)
        return path

    def readable_file(self, directive: Directive, text: str) -> str:
        """The path of a file. Raises ConfigError where it cannot be read."""
        path = self.readable_path(directive, text)
        if os.path.isdir(path):
            raise directive.error(f"cannot read {shown(path)}: {os.strerror(errno.EISDIR)}")
        return path

    def origins_of(self, directive: Directive) -> tuple[Name, ...]:
        """The zones among the arguments; the block's own where there are none."""
        return parse_origins(directive, directive.args) or self.origins
