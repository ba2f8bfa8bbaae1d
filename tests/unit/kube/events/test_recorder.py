"""Events as they reach an API server: by one replica, seldom, and without a log line where it is not allowed.

In virtual time, against the fake API server without sockets.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import pytest

from tests.support.api_objects import Object, service
from tests.support.fake_api.in_memory import MemoryClient, MemoryFront
from tests.support.fake_api.listener import Answer
from tests.support.fake_api.server import FakeApi
from tests.support.fake_api.statuses import Refusal
from tests.support.state_with_fake_api import until
from tests.support.virtual_event_loop import run_virtually
from topodns.cluster.model import ObjectKey
from topodns.kube.events.recorder import DENIED, LEASE_NAME, LIMIT, REPEATED, TROUBLED, EventRecorder
from topodns.kube.lease import LEASE_SECONDS, SURE
from topodns.topology.findings import Finding

BAD = Finding(ObjectKey("default", "bad"), "invalid", "a key is empty")
WORSE = Finding(ObjectKey("default", "worse"), "invalid", "17 keys")
AFAR = Finding(ObjectKey("afar", "lost"), "misplaced", "not headless")
SERVICES = tuple(service(one.service.name, one.service.namespace) for one in (BAD, WORSE, AFAR))
SOON = 5.0  # seconds


class Replica:
    """A writer at work."""

    def __init__(self, name: str, front: MemoryFront) -> None:
        self.counts: Counter[str] = Counter()

        async def connect() -> MemoryClient:
            return MemoryClient(front)

        self._writer = EventRecorder(connect, "kube-system", name, self.counts, asyncio.get_running_loop().time)
        self._task = asyncio.create_task(self._writer.run(), name=name)

    def report(self, *findings: Finding) -> None:
        self._writer.report(findings)

    async def kill(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


class Setup:
    def __init__(self) -> None:
        self.replicas: list[Replica] = []
        self.api = FakeApi(SERVICES, self._front)

    def _front(self, answer: Answer) -> MemoryFront:
        self.front = MemoryFront(answer)
        return self.front

    def replica(self, *findings: Finding) -> Replica:
        """One more, `replica-0` the first, that has found this."""
        made = Replica(f"replica-{len(self.replicas)}", self.front)
        self.replicas.append(made)
        made.report(*findings)
        return made

    def got(self) -> list[str]:
        """The names of the Services that have an Event."""
        return sorted(each["involvedObject"]["name"] for each in self._all("Event"))

    def holder(self) -> str:
        return "".join(each["spec"]["holderIdentity"] for each in self._all("Lease"))

    async def shows(self, *names: str, within: float = SOON) -> None:
        await until(lambda: self.got() == list(names), within)

    def _all(self, kind: str) -> list[Object]:
        return [each for each in self.api.objects() if each["kind"] == kind]


def play(story: Callable[[Setup], Awaitable[None]]) -> None:
    async def whole() -> None:
        setup = Setup()
        async with setup.api:
            try:
                await story(setup)
            finally:
                for replica in setup.replicas:
                    await replica.kill()

    run_virtually(whole())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_without_a_finding_nothing_is_asked() -> None:
    async def story(setup: Setup) -> None:
        setup.replica()
        await asyncio.sleep(REPEATED)
        assert setup.front.attempts == []

    play(story)


def test_an_event_is_about_the_service_that_there_is() -> None:
    async def story(setup: Setup) -> None:
        setup.replica(BAD)
        await setup.shows("bad")
        (made,) = (each for each in setup.api.objects() if each["kind"] == "Event")
        (about,) = (each for each in setup.api.objects() if each["metadata"]["name"] == "bad")
        assert made["involvedObject"]["uid"] == about["metadata"]["uid"]
        assert (made["message"], made["reportingInstance"]) == ("a key is empty", "replica-0")
        assert setup.api.requests.count("events", "create") == 1

    play(story)


def test_each_request_is_one_that_the_optional_role_allows() -> None:
    async def story(setup: Setup) -> None:
        for _ in range(2):
            setup.replica(BAD, WORSE)
        await asyncio.sleep(REPEATED)
        asked = {(one.resource, one.verb, one.name) for one in setup.api.requests.all}
        assert asked <= {
            ("leases", "get", LEASE_NAME),
            ("leases", "update", LEASE_NAME),
            ("leases", "create", ""),
            ("services", "list", ""),
            ("events", "create", ""),
        }

    play(story)


def test_two_replicas_write_one_event_and_one_of_them_at_a_time() -> None:
    async def story(setup: Setup) -> None:
        first, second = setup.replica(BAD, WORSE), setup.replica(BAD, WORSE)
        await setup.shows("bad", "worse")
        assert sorted((first.counts["written"], second.counts["written"])) == [0, 2]
        await asyncio.sleep(4 * LEASE_SECONDS)
        assert first.counts + second.counts == {"written": 2, "present": 2}

    play(story)


def test_the_lease_of_a_holder_that_was_killed_is_taken_over_when_it_has_run_out() -> None:
    async def story(setup: Setup) -> None:
        first, second = setup.replica(BAD), setup.replica()
        await setup.shows("bad")
        await first.kill()
        second.report(BAD, WORSE)
        await asyncio.sleep(LEASE_SECONDS - 1)
        assert (setup.got(), setup.holder()) == (["bad"], "replica-0")
        await setup.shows("bad", "worse")
        assert setup.holder() == "replica-1"

    play(story)


def test_a_replica_that_has_lost_the_lease_stops_writing() -> None:
    async def story(setup: Setup) -> None:
        replica = setup.replica(BAD)
        await setup.shows("bad")
        await asyncio.sleep(LEASE_SECONDS)
        (lease,) = (each for each in setup.api.objects() if each["kind"] == "Lease")
        stolen = {**lease, "spec": {**lease["spec"], "holderIdentity": "somebody", "leaseDurationSeconds": 3600}}
        setup.api.put(stolen)
        replica.report(BAD, WORSE)
        await asyncio.sleep(3599)
        assert (setup.got(), setup.holder()) == (["bad"], "somebody")
        await setup.shows("bad", "worse")

    play(story)


def test_a_problem_that_lasts_is_reported_again_when_its_event_has_expired() -> None:
    async def story(setup: Setup) -> None:
        setup.replica(BAD)
        await setup.shows("bad")
        setup.api.delete(*(each for each in setup.api.objects() if each["kind"] == "Event"))
        await asyncio.sleep(REPEATED - 10)
        assert setup.got() == []
        await setup.shows("bad", within=20)

    play(story)


@pytest.mark.parametrize("verb", ["get", "create", "*"])
def test_without_permission_for_the_lease_it_is_said_once_and_tried_once_an_hour(
    verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(setup: Setup) -> None:
        setup.api.deny("leases", verb)
        replica = setup.replica(BAD, WORSE)
        await asyncio.sleep(DENIED - 1)
        tried = len(setup.front.attempts)
        assert (tried <= 2, setup.got()) == (True, [])
        await asyncio.sleep(3 * DENIED)
        assert len(setup.front.attempts) == 4 * tried
        assert replica.counts == {"denied": 4}
        setup.api.heal()
        await setup.shows("bad", "worse", within=DENIED)

    play(story)
    assert len(warnings(caplog)) == 1


def test_without_permission_for_events_in_a_namespace_the_others_get_theirs(caplog: pytest.LogCaptureFixture) -> None:
    async def story(setup: Setup) -> None:
        setup.api.deny("events")
        replica = setup.replica(BAD, WORSE)
        await asyncio.sleep(60)
        assert (replica.counts, setup.api.requests.count("events")) == ({"denied": 1}, 1)
        setup.api.heal()
        replica.report(AFAR, BAD, WORSE)
        await setup.shows("lost", within=2 * LEASE_SECONDS)
        await asyncio.sleep(DENIED / 2)
        assert setup.got() == ["lost"]
        await setup.shows("bad", "lost", "worse", within=DENIED)

    play(story)
    assert len(warnings(caplog)) == 1


def test_an_event_that_is_refused_for_itself_does_not_stop_the_others() -> None:
    async def story(setup: Setup) -> None:
        setup.api.faults.refusals["events", "create"] = Refusal(422, "Invalid", "no such words")
        replica = setup.replica(BAD)
        await until(lambda: replica.counts == {"failed": 1}, SOON)
        setup.api.heal()
        replica.report(BAD, WORSE)
        await setup.shows("worse")
        await asyncio.sleep(600)
        assert setup.got() == ["worse"]

    play(story)


@pytest.mark.parametrize(
    ("trouble", "wait"),
    [
        (FakeApi.error, TROUBLED),
        (partial(FakeApi.error, resource="events"), TROUBLED),
        (partial(FakeApi.busy, retry_after=300), 300),
        (partial(FakeApi.require_token, token="other"), TROUBLED),
        (FakeApi.hole, TROUBLED),
    ],
    ids=["500", "500 for the Event", "429", "401", "no response"],
)
def test_a_failure_that_may_pass_is_tried_again_at_most_once_a_minute(
    trouble: Callable[[FakeApi], None], wait: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(setup: Setup) -> None:
        trouble(setup.api)
        replica = setup.replica(BAD)
        await asyncio.sleep(1800)
        assert 2 <= replica.counts["failed"] <= 1 + 1800 / wait
        setup.api.heal()
        await setup.shows("bad", within=wait + SOON)

    play(story)
    assert len(warnings(caplog)) == 1


def test_nothing_is_begun_under_a_lease_that_may_end_before_it() -> None:
    assert SURE + LIMIT < LEASE_SECONDS

    async def story(setup: Setup) -> None:
        setup.api.slow(LIMIT + 1)
        replica = setup.replica(BAD)
        await asyncio.sleep(600)
        assert (setup.got(), setup.holder()) == ([], "")
        assert replica.counts["failed"] > 1

    play(story)


def test_a_server_that_is_away_is_asked_once_a_minute() -> None:
    async def story(setup: Setup) -> None:
        await setup.api.close()
        setup.replica(BAD, WORSE)
        await asyncio.sleep(600)
        assert len(setup.front.attempts) == pytest.approx(600 / TROUBLED, abs=1)
        await setup.api.open()
        await setup.shows("bad", "worse", within=TROUBLED + 1)

    play(story)


def test_a_service_that_is_gone_gets_no_event() -> None:
    async def story(setup: Setup) -> None:
        setup.api.delete(SERVICES[0])
        replica = setup.replica(BAD)
        await until(lambda: replica.counts == {"gone": 1}, SOON)
        await asyncio.sleep(600)
        assert setup.api.requests.count("events") == 0

    play(story)


def test_three_hundred_mistakes_are_ten_requests_a_minute() -> None:
    async def story(setup: Setup) -> None:
        many = [Finding(ObjectKey("default", f"s{number}"), "invalid", "bad") for number in range(300)]
        setup.api.put(*(service(one.service.name) for one in many))
        setup.replica(*many)
        await asyncio.sleep(59)
        assert len(setup.got()) == 10
        await asyncio.sleep(30 * 60)
        assert len(setup.got()) == 300

    play(story)
