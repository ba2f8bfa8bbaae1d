"""Keeps one kind of object as the API server has it: list, then watch, for ever, through every failure.

After client-go's Reflector. A list changes nothing before it is complete. Where the server offers it, the list comes as
the beginning of the watch (KEP-3157), else in pages.
"""

import asyncio
import logging
from typing import Final

from topodns.edge.api_source.backoff import Backoff
from topodns.edge.api_source.company import Company
from topodns.edge.api_source.ledger import Ledger
from topodns.edge.api_source.listing import Listing
from topodns.edge.api_source.look_back import LookBack, was_answered
from topodns.edge.api_source.progress import Progress, Verb
from topodns.edge.api_source.reader import Doubtful, Reader
from topodns.edge.api_source.resources import Resource
from topodns.edge.api_source.retry_gate import SPACING
from topodns.edge.api_source.watch_run import NoInitialEvents, WatchRun
from topodns.edge.kube_api.contract import ApiError

log = logging.getLogger(__name__)

NOT_INSTALLED_PAUSE: Final = 60.0  # seconds before a missing resource is looked for again
CONFIRM_AFTER: Final = 2.0  # seconds until a list that is hard to believe is asked for again
VERIFY_EVERY: Final = (1800.0, 3600.0)  # seconds between the lists that look for lost events
VERIFY_GRACE: Final = 1.0  # seconds for events that are on their way while a list is
LONGEST_ASKED: Final = 300.0  # seconds: a server that asks for more, before the spread, is not believed
RETRY_SPREAD: Final = 1.25  # times what the server asks for, at most: clients are not to come back all at once

_BAD_REQUEST: Final = 400  # also what a server says of a resourceVersion that it cannot read
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_GONE: Final = 410
_FROM_THE_FUTURE: Final = "too large resource version"  # status 504, and only its text tells it from a proxy's


