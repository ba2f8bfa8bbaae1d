"""Hooks and options of a server beside its Corefile, by which a node-cache manages the node's network."""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from topodns.corefile.arguments import Address
from topodns.memory.budget import SERVER, MemoryLimits
from topodns.metrics.registry import Published
from topodns.net.reuseport import Instance
from topodns.plugins.setup import Identity, Shared


class ServerHooks(Protocol):
    """Hooks for resources beside the server's own sockets and files; the tasks end before `before_drain`."""

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


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a server beside its Corefile."""

    hooks: ServerHooks | None = None
    identity: Identity | None = None
    readings: Callable[[Shared], Iterable[Published]] | None = None  # additional metrics
    metrics_listen: Address | None = None  # a further address of /metrics
    instance: Instance | None = None  # its ports are shared with other instances
    memory: MemoryLimits = SERVER
