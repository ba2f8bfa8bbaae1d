"""Budget of file descriptors: the process's limit, and its shares for client connections and upstream sockets.

Each TCP or HTTP client takes one, each query to an upstream over UDP takes one, and the rest are files, listening
sockets and connections to API servers. Without a reserve, idle clients would stop forwarding and /health, and queries
that no upstream answers would stop both.
"""

import resource
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

_OWN: Final = 40  # descriptors: listening sockets, API servers, upstreams over TCP, files; 25 in a common Corefile
_ENDLESS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The shares of a limit, after `_OWN`: half for TCP clients, an eighth for HTTP, the rest for upstreams."""

    limit: int

    @property
    def tcp(self) -> int:
        """Most connections of TCP clients, over all listeners."""
        return max(1, (self.limit - _OWN) // 2)

    @property
    def http(self) -> int:
        """Most connections of HTTP clients, over all listeners."""
        return max(1, (self.limit - _OWN) // 8)

    @property
    def upstreams(self) -> int:
        """Most sockets of queries over UDP, over all upstreams; at least two."""
        return max(2, self.limit - _OWN - self.tcp - self.http)


def raise_limit() -> Descriptors:
    """Raise the soft RLIMIT_NOFILE to the hard limit, as Go programs do since Go 1.19. Returns the resulting budget."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return Descriptors(_ENDLESS if soft == resource.RLIM_INFINITY else soft)
