"""The reflector of one kind: lists, then watches, and recovers from every failure.

Modelled on client-go's Reflector. A list changes the state only when it is complete. Where the server supports it, the
list is streamed as the initial events of the watch (KEP-3157), else read in pages.

After a lost watch the server's resourceVersion is compared with the last one seen before: a server whose etcd was
restored from a backup accepts a watch from a resourceVersion that it has not reached yet, and sends nothing in it.
"""

import asyncio
import logging
import math
from collections.abc import Iterable
from typing import Final

from topodns.cluster.decode.stream import UnreadableReply, read_group
from topodns.kube.client.contract import ApiError, KubeApi, read_body
from topodns.kube.informer.lister import ONE_OBJECT_DEADLINE, ImplausibleList, Lister, NoPage, SharedState
from topodns.kube.informer.progress import Progress
from topodns.kube.informer.resources import Resource, Verb
from topodns.kube.informer.retry import SPACING, Backoff
from topodns.kube.informer.store import Listing
from topodns.kube.informer.sync_state import SyncState
from topodns.kube.informer.watcher import NoInitialEvents, WatchRun

NOT_INSTALLED_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)  # seconds between requests for a resource that is
# not installed; the last one repeats. The first are short, as it is often installed together with this server.
CONFIRM_AFTER: Final = 2.0  # seconds until an implausible list is requested again
VERIFY_EVERY: Final = (1800.0, 3600.0)  # seconds between the lists that verify the state
VERIFY_GRACE: Final = 1.0  # seconds for the watch to catch up with the verifying list
MAX_RETRY_AFTER: Final = 300.0  # seconds: cap on Retry-After, before the spread
RETRY_SPREAD: Final = 1.25  # largest factor on Retry-After, chosen at random: clients must not return all at once
MAX_TRIES: Final = 3  # rollback checks in a row without an answer, after which the watch resumes unchecked
UNSTEADY: Final = 60.0  # seconds between rollback checks: less means that watches keep failing

_NO_RESPONSE: Final = 0
_BAD_REQUEST: Final = 400  # also for a resourceVersion that the server cannot parse
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_GONE: Final = 410
_SERVER_ERROR: Final = 500  # and above
_FROM_THE_FUTURE: Final = "too large resource version"  # status 504; only the text distinguishes it from a proxy's


