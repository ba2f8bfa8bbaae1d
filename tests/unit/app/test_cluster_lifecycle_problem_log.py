"""What is wrong is logged once, in small steps, whatever changes between them."""

import asyncio
import logging
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from tests.support.state_with_fake_api import until
from tests.support.virtual_event_loop import run_virtually
from topodns.app.cluster_lifecycle import CHECK_AFTER, LASTS, MOST_LINES, SPARSE, ProblemLog
from topodns.cluster.model import Change, ClusterObject, Deleted, ObjectKey, Replaced, Service, Upserted, kind_of
from topodns.dns.name import parse_name
from topodns.kube.client.contract import ApiSettings, KubeApi
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.feed import Feed, feed_settings
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


def api_cluster(*objects: ClusterObject) -> Cluster:
    """A cluster whose objects come from an API server, by a watch of each kind."""
    settings = replace(SETTINGS, api=ApiSettings(endpoint="http://127.0.0.1:9"))
    one = Cluster(settings, TOPOLOGY, Feed(feed_settings(settings, TOPOLOGY), Random(1), connecting=never), None)
    for kind in one.state.needed:
        one.state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)
    return one


async def never() -> KubeApi:
    raise AssertionError


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


def test_of_many_problems_at_once_some_have_a_line_and_the_others_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    problems = problems_of(cluster(*(bad(f"a{number}") for number in range(MOST_LINES + 3))))
    for _ in range(2):
        list(problems.check())
    assert len(named(caplog.records[:-1])) == MOST_LINES
    assert caplog.messages[MOST_LINES:] == ["plugin/topology: problems not logged: 3; `topodns audit` lists all"]


def test_a_step_looks_at_no_more_than_one_service(caplog: pytest.LogCaptureFixture) -> None:
    check = problems_of(cluster(*(bad(f"a{n}") for n in range(5)), *(misplaced(f"b{n}") for n in range(5)))).check()
    before = 0
    for _ in check:
        assert len(caplog.records) <= before + 1
        before = len(caplog.records)
    assert before == 10


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


def test_a_long_look_is_followed_by_a_hundred_times_as_long_a_wait(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = 0.05  # seconds of CPU of each look
    looks: list[float] = []  # when each began and ended
    one = cluster()
    problems = problems_of(one)

    def cpu() -> float:
        looks.append(asyncio.get_running_loop().time())
        return took * len(looks)

    monkeypatch.setattr("topodns.app.cluster_lifecycle.time.thread_time", cpu)

    async def story() -> None:
        task = asyncio.create_task(problems.run())
        await until(lambda: len(looks) == 2, 2 * CHECK_AFTER)
        one.state.apply(Upserted(bad("a")), 0)
        problems.rouse()
        await until(lambda: named(caplog.records) == ["a"], 2 * SPARSE * took)
        task.cancel()

    run_virtually(story())
    _, ended, began, *_ = looks
    assert began - ended == pytest.approx(SPARSE * took)


ON_NO_NODE: Final = "plugin/topology: Service default/a: there is no Node n1, which is the nodeName of ready endpoints"


UNFIT: Final = (
    namespace("default"),
    node("n0"),
    service("a", annotation="rack"),
    endpoint_slice("a", endpoint("10.0.0.1", "n1")),
)


def test_an_endpoint_on_an_unknown_node_is_logged_once_it_has_lasted(caplog: pytest.LogCaptureFixture) -> None:
    """A slice may arrive before its Node, and stays for a while after it; nothing need happen for the line."""

    async def story() -> list[list[str]]:
        one = api_cluster(*UNFIT)
        problems = ProblemLog(asyncio.get_running_loop().time)
        problems.clusters = [one]
        task = asyncio.create_task(problems.run())
        seen: list[list[str]] = []

        async def then(seconds: float, change: Change | None = None) -> None:
            caplog.clear()
            if change is not None:
                one.state.apply(change, 0)
                problems.rouse()
            await asyncio.sleep(seconds)
            seen.append([line for line in caplog.messages if line == ON_NO_NODE])

        await then(LASTS)
        await then(3 * CHECK_AFTER)
        await then(LASTS, Upserted(node("n1")))
        await then(LASTS, Deleted("Node", ObjectKey("", "n1")))
        await then(3 * CHECK_AFTER)
        await then(9 * LASTS)
        task.cancel()
        return seen

    assert run_virtually(story()) == [[], [ON_NO_NODE], [], [], [ON_NO_NODE], []]


def test_manifests_are_read_as_a_whole_so_that_a_line_need_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    one = cluster()
    for kind in one.state.needed:
        one.state.apply(Replaced(kind, tuple(each for each in UNFIT if kind_of(each) == kind)), 0)
    list(problems_of(one).check())
    assert ON_NO_NODE in caplog.messages
