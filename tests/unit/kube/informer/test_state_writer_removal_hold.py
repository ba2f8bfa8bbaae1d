"""K19: the last endpoint of a headless Service is removed a moment after its event, unless another one comes."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from bench.guard.counting import Calls
from tests.support.model_builders import endpoint, endpoint_slice, service
from tests.support.virtual_event_loop import run_virtually
from topodns.cluster.decode.stream import Event
from topodns.cluster.model import ClusterObject, Deleted, EndpointSlice, ObjectKey, Replaced, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact
from topodns.kube.informer.state_writer import MAX_EVENTS, StateWriter

ONE, TWO = endpoint("10.0.0.1"), endpoint("10.0.0.2")
UNREADY = endpoint("10.0.0.1", ready=False)


class Setup:
    """Service web with one slice, web-1, of one endpoint."""

    def __init__(self, *services: ClusterObject) -> None:
        self.state = ClusterState(frozenset())
        self.seen: list[tuple[float, str]] = []  # when the addresses of web changed, and to what
        self.writer = StateWriter(PublishingState(self.state, lambda: 1000.0, [self._look]))
        self.state.apply(Replaced("Service", services or (service("web"),)), 0)
        self.state.apply(Replaced("EndpointSlice", (endpoint_slice("web", ONE),)), 0)

    def _look(self, _facts: frozenset[Fact]) -> None:
        self.seen.append((asyncio.get_running_loop().time(), self.addresses))

    @property
    def addresses(self) -> str:
        """The last numbers of the ready ones."""
        everyone = self.state.backends(ObjectKey("default", "web")).pools[4].everyone
        return "".join(str(address[-1]) for address in everyone.addresses)

    def put(self, one: EndpointSlice) -> None:
        self.writer.apply("EndpointSlice", Event(Upserted(one), ""))

    def delete(self, name: str) -> None:
        self.writer.apply("EndpointSlice", Event(Deleted("EndpointSlice", ObjectKey("default", name)), ""))


def got(story: Callable[[Setup], Awaitable[None]], *services: ClusterObject) -> list[tuple[float, str]]:
    """The endpoints of web that were seen, and when, a second after the story."""

    async def whole() -> Setup:
        setup = Setup(*services)
        await story(setup)
        await asyncio.sleep(1.0)
        return setup

    return run_virtually(whole()).seen


def second(*endpoints: object) -> EndpointSlice:
    return endpoint_slice("web", *endpoints, name="web-2")  # type: ignore[arg-type]


async def emptied(setup: Setup) -> None:
    setup.put(endpoint_slice("web", UNREADY))


async def deleted(setup: Setup) -> None:
    setup.delete("web-1")


@pytest.mark.parametrize("story", [emptied, deleted])
def test_the_last_endpoint_goes_two_tenths_of_a_second_later(story: Callable[[Setup], Awaitable[None]]) -> None:
    assert got(story) == [(0.2, "")]


@pytest.mark.parametrize("story", [emptied, deleted])
@pytest.mark.parametrize(
    "other", [service("web", cluster_ips=["10.96.0.1"]), service("other")], ids=["with a ClusterIP", "unknown"]
)
def test_that_of_another_service_goes_at_once(story: Callable[[Setup], Awaitable[None]], other: ClusterObject) -> None:
    assert [at for at, _ in got(story, other)] == [0.0]


@pytest.mark.parametrize("story", [emptied, deleted])
def test_a_replacement_within_the_hold_is_applied_at_once_and_the_service_is_never_empty(
    story: Callable[[Setup], Awaitable[None]],
) -> None:
    async def moved(setup: Setup) -> None:
        await story(setup)
        await asyncio.sleep(0.1)
        setup.put(second(TWO))

    seen = got(moved)
    assert seen[-1] == (0.1, "2")
    assert {at for at, _ in seen} == {0.1}  # in one turn of the loop, so no question comes between


def test_a_replacement_after_the_hold_finds_the_service_empty() -> None:
    async def moved(setup: Setup) -> None:
        await emptied(setup)
        await asyncio.sleep(0.3)
        setup.put(second(TWO))

    assert got(moved) == [(0.2, ""), (0.3, "2")]


def test_one_of_several_endpoints_goes_at_once() -> None:
    async def story(setup: Setup) -> None:
        setup.put(second(TWO))
        setup.delete("web-1")

    assert got(story) == [(0.0, "12"), (0.0, "2")]


def test_further_removals_wait_with_the_first_and_do_not_make_it_longer() -> None:
    async def story(setup: Setup) -> None:
        setup.put(endpoint_slice("web", UNREADY))
        await asyncio.sleep(0.15)
        setup.put(second(endpoint("10.0.0.2", ready=False)))
        setup.delete("web-2")
        setup.delete("web-1")

    seen = got(story)
    assert {round(at, 6) for at, _ in seen} == {0.2}
    assert seen[-1][1] == ""


def test_a_slice_that_goes_to_another_service_does_not_wait() -> None:
    async def story(setup: Setup) -> None:
        setup.put(endpoint_slice("other", ONE, name="web-1"))

    assert [at for at, _ in got(story)] == [0.0]


@pytest.mark.parametrize(
    "elsewhere",
    [
        Upserted(endpoint_slice("y", ONE, name="x-1", namespace="evil")),
        Deleted("EndpointSlice", ObjectKey("evil", "unknown")),
        Upserted(endpoint_slice("other", ONE, name="other-1")),
        Deleted("EndpointSlice", ObjectKey("default", "unknown")),
    ],
    ids=["relabelled", "unknown", "of another Service", "unknown in the namespace"],
)
def test_slices_of_others_that_come_and_go_end_no_hold(elsewhere: Upserted[EndpointSlice] | Deleted) -> None:
    async def story(setup: Setup) -> None:
        for name in ("x", "other"):
            setup.put(endpoint_slice(name, ONE, name=f"{name}-1", namespace="evil" if name == "x" else "default"))
        setup.seen.clear()
        await deleted(setup)
        setup.writer.apply("EndpointSlice", Event(elsewhere, ""))

    assert [(at, addresses) for at, addresses in got(story) if addresses != "1"] == [(0.2, "")]


def test_a_slice_that_comes_back_for_another_service_stays_although_its_removal_was_held() -> None:
    async def story(setup: Setup) -> None:
        await deleted(setup)
        setup.put(endpoint_slice("other", TWO, name="web-1"))
        await asyncio.sleep(0.5)
        assert setup.state.held("EndpointSlice", ("default", "web-1")) is not None

    assert got(story)[0] == (0.0, "")


@pytest.mark.parametrize(("held", "at"), [(MAX_EVENTS - 1, 0.2), (MAX_EVENTS, 0.0)])
def test_so_many_events_of_a_service_are_held_and_no_more(held: int, at: float) -> None:
    async def story(setup: Setup) -> None:
        await deleted(setup)
        for number in range(held - 1):
            setup.put(endpoint_slice("web", UNREADY, name=f"web-{number + 2}"))

    assert {round(each, 6) for each, _ in got(story)} == {at}


def test_large_slices_are_held_up_to_ten_thousand_endpoints() -> None:
    many = [endpoint(f"10.1.{number >> 8}.{number & 255}", ready=False) for number in range(2000)]

    async def story(setup: Setup) -> None:
        await deleted(setup)
        for number in range(5):
            setup.put(endpoint_slice("web", *many, name=f"web-{number + 2}"))

    assert {at for at, _ in got(story)} == {0.0}


def test_a_removal_among_hundreds_of_slices_takes_no_more_than_among_few() -> None:
    def among(slices: int) -> int:
        counted = Calls()

        async def story() -> None:
            setup = Setup()
            for number in range(slices):
                setup.put(endpoint_slice("web", UNREADY, name=f"web-{number + 2}"))
            counted.count(partial(setup.put, endpoint_slice("web", UNREADY)))
            counted.count(partial(setup.put, endpoint_slice("web", UNREADY, name="web-9")))
            counted.count(partial(setup.delete, "web-10"))

        run_virtually(story())
        return counted.total

    assert among(600) <= among(30) * 1.1


def test_a_list_does_not_wait_and_comes_after_held_removals() -> None:
    async def story(setup: Setup) -> None:
        await deleted(setup)
        for _ in setup.writer.replace_steps("EndpointSlice", (second(TWO),), frozenset()):
            pass

    seen = got(story)
    assert {at for at, _ in seen} == {0.0}
    assert seen[-1][1] == "2"
