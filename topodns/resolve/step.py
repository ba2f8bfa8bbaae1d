"""The contract of a server block's steps: who asks, what a step returns, how far its answer may be shared.

A step is a callable that answers or returns None for "not mine"; a wrapper changes the answers of the steps below it.
`chain` puts them in CoreDNS's order.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from topodns.cluster.model import Fact
from topodns.cluster.topology import Location, Selection
from topodns.dns.message import Query, Response


class Scope(IntEnum):
    """For whom an answer would come out the same; what `hot` may keep it for."""

    EVERYONE = 0
    NODE = 1  # every client located, by its source address alone, on the same node
    CLIENT = 2  # this query only: never kept


class Client(NamedTuple):
    """Who asks. Addresses are packed: 4 or 16 octets, IPv4-mapped ones as 4."""

    address: bytes
    port: int
    transport: str  # "udp" or "tcp"
    local_port: int = 53


@dataclass(slots=True)
class Resolution:
    """A response and all that is worth knowing about how it came to be. `facts`: a change to one makes it outdated."""

    response: Response
    plugin: str  # the CoreDNS plugin name of who answered, for coredns_dns_responses_total
    scope: Scope = Scope.EVERYONE
    facts: tuple[Fact, ...] = ()
    selection: Selection | None = None  # the topology decision, where one was made
    location: Location | None = None
    note: str = ""  # what else is counted apart


class Step(Protocol):
    def __call__(self, query: Query, client: Client) -> Resolution | None:
        """The resolution, or None: not mine, ask the next step."""


class Wrapper(Protocol):
    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """The resolution as it leaves this wrapper."""


class Dropped(Exception):
    """Raised by a step that wants no reply to be sent (acl drop)."""
