"""Lists one kind from an API server in pages, and gives the store a plausible list.

Implausible are a list with far fewer objects than there were, and one with an older resourceVersion than was seen
before: a replica of the API server may lag, and a proxy may cut. The list after an implausible one is always accepted.
"""

import asyncio
import math
from collections.abc import Mapping, Set, Sized
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from topodns.cluster.decode.stream import Event, Listed, Page, Undecodable, UnreadableReply, read_listed, read_page
from topodns.cluster.model import Deleted, Kind, ObjectKey, Upserted
from topodns.kube.client.contract import ApiError, KubeApi
from topodns.kube.informer.decode_turns import DecodeTurns, Turn
from topodns.kube.informer.progress import Progress, Reports
from topodns.kube.informer.resources import Resource, Verb
from topodns.kube.informer.retry import Backoff, RetryGate
from topodns.kube.informer.store import Listing, Store
from topodns.kube.informer.sync_state import SyncState


@dataclass(frozen=True, slots=True)
class SharedState:
    """Shared state of the reflectors of one API server: connection, store, log, retry spacing, time slices."""

    api: KubeApi
    store: Store
    gate: RetryGate
    turns: DecodeTurns
    rng: Random
    reports: Reports = field(default_factory=Reports)
    consistent_lists: bool = False  # as new as all earlier writes: in pages, and not from a cache of the API server
    checks_each_watch: bool = False  # for a rollback, at the end of each watch and not only of a lost one
    silence: float = math.inf  # seconds without even a bookmark after which a watch counts as lost


PAGE_SIZE: Final = 500  # objects


PAGE_DEADLINE: Final = 60.0  # seconds for one page


ONE_OBJECT_DEADLINE: Final = 10.0  # seconds, for a list with limit=1


# Octets. Up to five lists are read at the same time, each with a page in memory twice. A page is split into its objects
# in one step, at about 1 ms per MiB, and 500 objects are 1 to 10 MiB.
MAX_PAGE: Final = 4 << 20


# Octets of a page of one object: etcd stores objects up to 1.5 MiB, which is less than 16 MiB in any JSON encoding.
MAX_OBJECT: Final = 16 << 20


FEWER: Final = 4  # the limit is divided by this where a page is larger than MAX_PAGE


MORE: Final = (
    2  # and multiplied by this after a page of less than a quarter of it: one namespace's objects may be large
)


class NoPage(ApiError):
    """The server accepted the request but sent no usable page: too slow, too large or malformed."""

    def __init__(self, problem: str) -> None:
        super().__init__(0, problem)


