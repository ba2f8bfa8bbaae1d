"""Objects that were left out, as there was no room, are requested once there is. In virtual time."""

import pytest

from tests.support.api_objects import Object, endpoint_slice, namespace, pod, service
from tests.support.model_builders import packed
from tests.support.state_with_fake_api import HOUR, Setup, giving_lists, play, until
from topodns.cluster.model import ObjectKey

LIMIT = 300_000
TENANT = namespace("tenant")


def large(number: int, ports: int = 900) -> Object:
    made = endpoint_slice("db", {f"10.0.0.{number}": "n1"}, "tenant", f"db-{number}")
    made["ports"] = [{"name": f"p{port}", "port": port} for port in range(1, ports + 1)]
    return made


def left_out(setup: Setup) -> list[str]:
    return sorted(key.name for _, key in setup.state.left_out.octets)


@pytest.mark.parametrize("streaming", [True, False])
def test_objects_that_are_left_out_come_back_when_others_are_deleted(streaming: bool) -> None:
    async def story(setup: Setup) -> None:
        setup.budget.limit = LIMIT
        await setup.synced()
        assert len(left_out(setup)) == 5
        assert setup.state.backends(ObjectKey("tenant", "db")).partial
        kept = next(number for number in range(6) if f"db-{number}" in left_out(setup))
        setup.api.delete(*(large(number) for number in range(6) if number != kept))
        await until(lambda: not left_out(setup), 10)
        backends = setup.state.backends(ObjectKey("tenant", "db"))
        assert [each.address for each in backends.pools[4].everyone.endpoints] == [packed(f"10.0.0.{kept}")]
        assert not backends.partial

    objects = (TENANT, service("db", "tenant"), *(large(number) for number in range(6)))
    play(story, *objects, prepare=giving_lists(streaming))


def test_they_come_back_when_the_limit_is_raised_and_each_costs_one_request() -> None:
    async def story(setup: Setup) -> None:
        setup.budget.limit = LIMIT
        await setup.synced()
        missing = left_out(setup)
        before = len(setup.attempts)
        setup.budget.limit = 10 * LIMIT
        await until(lambda: not left_out(setup), 10)
        assert len(setup.attempts) - before == len(missing)

    play(story, TENANT, *(large(number) for number in range(6)))


def test_while_there_is_no_room_nothing_is_requested() -> None:
    async def story(setup: Setup) -> None:
        setup.budget.limit = LIMIT
        await setup.synced()
        before = len(setup.attempts)
        await until(lambda: setup.now > 60, 100)
        assert len(setup.attempts) == before

    play(story, TENANT, *(large(number) for number in range(6)))


def test_small_objects_come_back_with_a_list_of_their_namespace() -> None:
    async def story(setup: Setup) -> None:
        setup.budget.limit = 50_000
        await setup.synced()
        assert setup.state.left_out.cuts("tenant")
        setup.api.delete(*services[:150])
        await until(lambda: not setup.state.left_out.octets, 200)
        assert len(setup.state.services) == 10
        assert len(setup.state.pods) == 3

    services = [service(f"s{number:03}", "tenant") for number in range(160)]
    pods = [pod(f"p{number}", f"10.0.1.{number + 1}", "n1", "tenant") for number in range(3)]
    play(story, TENANT, *services, *pods)


def test_a_verifying_list_leaves_the_same_objects_out_and_forgets_none() -> None:
    async def story(setup: Setup) -> None:
        setup.budget.limit = LIMIT
        await setup.synced()
        missing, octets = left_out(setup), setup.budget.octets
        await until(lambda: setup.now > 1.5 * HOUR, 2 * HOUR)
        assert (left_out(setup), setup.budget.octets) == (missing, octets)
        assert setup.progress("EndpointSlice").repairs == 0

    play(story, TENANT, *(large(number) for number in range(6)))