class Reflector:
    """Keeps one kind in sync with one API server. `progress` has its health and counters."""

    def __init__(self, resource: Resource, shared: SharedState) -> None:
        self.progress = Progress(resource, asyncio.get_running_loop().time(), shared.reports)
        self._resource = resource
        self._shared = shared
        self._sync = SyncState(self.progress, shared.store)
        self._backoff = Backoff(shared.rng)
        self._list_backoff = Backoff(shared.rng, costly=True)  # for failures that require another list
        self.lister = Lister(resource.paths[0], self.progress, self._sync, self._backoff, shared)
        self._streams_lists = not shared.consistent_lists
        self._rollback_check = RollbackCheck(self.lister)
        self._verb: Verb = "list"
        self._refused_since = 0.0  # loop seconds, of an optional kind
        self._absences = 0  # earlier requests in a row that found the resource not installed

    @property
    def skipped(self) -> Iterable[str]:
        """A log line for each object that cannot be decoded, wholly or in part."""
        return self._sync.undecodable.problems.values()

    async def follow(self) -> None:
        """List and watch until cancelled."""
        while True:
            await self._attempt()

    async def verify(self) -> None:
        """Until cancelled, list every VERIFY_EVERY beside the watch and repair objects whose events were lost."""
        while True:
            await asyncio.sleep(self._shared.rng.uniform(*VERIFY_EVERY))
            try:
                await self._verify_once()
            except ApiError as error:
                self._handle_unverified(error)

    async def _attempt(self) -> None:
        """List if no resourceVersion is known, else watch until the watch ends; after a failure, back off.

        A streamed list goes on as a watch until that ends. A rollback check that is due comes before the watch.
        """
        try:
            if self._sync.version is not None and self._rollback_check.is_due:
                await self._check_for_rollback()
            if self._sync.version is None:
                self._rollback_check.skip()
                await self._list()
            else:
                await self._watch(with_list=False)
        except ApiError as error:
            await self._handle_failure(error)
        except ImplausibleList:
            await asyncio.sleep(CONFIRM_AFTER)

    async def _check_for_rollback(self) -> None:
        """Check for a rollback of the server (etcd restored); after one, forget the resourceVersion to force a list.

        Raises ApiError for a failed check, unless too many have failed: then the watch goes on unchecked after a pause.
        """
        try:
            behind = await self._rollback_check.is_behind()
        except ApiError as error:
            if _was_answered(error):
                self._verb = "list"
            if not self._rollback_check.gives_up(error):
                raise
            await self._wait(SPACING, error.retry_after)
            return
        if behind:
            self._sync.forget_version(any_age=True)
            # Where one of several API servers always lags, not every broken watch may cause a list.
            await asyncio.sleep(self._list_backoff.failed(asyncio.get_running_loop().time()))

    async def _list(self) -> None:
        if self._streams_lists:
            try:
                await self._watch(with_list=True)
                return
            except NoInitialEvents:
                self._streams_lists = False
        self._verb = "list"
        await self.lister.list()

    async def _watch(self, with_list: bool) -> None:
        self._verb = "watch"
        await WatchRun(self.lister, with_list).run()

    async def _handle_failure(self, error: ApiError) -> None:
        """Record a failed list or watch, adapt (other path, other verb, new list, do without), and back off."""
        if error.status == _NOT_FOUND and self._try_other_path():
            return
        if error.status == _NOT_FOUND and self._resource.custom:
            await self._wait_for_installation()
            return
        first = self.progress.failed(self._verb, error)
        await self._shared.reports.failed(self._resource, self._verb, error, first)
        ahead = _is_ahead(error)
        invalid = ahead or error.status == _BAD_REQUEST
        if error.status in (_GONE, _NOT_FOUND) or invalid:
            # Where the server cannot serve a list at least as new as the last seen version, accept any version.
            self._sync.forget_version(any_age=invalid or self._sync.version is None)
        if self._resource.optional and error.status in (_FORBIDDEN, _NOT_FOUND):
            await self._do_without(first)
        backoff = self._list_backoff if invalid or error.status == _GONE else self._backoff
        if error.status == _FORBIDDEN:
            await self._try_other_verb()
        await self._wait(backoff.failed(asyncio.get_running_loop().time()), error.retry_after)

    async def _try_other_verb(self) -> None:
        """Probe the other verb after a 403, so that the log names all missing permissions at once.

        The server's message names only the verb of the request.
        """
        await self._shared.gate.wait(SPACING, patient=True)
        other: Verb = "list" if self._verb == "watch" else "watch"
        if self.progress.tried_other(other, await self.lister.is_denied(other)):
            self._shared.reports.say(f"cannot {other} {self._resource.name} either: denied too")

    def _try_other_path(self) -> bool:
        """Switch to the resource's next path. Returns whether to try it at once.

        False after the last path: the next one is then the first again, which was tried before.
        """
        paths = self._resource.paths
        following = (paths.index(self.lister.path) + 1) % len(paths)
        self.lister.path = paths[following]
        return following > 0

    async def _do_without(self, first: bool) -> None:
        """Let answers do without this optional kind; objects of a list stay. `first`: it was not refused before."""
        now = asyncio.get_running_loop().time()
        self.progress.last_received = now
        self._refused_since = now if first else self._refused_since
        async with self._shared.turns.turn() as turn:
            for _ in self._shared.store.do_without_steps(self._resource.kind, now - self._refused_since):
                await turn.pause_if_due()

    async def _wait_for_installation(self) -> None:
        """Count a custom resource that the cluster does not have as empty, say why, and wait before the next attempt.

        Replaces the state with an empty list: a kind that is not installed has no objects.
        """
        absent = ApiError(_NOT_FOUND, await reason_of_absence(self._shared.api, self._resource))
        known = self.progress.trouble
        self.progress.failed(self._verb, absent)
        if known is None or known.problem != str(absent):
            await self._shared.reports.failed(self._resource, self._verb, absent, first=True)
        self._sync.forget_version(any_age=self._sync.version is None)
        self.progress.last_received = asyncio.get_running_loop().time()
        async with self._shared.turns.turn() as turn:
            await self.lister.replace(self.lister.new_listing(), turn)
        self._absences = self._absences + 1 if known is not None else 0
        await asyncio.sleep(NOT_INSTALLED_PAUSES[min(self._absences, len(NOT_INSTALLED_PAUSES) - 1)])

    async def _wait(self, seconds: float, retry_after: float | None) -> None:
        if retry_after is None:
            await self._shared.gate.wait(seconds)
            return
        asked = min(retry_after, MAX_RETRY_AFTER) * self._shared.rng.uniform(1.0, RETRY_SPREAD)
        await self._shared.gate.wait(max(seconds, asked), patient=True)

    def _handle_unverified(self, error: ApiError) -> None:
        """Log a failed verification; force a new list if the server is behind the last seen resourceVersion.

        Where lists are streamed, a missing permission to `list` shows only here and in a rollback check.
        """
        level = logging.WARNING if error.status == _FORBIDDEN else logging.INFO
        self._shared.reports.say(f"not verified, cannot list {self._resource.name}: {error}", level)
        if _is_ahead(error):
            self._sync.forget_version(any_age=True)

    async def _verify_once(self) -> None:
        if self._sync.version is None or self.progress.trouble is not None:
            return
        lists, newer = self.progress.lists, self._sync.record_changes()
        try:
            listing = await self._plausible_listing()
            if listing is None:
                return
            await asyncio.sleep(VERIFY_GRACE)
            if self.progress.lists != lists or self._sync.version is None:
                return  # a newer list has been applied, or is due
            async with self._shared.turns.turn() as turn:
                repairs = await self.lister.replace(listing, turn, newer)
        finally:
            self._sync.stop_recording(newer)
        self.progress.repairs += repairs
        if repairs:
            self._shared.reports.say(f"{self._resource.name}: {repairs} objects were not as held; repaired")

    async def _plausible_listing(self) -> Listing | None:
        """A plausible list to verify against; an implausible one is requested once more after CONFIRM_AFTER.

        None if the list is older than the last seen resourceVersion: a new list is then forced. Raises ApiError.
        """
        while True:
            listing = await self.lister.gather()
            if self._sync.is_behind(listing.version):
                self._sync.forget_version(any_age=True)
                return None
            if not self.lister.check.problem(listing, listing.version):
                return listing
            await asyncio.sleep(CONFIRM_AFTER)


