"""Writes the Events that are due, one at a time, while the Lease is ours. No trouble of it is anybody else's."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, TypeVar

from topodns.edge.kube_api.contract import ApiError, KubeApi
from topodns.edge.service_events.lease import Lease
from topodns.edge.service_events.objects import decode_uid, event_body
from topodns.edge.service_events.plan import DENIED, Plan
from topodns.edge.service_events.reading import read_body
from topodns.resolve.audit import Finding

log = logging.getLogger(__name__)

LIMIT: Final = 8.0  # seconds for what is done under the Lease: with lease.SURE still less than lease.DURATION
TROUBLED: Final = 60.0  # seconds to wait after a failure that may pass

_FORBIDDEN, _CONFLICT = 403, 409
_PASSING: Final = (401, 408, 429)  # of 400 to 499 those that may go otherwise the next time

T = TypeVar("T")


class EventWriter:
    """For one API server. `counts` is by outcome: `written`, `present`, `gone` (the Service is), `denied`, `failed`.

    `connect` gives a connection of its own, when there is something to write for the first time.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[KubeApi]], namespace: str, holder: str, counts: Counter[str]
    ) -> None:
        self._connect = connect
        self._lease = Lease(namespace, holder)
        self._holder = holder
        self._counts = counts
        self._plan = Plan()
        self._news = asyncio.Event()
        self._api: KubeApi | None = None
        self._paused_until = 0.0
        self._said: set[int] = set()  # the HTTP statuses that the log has had

    def report(self, findings: Iterable[Finding]) -> None:
        """All that is wrong in the cluster now."""
        self._plan.report(findings, _now())
        self._news.set()

    async def run(self) -> None:
        """Write for ever."""
        try:
            while True:
                await self._write(await self._due())
        finally:
            if self._api is not None:
                await self._api.close()

    async def _due(self) -> Finding:
        """Wait for the next."""
        while True:
            self._news.clear()
            due = self._plan.next(_now())
            start = max(due.at, self._paused_until) if due is not None else None
            if due is not None and start is not None and start <= _now():
                return due.finding
            with suppress(TimeoutError):
                async with asyncio.timeout_at(start):
                    await self._news.wait()

    async def _write(self, finding: Finding) -> None:
        try:
            if self._api is None:
                self._api = await self._connect()
            wait = await _in_time(self._lease.hold(self._api))
        except ApiError as error:
            self._count("denied" if error.status == _FORBIDDEN else "failed", error)
            self._pause(_patience(error))
            return
        if wait:
            self._pause(wait)
            return
        self._plan.attempted(_now())
        try:
            outcome = await _in_time(_create(self._api, finding, self._holder))
        except ApiError as error:
            self._refused(finding, error)
            return
        self._plan.settled(finding, _now())
        self._counts[outcome] += 1

    def _refused(self, finding: Finding, error: ApiError) -> None:
        """403 is about the namespace (a role binding, or its end), other refusals are about this Event alone."""
        if error.status == _FORBIDDEN:
            self._count("denied", error)
            self._plan.denied(finding.service.namespace, _now())
            return
        self._count("failed", error)
        if _is_final(error):
            self._plan.settled(finding, _now())
        else:
            self._pause(_patience(error))

    def _pause(self, seconds: float) -> None:
        self._paused_until = _now() + seconds

    def _count(self, outcome: str, error: ApiError) -> None:
        """And say it in the log, once for each status: the findings themselves are there already."""
        self._counts[outcome] += 1
        if error.status not in self._said:
            self._said.add(error.status)
            log.warning("plugin/topology: no Event on a Service could be written: %s", error)


async def _create(api: KubeApi, finding: Finding, instance: str) -> str:
    """The outcome. Raises ApiError.

    The uid comes from a list of one Service rather than from a `get`: listing Services is allowed to us anyway.
    """
    namespace = f"/api/v1/namespaces/{finding.service.namespace}"
    selector = {"fieldSelector": f"metadata.name={finding.service.name}"}
    uid = decode_uid(await read_body(api, f"{namespace}/services", selector))
    if not uid:
        return "gone"
    try:
        await api.send("POST", f"{namespace}/events", event_body(finding, uid, instance, time.time()))
    except ApiError as error:
        if error.status != _CONFLICT:
            raise
        return "present"
    return "written"


async def _in_time(work: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(LIMIT):
            return await work
    except TimeoutError:
        raise ApiError(0, f"not within {LIMIT:g} s") from None


def _is_final(error: ApiError) -> bool:
    return 400 <= error.status < 500 and error.status not in _PASSING


def _patience(error: ApiError) -> float:
    """Seconds to wait after a failure that concerns every Event."""
    return DENIED if _is_final(error) else max(TROUBLED, error.retry_after or 0.0)


def _now() -> float:
    return asyncio.get_running_loop().time()
