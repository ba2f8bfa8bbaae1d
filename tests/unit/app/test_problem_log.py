"""What is wrong is logged once, in small steps, whatever changes between them."""

import asyncio
import logging
from random import Random
from typing import Final

import pytest

from tests.support.model_builders import service
from tests.support.virtual_event_loop import run_virtually
from topodns.app.problem_log import CHECK_AFTER, ProblemLog
from topodns.cluster.model import Deleted, ObjectKey, Service, Upserted
from topodns.dns.name import parse_name
from topodns.plugins.kubernetes.clusters import Cluster, Feed, feed_settings
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.topology.settings import TopologySettings

SETTINGS: Final = KubernetesSettings((parse_name("cluster.local."),))
TOPOLOGY: Final = TopologySettings()


def bad(name: str) -> Service:
    return service(name, annotation="no key!")


def misplaced(name: str) -> Service:
    return service(name, cluster_ips=["10.96.0.1"], annotation="rack")


def cluster(*services: Service) -> Cluster:
    one = Cluster(SETTINGS, TOPOLOGY, Feed(feed_settings(SETTINGS, TOPOLOGY), Random(1)), None)
    for each in services:
        one.state.apply(Upserted(each), 0)
    return one


def problems_of(one: Cluster) -> ProblemLog:
    problems = ProblemLog()
    problems.clusters = [one]
    return problems


def named(records: list[logging.LogRecord]) -> list[str]:
    """The Services that these lines are about."""
    return [record.getMessage().split("default/")[1].split(":")[0] for record in records]


def test_a_problem_is_logged_once_and_again_when_it_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    one = cluster(bad("a"), misplaced("b"), service("c", annotation="rack"))
    problems = problems_of(one)
    for _ in range(2):
        list(problems.check())
    assert named(caplog.records) == ["a", "b"]
    one.state.apply(Deleted("Service", ObjectKey("default", "a")), 0)
    list(problems.check())
    one.state.apply(Upserted(bad("a")), 0)
    list(problems.check())
    assert named(caplog.records) == ["a", "b", "a"]


def test_a_step_looks_at_no_more_than_one_service(caplog: pytest.LogCaptureFixture) -> None:
    check = problems_of(cluster(*(bad(f"a{n}") for n in range(9)), *(misplaced(f"b{n}") for n in range(9)))).check()
    before = 0
    for _ in check:
        assert len(caplog.records) <= before + 1
        before = len(caplog.records)
    assert before == 18


@pytest.mark.parametrize("done", range(10))
def test_services_may_come_and_go_between_two_steps(caplog: pytest.LogCaptureFixture, done: int) -> None:
    one = cluster(bad("a"), bad("b"), misplaced("c"), misplaced("d"))
    problems = problems_of(one)
    check = problems.check()
    for _ in range(done):
        next(check)
    for gone in ("b", "d"):
        one.state.apply(Deleted("Service", ObjectKey("default", gone)), 0)
    for new in (bad("e"), misplaced("f")):
        one.state.apply(Upserted(new), 0)
    list(check)
    caplog.clear()
    list(problems.check())
    assert set(named(caplog.records)) <= {"e", "f"}
    caplog.clear()
    for back in (bad("b"), misplaced("d")):
        one.state.apply(Upserted(back), 0)
    list(problems.check())
    assert named(caplog.records) == ["b", "d"]


def test_it_looks_soon_after_it_was_roused_and_once_for_a_burst(caplog: pytest.LogCaptureFixture) -> None:
    one = cluster()
    problems = problems_of(one)

    async def story() -> list[list[str]]:
        task = asyncio.create_task(problems.run())
        await asyncio.sleep(3 * CHECK_AFTER)
        seen = [named(caplog.records)]
        for name in ("a", "b"):
            one.state.apply(Upserted(bad(name)), 0)
            problems.rouse()
            await asyncio.sleep(CHECK_AFTER / 4)
            seen.append(named(caplog.records))
        await asyncio.sleep(CHECK_AFTER)
        task.cancel()
        return [*seen, named(caplog.records)]

    assert run_virtually(story()) == [[], [], [], ["a", "b"]]
