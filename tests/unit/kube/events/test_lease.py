"""The Lease of the replica that writes Events, by a clock that goes on while a host is suspended."""

from collections.abc import Awaitable, Callable

from tests.support.fake_api.in_memory import MemoryClient, MemoryFront
from tests.support.fake_api.listener import Answer
from tests.support.fake_api.server import FakeApi
from tests.support.virtual_event_loop import run_virtually
from topodns.kube.events.lease import DURATION, Lease

NIGHT = 8 * 3600.0


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
        first, second = (Lease("kube-system", name, lambda: now) for name in ("a", "b"))
        assert await first.hold(api) == 0.0
        assert await second.hold(api) == DURATION
        now += NIGHT
        assert await second.hold(api) == 0.0
        assert await first.hold(api) == DURATION

    play(story)
