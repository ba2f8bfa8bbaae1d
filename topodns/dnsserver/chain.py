"""The plugin chain of a server block: calls its plugins in the order of `plugins.order` until one answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from topodns.dependency import Fact
from topodns.dns.message import Ede, EdeCode, Query, Response
from topodns.dns.rrtype import Rcode
from topodns.plugins.plugin import AnyPlugin
from topodns.query.deferred import Deferred
from topodns.query.plugin import (
    Alteration,
    Answered,
    Around,
    Below,
    ChainPart,
    Client,
    FellThrough,
    Resolution,
    Scope,
    Step,
    Stepped,
    Wrapper,
    settled,
)

_UNANSWERED: Final = Ede(EdeCode.OTHER, "no directive of this server block answers for the name")


@dataclass(frozen=True, slots=True, eq=False)
class ChainLink:
    """A step, the wrappers above it (innermost first), and the function that alters the query before the step."""

    step: Step
    wrappers: tuple[Wrapper, ...]
    alter: Alteration | None


class Chain:
    """Calls the plugins in order until one answers."""

    def __init__(
        self, links: tuple[ChainLink, ...], scope: Scope = Scope.EVERYONE, unanswered: int = Rcode.SERVFAIL
    ) -> None:
        """`scope`: no answer is for more clients. `unanswered`: the rcode if no plugin answers."""
        self._links = links
        self.scope = scope
        self._unanswered = unanswered

    def resolve(self, query: Query, client: Client) -> Answered:
        """The resolution for the client, or a deferred answer that returns it; if no plugin answers, an empty response
        with the rcode `unanswered`.
        """
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
                return self._resolve_later(resolution, link, query, asked, client, facts)
            facts += resolution.facts
        ede = _UNANSWERED if self._unanswered == Rcode.SERVFAIL else None
        return Resolution(Response(self._unanswered, flags=0, ede=ede), "", Scope.CLIENT)

    async def _resolve_later(
        self,
        deferred: Deferred[Stepped],
        link: ChainLink,
        query: Query,
        asked: Query,
        client: Client,
        facts: tuple[Fact, ...],
    ) -> Resolution:
        """The resolution that `deferred`, of `link`, returns; if it falls through, that of the links after `link`.

        `asked`: the query as altered for this link; the links after it alter `query` themselves.
        """
        resolution = await deferred
        if isinstance(resolution, Resolution):
            resolution = self._wrapped(link, asked, client, resolution)
        else:
            facts += () if resolution is None else resolution.facts
            after = self._links[self._links.index(link) + 1 :]
            resolution = await settled(Chain(after, self.scope, self._unanswered).resolve(query, client))
        resolution.facts += facts
        return resolution

    def _wrapped(self, link: ChainLink, asked: Query, client: Client, resolution: Resolution) -> Resolution:
        for wrapper in link.wrappers:
            resolution = wrapper(asked, client, resolution)
        if self.scope > resolution.scope:
            resolution.scope = self.scope
        return resolution


def build_chain(parts: Iterable[ChainPart], unanswered: int = Rcode.SERVFAIL) -> Chain:
    """The chain of these parts, which are in the order in which plugins see a query.

    A part's alteration and wrapper are for the plugins after it, and so is its around. `unanswered`: the rcode if no
    plugin answers.
    """
    building, scope = _Building(), Scope.EVERYONE
    for part in parts:
        if part.step is not None:
            building.step(part.step)
        if part.alter is not None:
            building.alter(part.alter)
        if part.wrapper is not None:
            building.wrap(part.wrapper)
        if part.around is not None:
            building.around(part.around)
        scope = max(scope, part.scope)
    return building.chain(scope, unanswered)


def unanswered_rcode(plugins: Sequence[AnyPlugin]) -> int:
    """CoreDNS's rcode if none of these plugins answers: the attribute `unanswered` of the last one that has it.

    Without any, SERVFAIL if one of them takes part in answers (`in_chain`), else REFUSED.
    """
    last = next((plugin.unanswered for plugin in reversed(plugins) if plugin.unanswered is not None), None)
    if last is not None:
        return last
    return Rcode.SERVFAIL if any(plugin.in_chain for plugin in plugins) else Rcode.REFUSED


class _Building:
    """Builds a chain from the top down. Stores `__call__` of each plugin: calling a bound method is faster."""

    def __init__(self) -> None:
        self._links: list[ChainLink] = []
        self._wrappers: tuple[Wrapper, ...] = ()
        self._alter: Alteration | None = None
        self._above: list[tuple[_Building, Around]] = []

    def step(self, step: Step) -> None:
        self._links.append(ChainLink(step.__call__, self._wrappers, self._alter))

    def wrap(self, wrapper: Wrapper) -> None:
        self._wrappers = (wrapper.__call__, *self._wrappers)

    def alter(self, alter: Alteration) -> None:
        self._alter = alter

    def around(self, around: Around) -> None:
        """Put all plugins added from now on below `around`; the wrappers added so far apply to its answers."""
        upper = _Building()
        upper._links, upper._wrappers, upper._alter = self._links, self._wrappers, self._alter
        self._above.append((upper, around))
        self._links, self._wrappers, self._alter = [], (), None

    def chain(self, scope: Scope, unanswered: int) -> Chain:
        """The finished chain, built from its lowest part up."""
        links = self._links
        for upper, around in reversed(self._above):
            below: Below = Chain(tuple(links), unanswered=unanswered).resolve
            upper.step(partial(around.__call__, below=below))
            links = upper._links
        return Chain(tuple(links), scope, unanswered)
