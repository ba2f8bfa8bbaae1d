"""Hooks and options of a server beside its Corefile: a node-cache manages the node's network by them, and `inspect`
answers HTTP requests about the state.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from topodns.app.generation import Generation
from topodns.corefile.arguments import Address
from topodns.memory.budget import SERVER, MemoryLimits
from topodns.metrics.registry import Published, Reading
from topodns.net.http_server.messages import Route
from topodns.net.reuseport import Instance
from topodns.plugins.setup import Identity, Shared
from topodns.query.counters import QueryCounters
from topodns.query.query_sample import QuerySample

AllCounters = Callable[[], Iterable[QueryCounters]]
"""The query counters of all listeners, those of workers included."""


class ServerHooks(Protocol):
    """Hooks for resources beside the server's own sockets and files; the tasks end before `before_drain`.

    A Protocol, as this room must not import the node-cache, whose `network.NodeNetwork` implements it.
    """

    async def begin(self) -> None:
        """Called when all sockets are open and the server answers queries. An exception ends the start."""

    def work(self) -> Iterable[tuple[Coroutine[Any, Any, None], str]]:
        """The background tasks and their names."""

    async def wants_reload(self) -> None:
        """Return when the Corefile is to be read again."""

    def waits_for(self) -> Iterable[str]:
        """Reasons for not being ready, a line each."""

    async def before_drain(self) -> None:
        """Stop new queries from reaching this server; called before lameduck mode, or after a failed or ended start."""

    async def after_close(self) -> None:
        """Called when no DNS socket listens any more; after a failed or ended start, right after `before_drain`."""


class MoreRoutes(NamedTuple):
    """HTTP routes that the server serves beside its own, from one generation to the next.

    `of`: for a generation that becomes the active one, (address, routes by path) pairs; an address may come twice.
    `readings`: their metrics. `close`: called once, when the server ends.
    """

    of: Callable[[Generation], Iterable[tuple[Address, Mapping[str, Route]]]]
    readings: Callable[[], Iterable[Reading]]
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a server beside its Corefile."""

    hooks: ServerHooks | None = None
    identity: Identity | None = None
    readings: Callable[[Shared], Iterable[Published]] | None = None  # additional metrics
    more_routes: Callable[[AllCounters, QuerySample], MoreRoutes] | None = None
    metrics_listen: Address | None = None  # a further address of /metrics
    instance: Instance | None = None  # its ports are shared with other instances
    memory: MemoryLimits = SERVER
    is_worker: bool = False  # as of `Process`
