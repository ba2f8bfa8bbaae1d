"""`topodns locator` against a fake API server: what it writes, when, and what it does when the API server is wrong."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.api_objects import Object, node, pod
from tests.support.event_loops import eventually
from tests.support.fake_api.server import FakeApi
from topodns.kube.client.official_client import connect
from topodns.locator.controller import LocatorController
from topodns.locator.leader_election import Fence
from topodns.locator.metrics import LocatorCounts
from topodns.locator.objects import KINDS
from topodns.locator.projection import LABELS
from topodns.locator.refusals import Refusals

WINDOW = 0.3  # seconds
LONG = 30.0  # seconds: a list is repeated after two, and another machine's work may be in between
OWN = {"nodelocator": "nodelocators", "podlocator": "podlocators"}


class Run:
    """A controller that leads, and the API server that it writes to."""

    def __init__(self, api: FakeApi, kind: str) -> None:
        self.api, self.kind = api, kind
        self.counts = LocatorCounts()
        self.fence = Fence(time.monotonic)
        self.fence.renewed(time.monotonic() + 3600.0)

    def locators(self) -> dict[str, str]:
        """Name and addresses of each locator, with the node of a PodLocator before them."""
        found = {}
        for value in self.api.stores[OWN[self.kind]].objects():
            spec = value["spec"]
            words = [spec["nodeName"], *spec["ips"]] if self.kind == "podlocator" else spec["podIPs"]
            found[value["metadata"]["name"]] = " ".join(words)
        return found

    async def until(self, **locators: str) -> float:
        """Wait until there are these; the seconds that it took."""
        return await self.until_true(lambda: self.locators() == locators, lambda: self.locators())

    async def until_true(self, condition: Callable[[], bool], shown: Callable[[], object] = lambda: "") -> float:
        began = time.monotonic()
        while not condition():
            if time.monotonic() > began + LONG:
                pytest.fail(f"never came: {shown()}")
            with suppress(TimeoutError):
                await eventually(condition)
        return time.monotonic() - began

    def writes(self) -> int:
        return sum(self.counts.writes.values())

    def logged(self, caplog: pytest.LogCaptureFixture) -> str:
        return "\n".join(caplog.messages)


Story = Callable[[Run], Coroutine[Any, Any, None]]


@asynccontextmanager
async def leading(api: FakeApi, directory: Path, kind: str = "nodelocator") -> AsyncIterator[Run]:
    file = directory / "config"
    file.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                "clusters": [{"name": "c", "cluster": {"server": api.url}}],
            }
        )
    )
    run = Run(api, kind)
    async with connect(str(file)) as client:
        refusals = Refusals(KINDS[kind], run.counts)
        controller = LocatorController(client, KINDS[kind], LABELS, WINDOW, run.fence, run.counts, refusals, Random(1))
        task = asyncio.create_task(controller.run())
        try:
            yield run
            assert not task.done(), task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def play(directory: Path, story: Story, *objects: Object, kind: str = "nodelocator") -> None:
    async def whole() -> None:
        async with FakeApi(objects) as api, leading(api, directory, kind) as run:
            await story(run)

    asyncio.run(whole())


NODES = (node("n1", "a", "192.0.2.1"), node("n2", "b", "192.0.2.2"))


def locator(name: str, *ips: str) -> Object:
    return {
        "kind": "NodeLocator",
        "apiVersion": "topodns.io/v1alpha1",
        "metadata": {"name": name},
        "spec": {"podIPs": list(ips), "addresses": [], "labels": {}},
    }


def test_each_node_gets_a_nodelocator_that_it_owns(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="10.1.0.1 10.1.0.2", n2="")
        value = run.api.stores["nodelocators"].get(("", "n1"))
        owner = run.api.stores["nodes"].get(("", "n1"))
        assert value is not None
        assert owner is not None
        assert value["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": False,
            }
        ]  # fmt: skip
        assert value["spec"]["addresses"] == ["192.0.2.1"]
        assert value["spec"]["labels"] == {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a"}
        assert run.writes() == 2

    play(tmp_path, story, *NODES, pod("p", "10.1.0.1", "n1"), pod("q", "10.1.0.2", "n1"))


def test_each_pod_gets_a_podlocator_that_it_owns_and_nodes_are_not_asked_for(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(p="n1 10.1.0.1", q="n2 10.1.0.2")
        run.api.delete(pod("p", "10.1.0.1", "n1"))
        await run.until(q="n2 10.1.0.2")
        assert not run.api.requests.of("nodes")

    play(tmp_path, story, pod("p", "10.1.0.1", "n1"), pod("q", "10.1.0.2", "n2"), kind="podlocator")


def test_changes_of_pods_and_nodes_are_written(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="10.1.0.1", n2="")
        await asyncio.sleep(WINDOW)
        run.api.put(pod("q", "10.1.0.2", "n2"))
        assert await run.until(n1="10.1.0.1", n2="10.1.0.2") < WINDOW
        run.api.put(pod("p", "10.1.0.1", "n1", phase="Succeeded"))
        await run.until(n1="", n2="10.1.0.2")
        run.api.put(node("n3", "a", "192.0.2.3"))
        await run.until(n1="", n2="10.1.0.2", n3="")
        run.api.delete(NODES[1])
        await run.until(n1="", n3="")

    play(tmp_path, story, *NODES, pod("p", "10.1.0.1", "n1"))


def test_a_burst_of_changes_at_one_node_is_a_few_writes(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="", n2="")
        before, began = run.writes(), time.monotonic()
        for number in range(1, 101):
            run.api.put(pod(f"p{number}", f"10.1.0.{number}", "n1"))
            await asyncio.sleep(0.005)
        await run.until_true(lambda: len(run.locators()["n1"].split()) == 100)
        assert run.writes() - before <= 2 + (time.monotonic() - began) / WINDOW

    play(tmp_path, story, *NODES)


def test_an_address_that_moves_to_another_node_is_never_at_both_and_soon_at_the_new_one(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="10.1.0.1", n2="")
        both: list[str] = []

        async def look() -> None:
            while True:
                found = run.locators()
                if found["n1"] == found["n2"] == "10.1.0.1":
                    both.append("both")
                await asyncio.sleep(0)

        looking = asyncio.create_task(look())
        for number in range(6):
            old, new = ("n1", "n2") if number % 2 == 0 else ("n2", "n1")
            run.api.delete(pod(f"p{number}", "10.1.0.1", old))
            run.api.put(pod(f"p{number + 1}", "10.1.0.1", new))
            assert await run.until(**{old: "", new: "10.1.0.1"}) < 1.0
        looking.cancel()
        assert not both

    play(tmp_path, story, *NODES, pod("p0", "10.1.0.1", "n1"))


def test_orphans_are_deleted_and_what_others_wrote_is_corrected(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="10.1.0.1", n2="")
        run.api.put(locator("n1", "10.9.9.9"))
        await run.until(n1="10.1.0.1", n2="")
        run.api.delete(locator("n2"))
        await run.until(n1="10.1.0.1", n2="")
        run.api.put(locator("n7", "10.1.0.1"))
        await run.until(n1="10.1.0.1", n2="")

    play(tmp_path, story, *NODES, pod("p", "10.1.0.1", "n1"), locator("gone", "10.7.7.7"), locator("n2", "10.1.0.1"))


def test_nothing_is_written_where_all_is_as_it_should_be(tmp_path: Path) -> None:
    async def story() -> None:
        async with FakeApi([*NODES, pod("p", "10.1.0.1", "n1")]) as api:
            async with leading(api, tmp_path) as first:
                await first.until(n1="10.1.0.1", n2="")
            async with leading(api, tmp_path) as second:
                await second.until_true(
                    lambda: second.counts._term is not None and len(api.stores["pods"].watchers) == 1
                )
                await asyncio.sleep(0.2)
                assert second.writes() == 0

    asyncio.run(story())


def test_without_a_lease_nothing_is_written(tmp_path: Path) -> None:
    async def story() -> None:
        async with FakeApi(NODES) as api:
            run_of: list[Run] = []
            with suppress(AssertionError):  # the controller has ended
                async with leading(api, tmp_path) as run:
                    run_of.append(run)
                    run.fence.close()
                    await asyncio.sleep(0.5)
            assert not api.stores["nodelocators"].objects()
            assert run_of[0].writes() == 0

    asyncio.run(story())


def test_an_api_server_that_is_away_deletes_nothing_and_is_found_again(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="10.1.0.1", n2="")
        await run.api.close()
        await asyncio.sleep(1.0)
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


@pytest.mark.parametrize(
    ("resource", "verb", "sentence"),
    [
        ("pods", "list", "locator: pods: 403: "),
        ("nodes", "watch", "locator: nodes: 403: "),
        ("nodelocators", "list", "locator: nodelocators: 403: "),
        ("nodelocators", "patch", "locator: writes of nodelocators: 403: "),
    ],
)
def test_a_missing_right_is_named_with_the_rule_and_asked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, resource: str, verb: str, sentence: str
) -> None:
    caplog.set_level(logging.INFO)

    async def story() -> None:
        async with FakeApi(NODES) as api:
            api.deny(resource, verb)
            async with leading(api, tmp_path) as run:
                await run.until_true(lambda: run.counts.refusals["rbac"] >= 2, lambda: run.logged(caplog))
                lines = [line for line in caplog.messages if "403" in line]
                assert len(lines) == 1
                assert lines[0].startswith(sentence)
                assert lines[0].endswith("config/kubernetes/locator/rbac.yaml (chart: locator.enabled) has the rule")
                api.heal()
                await run.until(n1="", n2="")

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