class RollbackCheck:
    """The rollback check of one kind. One check costs a list with limit=1."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._losses = 0  # RetryGate.losses at the last check or list
        self._unanswered = 0  # checks without an answer, in a row
        self._answered_at = -math.inf  # time of the last answer, in seconds of the loop's clock

    @property
    def is_due(self) -> bool:
        return self._losses != self._lister.shared.gate.losses

    def skip(self) -> None:
        """Skip the check that is due, for example before a complete list, which replaces it."""
        self._losses = self._lister.shared.gate.losses

    async def is_behind(self) -> bool:
        """Whether the server is behind the last seen version. Raises ApiError, to be passed to `gives_up`."""
        losses = self._lister.shared.gate.losses
        version = await self._lister.newest_version()
        self._losses, self._unanswered = losses, 0
        await self._keep_spacing()
        behind = self._lister.sync.is_behind(version)
        if behind:
            progress = self._lister.progress
            progress.reports.rolled_back(progress.resource, version, self._lister.sync.seen)
        return behind

    def gives_up(self, error: ApiError) -> bool:
        """Whether to watch unchecked: the server is reachable, but MAX_TRIES checks in a row got 5xx or no usable page.

        The check stays due before the next watch. After a 403 (no permission to list) the result is False, and no check
        is due until another watch is lost.
        """
        if error.status == _FORBIDDEN:
            self.skip()
        if not isinstance(error, NoPage) and error.status < _SERVER_ERROR:
            return False
        self._unanswered += 1
        return self._unanswered >= MAX_TRIES

    async def _keep_spacing(self) -> None:
        """Sleep for SPACING if the previous check was answered less than UNSTEADY ago: the server is there, but watches
        keep failing.
        """
        before, self._answered_at = self._answered_at, asyncio.get_running_loop().time()
        if self._answered_at - before < UNSTEADY:
            await asyncio.sleep(SPACING)


def _was_answered(error: ApiError) -> bool:
    """Whether the server was reached, so that this request failed and not the connection."""
    return isinstance(error, NoPage) or error.status != _NO_RESPONSE


def _is_ahead(error: ApiError) -> bool:
    """Whether the requested resourceVersion is newer than the server's: the server lags, or etcd was restored."""
    return _FROM_THE_FUTURE in str(error).lower()


async def reason_of_absence(api: KubeApi, resource: Resource) -> str:
    """A clause for the log and /ready, by the discovery document of the resource's API group (`/apis/GROUP`)."""
    missing = f"not installed: the cluster has no CustomResourceDefinition {resource.name}"
    wanted = _version(resource)
    if not wanted:
        return missing
    try:
        async with asyncio.timeout(ONE_OBJECT_DEADLINE):
            served = read_group(await read_body(api, f"/apis/{resource.group}"))
    except ApiError as error:
        return missing if error.status == _NOT_FOUND else f"not installed, or not in version {wanted}"
    except (TimeoutError, UnreadableReply):
        return f"not installed, or not in version {wanted}"
    if not served or wanted in served:
        return missing
    return f"the cluster has {resource.group} in version {', '.join(served)}, expected {wanted}"


def _version(resource: Resource) -> str:
    """The version in the path `/apis/GROUP/VERSION/...` that is tried last; "" if the path has another form."""
    match resource.paths[-1].split("/"):
        case ["", "apis", resource.group, version, _]:
            return version
    return ""
