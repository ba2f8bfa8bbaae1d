"""Which Event is due, and when."""

from topodns.cluster.model import ObjectKey
from topodns.kube.events.recorder import DENIED, PER_MINUTE, REPEATED, EventSchedule
from topodns.topology.audit import Finding


def finding(name: str, text: str = "bad", kind: str = "invalid", namespace: str = "default") -> Finding:
    return Finding(ObjectKey(namespace, name), kind, text)


def write_all(plan: EventSchedule, now: float) -> list[Finding]:
    """The findings written at one moment, until the plan says to wait."""
    written = []
    while (due := plan.next(now)) is not None and due.at <= now:
        plan.attempted(now)
        plan.settled(due.finding, now)
        written.append(due.finding)
    return written


def planned(*findings: Finding, now: float = 0.0) -> EventSchedule:
    plan = EventSchedule()
    plan.report(findings, now)
    return plan


def test_without_a_finding_nothing_is_ever_due() -> None:
    assert planned().next(0) is None


def test_only_keys_that_are_invalid_or_misplaced_are_worth_an_event() -> None:
    invalid, misplaced = finding("a"), finding("b", kind="misplaced")
    plan = planned(invalid, misplaced, finding("c", kind="mended"), finding("d", kind="governing"))
    assert write_all(plan, 0) == [invalid, misplaced]


def test_a_problem_is_reported_again_when_its_event_is_gone() -> None:
    plan = planned(finding("a"))
    assert write_all(plan, 0) == [finding("a")]
    assert plan.next(1) == (REPEATED, finding("a"))
    assert REPEATED > 3600
    assert write_all(plan, REPEATED) == [finding("a")]


def test_a_problem_that_comes_back_within_the_hour_is_not_reported_again() -> None:
    plan = planned(finding("a"))
    write_all(plan, 0)
    plan.report([], 10)
    assert plan.next(10) is None
    plan.report([finding("a")], 20)
    assert plan.next(20) == (REPEATED, finding("a"))


def test_another_problem_of_the_same_service_is_reported_at_once() -> None:
    plan = planned(finding("a", "first"))
    write_all(plan, 0)
    plan.report([finding("a", "second")], 1)
    assert write_all(plan, 1) == [finding("a", "second")]


def test_ten_in_a_minute_are_enough() -> None:
    many = [finding(f"s{number:02}") for number in range(25)]
    plan = planned(*many)
    assert write_all(plan, 0) == many[:PER_MINUTE]
    assert plan.next(30) == (60, many[10])
    assert write_all(plan, 60) == many[10:20]
    assert write_all(plan, 120) == many[20:]


def test_attempts_that_fail_count_for_the_minute_too() -> None:
    plan = planned(finding("a"))
    for second in range(PER_MINUTE):
        plan.attempted(second)
    assert plan.next(PER_MINUTE) == (60, finding("a"))


def test_a_service_with_ever_new_mistakes_does_not_keep_others_waiting() -> None:
    plan = planned(*(finding("a", f"mistake {number}") for number in range(PER_MINUTE)))
    write_all(plan, 0)
    plan.report([finding("a", "yet another"), finding("z")], 60)
    assert write_all(plan, 60) == [finding("z"), finding("a", "yet another")]


def test_repeated_reports_do_not_keep_new_problems_from_being_reported() -> None:
    plan = planned(finding("z"))
    write_all(plan, 0)
    plan.report([finding("z"), finding("a")], REPEATED - 60)
    write_all(plan, REPEATED - 60)
    plan.report([finding("a", "another"), finding("z")], REPEATED - 1)
    assert write_all(plan, REPEATED) == [finding("z"), finding("a", "another")]


def test_where_events_are_denied_nothing_is_tried_for_an_hour_elsewhere_it_goes_on() -> None:
    closed, other = finding("a", namespace="closed"), finding("b")
    plan = planned(closed, other)
    plan.denied("closed", 0)
    assert write_all(plan, 0) == [other]
    assert plan.next(1) == (DENIED, closed)
    assert write_all(plan, DENIED) == [closed]
