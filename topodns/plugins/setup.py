"""The arguments of a plugin's `setup`: the server block, with the process, and each listener of the block.

Nothing is opened at setup. The server calls `BlockSetup.prepare`, `start` and `close`, and runs its `work` as tasks.
"""

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from topodns.dependency import Fact
from topodns.dns.addresses import packed_address
from topodns.dns.name import Name
from topodns.files.poller import FilePoller
from topodns.files.text import BadText
from topodns.memory.budget import SERVER, MemoryLimits
from topodns.plugins.block import ServerBlock
from topodns.query.cname import Chase
from topodns.query.counters import QueryCounters, server_label
from topodns.query.deferred import Timers
from topodns.query.metadata import Metadata, ReaderOf, client_labels, scope_of, without_metadata
from topodns.query.plugin import Around, ChainPart, Scope

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster

T = TypeVar("T")

FILE_ERRORS: Final = (OSError, BadText)
"""Errors of unusable files; ssl.SSLError is an OSError."""

Changed = Callable[[frozenset[Fact]], object]
"""Takes the dependencies of answers that a new version of a file touched."""


def _no_change(_: frozenset[Fact]) -> None:
    """No packet cache has an answer of the block yet."""


class Shared:
    """Objects of the process, by type and labels: counters and budgets that all generations share."""

    def __init__(self) -> None:
        self._objects: dict[tuple[type, tuple[str, ...]], Any] = {}

    def get(self, kind: type[T], *labels: str, make: Callable[[], T] | None = None) -> T:
        """The object of this type with these labels, created at the first call: by `make`, else without arguments."""
        key = (kind, labels)
        found: T | None = self._objects.get(key)
        if found is None:
            found = self._objects[key] = kind() if make is None else make()
        return found

    def all(self, kind: type[T]) -> Iterator[tuple[tuple[str, ...], T]]:
        """All objects of this type, with their labels."""
        return ((labels, found) for (of, labels), found in list(self._objects.items()) if of is kind)


@dataclass(frozen=True, slots=True)
class Identity:
    """Node identity (EDNS 65518) of a node-cache's queries to the cluster DNS: its clients are Pods of that Node."""

    node_name: str  # "" unknown: no identity is sent
    upstreams: frozenset[str]  # the only addresses that it is sent to


NO_IDENTITY: Final = Identity("", frozenset())


@dataclass(frozen=True, slots=True)
class Process:
    """The process and its host, as plugins see them. `write_line` writes a line of a query log."""

    timers: Timers
    rng: Random
    host_name: str = ""
    write_line: Callable[[str], object] = str
    identity: Identity | None = None  # None: no node-cache
    memory: MemoryLimits = SERVER
    shared: Shared = field(default_factory=Shared)
    is_worker: bool = False  # of `multisocket`: another process writes the files of both


class BackgroundWork(Protocol):
    """Work of a plugin while a generation is active."""

    async def run(self) -> None:
        """Work until cancelled; what must still be done then may take as long as that delays the end of the process."""


class ChangingSource(Protocol):
    """A file on which answers depend, and its poller. New versions are reported by `changed`."""

    changed: Changed
    poller: FilePoller


