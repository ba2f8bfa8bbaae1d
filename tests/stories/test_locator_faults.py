"""`topodns locator` against a fake API server that is wrong: away, restored, overloaded, without rights or kinds."""

import asyncio
import logging
import re
from pathlib import Path

import pytest

from tests.support.api_objects import pod
from tests.support.fake_api.server import FakeApi
from tests.support.locator_run import NODES, Run, leading, locator, play


def test_a_past_that_was_restored_is_noticed_when_a_watch_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As from a backup of etcd: a watch from the version that was seen last has no events for long."""

    async def story(run: Run) -> None:
        await run.until(n1="10.1.0.1", n2="")
        run.api.freeze("pods", restored=True, deaf=True)
        run.api.put(pod("q", "10.1.0.2", "n2"))
        await run.until(n1="10.1.0.1", n2="10.1.0.2")
        run.api.end_watches("pods")
        await run.until(n1="10.1.0.1", n2="")
        assert "locator: pods: the API server went back from resourceVersion" in run.logged(caplog)

    play(tmp_path, story, *NODES, pod("p", "10.1.0.1", "n1"))


def test_a_watch_that_ends_as_watches_do_is_followed_by_no_list(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="", n2="")
        run.api.end_watches()
        run.api.put(pod("p", "10.1.0.1", "n1"))
        await run.until(n1="10.1.0.1", n2="")
        assert [one.query["limit"] for one in run.api.requests.of("pods", "list")] == ["500", "1"]

    play(tmp_path, story, *NODES)


def test_an_api_server_that_is_away_deletes_nothing_and_is_found_again(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="10.1.0.1", n2="")
        await run.api.close()
        await run.until_true(lambda: run.counts.refusals["api"] >= 1)
        await run.api.open()
        assert run.locators() == {"n1": "10.1.0.1", "n2": ""}
        run.api.put(pod("q", "10.1.0.2", "n2"))
        await run.until(n1="10.1.0.1", n2="10.1.0.2")
        assert run.counts.restarts["pods"] >= 1
        assert run.counts.refusals["api"] >= 1

    play(tmp_path, story, *NODES, pod("p", "10.1.0.1", "n1"))


def test_a_watch_that_is_too_old_is_followed_by_a_list(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="10.1.0.1", n2="")
        run.api.lose_next("pods", 1)
        run.api.delete(pod("p", "10.1.0.1", "n1"))
        run.api.gone("pods")
        await run.until(n1="", n2="")

    play(tmp_path, story, *NODES, pod("p", "10.1.0.1", "n1"))


def test_a_list_that_is_nearly_empty_deletes_nothing_until_a_second_one_confirms_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    many = [pod(f"p{number}", f"10.1.0.{number}", "n1") for number in range(1, 151)]

    async def story(run: Run) -> None:
        await run.until_true(lambda: len(run.locators().get("n1", "").split()) == 150)
        run.api.empty("pods")
        run.api.gone("pods")
        await run.until_true(lambda: "a list of pods has 0 objects where there were 150" in run.logged(caplog))
        await asyncio.sleep(0.5)
        assert len(run.locators()["n1"].split()) == 150
        run.api.heal()
        await run.until_true(lambda: run.api.watches("pods") == 1)
        assert len(run.locators()["n1"].split()) == 150

    play(tmp_path, story, *NODES, *many)


def test_at_the_start_the_locators_show_how_many_objects_there_were(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(run: Run) -> None:
        await run.until_true(lambda: "a list of nodes has 1 objects where there were 120" in run.logged(caplog))
        await asyncio.sleep(0.5)
        assert len(run.locators()) == 120
        await run.until(n1="")  # the second list has no more

    play(tmp_path, story, NODES[0], *(locator(f"m{number}") for number in range(120)))


IN_THE_FILE = "config/kubernetes/locator/rbac.yaml (chart: locator.enabled) has the rule"
IN_NO_FILE = (
    'the ClusterRole needs apiGroups: ["topodns.io"], resources: ["podlocators"], '
    'verbs: ["list", "watch", "create", "patch", "delete"] (chart: locator.kind=podlocator)'
)


@pytest.mark.parametrize(
    ("kind", "resource", "verb", "sentence", "hint"),
    [
        ("nodelocator", "pods", "list", "locator: pods: 403: ", IN_THE_FILE),
        ("nodelocator", "nodes", "watch", "locator: nodes: 403: ", IN_THE_FILE),
        ("nodelocator", "nodelocators", "list", "locator: nodelocators: 403: ", IN_THE_FILE),
        ("nodelocator", "nodelocators", "create", "locator: writes of nodelocators: 403: ", IN_THE_FILE),
        ("podlocator", "pods", "list", "locator: pods: 403: ", IN_THE_FILE),
        ("podlocator", "podlocators", "list", "locator: podlocators: 403: ", IN_NO_FILE),
        ("podlocator", "podlocators", "create", "locator: writes of podlocators: 403: ", IN_NO_FILE),
    ],
)
def test_a_missing_right_is_named_with_the_rule_and_asked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, resource: str, verb: str, sentence: str, hint: str
) -> None:
    caplog.set_level(logging.INFO)

    async def story() -> None:
        async with FakeApi([*NODES, pod("p", "10.1.0.1", "n1")]) as api:
            api.deny(resource, verb)
            async with leading(api, tmp_path, kind) as run:
                await run.until_true(lambda: run.counts.refusals["rbac"] >= 2, lambda: run.logged(caplog))
                lines = [line for line in caplog.messages if re.search(r"\b403\b", line)]
                assert len(lines) == 1
                assert lines[0].startswith(sentence)
                assert lines[0].endswith(hint)
                api.heal()
                expected = {"n1": "10.1.0.1", "n2": ""} if kind == "nodelocator" else {"p": "n1 10.1.0.1"}
                await run.until(**expected)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("versions", "problem"),
    [
        ((), "the API server has no kind NodeLocator"),
        (("v1beta1",), "the API server has topodns.io as v1beta1, expected v1alpha1"),
        (("v1beta1", "v1alpha1"), "the API server has no kind NodeLocator in topodns.io/v1alpha1"),
    ],
)
def test_an_absent_custom_resource_is_named_with_the_file_and_found_when_it_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, versions: tuple[str, ...], problem: str
) -> None:
    async def story() -> None:
        async with FakeApi(NODES) as api:
            api.absent("nodelocators", *versions)
            async with leading(api, tmp_path) as run:
                await run.until_true(lambda: run.counts.refusals["crd"] >= 2)
                assert run.counts.writes.total() == 0
                assert [line for line in caplog.messages if "locator.crds" in line] == [
                    f"locator: nodelocators: {problem}: apply config/kubernetes/locator/crds.yaml (chart: locator.crds)"
                ]
                api.heal()
                await run.until(n1="", n2="")

    asyncio.run(story())


def test_an_overloaded_api_server_gets_the_pause_that_it_asks_for(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="", n2="")
        run.api.busy(1, "nodelocators", "patch")
        for number in range(1, 21):
            run.api.put(pod(f"p{number}", f"10.1.0.{number}", "n1" if number % 2 else "n2"))
        await asyncio.sleep(1.5)
        assert run.counts.writes["nodelocator", "failed"] <= 2 * 2  # at most one of each node before each pause
        run.api.heal()
        await run.until_true(lambda: sum(len(ips.split()) for ips in run.locators().values()) == 20)

    play(tmp_path, story, *NODES)
