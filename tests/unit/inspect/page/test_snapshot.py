"""Snapshots: what they have, when they are made anew, and what is cut."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.model_builders import endpoint_slice, node, node_locator, service
from tests.support.page_cluster import DemoPage, demo_page
from topodns.cluster.annotations import TOPOLOGY_KEYS, BadAnnotation
from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import ZONE_LABEL, Deleted, ObjectKey, Upserted
from topodns.inspect import coverage
from topodns.inspect.errors import Refused
from topodns.inspect.http import JobQueue
from topodns.inspect.page import service as service_rows
from topodns.inspect.page import snapshot
from topodns.inspect.page.snapshot import ClusterNotes, Snapshot, SnapshotMaker, unknown_of
from topodns.inspect.page.what_if import what_if_steps
from topodns.time_slices import do_at_once

NOTHING = ClusterNotes({}, {}, ())


class Making:
    """A maker over config/demo, with a clock and notes of the test."""

    def __init__(self, page: DemoPage) -> None:
        self.page = page
        self.now = 0.0
        self.notes = NOTHING
        self.maker = SnapshotMaker(page.cluster, lambda: self.notes, JobQueue("the page"), lambda: self.now)

    async def next(self) -> Snapshot:
        """The snapshot after half a second."""
        self.now += snapshot.EVERY
        return await self.maker.latest()


def state_of(made: Snapshot) -> Any:
    return json.loads("".join(made.pieces("{}")))


def test_a_snapshot_has_all_services_with_keys_and_all_nodes() -> None:
    async def story() -> None:
        with demo_page() as page:
            state = state_of(await Making(page).next())
            assert sorted(row["id"] for row in state["rows"]) == [
                "data/db-far",
                "data/db-near",
                "data/queue",
                "monitoring/agent",
                "shop/cache",
                "shop/kiosk",
                "shop/search",
                "shop/sessions",
            ]
            assert state["nodes"] == [[f"node-{a}{n}", f"eu-1{a}"] for a in "abc" for n in "123"]
            assert state["summary"] == {
                "name": "cluster.local.",
                "synced": True,
                "unknown": [],
                "nodes": 9,
                "left_out": 0,
                "zones": ["eu-1a", "eu-1b", "eu-1c"],
                "other_zones": False,
                "misses": {},
                "prefixes": {},
            }
            (cache,) = [row for row in state["rows"] if row["id"] == "shop/cache"]
            assert cache["zones"] == {"eu-1a": [2, 3, 3, 3], "eu-1b": [1, 3, 3, 3], "eu-1c": [0, 3, 3, 0]}

    asyncio.run(story())


def test_a_service_whose_annotation_is_misspelt_is_shown_with_the_problem() -> None:
    async def story() -> None:
        with demo_page() as page:
            bad = BadAnnotation("topodns.io/topology-key", TOPOLOGY_KEYS)
            page.apply(Upserted(service("misspelt", bad=(bad,))))
            page.apply(Upserted(endpoint_slice("misspelt")))
            rows = {row["id"]: row for row in state_of(await Making(page).next())["rows"]}
            [problem] = rows["default/misspelt"]["problems"]
            assert problem.endswith("is unknown and has no effect, did you mean 'topodns.io/topology-keys'?")

    asyncio.run(story())


def test_labels_of_nodes_in_another_case_are_a_problem_of_the_services_with_these_keys() -> None:
    async def story() -> None:
        with demo_page() as page:
            making = Making(page)
            page.apply(Upserted(node("node-a9", {ZONE_LABEL: "EU-1A"})))
            page.apply(Upserted(node("node-b9", {"topology.kubernetes.io/Zone": "eu-1b"})))
            rows = {row["id"]: row["problems"] for row in state_of(await making.next())["rows"]}
            problems = [
                "zones 'EU-1A' (node-a9) and 'eu-1a' (node-a1, ...) differ in case only, and are two domains",
                f"1 of 11 Nodes lack the label {ZONE_LABEL} (some have topology.kubernetes.io/Zone), "
                "so it matches nothing there: node-b9",
            ]
            assert (rows["data/db-near"], rows["monitoring/agent"]) == (problems, [])
            detail = json.loads(do_at_once(making.maker.detail_steps(ObjectKey("data", "db-near"))))
            assert detail["problems"] == problems
            assert not [each for each in detail["findings"] if each["text"] in problems], "each is there once"

    asyncio.run(story())


def test_a_node_that_only_its_locator_describes_is_shown() -> None:
    async def story() -> None:
        with demo_page() as page:
            page.apply(Upserted(node_locator("far", labels={ZONE_LABEL: "eu-9"})))
            state = state_of(await Making(page).next())
            assert (["far", "eu-9"] in state["nodes"], state["summary"]["nodes"]) == (True, 10)

    asyncio.run(story())


def test_at_most_two_are_made_in_a_second() -> None:
    async def story() -> None:
        with demo_page() as page:
            making = Making(page)
            first = await making.next()
            page.apply(Upserted(node("new")))
            making.now += snapshot.EVERY - 0.01
            assert await making.maker.latest() is first
            making.now += 0.01
            assert (await making.maker.latest()).revision == 2

    asyncio.run(story())


def test_it_stays_the_same_while_nothing_shown_changes() -> None:
    async def story() -> None:
        with demo_page() as page:
            making = Making(page)
            first = await making.next()
            assert await making.next() is first
            page.apply(Deleted("Pod", ObjectKey("default", "shell-a1")))
            assert await making.next() is first
            making.notes = ClusterNotes({"shop/cache": 1}, {}, ())
            second = await making.next()
            assert (second.revision, second.rows) == (2, first.rows)
            assert state_of(second)["summary"]["misses"] == {"shop/cache": 1}

    asyncio.run(story())


def test_after_a_change_of_one_service_only_its_row_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    steps = coverage.coverage_steps

    def counted(service: Any, *more: Any) -> Any:
        made.append(service.key.name)
        return steps(service, *more)

    monkeypatch.setattr("topodns.inspect.coverage.coverage_steps", counted)

    async def story() -> None:
        with demo_page() as page:
            making = Making(page)
            first = await making.next()
            assert len(made) == 8
            del made[:]
            one = next(key for key in page.cluster.state._slices if key[1].startswith("cache"))
            page.apply(Deleted("EndpointSlice", ObjectKey(*one)))
            second = await making.next()
            assert made == ["cache"]
            assert {name for name in second.rows if second.rows[name] is not first.rows[name]} == {"shop/cache"}
            making.maker.forget()
            page.apply(Upserted(node("new", {ZONE_LABEL: "eu-1d"})))
            assert "eu-1d" in state_of(await making.next())["rows"][0]["zones"]

    asyncio.run(story())


def test_a_change_of_nodes_while_a_snapshot_is_made_is_in_the_next_one() -> None:
    async def story() -> None:
        with demo_page() as page:
            making = Making(page)
            steps = making.maker._snapshot_steps()
            next(steps)
            page.apply(Upserted(node("new", {ZONE_LABEL: "eu-1d"})))
            making.maker.scope()  # as a request for details does
            do_at_once(steps)
            state = state_of(await making.next())
            assert state["nodes"][-1] == ["new", "eu-1d"]
            assert "eu-1d" in state["rows"][0]["zones"]

    asyncio.run(story())


def test_of_too_many_services_the_worst_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_ROWS", 2)

    async def story() -> None:
        with demo_page() as page:
            state = state_of(await Making(page).next())
            assert [row["id"] for row in state["rows"]] == ["data/db-near", "monitoring/agent"]
            assert state["summary"]["left_out"] == 6

    asyncio.run(story())


def test_of_too_many_zones_those_with_the_most_nodes_have_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (service_rows, snapshot):
        monkeypatch.setattr(module, "MAX_COLUMNS", 2)

    async def story() -> None:
        with demo_page() as page:
            page.apply(Upserted(node("new", {ZONE_LABEL: "eu-1c"})))
            making = Making(page)
            state = state_of(await making.next())
            assert (state["summary"]["zones"], state["summary"]["other_zones"]) == (["eu-1a", "eu-1c"], True)
            (cache,) = [row for row in state["rows"] if row["id"] == "shop/cache"]
            assert (cache["zones"].keys(), cache["others"]) == ({"eu-1a", "eu-1c"}, [1, 3, 3, 3])
            found = json.loads(do_at_once(what_if_steps(making.maker, ["node=node-b1:down"])))
            # By zone: what the Nodes of one lose is not made up for by those of another.
            assert {one["id"]: (one["without_endpoints"], one["far"]) for one in found["worse"]} == {
                "data/db-far": (0, 3),
                "data/db-near": (2, 0),
                "shop/cache": (0, 2),
                "shop/sessions": (0, 1),
            }
            for known in making.maker._kept.values():
                assert known.row.zones == {}

    asyncio.run(story())


def test_names_of_nodes_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_NODES", 4)

    async def story() -> None:
        with demo_page() as page:
            state = state_of(await Making(page).next())
            assert (len(state["nodes"]), state["summary"]["nodes"]) == (4, 9)

    asyncio.run(story())


def test_what_is_not_known_is_shown() -> None:
    async def story() -> None:
        with demo_page() as page:
            assert unknown_of(page.cluster) == ()
            page.cluster.state.denied.add("Node")
            assert unknown_of(page.cluster) == ("Nodes cannot be read: the API server denies them",)
            page.cluster.state.synced = False
            assert len(unknown_of(page.cluster)) == 2
            page.cluster.state.restore(Restored(page.cluster.state.needed, 1_764_244_800))
            line, _ = unknown_of(page.cluster)
            assert line.startswith("answers are from the snapshot of 2025-11-27T12:00:00Z: waiting for")

    asyncio.run(story())


def test_services_of_hidden_namespaces_have_neither_row_nor_details() -> None:
    async def story() -> None:
        with demo_page() as page:
            kubernetes = replace(page.cluster.kubernetes, namespaces=frozenset({"data"}))
            maker = SnapshotMaker(replace(page.cluster, kubernetes=kubernetes), lambda: NOTHING, JobQueue("the page"))
            rows = state_of(await maker.latest())["rows"]
            assert sorted(row["id"] for row in rows) == ["data/db-far", "data/db-near", "data/queue"]
            with pytest.raises(Refused, match="no headless Service 'cache' in namespace 'shop'"):
                do_at_once(maker.detail_steps(ObjectKey("shop", "cache")))
            worse = json.loads(do_at_once(what_if_steps(maker, ["node=node-b1:down"])))["worse"]
            assert [each["id"] for each in worse] == ["data/db-far", "data/db-near"]

    asyncio.run(story())
