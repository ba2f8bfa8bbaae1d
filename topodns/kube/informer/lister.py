"""Lists one kind from an API server in pages, and replaces the cluster state with a plausible list (`list_check`)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from random import Random
from typing import Final

from topodns.cluster.decode.stream import Event, Listed, Page, Undecodable, UnreadableReply, read_listed, read_page
from topodns.cluster.left_out import placeholder
from topodns.cluster.model import ClusterObject, Deleted, EndpointSlice, Kind, ObjectKey, Upserted
from topodns.cluster.namespace_budget import ObjectHolder, octets_of
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.slices import HELD, SliceOwner, owner_of
from topodns.kube.client.contract import ApiError, KubeApi
from topodns.kube.informer.decode_turns import DecodeTurns, Turn
from topodns.kube.informer.list_check import ListCheck
from topodns.kube.informer.progress import Progress, Verb
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.retry import Backoff, RetryGate
from topodns.kube.informer.state_writer import StateWriter
from topodns.kube.informer.sync_state import SyncState, held_version

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SharedState:
    """Shared state of the reflectors of one API server.

    That is: connection, state writer, retry spacing, time slices, random numbers.
    """

    api: KubeApi
    writer: StateWriter
    gate: RetryGate
    turns: DecodeTurns
    rng: Random


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


FREED_AT_ONCE: Final = 512  # objects; about 50 us


class Listing(ObjectHolder):
    """The objects of a list that is being read. An unchanged one is shared with the state, so it is in memory once.

    The others count in the budget of the state; those for which there is no room are left out.
    """

    def __init__(self, kind: Kind, published: PublishingState) -> None:
        super().__init__(published.budget)
        self._kind = kind
        self._state = published.state
        self._slices: Counter[SliceOwner] = Counter()  # those of each Service so far; lists are ordered by name
        self._shared: dict[ObjectKey, ClusterObject] = {}
        self._own: dict[ObjectKey, ClusterObject] = {}

    def __len__(self) -> int:
        return len(self._shared) + len(self._own)

    def add(self, listed: ClusterObject) -> None:
        value = self._state.interned(listed)
        key = value.key
        if value is not listed:
            self._put(key, None)
            self._shared[key] = value
            return
        self._shared.pop(key, None)
        if isinstance(value, EndpointSlice):
            owner = owner_of(value)
            self._slices[owner] += 1
            if self._slices[owner] > HELD:
                self._put(key, placeholder(value, octets_of(value)))
                return
        self._put(key, self.budget.fitting(value, self._own.get(key)))
        self.budget.make_room()

    def apply(self, change: Upserted | Deleted) -> None:
        """Apply one initial event of a watch: normally an addition; a deletion removes the object."""
        match change:
            case Upserted(value):
                self.add(value)
            case Deleted(_, key):
                self._shared.pop(key, None)
                self._put(key, None)

    def keep(self, undecodable: Undecodable) -> None:
        """Keep the last version of an object that cannot be decoded."""
        held = held_version(undecodable, self._kind, self._state)
        if held is not None:
            self._put(held.key, None)
            self._shared[held.key] = held

    def objects(self) -> tuple[ClusterObject, ...]:
        return (*self._shared.values(), *self._own.values())

    def free_steps(self) -> Iterator[None]:
        """Empty the listing, FREED_AT_ONCE objects per step: 150,000 keys in one step would delay queries by 20 ms."""
        while self._shared or self._own:
            for _ in range(min(FREED_AT_ONCE, len(self._shared))):
                self._shared.popitem()
            for _ in range(min(FREED_AT_ONCE, len(self._own))):
                self.charge(self._kind, *self._own.popitem(), None)
            yield

    def leave_out(self, kind: Kind, key: ObjectKey) -> None:
        self._put(key, self.budget.instead(self._own[key]))

    def drop(self, namespace: str, octets: int) -> bool:
        wanted = self.octets - octets
        for key in [key for key in self._own if key.namespace == namespace]:
            if self.octets <= wanted:
                break
            self.budget.cut.add((self._kind, namespace))
            self.budget.times[self._kind] += 1
            self._put(key, None)
        return self.octets < wanted + octets

    def _put(self, key: ObjectKey, value: ClusterObject | None) -> None:
        """Set the listing's own object of a key; None: it has none."""
        old = self._own.pop(key, None)
        if old is None and value is None:
            return
        self.charge(self._kind, key, old, value)
        if value is not None:
            self._own[key] = value


