"""The steps of one server block in one fixed order: that of CoreDNS's plugin.cfg, whatever the Corefile's is."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from topodns import __version__
from topodns.dns.message import Ede, EdeCode, Query, Rcode, Response
from topodns.resolve.acl import AccessControl
from topodns.resolve.any_query import answer_any
from topodns.resolve.chaos import ChaosText
from topodns.resolve.header import HeaderFlags
from topodns.resolve.loadbalance import LoadBalancer
from topodns.resolve.local import answer_local
from topodns.resolve.minimal import minimize
from topodns.resolve.nsid import Nsid
from topodns.resolve.step import Client, Resolution, Scope, Step, Wrapper
from topodns.resolve.whoami import whoami
from topodns.settings.server import ServerBlock

Alteration = Callable[[Query], Query]

_NOBODY_LEFT: Final = Ede(EdeCode.OTHER, "no directive of this server block answers for the name")


@dataclass(frozen=True, slots=True)
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


class Chain:
    """Asks the steps in order; the first that answers ends it."""

    def __init__(self, links: tuple[Link, ...], client_dependent: bool = False) -> None:
        self._links = links
        self._client_dependent = client_dependent

    def resolve(self, query: Query, client: Client) -> Resolution:
        """The resolution as the client gets it. REFUSED where the block has no step at all (as CoreDNS).

        Steps that have all passed leave nobody to ask: SERVFAIL, as CoreDNS's "no next plugin found".
        """
        for link in self._links:
            asked = query if link.alter is None else link.alter(query)
            resolution = link.step(asked, client)
            if resolution is None:
                continue
            for wrapper in link.wrappers:
                resolution = wrapper(asked, client, resolution)
            if self._client_dependent:
                resolution.scope = Scope.CLIENT
            return resolution
        if not self._links:
            return Resolution(Response(Rcode.REFUSED, flags=0), "", Scope.CLIENT)
        return Resolution(Response(Rcode.SERVFAIL, flags=0, ede=_NOBODY_LEFT), "", Scope.CLIENT)


def build_chain(block: ServerBlock, host: Host, cluster: Step | None, balancer: LoadBalancer | None) -> Chain:
    """The chain of a block. `cluster` answers for its `kubernetes` directive, `balancer` for its `loadbalance`."""
    building = _Building()
    if block.nsid is not None:
        building.wrap(Nsid(block.nsid, host.name))
    if block.local:  # before everything that could forward or log localhost away
        building.step(answer_local)
    if block.any:
        building.step(answer_any)
    if block.chaos is not None:
        building.step(ChaosText(block.chaos, f"topodns-{__version__}", host.name, host.rng))
    if balancer is not None:
        building.wrap(balancer)
    access = AccessControl(block.acl) if block.acl else None
    if access is not None:  # before any answer that could be kept (CoreDNS 1.14.7 moved it before its cache)
        building.step(access)
    if block.header is not None:
        header = HeaderFlags(block.header)
        building.alter(header.alter_query)
        building.wrap(header)
    if block.minimal:
        building.wrap(minimize)
    if cluster is not None:
        building.step(cluster)
    if block.whoami:  # the last resort
        building.step(whoami)
    return Chain(tuple(building.links), access is not None and access.client_dependent)


class _Building:
    """Takes `__call__` of what is handed in: a bound method is called faster than an object that has one."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        self._wrappers: tuple[Wrapper, ...] = ()
        self._alter: Alteration | None = None

    def step(self, step: Step) -> None:
        self.links.append(Link(step.__call__, self._wrappers, self._alter))

    def wrap(self, wrapper: Wrapper) -> None:
        self._wrappers = (wrapper.__call__, *self._wrappers)

    def alter(self, alter: Alteration) -> None:
        self._alter = alter
