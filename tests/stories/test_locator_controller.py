"""`topodns locator` against a fake API server: what it writes, and when."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.api_objects import node, pod, service
from tests.support.event_loops import SLOWNESS
from tests.support.fake_api.server import FakeApi
from tests.support.locator_run import NODES, WINDOW, Run, leading, locator, play


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


def test_each_pod_gets_a_podlocator_that_it_owns_with_labels_of_its_node(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(p="n1 10.1.0.1", q="n2 10.1.0.2", proxy="n1 192.0.2.1")
        value = run.api.stores["podlocators"].get(("default", "p"))
        assert value is not None
        assert value["metadata"]["ownerReferences"][0]["kind"] == "Pod"
        assert value["spec"]["nodeLabels"] == {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a"}
        run.api.delete(pod("p", "10.1.0.1", "n1"))
        await run.until(q="n2 10.1.0.2", proxy="n1 192.0.2.1")

    proxy = pod("proxy", "192.0.2.1", "n1")
    proxy["spec"]["hostNetwork"] = True
    play(tmp_path, story, *NODES, pod("p", "10.1.0.1", "n1"), pod("q", "10.1.0.2", "n2"), proxy, kind="podlocator")


RACK, ZONE = "example.com/rack", "topology.kubernetes.io/zone"


@pytest.mark.parametrize("kind", ["nodelocator", "podlocator"])
def test_a_new_key_and_a_changed_label_are_in_all_locators_and_each_is_written_once(kind: str, tmp_path: Path) -> None:
    nodes = [node(f"n{at}", "a", f"192.0.2.{at}") for at in range(1, 6)]
    for each in nodes:
        each["metadata"]["labels"] |= {RACK: "r1", "unused": "x"}
    pods = [pod(f"p{at}-{of}", f"10.1.{at}.{of}", f"n{of}") for at in range(40) for of in range(1, 6)]

    async def story(run: Run) -> None:
        number = len(pods if kind == "podlocator" else nodes)
        await run.until_true(lambda: run.writes() == len(run.locators()) == number)
        run.api.put(service("s", keys=f"{RACK},*"))
        await run.until_true(lambda: all(labels.get(RACK) == "r1" for labels in run.labels()))
        nodes[0]["metadata"]["labels"][ZONE] = "b"
        run.api.put(nodes[0])
        of_node = sum(name.endswith(".1") for name in run.locators().values()) if kind == "podlocator" else 1
        await run.until_true(lambda: [labels[ZONE] for labels in run.labels()].count("b") == of_node)
        await run.until_true(lambda: run.writes() >= 2 * number + of_node)
        run.api.put(service("s"), service("t", keys="absent,*"))
        run.api.put(service("s", keys=f"{RACK},*"))
        nodes[1]["metadata"]["labels"][ZONE] = "c"  # behind what those could have brought
        run.api.put(nodes[1])
        of_other = sum(name.endswith(".2") for name in run.locators().values()) if kind == "podlocator" else 1
        await run.until_true(lambda: [labels[ZONE] for labels in run.labels()].count("c") == of_other)
        await run.until_true(lambda: run.writes() >= 2 * number + of_node + of_other)
        assert run.writes() == 2 * number + of_node + of_other
        assert "unused" not in set().union(*run.labels())

    play(tmp_path, story, *nodes, *pods, kind=kind)


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
            assert await run.until(**{old: "", new: "10.1.0.1"}) < 1.0 * SLOWNESS
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


def test_a_locator_is_created_by_post_and_changed_by_server_side_apply(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.until(n1="", n2="")
        run.api.put(pod("p", "10.1.0.1", "n1"))
        await run.until(n1="10.1.0.1", n2="")
        writes = [one for one in run.api.requests.of("nodelocators") if one.verb in ("create", "patch")]
        assert sorted(one.verb for one in writes) == ["create", "create", "patch"]
        assert {one.query["fieldManager"] for one in writes} == {"topodns-locator"}

    play(tmp_path, story, *NODES)


def test_a_locator_that_another_leader_created_first_is_not_written_over_by_a_creation(tmp_path: Path) -> None:
    async def story() -> None:
        async with FakeApi(NODES) as api:
            api.deny("nodelocators", "create")
            async with leading(api, tmp_path) as run:
                await run.until_true(lambda: run.counts.refusals["rbac"] >= 2)
                api.lose_next("nodelocators")  # this one does not hear of it
                newer = locator("n1", "10.8.8.8")
                api.put(newer)
                api.heal()
                await run.until_true(lambda: run.counts.writes["nodelocator", "conflict"] >= 1)
                assert run.locators()["n1"] == "10.8.8.8"

    asyncio.run(story())


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


def test_with_the_role_of_an_older_release_locators_are_written_without_its_keys(tmp_path: Path) -> None:
    """One without Namespaces and ServiceImports, whose keys name labels since."""

    async def story() -> None:
        async with FakeApi([*NODES, pod("p", "10.1.0.1", "n1")]) as api:
            api.deny("namespaces")
            api.deny("serviceimports")
            async with leading(api, tmp_path) as run:
                await run.until(n1="10.1.0.1", n2="")

    asyncio.run(story())
