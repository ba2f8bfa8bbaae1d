"""The contract of a server block's steps: who asks, what a step returns, how far its answer may be shared.

A step is a callable that answers or returns None for "not mine"; a wrapper changes the answers of the steps below it;
an around decides itself what the steps below it are asked, how often, and what becomes of their answers. What must
wait is a course (see `course`). `chain` puts all of them in CoreDNS's order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from topodns.cluster.facts import Fact
from topodns.dns.message import Query, Response
from topodns.dns.names import Name
from topodns.resolve.course import Course

if TYPE_CHECKING:
    from topodns.cluster.topology import Location, Selection


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
    asked: float = 0.0  # when it did, in monotonic seconds; 0.0 is now
    depth: int = 0  # how many CNAMEs, each out of one step into another, led to this question


@dataclass(slots=True)
class Resolution:
    """A response and all that is worth knowing about how it came to be. `facts`: a change to one makes it outdated."""

    response: Response
    plugin: str  # the CoreDNS plugin name of who answered, for coredns_dns_responses_total
    scope: Scope = Scope.EVERYONE
    facts: tuple[Fact, ...] = ()
    selection: "Selection | None" = None  # the topology decision, where one was made
    location: "Location | None" = None
    note: str = ""  # what else is counted apart
    missed: str = ""  # of a miss, which Service it was about: a name of `rosters`
    prefix: str = ""  # of a client that nobody could locate, where it is: a name of `rosters`
    upstream: str = ""  # of what came from upstreams just now: who gave it, or who all gave nothing; only it is cached
    chase: Name | None = None  # the answer ends in a CNAME to this name, which is for another step: see `chase`
    valid_until: float | None = None  # of an answer that ages: when it must be asked for anew, in monotonic seconds


Answered = Resolution | Course[Resolution]
"""What a whole chain gives: a resolution, or the course to one."""

Below = Callable[[Query, Client], Answered]
"""The steps below an around, as one; always answers."""


class FellThrough(NamedTuple):
    """Mine, but the next step is to answer (`fallthrough`). `facts`: a change to one may mean that it is not to."""

    facts: tuple[Fact, ...]


Stepped = Resolution | FellThrough | None
"""What a step gives: None is "not mine", ask the next step."""


class Step(Protocol):
    def __call__(self, query: Query, client: Client) -> Stepped | Course[Stepped]:
        """The resolution, or whether the next step is to be asked. Or the course to that."""


class Wrapper(Protocol):
    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """The resolution as it leaves this wrapper."""


class Around(Protocol):
    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The resolution, made with or without asking below. May be an `async def`."""


async def settled(answered: Answered) -> Resolution:
    """The resolution, waited for where need be."""
    return answered if isinstance(answered, Resolution) else await answered


class Dropped(Exception):
    """Raised by a step that wants no reply to be sent. `plugin`: the directive, as of a Resolution."""

    def __init__(self, plugin: str) -> None:
        super().__init__(plugin)
        self.plugin = plugin


class BadOption(ValueError):
    """Raised for an option that breaks the rules of its format; the query deserves FORMERR (RFC 7871 section 7.2.1)."""
