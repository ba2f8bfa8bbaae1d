"""The plugin contract: the client, the resolution that a plugin returns, and the clients for which it may be cached.

A plugin takes one of three forms. A step answers, or returns None to pass the query on. A wrapper changes the answers
of the plugins below it, as a ResponseWriter does in CoreDNS. An around calls the plugins below it itself, any number of
times, with any query, and decides about their answers. An answer that must wait is a `Deferred`. `dnsserver.chain`
calls the plugins in the order of `plugins.order`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from topodns.dependency import Fact
from topodns.dns.message import Edns, Query, Response
from topodns.dns.name import Name
from topodns.query.counters import AnswerDetail
from topodns.query.deferred import Deferred

if TYPE_CHECKING:
    from topodns.topology.select import Location, Selection


class Scope(IntEnum):
    """The clients that get the same answer, for which the packet cache may keep it; each narrower than the one before.

    Clients of the middle three share an answer only where no `BlockSetup.vary_by` distinguishes them.
    """

    EVERYONE = 0
    NODE = 1  # the clients whose source addresses are on the same node and, for `autopath`, in the same namespace
    NAMESPACE = 2  # of these, the clients whose Pods are in the same namespace
    POD = 3  # the clients whose Pods have the same values of all that was read of them
    CLIENT = 4  # this query only: never kept


ANY_SIZE: Final = 1 << 30  # octets: larger than any reply


class Client(NamedTuple):
    """The client of a query. Addresses are packed: 4 or 16 octets, IPv4-mapped ones as 4."""

    address: bytes
    port: int
    transport: str  # "udp" or "tcp"
    local_port: int = 53
    asked: float = 0.0  # time of the query, in monotonic seconds; 0.0 is now
    depth: int = 0  # CNAMEs chased from one plugin to another that led to this question
    limit: int = ANY_SIZE  # maximum octets of the reply; a plugin may stop adding records once they exceed it


@dataclass(slots=True)
class Resolution:
    """A response with its origin and cacheability, for the packet cache, metrics and logs."""

    response: Response
    plugin: str  # the CoreDNS name of the plugin that answered, for coredns_dns_responses_total
    scope: Scope = Scope.EVERYONE
    facts: tuple[Fact, ...] = ()  # dependencies: a change to one makes the response outdated
    selection: "Selection | None" = None  # the topology decision, if one was made
    location: "Location | None" = None
    detail: AnswerDetail | None = None  # what metrics of the plugin distinguish
    missed: str = (
        ""  # the Service whose endpoints topology withheld from the client, as `LabelLimiters.service` names it
    )
    prefix: str = ""  # the source prefix of a client without a location, as `LabelLimiters.prefix` names it
    upstream: str = ""  # the upstreams that gave this answer, or all failed, just now; `cache` keeps no other answers
    problem: str = ""  # reason for the failure, for the log; "": the text of the extended DNS error
    chase: tuple[Name, ...] = ()  # targets of CNAMEs in the answer, which another plugin resolves: see `cname`
    valid_until: float | None = None  # of an answer with decreasing TTLs: its expiry, in monotonic seconds


Answered = Resolution | Deferred[Resolution]
"""The result of a chain: a resolution, or a deferred answer that returns one."""

Below = Callable[[Query, Client], Answered]
"""The plugins below an around, as one function; always answers."""


class FellThrough(NamedTuple):
    """The plugin has no record for a name of its zones, and the next plugin answers (`fallthrough`).

    `facts`: dependencies; a change to one may make this plugin answer.
    """

    facts: tuple[Fact, ...]


Stepped = Resolution | FellThrough | None
"""The result of a step; None passes the query on to the next one."""


class Step(Protocol):
    def __call__(self, query: Query, client: Client) -> Stepped | Deferred[Stepped]:
        """The resolution, or FellThrough or None to pass the query on; or one of these, deferred."""


class Wrapper(Protocol):
    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """The resolution, changed by this wrapper."""


class Around(Protocol):
    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The resolution, made with or without `below`. May be an `async def`."""


ExchangeLog = Callable[[Query, Client, Resolution | None, bytes | None, float], bool]
"""Logs a query with its reply and duration in seconds. True: logged; the packet cache must not keep the reply."""

Alteration = Callable[[Query], Query]
"""Changes a query before the plugins below see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPart:
    """The parts of a plugin in the chain of a server block: at most one of each form, and hooks."""

    step: Step | None = None
    around: Around | None = None
    wrapper: Wrapper | None = None
    alter: Alteration | None = None
    scope: Scope = Scope.EVERYONE  # no answer of the block is for more clients
    selects: "BlockSelector | None" = None
    logs: ExchangeLog | None = None
    reports: Callable[[Query, str], object] | None = None  # is called with the reason for each SERVFAIL


class BlockSelector(Protocol):
    """Decides whether the server block takes a query.

    A Protocol, as this room must not import the plugin `view`, which implements it.
    """

    scope: Scope  # the clients for which the decision is the same

    def __call__(self, query: Query, client: Client) -> bool: ...


class ForwardedOption(NamedTuple):
    """An option of `Edns.options` that `forward` sends to its upstreams.

    It equals the plain tuple of the same code and data. Options of clients are for this server alone, since EDNS is hop
    by hop (RFC 6891 section 6.2.6). Those that a rule of `rewrite edns0` sets, or keeps as the client sent them, go to
    the upstream. Its answer holds only for queries with the same ones, so they are a part of the keys of `cache`
    (`plugins.cache.entry.key_of`) and of single-flight.
    """

    code: int
    data: bytes


def forwarded_options(edns: Edns | None) -> tuple[ForwardedOption, ...]:
    """The options of an OPT record that go to upstreams, in their order."""
    if edns is None or not edns.options:
        return ()
    return tuple(option for option in edns.options if isinstance(option, ForwardedOption))


async def settled(answered: Answered) -> Resolution:
    """The resolution, awaited if it is deferred."""
    return answered if isinstance(answered, Resolution) else await answered


class Dropped(Exception):
    """Raised by a plugin to send no reply. `plugin`: its CoreDNS name, as in a Resolution."""

    def __init__(self, plugin: str) -> None:
        super().__init__(plugin)
        self.plugin = plugin


class BadOption(ValueError):
    """An EDNS option with a malformed value; the reply is FORMERR (RFC 7871 section 7.2.1)."""


def rest_on(
    resolution: Resolution, facts: tuple[Fact, ...], scope: Scope = Scope.EVERYONE, valid_until: float | None = None
) -> None:
    """Add the dependencies, scope and expiry of an intermediate result to `resolution`, which was derived from it.

    The scope becomes the narrower one, the expiry the earlier one.
    """
    resolution.facts = (*resolution.facts, *facts)
    resolution.scope = max(resolution.scope, scope)
    if valid_until is not None:
        own = resolution.valid_until
        resolution.valid_until = valid_until if own is None else min(own, valid_until)
