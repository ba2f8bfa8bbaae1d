"""Retries of several kinds: kept apart, and released together once one of them has succeeded."""

import asyncio

import pytest

from tests.support.virtual_event_loop import run_virtually
from topodns.kube.informer.retry import RetryGate


def waits(opened_after: float, *seconds: float, patient: bool = False) -> list[float]:
    """How long each of several kinds waits at a gate that opens once."""

    async def story() -> list[float]:
        loop, gate = asyncio.get_running_loop(), RetryGate()

        async def wait(one: float) -> float:
            await gate.wait(one, patient)
            return round(loop.time(), 3)

        loop.call_later(opened_after, gate.open)
        return list(await asyncio.gather(*map(wait, seconds)))

    return run_virtually(story())


@pytest.mark.parametrize(
    ("opened_after", "seconds", "waited"),
    [
        pytest.param(100.0, (5.0,), [5.0], id="one alone waits its time"),
        pytest.param(100.0, (5.0, 5.0, 5.0), [5.0, 5.8, 6.6], id="several are kept apart"),
        pytest.param(2.0, (5.0, 9.0), [2.0, 2.0], id="a success releases all"),
        pytest.param(0.1, (5.0, 9.0), [0.8, 0.8], id="but nobody sooner than that"),
        pytest.param(5.1, (5.0,) * 5, [5.0, 5.1, 5.1, 5.1, 5.1], id="also those that wait for their turn"),
    ],
)
def test_how_long_a_retry_waits(opened_after: float, seconds: tuple[float, ...], waited: list[float]) -> None:
    assert waits(opened_after, *seconds) == waited


def test_the_server_s_retry_after_is_kept_whatever_other_requests_do() -> None:
    assert waits(2.0, 5.0, patient=True) == [5.0]


def test_turns_claimed_before_a_success_delay_no_request_after_it() -> None:
    async def story() -> float:
        gate = RetryGate()
        asyncio.get_running_loop().call_later(1.1, gate.open)
        await asyncio.gather(*(gate.wait(1.0) for _ in range(10)))  # the last turn would be at 8.2 s
        began = asyncio.get_running_loop().time()
        await gate.wait(1.0)
        return round(asyncio.get_running_loop().time() - began, 3)

    assert run_virtually(story()) == 1.0
