"""Reads one kind from an API server: a list in pages, and what makes a list the state."""

import asyncio
import logging
from collections.abc import Mapping, Set
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.cluster.watch import Page, UnreadableReply, read_listed, read_page
from topodns.edge.api_source.backoff import Backoff
from topodns.edge.api_source.company import Company
from topodns.edge.api_source.ledger import Ledger
from topodns.edge.api_source.listing import Listing
from topodns.edge.api_source.progress import Progress
from topodns.edge.api_source.turns import Turn
from topodns.edge.kube_api.contract import ApiError

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 500  # objects
PAGE_DEADLINE: Final = 60.0  # seconds for one page


class Doubtful(Exception):
    """A list is complete and hard to believe; it changed nothing."""


class Reader:
    """One kind. `path` is where the server has it; failures are counted by `backoff` until something succeeds."""

    def __init__(self, path: str, progress: Progress, ledger: Ledger, backoff: Backoff, company: Company) -> None:
        self.path = path
        self.progress = progress
        self.ledger = ledger
        self.backoff = backoff
        self.company = company

    async def list(self) -> None:
        """Take a whole list in, in one go once it is complete. Raises ApiError, Doubtful."""
        listing, version = await self.gather()
        async with self.company.turns.take() as turn:
            await self.believe(listing, version, turn)

    async def gather(self) -> tuple[Listing, str]:
        """A whole list, read in pages, and its resourceVersion. Raises ApiError."""
        listing = self.new_listing()
        parameters = {**self.progress.resource.selectors, "limit": str(PAGE_SIZE)}
        page = await self._page({**parameters, **self.ledger.floor}, listing)
        seen: set[str] = set()
        while page.next_token:
            if page.next_token in seen:
                raise ApiError(0, "the pages of the list do not end: a continue token came again")
            seen.add(page.next_token)
            page = await self._page({**parameters, "continue": page.next_token}, listing)
        return listing, page.version

    def new_listing(self) -> Listing:
        return Listing(self.progress.resource.kind, self.company.intake.state)

    async def believe(self, listing: Listing, version: str, turn: Turn) -> None:
        """Make a list the state, unless it must be confirmed first. Raises Doubtful."""
        doubt = self.ledger.doubt(listing, version)
        if doubt:
            log.warning("plugin/kubernetes: list of %s: %s; asking again", self.progress.resource.name, doubt)
            raise Doubtful
        await self.replace(listing, turn)
        self.ledger.listed(version)
        self.backoff.succeeded()

    async def replace(self, listing: Listing, turn: Turn, news: Set[ObjectKey] = frozenset()) -> int:
        """Make a list the state, except where there is news; how many objects differed."""
        objects, differing = listing.objects(), 0
        for _ in listing.let_go():  # so that a large list is not in memory twice
            await turn.breathe()
        for count in self.company.intake.replace(self.progress.resource.kind, objects, news):
            differing += count
            await turn.breathe()
        return differing

    def answered(self) -> None:
        """The server has sent something that it would not send in trouble."""
        if self.progress.answered(asyncio.get_running_loop().time()):
            log.info("plugin/kubernetes: %s: the API server answers again", self.progress.resource.name)
            self.company.gate.open()

    async def _page(self, parameters: Mapping[str, str], listing: Listing) -> Page:
        data = await self._body(parameters)
        async with self.company.turns.take() as turn:
            try:
                page = read_page(self.progress.resource.kind, data)
            except UnreadableReply as problem:
                raise ApiError(0, str(problem)) from None
            self.answered()
            for item in page.items:
                self.ledger.collect(listing, read_listed(self.progress.resource.kind, item))
                await turn.breathe()
        return page

    async def _body(self, parameters: Mapping[str, str]) -> bytes:
        try:
            async with asyncio.timeout(PAGE_DEADLINE), self.company.api.stream(self.path, parameters) as body:
                return b"".join([piece async for piece in body])
        except TimeoutError:
            raise ApiError(0, f"no complete page within {PAGE_DEADLINE:g} s") from None