MAX_PAGES: Final = 20_000  # of one list: more than 8 GiB, the largest etcd, of objects so large that each has a page

_FORBIDDEN: Final = 403


class ImplausibleList(Exception):
    """The list is complete but implausible; the cluster state was not changed."""


class Lister:
    """Lists one kind from the URL path `path`. A success resets `backoff`, whose failures the reflector counts."""

    def __init__(self, path: str, progress: Progress, sync: SyncState, backoff: Backoff, shared: SharedState) -> None:
        self.path = path
        self.progress = progress
        self.sync = sync
        self.backoff = backoff
        self.shared = shared
        self.check = ListCheck(progress.resource.kind, shared.writer.state, sync)

    async def list(self) -> None:
        """List and, once all pages are in, replace the state with the list. Raises ApiError, ImplausibleList."""
        listing, version = await self.gather()
        async with self.shared.turns.turn() as turn:
            await self.accept(listing, version, turn)

    async def gather(self) -> tuple[Listing, str]:
        """A complete list, read in pages, and its resourceVersion. Raises ApiError."""
        listing = self.new_listing()
        pages = Pages(self.shared.api, self.path, self.progress.resource)
        page = await self._take_page(await pages.body(self.sync.not_older_than), listing)
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
        """The server's current resourceVersion, from a list with limit=1. Raises ApiError."""
        body = await Pages(self.shared.api, self.path, self.progress.resource, limit=1).body({})
        try:
            return read_page(self.progress.resource.kind, body).version
        except UnreadableReply as problem:
            raise NoPage(str(problem)) from None

    def new_listing(self) -> Listing:
        return Listing(self.progress.resource.kind, self.shared.writer.published)

    def collect(self, listing: Listing, item: Event | Undecodable | Listed | None) -> None:
        """Add one item of a list to `listing`; None is an object without effect on answers (a finished Pod)."""
        match item:
            case None:
                return
            case Undecodable():
                self.sync.undecodable.skip(item)
                listing.keep(item)
            case Event(change):
                if isinstance(change, Upserted):
                    self.sync.undecodable.note(change.object.key, item.left_out)
                listing.apply(change)
            case Listed(value, left_out):
                self.sync.undecodable.note(value.key, left_out)
                listing.add(value)

    async def accept(self, listing: Listing, version: str, turn: Turn) -> None:
        """Replace the state with a list; the watch starts from its `version`.

        Raises ImplausibleList, and logs why, if a second list must confirm it first.
        """
        self.succeeded()
        problem = self.check.problem(listing, version)
        if problem:
            log.warning("plugin/kubernetes: list of %s: %s; asking again", self.progress.resource.name, problem)
            raise ImplausibleList
        await self.replace(listing, turn)
        self.sync.list_applied(version)
        self.backoff.succeeded()

    async def replace(self, listing: Listing, turn: Turn, newer: Set[ObjectKey] = frozenset()) -> int:
        """Replace the state with a list, except the objects in `newer`; returns how many objects differed.

        `newer` has the keys that watch events changed after the list was read. The listing is empty afterwards.
        """
        objects, differing = listing.objects(), 0
        for _ in listing.free_steps():  # so that a large list is not in memory twice
            await turn.pause_if_due()
        for count in self.shared.writer.replace_steps(self.progress.resource.kind, objects, newer):
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
            log.info("plugin/kubernetes: %s: the API server answers again", self.progress.resource.name)
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
                self.collect(listing, read_listed(self.progress.resource.kind, item))
                await turn.pause_if_due()
        return page
