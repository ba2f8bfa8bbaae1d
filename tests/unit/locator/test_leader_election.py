"""The leader election of `topodns locator`, in virtual time, between replicas whose API server a test plays."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.virtual_event_loop import run_virtually
from topodns.kube.client.contract import ApiError
from topodns.kube.lease import LEASE_SECONDS, LeaseRecord, decode_lease
from topodns.locator.leader_election import (
    RENEW_SECONDS,
    RETRY_SECONDS,
    Fence,
    FencedLock,
    LeaseApi,
    LeaseLost,
    campaign,
)

EPOCH = 1_790_000_000.0


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture(autouse=True)
def _clock_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package measures expiry by the wall clock, here the virtual one."""
    monkeypatch.setattr("kubernetes.aio.leaderelection.leaderelection.time", SimpleNamespace(time=wall_clock))


STEP = [0.0]
"""Seconds by which an administrator has stepped the wall clock."""


def wall_clock() -> float:
    return EPOCH + now() + STEP[0]


class Server:
    """The API server's one Lease. `fault` is raised by every request; with `silent` none is ever answered."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.writes: list[tuple[float, str]] = []  # time and holder

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease is not None else ""

    def put(self, lease: dict[str, Any]) -> None:
        self.version += 1
        self.lease = json.loads(json.dumps(lease))
        assert self.lease is not None
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        self.writes.append((now(), self.holder))


class Replica:
    """A candidate; `leads` tells when it led: start and end of each term."""

    def __init__(self, name: str, server: Server) -> None:
        self.name, self.server = name, server
        self.fault: ApiError | None = None
        self.silent = False
        self.fence = Fence(now)
        self.reports: list[str] = []
        self.terms: list[tuple[float, float]] = []
        self.crash: Exception | None = None
        replica = self

        class Api(LeaseApi):
            async def read(self) -> LeaseRecord:
                await replica.request()
                if server.lease is None:
                    raise ApiError(404, 'leases "topodns-locator" not found')
                return decode_lease(json.dumps(server.lease).encode())

            async def create(self, lease: dict[str, Any]) -> None:
                await replica.request()
                if server.lease is not None:
                    raise ApiError(409, "already exists")
                server.put(lease)

            async def replace(self, lease: dict[str, Any]) -> None:
                await replica.request()
                if server.lease is None or lease["metadata"]["resourceVersion"] != str(server.version):
                    raise ApiError(409, "the object has been modified")
                server.put(lease)

        api = Api(None, "kube-system", "topodns-locator")  # type: ignore[arg-type]
        self.lock = FencedLock(api, name, self.fence, now, wall_clock, self._report)

    def _report(self, problem: ApiError | None) -> None:
        if problem is not None:
            self.reports.append(str(problem))

    async def request(self) -> None:
        if self.silent:
            await asyncio.Event().wait()
        await asyncio.sleep(0.01)
        if self.fault is not None:
            raise self.fault

    async def _lead(self) -> None:
        began = now()
        try:
            if self.crash is not None:
                raise self.crash
            await asyncio.Event().wait()
        finally:
            self.terms.append((began, now()))

    async def run(self) -> None:
        while True:
            await campaign(self.lock, self.fence, self._lead)


@contextmanager
def running(*replicas: Replica) -> Iterator[list["asyncio.Task[None]"]]:
    tasks = [asyncio.create_task(replica.run()) for replica in replicas]
    yield tasks
    for task in tasks:
        task.cancel()


async def stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.fixture(autouse=True)
def _no_step() -> None:
    STEP[0] = 0.0


def test_one_of_two_leads_and_renews_its_lease() -> None:
    async def story() -> None:
        server = Server()
        a, b = Replica("a", server), Replica("b", server)
        with running(a, b):
            await asyncio.sleep(60.0)
            assert a.fence.is_open != b.fence.is_open
            assert len(server.writes) >= 60 / (RETRY_SECONDS + 1)
            assert len({holder for _, holder in server.writes}) == 1
            assert server.lease is not None
            spec = server.lease["spec"]
            renewed = datetime.fromisoformat(spec["renewTime"])
            assert renewed.tzinfo == UTC
            assert abs(renewed.timestamp() - wall_clock()) < 2 * RETRY_SECONDS
            assert spec["leaseDurationSeconds"] == LEASE_SECONDS
            assert spec["leaseTransitions"] == 0

    run_virtually(story())


def test_a_leader_that_stops_gives_its_lease_back_so_that_the_next_one_leads_at_once() -> None:
    async def story() -> None:
        server = Server()
        a, b = Replica("a", server), Replica("b", server)
        with running(a) as (task,):
            await asyncio.sleep(5.0)
            with running(b):
                await asyncio.sleep(5.0)
                await stop(task)
                stopped = now()
                assert a.terms[-1][1] <= stopped
                await asyncio.sleep(RETRY_SECONDS + 0.1)
                assert b.fence.is_open
                assert server.lease is not None
                assert server.lease["spec"]["leaseTransitions"] == 1

    run_virtually(story())


@pytest.mark.parametrize("fault", ["silent", "connection", "overload"])
def test_a_leader_without_an_api_server_stops_before_another_one_can_lead(fault: str) -> None:
    async def story() -> None:
        server = Server()
        a, b = Replica("a", server), Replica("b", server)
        with running(a):
            await asyncio.sleep(5.0)
            with running(b):
                await asyncio.sleep(20.0)
                assert a.fence.is_open
                last = server.writes[-1][0]
                a.silent = fault == "silent"
                a.fault = ApiError(0, "refused") if fault == "connection" else ApiError(503, "overloaded")
                await asyncio.sleep(60.0)
                assert a.terms[-1][1] <= last + RENEW_SECONDS
                assert b.fence.is_open
                first = next(at for at, holder in server.writes if holder == "b")
                assert first >= last + LEASE_SECONDS
                assert a.reports
                a.silent, a.fault = False, None
                await asyncio.sleep(60.0)
                assert b.fence.is_open
                assert not a.fence.is_open

    run_virtually(story())


def test_a_killed_leader_is_followed_when_its_lease_expires() -> None:
    async def story() -> None:
        server = Server()
        server.put(
            {"metadata": {}, "spec": {"holderIdentity": "killed", "leaseDurationSeconds": LEASE_SECONDS}},
        )
        b = Replica("b", server)
        with running(b):
            await asyncio.sleep(LEASE_SECONDS - 0.1)
            assert not b.fence.is_open
            await asyncio.sleep(RETRY_SECONDS + 0.2)
            assert b.fence.is_open

    run_virtually(story())


def test_a_leader_that_reads_another_holder_stops_at_once() -> None:
    async def story() -> None:
        server = Server()
        a = Replica("a", server)
        with running(a):
            await asyncio.sleep(5.0)
            assert a.fence.is_open
            assert server.lease is not None
            server.put({**server.lease, "spec": {**server.lease["spec"], "holderIdentity": "b"}})
            await asyncio.sleep(RETRY_SECONDS + 0.1)
            assert not a.fence.is_open
            assert len(a.terms) == 1

    run_virtually(story())


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_a_step_of_the_wall_clock_changes_no_leader_and_hinders_no_successor(seconds: float) -> None:
    async def story() -> None:
        server = Server()
        a, b = Replica("a", server), Replica("b", server)
        with running(a) as (task,):
            await asyncio.sleep(5.0)
            with running(b):
                await asyncio.sleep(5.0)
                STEP[0] = seconds
                await asyncio.sleep(30.0)
                assert a.fence.is_open
                assert not b.fence.is_open
                a.fault = ApiError(0, "gone")  # it cannot release its Lease
                await stop(task)
                await asyncio.sleep(LEASE_SECONDS + 2 * RETRY_SECONDS)
                assert b.fence.is_open

    run_virtually(story())


def test_without_the_right_to_leases_no_one_leads_and_the_reason_is_reported() -> None:
    async def story() -> None:
        a = Replica("a", Server())
        a.fault = ApiError(403, "leases is forbidden")
        with running(a):
            await asyncio.sleep(30.0)
            assert not a.terms
            assert not a.fence.is_open
            assert set(a.reports) == {"403: leases is forbidden"}
            a.fault = None
            await asyncio.sleep(RETRY_SECONDS + 0.1)
            assert a.fence.is_open

    run_virtually(story())


def test_a_lease_that_was_deleted_ends_the_term_and_the_next_one_begins() -> None:
    async def story() -> None:
        server = Server()
        a = Replica("a", server)
        with running(a):
            await asyncio.sleep(5.0)
            server.lease = None
            await asyncio.sleep(2 * RETRY_SECONDS + 0.2)
            assert len(a.terms) == 1
            assert a.fence.is_open

    run_virtually(story())


def test_a_bug_in_the_work_of_the_leader_is_raised_and_the_lease_given_back() -> None:
    async def story() -> None:
        server = Server()
        a = Replica("a", server)
        a.crash = ZeroDivisionError()
        with pytest.raises(ZeroDivisionError):
            await a.run()
        assert server.holder == ""
        a.crash = LeaseLost()  # a write found the fence closed: no bug
        with running(a):
            await asyncio.sleep(1.0)
            assert len(a.terms) > 1

    run_virtually(story())


def test_a_fence_is_open_for_a_time_after_the_request_of_the_last_renewal() -> None:
    async def story() -> None:
        fence = Fence(now)
        assert not fence.is_open
        with pytest.raises(LeaseLost):
            fence.check()
        fence.renewed(now() - 2.0)
        fence.check()
        closed = asyncio.create_task(fence.wait_closed())
        await asyncio.sleep(RENEW_SECONDS - 2.1)
        assert fence.is_open
        assert not closed.done()
        await asyncio.sleep(0.2)
        assert not fence.is_open
        assert closed.done()

    run_virtually(story())
