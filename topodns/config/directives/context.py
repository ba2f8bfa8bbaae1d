"""What a directive's parser may know beside its own lines."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from topodns.config.corefile import Directive
from topodns.config.files import unreadable
from topodns.config.interfaces import addresses_of
from topodns.config.keys import parse_origins
from topodns.dns.names import Name


@dataclass(frozen=True, slots=True)
class Context:
    """The server block and the machine around a directive."""

    origins: tuple[Name, ...]  # of the block's keys
    directory: str = ""  # the Corefile's; relative paths start there
    interface_addresses: Callable[[str], tuple[str, ...] | None] = addresses_of  # None: no such interface

    def readable_path(self, directive: Directive, path: str) -> str:
        """`path` seen from the Corefile's directory. Raises ConfigError where it cannot be read."""
        full = os.path.join(self.directory, path)
        if (problem := unreadable(full)) is not None:
            raise directive.error(problem)
        return full

    def origins_of(self, directive: Directive) -> tuple[Name, ...]:
        """The zones among the arguments; the block's own where there are none."""
        return parse_origins(directive, directive.args) or self.origins
