"""Leases: their objects, and the replica that holds one, by a clock that goes on while a host is suspended."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.fake_api.in_memory import MemoryClient, MemoryFront
from tests.support.fake_api.listener import Answer
from tests.support.fake_api.server import FakeApi
from tests.support.virtual_event_loop import run_virtually
from topodns.kube.client.contract import ApiError
from topodns.kube.lease import LEASE_SECONDS, Lease, decode_lease, new_lease, renewed_lease

NIGHT = 8 * 3600.0
NOW = 1_700_000_000.25  # 2023-11-14T22:13:20.25Z


def play(story: Callable[[MemoryFront], Awaitable[None]]) -> None:
    async def whole() -> None:
        fronts: list[MemoryFront] = []

        def front(answer: Answer) -> MemoryFront:
            fronts.append(MemoryFront(answer))
            return fronts[0]

        async with FakeApi((), front):
            await story(fronts[0])

    run_virtually(whole())


def test_a_replica_that_was_suspended_does_not_take_its_lease_for_granted() -> None:
    async def story(front: MemoryFront) -> None:
        api, now = MemoryClient(front), 0.0
        first, second = (Lease("kube-system", "topodns-events", name, lambda: now) for name in ("a", "b"))
        assert await first.hold(api) == 0.0
        assert await second.hold(api) == LEASE_SECONDS
        now += NIGHT
        assert await second.hold(api) == 0.0
        assert await first.hold(api) == LEASE_SECONDS

    play(story)


def test_a_new_lease_is_ours() -> None:
    content = new_lease("kube-system", "topodns-events", "pod-1", NOW)
    assert content["metadata"] == {"name": "topodns-events", "namespace": "kube-system"}
    assert content["spec"] == {
        "holderIdentity": "pod-1",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.250000Z",
        "renewTime": "2023-11-14T22:13:20.250000Z",
        "leaseTransitions": 0,
    }


def held(**spec: Any) -> bytes:
    metadata = {"name": "topodns-events", "resourceVersion": "7", "labels": {"kept": "yes"}}
    return json.dumps({"kind": "Lease", "metadata": metadata, "spec": spec}).encode()


def test_renewing_keeps_the_time_of_acquisition_and_the_version_that_was_seen() -> None:
    record = decode_lease(held(holderIdentity="pod-1", leaseDurationSeconds=15, acquireTime="then", leaseTransitions=3))
    content = renewed_lease(record, "pod-1", NOW)
    assert (content["metadata"]["resourceVersion"], content["metadata"]["labels"]) == ("7", {"kept": "yes"})
    assert (content["spec"]["acquireTime"], content["spec"]["leaseTransitions"]) == ("then", 3)
    assert content["spec"]["renewTime"] == "2023-11-14T22:13:20.250000Z"


def test_taking_over_counts_a_transition() -> None:
    record = decode_lease(held(holderIdentity="pod-2", leaseDurationSeconds=30, leaseTransitions=3))
    assert (record.version, record.holder, record.seconds) == ("7", "pod-2", 30.0)
    spec = renewed_lease(record, "pod-1", NOW)["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("pod-1", 15, 4)
    assert spec["acquireTime"] == spec["renewTime"]


@pytest.mark.parametrize("spec", ["{}", "null", '{"holderIdentity":null,"leaseDurationSeconds":"x"}'])
def test_a_lease_without_a_holder_is_free(spec: str) -> None:
    record = decode_lease(f'{{"metadata":{{}},"spec":{spec}}}'.encode())
    assert (record.holder, record.seconds) == ("", 0.0)
    assert renewed_lease(record, "pod-1", NOW)["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("body", [b"nonsense", b"{}", b'{"metadata":{},"spec":[1]}'])
def test_a_reply_that_is_no_lease_is_an_error(body: bytes) -> None:
    with pytest.raises(ApiError):
        decode_lease(body)
