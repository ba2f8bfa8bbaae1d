"""Leader election by a Lease, with the algorithm of the kubernetes package, and the fence in front of every write.

The package's `LeaderElection` decides when to acquire and to renew. Its `LeaseLock` is replaced, and its run is
supervised, because of these defects, each of which has a test:

- an error of the connection is no ApiException and ends the election, while the task that it started goes on;
- requests have no deadline, so that a silent API server hides that the Lease has expired;
- a leader goes on for ten seconds after it has read another holder in the Lease;
- the wall clock measures expiry: a step of it makes a follower acquire a renewed Lease, or wait for long;
- times are the local ones, with the suffix of UTC;
- at a stop the Lease is not released, and if `run` is cancelled, the task that it started goes on.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from topodns.kube.client.contract import ApiError
from topodns.kube.client.official_client import (
    ApiException,
    ElectionConfig,
    LeaderElection,
    LeaderElectionRecord,
    OfficialClient,
    create,
    read_object,
    replace_object,
)
from topodns.kube.lease import (
    LEASE_SECONDS,
    LeaseRecord,
    OthersLease,
    lease_record,
    new_lease,
    released_lease,
    renewed_lease,
)

RENEW_SECONDS: Final = 10.0  # after the request of the last renewal: the leader writes no longer
RETRY_SECONDS: Final = 2  # between two attempts to acquire or to renew
REQUEST_SECONDS: Final = LEASE_SECONDS - RENEW_SECONDS  # deadline of each request: none outlives the Lease

_NOT_FOUND: Final = 404

logging.getLogger("kubernetes.aio.leaderelection").setLevel(logging.CRITICAL)  # it reports each attempt; see Report

Clock = Callable[[], float]


class LeaseLost(Exception):
    """This replica is not the leader, or its Lease may have expired."""


class Fence:
    """Whether this replica may write: from a renewal of its Lease on, for RENEW_SECONDS after it was requested."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = -math.inf
        self._closed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._clock() < self._until

    def check(self) -> None:
        """Raises LeaseLost unless this replica may write."""
        if not self.is_open:
            raise LeaseLost

    def renewed(self, requested_at: float) -> None:
        self._until = requested_at + RENEW_SECONDS
        self._closed.clear()

    def close(self) -> None:
        self._until = -math.inf
        self._closed.set()

    async def wait_closed(self) -> None:
        """Return once this replica may no longer write."""
        while (left := self._until - self._clock()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), min(left, 1.0))  # the boot clock may jump meanwhile
        self.close()


@dataclass(frozen=True, slots=True)
class LeaseApi:
    """The requests for one Lease. All raise ApiError."""

    client: OfficialClient
    namespace: str
    name: str

    async def read(self) -> LeaseRecord:
        return lease_record(await read_object(self.client, f"{self._collection}/{self.name}", REQUEST_SECONDS))

    async def create(self, lease: dict[str, Any]) -> None:
        await create(self.client, self._collection, lease, deadline=REQUEST_SECONDS)

    async def replace(self, lease: dict[str, Any]) -> None:
        await replace_object(self.client, f"{self._collection}/{self.name}", lease, REQUEST_SECONDS)

    @property
    def _collection(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"


Report = Callable[[ApiError | None], None]
"""Takes why the Lease could not be read or written, or None when it could."""


class FencedLock:
    """The lock of the package's LeaderElection: a Lease whose renewal opens the fence. Its methods raise no error.

    `clock` is monotonic, `now` gives seconds since the epoch.
    """

    def __init__(self, api: LeaseApi, identity: str, fence: Fence, clock: Clock, now: Clock, report: Report) -> None:
        self.name, self.namespace, self.identity = api.name, api.namespace, identity
        self._api, self._fence, self._clock, self._now, self._report = api, fence, clock, now, report
        self._read: LeaseRecord | None = None
        self._others = OthersLease(identity)

    async def get(self, name: str, namespace: str) -> tuple[bool, Any]:
        """The package's record of the Lease, or (False, its error), with the status 404 where there is no Lease."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                found = await self._api.read()
        except (ApiError, TimeoutError) as problem:
            error = _as_api_error(problem)
            if error.status == _NOT_FOUND:  # another replica may create it
                self._fence.close()
                return False, ApiException(status=_NOT_FOUND, reason=str(error), body='{"code": 404}')
            self._report(error)
            return False, ApiException(status=error.status, reason=str(error))
        if found.holder != self.identity:
            self._fence.close()
        self._read = found
        spec, is_held = found.content.get("spec") or {}, self._is_others(found)
        if is_held:
            self._report(None)
        holder = found.holder if is_held or found.holder == self.identity else None  # None: acquire it now
        return True, LeaderElectionRecord(holder, found.seconds, spec.get("acquireTime"), spec.get("renewTime"))

    async def create(self, name: str, namespace: str, election_record: Any) -> bool:
        lease = new_lease(self.namespace, self.name, self.identity, self._now())
        return await self._renewed(self._api.create(dict(lease)))

    async def update(self, name: str, namespace: str, updated_record: Any) -> bool:
        """Acquire or renew it, unless its holder is another one and may still count on it."""
        found = self._read
        if found is None or self._is_others(found):
            return False
        lease = renewed_lease(found, self.identity, self._now())
        return await self._renewed(self._api.replace(dict(lease)))

    async def release(self) -> None:
        """Give the Lease back, if it is held, after the last write."""
        if not self._fence.is_open:
            return
        self._fence.close()
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(REQUEST_SECONDS):
                found = await self._api.read()
                if found.holder == self.identity:
                    await self._api.replace(dict(released_lease(found, self._now())))

    def _is_others(self, found: LeaseRecord) -> bool:
        """Whether another replica holds it, which renewed it less than LEASE_SECONDS ago or might have."""
        return self._others.expires_in(found, self._clock(), LEASE_SECONDS) > 0

    async def _renewed(self, request: Coroutine[Any, Any, None]) -> bool:
        began = self._clock()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await request
        except (ApiError, TimeoutError) as problem:
            self._report(_as_api_error(problem))
            return False
        self._report(None)
        self._fence.renewed(began)
        return True


def _as_api_error(problem: ApiError | TimeoutError) -> ApiError:
    return problem if isinstance(problem, ApiError) else ApiError(0, f"no response within {REQUEST_SECONDS:g} s")


async def campaign(lock: FencedLock, fence: Fence, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Wait for the Lease, run `lead` while this replica holds it, cancel it when it does not.

    Returns when the Lease is lost; when cancelled, or when `lead` ends, it is released. Raises what `lead` raises.
    """
    acquired = asyncio.Event()

    async def on_started() -> None:
        acquired.set()

    async def on_stopped() -> None:
        pass

    config = ElectionConfig(lock, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS, on_started, on_stopped)
    tasks = [asyncio.create_task(LeaderElection(config).run(), name="leader election")]
    try:
        tasks.append(asyncio.create_task(acquired.wait(), name="lease acquired"))
        await _first(tasks)
        if acquired.is_set():
            tasks.append(asyncio.create_task(fence.wait_closed(), name="lease expiry"))
            leading = asyncio.create_task(lead(), name="lead")
            tasks.append(leading)
            await _first([tasks[0], *tasks[2:]])
            if leading.done():
                with suppress(LeaseLost):
                    await leading
        if tasks[0].done():
            await tasks[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await lock.release()


async def _first(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
