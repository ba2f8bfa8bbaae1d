"""What a server may have around it, and be told, beside its Corefile: how a node cache makes use of it."""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from topodns.counted import Counted
from topodns.edge.metrics import Published
from topodns.edge.port_sharing import Instance
from topodns.settings.memory import SERVER, MemoryLimits
from topodns.settings.server import Address
from topodns.workings import Identity


class Surroundings(Protocol):
    """What a server has around it that is not its own sockets and files; its tasks end before it is taken down."""

    async def begin(self) -> None:
        """All sockets are open, and everything that comes is answered."""

    def work(self) -> Iterable[tuple[Coroutine[Any, Any, None], str]]:
        """Its tasks and their names."""

    async def wants_reload(self) -> None:
        """Return when the Corefile is to be read anew."""

    def waits_for(self) -> Iterable[str]:
        """What keeps it from being ready, a line each."""

    async def before_drain(self) -> None:
        """Nobody new is to come."""

    async def after_close(self) -> None:
        """Nothing listens any more."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a server may be told beside its Corefile."""

    around: Surroundings | None = None
    identity: Identity | None = None
    readings: Callable[[Counted], Iterable[Published]] | None = None  # for its metrics
    metrics_listen: Address | None = None  # where these are told, too
    instance: Instance | None = None  # its ports are shared with others of its kind
    memory: MemoryLimits = SERVER
