"""The plugin chain of a server block, in the order of CoreDNS's plugin.cfg, whatever their order in the Corefile."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from topodns import __version__
from topodns.dependency import Fact
from topodns.dns.message import Ede, EdeCode, Query, Response
from topodns.dns.rrtype import Rcode
from topodns.dnsserver.settings import ServerBlock
from topodns.plugins.acl import AccessControl
from topodns.plugins.any import answer_any
from topodns.plugins.chaos import ChaosText
from topodns.plugins.header import HeaderFlags
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.local import answer_local
from topodns.plugins.minimal import minimize
from topodns.plugins.nsid import Nsid
from topodns.plugins.whoami import whoami
from topodns.query.deferred import Deferred
from topodns.query.plugin import (
    Answered,
    Around,
    Below,
    Client,
    FellThrough,
    Resolution,
    Scope,
    Step,
    Stepped,
    Wrapper,
    settled,
)

Alteration = Callable[[Query], Query]

_NO_PART: Final = frozenset({"bind", "debug", "multisocket", "pprof", "ready", "reload", "timeouts"})
_NOBODY_LEFT: Final = Ede(EdeCode.OTHER, "no directive of this server block answers for the name")


@dataclass(frozen=True, slots=True, eq=False)
class ChainLink:
    """A step, the wrappers above it (innermost first), and the function that alters the query before the step."""

    step: Step
    wrappers: tuple[Wrapper, ...]
    alter: Alteration | None


@dataclass(frozen=True, slots=True)
class Host:
    """The host name and the random numbers that plugins may use."""

    name: str
    rng: Random


@dataclass(frozen=True, slots=True)
class Parts:
    """The plugins of a block that are built elsewhere, because they need more than the block's settings."""

    dns64: Around | None = None
    balancer: LoadBalancer | None = None
    rewrite: Around | None = None
    autopath: Around | None = None
    cache: Around | None = None
    templates: tuple[Step, ...] = ()
    hosts: Step | None = None
    external: Step | None = None  # k8s_external
    cluster: Step | None = None  # kubernetes
    files: tuple[Step, ...] = ()
    loop: Step | None = None
    forwards: tuple[Step, ...] = ()


class Chain:
    """Calls the plugins in order until one answers."""

    def __init__(
        self, links: tuple[ChainLink, ...], client_dependent: bool = False, nobody: Rcode = Rcode.SERVFAIL
    ) -> None:
        """`client_dependent`: keep no answer for other clients. The last argument: the rcode if no plugin answers."""
        self._links = links
        self._client_dependent = client_dependent
        self._nobody = nobody

    def resolve(self, query: Query, client: Client) -> Answered:
        """The resolution for the client, or a course that returns it."""
        facts: tuple[Fact, ...] = ()
        for link in self._links:
            asked = query if link.alter is None else link.alter(query)
            resolution = link.step(asked, client)
            if resolution is None:
                continue
            if isinstance(resolution, Resolution):
                resolution.facts += facts
                return self._wrapped(link, asked, client, resolution)
            if not isinstance(resolution, FellThrough):
                return self._resolve_later(resolution, link, asked, client, facts)
            facts += resolution.facts
        ede = _NOBODY_LEFT if self._nobody is Rcode.SERVFAIL else None
        return Resolution(Response(self._nobody, flags=0, ede=ede), "", Scope.CLIENT)

    async def _resolve_later(
        self, course: Deferred[Stepped], link: ChainLink, asked: Query, client: Client, facts: tuple[Fact, ...]
    ) -> Resolution:
        resolution = await course
        if isinstance(resolution, Resolution):
            resolution = self._wrapped(link, asked, client, resolution)
        else:
            facts += () if resolution is None else resolution.facts
            after = self._links[self._links.index(link) + 1 :]
            resolution = await settled(Chain(after, self._client_dependent, self._nobody).resolve(asked, client))
        resolution.facts += facts
        return resolution

    def _wrapped(self, link: ChainLink, asked: Query, client: Client, resolution: Resolution) -> Resolution:
        for wrapper in link.wrappers:
            resolution = wrapper(asked, client, resolution)
        if self._client_dependent:
            resolution.scope = Scope.CLIENT
        return resolution


def build_chain(block: ServerBlock, host: Host, parts: Parts) -> Chain:
    """The plugin chain of a server block."""
    building = _Building()
    if block.nsid is not None:
        building.wrap(Nsid(block.nsid, host.name))
    if block.local:  # before all plugins that could forward or log queries for localhost
        building.step(answer_local)
    building.around(parts.dns64)
    if block.any:
        building.step(answer_any)
    if block.chaos is not None:
        building.step(ChaosText(block.chaos, f"topodns-{__version__}", host.name, host.rng))
    if parts.balancer is not None:
        building.wrap(parts.balancer)
    building.around(parts.rewrite)
    building.around(parts.autopath)
    access = AccessControl(block.acl) if block.acl else None
    # acl comes after rewrite, to check the rewritten name; below autopath, to check each name tried; and above cache,
    # to check each client (CoreDNS 1.14.7, #8289 and #8290).
    building.step(access)
    if block.header is not None:
        header = HeaderFlags(block.header)
        building.alter(header.alter_query)
        building.wrap(header)
    if block.minimal:
        building.wrap(minimize)
    for step in (*parts.templates, parts.hosts, parts.external, parts.cluster, *parts.files, parts.loop):
        building.step(step)
    # Lower than in CoreDNS: `cache` keeps only answers of upstreams, so it never hides local data.
    building.around(parts.cache)
    for step in parts.forwards:
        building.step(step)
    if block.whoami:  # the last resort
        building.step(whoami)
    return building.chain(access is not None and access.client_dependent, _answer_of_nobody(block))


def _answer_of_nobody(block: ServerBlock) -> Rcode:
    """CoreDNS's rcode if no plugin answers: REFUSED without answering plugins or if `file` is last, else SERVFAIL."""
    if block.file and not (block.loop or block.forward or block.whoami or block.view):
        return Rcode.REFUSED
    return Rcode.SERVFAIL if set(block.directives) - _NO_PART else Rcode.REFUSED


class _Building:
    """Builds a chain from the top down. Stores `__call__` of each plugin: calling a bound method is faster."""

    def __init__(self) -> None:
        self._links: list[ChainLink] = []
        self._wrappers: tuple[Wrapper, ...] = ()
        self._alter: Alteration | None = None
        self._above: list[tuple[_Building, Around]] = []

    def step(self, step: Step | None) -> None:
        if step is not None:
            self._links.append(ChainLink(step.__call__, self._wrappers, self._alter))

    def wrap(self, wrapper: Wrapper) -> None:
        self._wrappers = (wrapper.__call__, *self._wrappers)

    def alter(self, alter: Alteration) -> None:
        self._alter = alter

    def around(self, around: Around | None) -> None:
        """Put all plugins added from now on below `around`; the wrappers added so far apply to its answers."""
        if around is None:
            return
        upper = _Building()
        upper._links, upper._wrappers, upper._alter = self._links, self._wrappers, self._alter
        self._above.append((upper, around))
        self._links, self._wrappers, self._alter = [], (), None

    def chain(self, client_dependent: bool, nobody: Rcode) -> Chain:
        """The finished chain, built from its lowest part up."""
        links = self._links
        for upper, around in reversed(self._above):
            below: Below = Chain(tuple(links), nobody=nobody).resolve
            upper.step(partial(around.__call__, below=below))
            links = upper._links
        return Chain(tuple(links), client_dependent, nobody)
