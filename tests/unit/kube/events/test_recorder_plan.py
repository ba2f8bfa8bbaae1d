"""Which Event is due, and when."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from topodns.cluster.model import ObjectKey
from topodns.kube.events.recorder import DENIED, PER_MINUTE, REPEATED, Due, EventSchedule
from topodns.time_slices import do_at_once
from topodns.topology.findings import Finding


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
    kinds = ("annotation", "governing", "ineffective", "invalid", "misplaced", "left_out")
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
    plan, written = Plan(*many), list[Finding]()
    for minute in range(60):
        late = [finding("z", f"mistake of minute {minute}", namespace="victim")]
        plan.report([*many, *late], 60 * minute)
        this_minute = plan.write_all(60 * minute)
        assert late[0] in this_minute
        written += this_minute
    assert len(written) == 60 * PER_MINUTE  # the turns of the victim are not waited for


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
        plan.report(many, 60 * minute)
        written += plan.write_all(60 * minute)
    assert set(written) == set(many)
