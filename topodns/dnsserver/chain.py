"""The steps of one server block in one fixed order: that of CoreDNS's plugin.cfg, whatever the Corefile's is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from topodns import __version__
from topodns.cluster.facts import Fact
from topodns.dns.message import Ede, EdeCode, Query, Rcode, Response
from topodns.resolve.acl import AccessControl
from topodns.resolve.any_query import answer_any
from topodns.resolve.chaos import ChaosText
from topodns.resolve.course import Course
from topodns.resolve.header import HeaderFlags
from topodns.resolve.loadbalance import LoadBalancer
from topodns.resolve.local import answer_local
from topodns.resolve.minimal import minimize
from topodns.resolve.nsid import Nsid
from topodns.resolve.step import (
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
from topodns.resolve.whoami import whoami
from topodns.settings.server import ServerBlock

Alteration = Callable[[Query], Query]

_NO_PART: Final = frozenset({"bind", "debug", "multisocket", "pprof", "ready", "reload", "timeouts"})
_NOBODY_LEFT: Final = Ede(EdeCode.OTHER, "no directive of this server block answers for the name")


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A step, the wrappers around it from the inside out, and what alters the query on its way down to it."""

    step: Step
    wrappers: tuple[Wrapper, ...]
    alter: Alteration | None


@dataclass(frozen=True, slots=True)
class Host:
    """What steps may say about the machine, and the chance they may use."""

    name: str
    rng: Random


@dataclass(frozen=True, slots=True)
class Parts:
    """The steps and arounds of a block that are made elsewhere, because they rest on more than the block's settings."""

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
    """Asks the steps in order; the first that answers ends it."""

    def __init__(self, links: tuple[Link, ...], client_dependent: bool = False, nobody: Rcode = Rcode.SERVFAIL) -> None:
        """`nobody` is the answer when all steps have passed."""
        self._links = links
        self._client_dependent = client_dependent
        self._nobody = nobody

    def resolve(self, query: Query, client: Client) -> Answered:
        """The resolution as the client gets it, or the course to it."""
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
        self, course: Course[Stepped], link: Link, asked: Query, client: Client, facts: tuple[Fact, ...]
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

    def _wrapped(self, link: Link, asked: Query, client: Client, resolution: Resolution) -> Resolution:
        for wrapper in link.wrappers:
            resolution = wrapper(asked, client, resolution)
        if self._client_dependent:
            resolution.scope = Scope.CLIENT
        return resolution


def build_chain(block: ServerBlock, host: Host, parts: Parts) -> Chain:
    """The chain of a block."""
    building = _Building()
    if block.nsid is not None:
        building.wrap(Nsid(block.nsid, host.name))
    if block.local:  # before everything that could forward or log localhost away
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
    # After rewrite, so that it judges the name that is looked up; under autopath, so that it judges each name tried;
    # before cache, so that it judges whoever asks (CoreDNS 1.14.7, #8289 and #8290).
    building.step(access)
    if block.header is not None:
        header = HeaderFlags(block.header)
        building.alter(header.alter_query)
        building.wrap(header)
    if block.minimal:
        building.wrap(minimize)
    for step in (*parts.templates, parts.hosts, parts.external, parts.cluster, *parts.files, parts.loop):
        building.step(step)
    # Lower than CoreDNS's: it keeps nothing but what upstreams said, so whatever is known here is never hidden by it.
    building.around(parts.cache)
    for step in parts.forwards:
        building.step(step)
    if block.whoami:  # the last resort
        building.step(whoami)
    return building.chain(access is not None and access.client_dependent, _answer_of_nobody(block))


def _answer_of_nobody(block: ServerBlock) -> Rcode:
    """CoreDNS's: REFUSED where no plugin takes part in answering, and behind `file`, which knows what it is for."""
    if block.file and not (block.loop or block.forward or block.whoami or block.view):
        return Rcode.REFUSED
    return Rcode.SERVFAIL if set(block.directives) - _NO_PART else Rcode.REFUSED


class _Building:
    """Takes `__call__` of what is handed in: a bound method is called faster than an object that has one."""

    def __init__(self) -> None:
        self._links: list[Link] = []
        self._wrappers: tuple[Wrapper, ...] = ()
        self._alter: Alteration | None = None
        self._above: list[tuple[_Building, Around]] = []

    def step(self, step: Step | None) -> None:
        if step is not None:
            self._links.append(Link(step.__call__, self._wrappers, self._alter))

    def wrap(self, wrapper: Wrapper) -> None:
        self._wrappers = (wrapper.__call__, *self._wrappers)

    def alter(self, alter: Alteration) -> None:
        self._alter = alter

    def around(self, around: Around | None) -> None:
        """What comes after this is below `around`, and the wrappers so far are around it."""
        if around is None:
            return
        upper = _Building()
        upper._links, upper._wrappers, upper._alter = self._links, self._wrappers, self._alter
        self._above.append((upper, around))
        self._links, self._wrappers, self._alter = [], (), None

    def chain(self, client_dependent: bool, nobody: Rcode) -> Chain:
        """All of it, the lowest part first."""
        links = self._links
        for upper, around in reversed(self._above):
            below: Below = Chain(tuple(links), nobody=nobody).resolve
            upper.step(partial(around.__call__, below=below))
            links = upper._links
        return Chain(tuple(links), client_dependent, nobody)