class Reflector:
    """One kind of one API server. `progress` tells how it goes."""

    def __init__(self, resource: Resource, company: Company) -> None:
        self.progress = Progress(resource, asyncio.get_running_loop().time())
        self._resource = resource
        self._company = company
        self._ledger = Ledger(self.progress, company.intake)
        self._backoff = Backoff(company.rng)
        self._list_backoff = Backoff(company.rng, costly=True)  # of failures that mean another list
        self._reader = Reader(resource.paths[0], self.progress, self._ledger, self._backoff, company)
        self._streams_lists = True
        self._past = LookBack(self._reader)
        self._verb: Verb = "list"

    async def follow(self) -> None:
        """Keep up with the server for ever."""
        while True:
            await self._attempt()

    async def verify(self) -> None:
        """Look for lost events for ever, now and then: a list beside the watch is compared with what is held."""
        while True:
            await asyncio.sleep(self._company.rng.uniform(*VERIFY_EVERY))
            try:
                await self._verify_once()
            except ApiError as error:
                self._take_unverified(error)

    async def _attempt(self) -> None:
        """List if need be, else watch until that ends; after a failure, wait."""
        try:
            if self._ledger.version is not None and self._past.is_due:
                await self._look_back()
            if self._ledger.version is None:
                self._past.spare()
                await self._list()
            else:
                await self._watch(with_list=False)
        except ApiError as error:
            await self._take_failure(error)
        except Doubtful:
            await asyncio.sleep(CONFIRM_AFTER)

    async def _look_back(self) -> None:
        """Whether this is still the server that was watched, or a list has to come first."""
        try:
            behind = await self._past.is_behind()
        except ApiError as error:
            if was_answered(error):
                self._verb = "list"
            if not self._past.gives_up(error):
                raise
            await self._wait(SPACING, error.retry_after)
            return
        if behind:
            self._ledger.forget_version(any_age=True)
            # One in between who is always behind must not make a list of each watch that breaks off.
            await asyncio.sleep(self._list_backoff.failed(asyncio.get_running_loop().time()))

    async def _list(self) -> None:
        if self._streams_lists:
            try:
                await self._watch(with_list=True)
                return
            except NoInitialEvents:
                self._streams_lists = False
        self._verb = "list"
        await self._reader.list()

    async def _watch(self, with_list: bool) -> None:
        self._verb = "watch"
        await WatchRun(self._reader, with_list).run()

    async def _take_failure(self, error: ApiError) -> None:
        """Note what it was, make of it what can be made, and wait."""
        if error.status == _NOT_FOUND and self._try_other_path():
            return
        if self.progress.failed(self._verb, error):
            log.warning("plugin/kubernetes: cannot %s %s: %s", self._verb, self._resource.name, error)
        ahead = _is_ahead(error)
        meaningless = ahead or error.status == _BAD_REQUEST
        if error.status in (_GONE, _NOT_FOUND) or meaningless:
            # Where a list no older than what was seen cannot be had, what there is now counts.
            self._ledger.forget_version(any_age=meaningless or self._ledger.version is None)
        if self._resource.custom and error.status == _NOT_FOUND:
            await self._empty()
            await asyncio.sleep(NOT_INSTALLED_PAUSE)
            return
        if self._resource.optional and error.status in (_FORBIDDEN, _NOT_FOUND):
            self._do_without()
        backoff = self._list_backoff if meaningless or error.status == _GONE else self._backoff
        if error.status == _FORBIDDEN:
            await self._try_other_verb()
        await self._wait(backoff.failed(asyncio.get_running_loop().time()), error.retry_after)

    async def _try_other_verb(self) -> None:
        """Whoever has to grant both is to be told of both at once, and the server names the one it was asked for."""
        await self._company.gate.wait(SPACING, patient=True)
        other: Verb = "list" if self._verb == "watch" else "watch"
        if self.progress.tried_other(other, await self._reader.is_denied(other)):
            log.warning("plugin/kubernetes: cannot %s %s either: denied too", other, self._resource.name)

    def _try_other_path(self) -> bool:
        """Whether the resource may be somewhere else. After the last path the first is next, when it is time again."""
        paths = self._resource.paths
        following = (paths.index(self._reader.path) + 1) % len(paths)
        self._reader.path = paths[following]
        return following > 0

    def _do_without(self) -> None:
        """What was known of it stays."""
        self.progress.heard = asyncio.get_running_loop().time()
        self._company.intake.do_without(self._resource.kind)

    async def _empty(self) -> None:
        """What is not installed has no objects."""
        self.progress.heard = asyncio.get_running_loop().time()
        async with self._company.turns.take() as turn:
            await self._reader.replace(self._reader.new_listing(), turn)

    async def _wait(self, seconds: float, retry_after: float | None) -> None:
        if retry_after is None:
            await self._company.gate.wait(seconds)
            return
        asked = min(retry_after, LONGEST_ASKED) * self._company.rng.uniform(1.0, RETRY_SPREAD)
        await self._company.gate.wait(max(seconds, asked), patient=True)

    def _take_unverified(self, error: ApiError) -> None:
        """Where lists are streamed, it is only here that the verb `list` is missed."""
        level = logging.WARNING if error.status == _FORBIDDEN else logging.INFO
        log.log(level, "plugin/kubernetes: not verified, cannot list %s: %s", self._resource.name, error)
        if _is_ahead(error):
            self._ledger.forget_version(any_age=True)

    async def _verify_once(self) -> None:
        if self._ledger.version is None or self.progress.trouble is not None:
            return
        lists, news = self.progress.lists, self._ledger.follow_news()
        try:
            listing = await self._believable_listing()
            if listing is None:
                return
            await asyncio.sleep(VERIFY_GRACE)
            if self.progress.lists != lists or self._ledger.version is None:
                return  # a list that is newer has been taken in, or is on its way
            async with self._company.turns.take() as turn:
                repairs = await self._reader.replace(listing, turn, news)
        finally:
            self._ledger.ignore_news()
        self.progress.repairs += repairs
        if repairs:
            log.warning("plugin/kubernetes: %s: %d objects were not as held; repaired", self._resource.name, repairs)

    async def _believable_listing(self) -> Listing | None:
        """None where what the watch follows is not this server's past: then a list has to come before the next one."""
        while True:
            listing, version = await self._reader.gather()
            if self._ledger.is_behind(version):
                self._ledger.forget_version(any_age=True)
                return None
            if not self._ledger.doubt(listing, version):
                return listing
            await asyncio.sleep(CONFIRM_AFTER)


def _is_ahead(error: ApiError) -> bool:
    """Whether we asked for a version that this server has not reached: it lags, or etcd was restored."""
    return _FROM_THE_FUTURE in str(error).lower()
