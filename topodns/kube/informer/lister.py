"""Reads one kind from an API server: a list in pages, and what makes a list the state."""

import asyncio
import logging
from collections.abc import Set
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.cluster.watch import Page, UnreadableReply, read_listed, read_page
from topodns.edge.api_source.backoff import Backoff
from topodns.edge.api_source.company import Company
from topodns.edge.api_source.ledger import Ledger
from topodns.edge.api_source.listing import Listing
from topodns.edge.api_source.pages import NoPage, Pages
from topodns.edge.api_source.progress import Progress, Verb
from topodns.edge.api_source.turns import Turn
from topodns.edge.kube_api.contract import ApiError

log = logging.getLogger(__name__)

MAX_PAGES: Final = 4_000  # of one list: 2,000,000 objects of the usual 500 a page, far beyond what Kubernetes is for

_FORBIDDEN: Final = 403


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
        pages = Pages(self.company.api, self.path, self.progress.resource)
        page = await self._take_page(await pages.body(self.ledger.floor), listing)
        seen: set[str] = set()
        while page.next_token:
            if page.next_token in seen:
                raise ApiError(0, "the pages of the list do not end: a continue token came again")
            if len(seen) == MAX_PAGES:
                raise ApiError(0, f"the pages of the list do not end: there are more than {MAX_PAGES}")
            seen.add(page.next_token)
            page = await self._take_page(await pages.body({"continue": page.next_token}), listing)
        return listing, page.version

    async def newest_version(self) -> str:
        """The resourceVersion that the server has come to, by the shortest list there is. Raises ApiError."""
        body = await Pages(self.company.api, self.path, self.progress.resource, limit=1).body({})
        try:
            return read_page(self.progress.resource.kind, body).version
        except UnreadableReply as problem:
            raise NoPage(str(problem)) from None

    def new_listing(self) -> Listing:
        return Listing(self.progress.resource.kind, self.company.intake.state)

    async def believe(self, listing: Listing, version: str, turn: Turn) -> None:
        """Make a list the state, unless it must be confirmed first. Raises Doubtful."""
        self.answered()
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

    def heard(self) -> None:
        """The server is there. Whether it is well is not said by a part of a list: after it, it may fail each time."""
        self.progress.heard = asyncio.get_running_loop().time()

    def answered(self) -> None:
        """The server has sent something that it would not send in trouble: a whole list, news, or nothing for long."""
        if self.progress.answered(asyncio.get_running_loop().time()):
            log.info("plugin/kubernetes: %s: the API server answers again", self.progress.resource.name)
            self.company.gate.open()

    async def is_denied(self, verb: Verb) -> bool:
        """Ask just to know whether this verb is refused with 403."""
        shortest = {"limit": "1"} if verb == "list" else {"watch": "true", "timeoutSeconds": "1"}
        try:
            async with self.company.api.stream(self.path, {**self.progress.resource.selectors, **shortest}):
                return False
        except ApiError as error:
            return error.status == _FORBIDDEN

    async def _take_page(self, data: bytes, listing: Listing) -> Page:
        async with self.company.turns.take() as turn:
            try:
                page = read_page(self.progress.resource.kind, data)
            except UnreadableReply as problem:
                raise ApiError(0, str(problem)) from None
            self.heard()
            for item in page.items:
                self.ledger.collect(listing, read_listed(self.progress.resource.kind, item))
                await turn.breathe()
        return page