class Pages:
    """The pages of one list of `resource` under the URL path `path`; `limit` is in objects per page, at most."""

    def __init__(self, api: KubeApi, path: str, resource: Resource, limit: int = PAGE_SIZE) -> None:
        self._api = api
        self._path = path
        self._resource = resource
        self._most = self._limit = limit
        self._deadline = ONE_OBJECT_DEADLINE if limit == 1 else PAGE_DEADLINE

    async def body(self, place: Mapping[str, str]) -> bytes:
        """One page; `place` has the `continue` token or, for the first page, the resourceVersion parameters.

        A page larger than MAX_PAGE is requested again with fewer objects; after small pages there are more again.
        Raises ApiError, also where a page of a single object is larger than MAX_OBJECT.
        """
        while (found := await self._within_deadline(place)) is None:
            if self._limit == 1:
                raise NoPage(f"a page of one object is larger than {MAX_OBJECT >> 20} MiB")
            self._limit = max(1, self._limit // FEWER)
        if len(found) * FEWER < MAX_PAGE:
            self._limit = min(self._most, self._limit * MORE)
        return found

    async def _within_deadline(self, place: Mapping[str, str]) -> bytes | None:
        """The page, or None where it is larger than MAX_PAGE. Raises ApiError, NoPage if it does not arrive in time."""
        try:
            async with asyncio.timeout(self._deadline):
                return await self._read({**self._resource.selectors, "limit": str(self._limit), **place})
        except TimeoutError:
            raise NoPage(f"no complete page within {self._deadline:g} s") from None

    async def _read(self, parameters: Mapping[str, str]) -> bytes | None:
        pieces, size, most = [], 0, MAX_PAGE if self._limit > 1 else MAX_OBJECT
        async with self._api.stream(self._path, parameters) as body:
            async for piece in body:
                size += len(piece)
                if size > most:
                    return None
                pieces.append(piece)
        return b"".join(pieces)


MAX_PAGES: Final = 20_000  # of one list: more than 8 GiB, the largest etcd, of objects so large that each has a page

_FORBIDDEN: Final = 403


class ImplausibleList(Exception):
    """The list is complete but implausible; the store was not changed."""


class Lister:
    """Lists one kind from the URL path `path`. A success resets `backoff`, whose failures the reflector counts."""

    def __init__(self, path: str, progress: Progress, sync: SyncState, backoff: Backoff, shared: SharedState) -> None:
        self.path = path
        self.progress = progress
        self.sync = sync
        self.backoff = backoff
        self.shared = shared
        self.check = ListCheck(progress.resource.kind, shared.store, sync)

    async def list(self) -> None:
        """List and, once all pages are in, replace what the store holds. Raises ApiError, ImplausibleList."""
        listing = await self.gather()
        async with self.shared.turns.turn() as turn:
            await self.accept(listing, turn)

    async def gather(self) -> Listing:
        """A complete list, read in pages. Raises ApiError."""
        listing = self.new_listing()
        pages = Pages(self.shared.api, self.path, self.progress.resource)
        oldest = {} if self.shared.consistent_lists else self.sync.not_older_than
        page = await self._take_page(await pages.body(oldest), listing)
        seen: set[str] = set()
        while page.next_token:
            if page.next_token in seen:
                raise ApiError(0, "the pages of the list do not end: a continue token came again")
            if len(seen) == MAX_PAGES:
                raise ApiError(0, f"the pages of the list do not end: there are more than {MAX_PAGES}")
            seen.add(page.next_token)
            page = await self._take_page(await pages.body({"continue": page.next_token}), listing)
        listing.version = page.version
        return listing

    async def newest_version(self) -> str:
        """The server's current resourceVersion, from a list with limit=1. Raises ApiError."""
        body = await Pages(self.shared.api, self.path, self.progress.resource, limit=1).body({})
        try:
            return read_page(self.progress.resource.kind, body).version
        except UnreadableReply as problem:
            raise NoPage(str(problem)) from None

    def new_listing(self) -> Listing:
        return self.shared.store.new_listing(self.progress.resource.kind)

    def collect(self, listing: Listing, item: Event[Any] | Undecodable | Listed[Any] | None) -> None:
        """Add one item of a list to `listing`; None is an object without effect on answers (a finished Pod)."""
        match item:
            case None:
                return
            case Undecodable():
                self.sync.undecodable.skip(item)
                if item.key is not None:
                    listing.keep(item.key)
            case Event(Upserted(value)) | Listed(value):
                self.sync.undecodable.note(value.key, item.left_out)
                listing.add(value)
            case Event(Deleted() as deleted):
                listing.remove(deleted.key)

    async def accept(self, listing: Listing, turn: Turn) -> None:
        """Replace what the store holds with a list; the watch starts from its version.

        Raises ImplausibleList, and logs why, if a second list must confirm it first.
        """
        self.succeeded()
        problem = self.check.problem(listing, listing.version)
        if problem:
            self.progress.reports.implausible(self.progress.resource, problem)
            raise ImplausibleList
        await self.replace(listing, turn)
        self.sync.list_applied(listing.version)
        self.backoff.succeeded()

    async def replace(self, listing: Listing, turn: Turn, newer: Set[ObjectKey] = frozenset()) -> int:
        """Take the steps of `Listing.replace_steps`; returns how many objects differed.

        `newer` has the keys that watch events changed after the list was read.
        """
        differing = 0
        for count in listing.replace_steps(newer):
            differing += count
            await turn.pause_if_due()
        return differing

    def received(self) -> None:
        """Note that data arrived. One page is no proof of health: the list may fail after it every time."""
        self.progress.last_received = asyncio.get_running_loop().time()

    def succeeded(self) -> None:
        """Note a proof of health: a complete list, a new event, or a watch that stays open.

        If it ends a failure, `RetryGate.open` ends the waits of all reflectors, except patient ones.
        """
        if self.progress.succeeded(asyncio.get_running_loop().time()):
            self.progress.reports.recovered(self.progress.resource)
            self.shared.gate.open()

    async def is_denied(self, verb: Verb) -> bool:
        """Whether RBAC refuses this verb (403), by a minimal request; False after any other failure of that."""
        shortest = {"limit": "1"} if verb == "list" else {"watch": "true", "timeoutSeconds": "1"}
        try:
            async with self.shared.api.stream(self.path, {**self.progress.resource.selectors, **shortest}):
                return False
        except ApiError as error:
            return error.status == _FORBIDDEN

    async def _take_page(self, data: bytes, listing: Listing) -> Page:
        async with self.shared.turns.turn() as turn:
            try:
                page = read_page(self.progress.resource.kind, data)
            except UnreadableReply as problem:
                raise ApiError(0, str(problem)) from None
            self.received()
            for item in page.items:
                self.collect(listing, read_listed(self.progress.resource.kind, item, self.shared.store.decode))
                await turn.pause_if_due()
        return page


SMALL: Final = 100  # objects held: with no more than these, any shorter list is plausible
LEAST_SHARE: Final = 0.1  # of the objects held: a list with fewer is implausible


class ListCheck:
    """The check of the lists of one kind. `sync` has the last resourceVersion seen."""

    def __init__(self, kind: Kind, store: Store, sync: SyncState) -> None:
        self._kind = kind
        self._store = store
        self._sync = sync
        self._confirming = False  # the last list was implausible, so the next one is accepted

    def problem(self, listed: Sized, version: str) -> str:
        """Why a list of these objects and this resourceVersion is implausible, for the log; "" if it is accepted.

        After an implausible list, the next one is requested as the newest there is, and accepted.
        """
        problem = "" if self._confirming else self._shrinkage(len(listed)) or self._sync.lag(version)
        self._confirming = bool(problem)
        if problem:
            self._sync.request_newest()
        return problem

    def _shrinkage(self, listed: int) -> str:
        held = self._store.count(self._kind)
        if held <= SMALL or listed >= held * LEAST_SHARE:
            return ""
        return f"it has {listed} objects where there were {held}"
