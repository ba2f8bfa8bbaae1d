"""Events as they reach an API server: by one replica, seldom, and without a log line where it is not allowed.

In virtual time, against the fake API server without sockets.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.api_objects import Object, service
from tests.support.fake_api.in_memory import MemoryClient, MemoryFront
from tests.support.fake_api.listener import Answer
from tests.support.fake_api.server import FakeApi
from tests.support.fake_api.statuses import Refusal
from tests.support.state_with_fake_api import until
from tests.support.virtual_event_loop import run_virtually
from topodns.cluster.findings.finding import Finding
from topodns.cluster.model import ObjectKey
from topodns.kube.events import (
    DENIED,
    LEASE_NAME,
    LIMIT,
    PER_MINUTE,
    REPEATED,
    TROUBLED,
    Due,
    EventRecorder,
    EventSchedule,
)
from topodns.kube.lease import LEASE_SECONDS, SURE
from topodns.time_slices import do_at_once

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


# Which Event is due, and when.


def finding(name: str, text: str = "bad", kind: str = "invalid", namespace: str = "default") -> Finding:
    return Finding(ObjectKey(namespace, name), kind, text)


class Plan:
    """A schedule at times that are arguments."""

    def __init__(self, *findings: Finding) -> None:
        self._now = 0.0
        self._schedule = EventSchedule(lambda: self._now)
        self._schedule.report(findings)

    def report(self, findings: list[Finding], now: float) -> None:
        self._now = now
        self._schedule.report(findings)

    def next(self, now: float) -> Due | None:
        self._now = now
        return do_at_once(self._schedule.next())

    def attempted(self, one: Finding, now: float) -> None:
        self._now = now
        self._schedule.attempted(one.service)

    def settled(self, one: Finding) -> None:
        self._schedule.settled(one)

    def denied(self, namespace: str, now: float) -> None:
        self._now = now
        self._schedule.denied(namespace)

    def write_all(self, now: float) -> list[Finding]:
        """The findings written at one moment, until the plan says to wait."""
        written = []
        while (due := self.next(now)) is not None and due.at <= now:
            self._schedule.attempted(due.finding.service)
            self._schedule.settled(due.finding)
            written.append(due.finding)
        return written


def test_without_a_finding_nothing_is_ever_due() -> None:
    assert Plan().next(0) is None


def test_only_problems_that_are_likely_mistakes_of_the_service_are_worth_an_event() -> None:
    kinds = ("annotation", "governing", "import", "ineffective", "invalid", "misplaced", "left_out")
    worthy = [finding(kind, kind=kind) for kind in kinds]
    others = [finding(kind, kind=kind) for kind in ("mended", "overridden", "annotation_of_pods")]
    assert sorted(plan.kind for plan in Plan(*others, *worthy).write_all(0)) == sorted(kinds)


def test_a_problem_is_reported_again_when_its_event_is_gone() -> None:
    plan = Plan(finding("a"))
    assert plan.write_all(0) == [finding("a")]
    assert plan.next(1) == (REPEATED, finding("a"))
    assert REPEATED > 3600
    assert plan.write_all(REPEATED) == [finding("a")]


def test_a_problem_that_comes_back_within_the_hour_is_not_reported_again() -> None:
    plan = Plan(finding("a"))
    plan.write_all(0)
    plan.report([], 10)
    assert plan.next(10) is None
    plan.report([finding("a")], 20)
    assert plan.next(20) == (REPEATED, finding("a"))


def test_another_problem_of_the_same_service_is_reported_at_once() -> None:
    plan = Plan(finding("a", "first"))
    plan.write_all(0)
    plan.report([finding("a", "second")], 1)
    assert plan.write_all(1) == [finding("a", "second")]


def test_ten_in_a_minute_are_enough() -> None:
    many = [finding(f"s{number:02}") for number in range(25)]
    plan = Plan(*many)
    assert plan.write_all(0) == many[:PER_MINUTE]
    assert plan.next(30) == (60, many[10])
    assert plan.write_all(60) == many[10:20]
    assert plan.write_all(120) == many[20:]


def test_attempts_that_fail_count_for_the_minute_too() -> None:
    plan = Plan(finding("a"))
    for second in range(PER_MINUTE):
        plan.attempted(finding("a"), second)
    assert plan.next(PER_MINUTE) == (60, finding("a"))


def test_a_service_with_ever_new_mistakes_does_not_keep_others_waiting() -> None:
    plan = Plan(*(finding("a", f"mistake {number}") for number in range(PER_MINUTE)))
    plan.write_all(0)
    plan.report([finding("a", "yet another"), finding("z")], 60)
    assert plan.write_all(60) == [finding("z"), finding("a", "yet another")]


def test_a_namespace_with_thousands_of_problems_does_not_keep_others_waiting() -> None:
    many = [finding(f"s{number:04}", namespace="attack") for number in range(3000)]
    minutes = range(8)
    plan, written = Plan(*many), list[Finding]()
    for minute in minutes:
        late = [finding("z", f"mistake of minute {minute}", namespace="victim")]
        plan.report([*many, *late], 60 * minute)
        this_minute = plan.write_all(60 * minute)
        assert late[0] in this_minute
        written += this_minute
    assert len(written) == len(minutes) * PER_MINUTE  # the turns of the victim are not waited for


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 20)), min_size=1, unique=True),
    st.sets(st.sampled_from("abcde")),
)
def test_namespaces_with_due_events_take_turns(services: list[tuple[str, int]], failing: set[str]) -> None:
    """Of two namespaces that have Events to write, none gets two attempts between two of the other.

    Attempts in the namespaces of `failing` fail and are repeated.
    """
    plan = Plan(*(finding(f"s{number}", namespace=namespace) for namespace, number in services))
    left, turns = Counter(namespace for namespace, _ in services), list[str]()
    for minute in range(len(services)):
        due = plan.next(60 * minute)
        if due is None or due.at > 60 * minute:
            break
        namespace = due.finding.service.namespace
        others = [other for other in left if other != namespace and (left[other] or other in failing)]
        assert turns.count(namespace) <= min((turns.count(other) for other in others), default=len(turns))
        turns.append(namespace)
        plan.attempted(due.finding, 60 * minute)
        if namespace not in failing:
            left[namespace] -= 1
            plan.settled(due.finding)
    assert turns


def test_repeated_reports_do_not_keep_new_problems_from_being_reported() -> None:
    plan = Plan(finding("z"))
    plan.write_all(0)
    plan.report([finding("z"), finding("a")], REPEATED - 60)
    plan.write_all(REPEATED - 60)
    plan.report([finding("a", "another"), finding("z")], REPEATED - 1)
    assert plan.write_all(REPEATED) == [finding("z"), finding("a", "another")]


def test_where_events_are_denied_nothing_is_tried_for_an_hour_elsewhere_it_goes_on() -> None:
    closed, other = finding("a", namespace="closed"), finding("b")
    plan = Plan(closed, other)
    plan.denied("closed", 0)
    assert plan.write_all(0) == [other]
    assert plan.next(1) == (DENIED, closed)
    assert plan.write_all(DENIED) == [closed]


def test_of_more_findings_than_can_be_written_in_the_time_none_is_left_out() -> None:
    many = [finding(f"s{number:04}") for number in range(int(REPEATED / 60) * PER_MINUTE + 50)]
    plan, written = Plan(*many), list[Finding]()
    for minute in range(int(REPEATED / 60) + 10):
        if minute % 10 == 0:
            plan.report(many, 60 * minute)
        written += plan.write_all(60 * minute)
    assert set(written) == set(many)
