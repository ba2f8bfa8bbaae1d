"""Building ahead of the question: at once, again after changes, and in turns with everybody else."""

import asyncio
from itertools import count

from tests.support.model_builders import endpoint, endpoint_slice, service
from tests.support.virtual_event_loop import run_virtually
from topodns.app.cluster_lifecycle import WARMING_PAUSE, Warmer
from topodns.cluster.model import KeySource, Upserted
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader


def cold_state(services: int) -> ClusterState:
    state = ClusterState(frozenset(), key_reader((KeySource.ANNOTATION,)))
    for number in range(services):
        state.apply(Upserted(service(f"db{number}", annotation="rack")), 0)
        state.apply(Upserted(endpoint_slice(f"db{number}", endpoint("10.0.0.1"))), 0)
    return state


def is_warm(state: ClusterState) -> bool:
    return not list(state.warm_steps())


def test_everything_is_built_when_it_starts() -> None:
    states = [cold_state(3), cold_state(2)]

    async def story() -> list[bool]:
        task = asyncio.create_task(Warmer(state.warm_steps for state in states).run())
        await asyncio.sleep(WARMING_PAUSE / 2)
        task.cancel()
        return [is_warm(state) for state in states]

    assert run_virtually(story()) == [True, True]


def test_a_change_is_built_after_it_was_roused() -> None:
    state = cold_state(1)

    async def story() -> bool:
        warmer = Warmer([state.warm_steps])
        task = asyncio.create_task(warmer.run())
        await asyncio.sleep(WARMING_PAUSE / 2)
        state.apply(Upserted(endpoint_slice("db0", endpoint("10.0.0.2"))), 0)
        warmer.rouse()
        await asyncio.sleep(WARMING_PAUSE)
        task.cancel()
        return is_warm(state)

    assert run_virtually(story())


def test_others_have_a_turn_between_two_steps_that_took_long() -> None:
    seconds, turns = count(), count()
    turn_at_look: list[int] = []

    async def story() -> None:
        now = 0

        def clock() -> float:  # a second passes between two looks
            turn_at_look.append(now)
            return float(next(seconds))

        task = asyncio.create_task(Warmer([cold_state(5).warm_steps], clock).run())
        for now in turns:  # `clock` reads it
            await asyncio.sleep(0)
            if now == 20:
                break
        task.cancel()

    run_virtually(story())
    assert len(set(turn_at_look)) >= 5