class BlockSetup:
    """One server block during setup: its plugins are set up from the last in `plugins.order` to the first.

    `cluster`: that of the block's `kubernetes`.
    """

    def __init__(self, process: Process, block: ServerBlock, cluster: "Cluster | None" = None) -> None:
        self.process = process
        self.block = block
        self.cluster = cluster
        self.views: list[Callable[[bytes], Hashable]] = []
        self.work: list[BackgroundWork] = []
        self._provided: list[object] = []
        self._changing: list[ChangingSource] = []
        self._preparations: list[Callable[[], Awaitable[None]]] = []
        self._starts: list[Callable[[], object]] = []
        self._closes: list[Callable[[], object]] = []
        self._changed: Changed = _no_change

    def provide(self, handler: T) -> T:
        """Let plugins above, metrics and the fast path find this handler by its type. Returns the handler."""
        self._provided.append(handler)
        return handler

    def provided(self, kind: type[T]) -> tuple[T, ...]:
        """The handlers of this type that plugins of the block have provided, in the order of setup."""
        return tuple(handler for handler in self._provided if isinstance(handler, kind))

    def first(self, kind: type[T]) -> T | None:
        """The first provided handler of this type, or None."""
        return next(iter(self.provided(kind)), None)

    def vary_by(self, view: Callable[[bytes], Hashable]) -> None:
        """Answers with Scope.NODE may differ between clients if `view` differs for their packed addresses."""
        self.views.append(view)

    def vary_by_labels(self, labels: Iterable[str]) -> Scope:
        """The clients for which answers are the same that depend on these labels of metadata.

        Clients whose Pods have different values share no ready-made answer.
        """
        read = client_labels(labels)
        if self.cluster is None or self.cluster.client_pods is None or not read:
            return Scope.EVERYONE
        self.vary_by(partial(self.cluster.client_pods.values, sorted(read)))
        return scope_of(read)

    @property
    def reader_of(self) -> ReaderOf:
        """The readers of metadata's labels; of use once all plugins of the block are set up."""
        metadata = self.first(Metadata)
        return without_metadata if metadata is None else metadata.reader

    def run(self, work: BackgroundWork) -> None:
        """Run this while the generation is active."""
        self.work.append(work)

    def watch_changing(self, source: ChangingSource) -> None:
        """Run the source's poller, and let its changes reach the packet caches, while the generation is active."""
        self.run(source.poller)
        self._changing.append(source)

    def before_queries(self, action: Callable[[], Awaitable[None]]) -> None:
        """Await `action` before the first query, while the generation before, whose work has ended, still answers."""
        self._preparations.append(action)

    def on_start(self, action: Callable[[], object]) -> None:
        """Call `action` when the generation becomes active."""
        self._starts.append(action)

    def on_close(self, action: Callable[[], object]) -> None:
        """Call `action` when another generation has become active, and when the server stops.

        Queries under way still need an answer: the action must not end them.
        """
        self._closes.append(action)

    def changed(self, facts: frozenset[Fact]) -> None:
        """Drop the ready-made answers that depend on these facts; without effect before the generation is active."""
        self._changed(facts)

    async def prepare(self) -> None:
        """Await the actions of `before_queries`, which do not raise."""
        for action in self._preparations:
            await action()

    def start(self, changed: Changed) -> None:
        """Begin work, as the generation is active now. `changed` is called with the facts that a new version of a file
        touches.
        """
        self._changed = changed
        for source in self._changing:
            source.changed = changed
        for action in self._starts:
            action()

    def close(self) -> None:
        """End work, as another generation is active or the server stops: no new query comes, those under way finish."""
        for action in self._closes:
            action()


@dataclass(frozen=True, slots=True)
class BlockListener:
    """One listener of a server block. `own_addresses` (packed) are those of the machine.

    `neighbours` makes the plugin with which `autopath` also searches other server blocks. Its arguments: the origins of
    this block, and whether this block's cached answers rotate their addresses.
    """

    host: str  # "" is every address of both families
    port: int
    own_addresses: frozenset[bytes] = frozenset()
    chase: Chase | None = None  # resolves the target of a CNAME in any block of the listener
    neighbours: Callable[[Collection[Name], bool], Around] | None = None
    tls: bool = False

    @property
    def server(self) -> str:
        """The value of CoreDNS's metric label `server`: `dns://HOST:PORT`, an IPv6 HOST in brackets, "" for all; or `tls://`."""
        return server_label((self.host, self.port, self.tls))

    @property
    def bound(self) -> bytes:
        """The listen address, packed; b"" for all addresses."""
        return packed_address(self.host) if self.host else b""

    @property
    def addresses(self) -> tuple[bytes, ...]:
        """The packed addresses listened on, without loopback: an endpoint with one of them is this server."""
        bound = (self.bound,) if self.host else sorted(self.own_addresses)
        return tuple(address for address in bound if not ip_address(address).is_loopback)


Install = Callable[[BlockListener], Iterable[ChainPart]]
"""Returns the chain parts of a plugin for one listener; called for each key and address of the server block."""


def everywhere(*parts: ChainPart) -> Install:
    """The `Install` of a plugin that has these same chain parts for every listener of its block."""
    return lambda listener: parts


@dataclass(frozen=True, slots=True)
class MetricsSource:
    """The objects from which metrics of plugins are read at scrape time."""

    shared: Shared
    blocks: Callable[[], Iterable[BlockSetup]]  # of the active generation
    counters: Callable[[], Iterable[QueryCounters]]  # of all sockets
