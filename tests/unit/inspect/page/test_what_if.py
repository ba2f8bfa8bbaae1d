"""What-if on the page: rows that would differ, and who would lose."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.demo import Demo
from tests.support.page_cluster import maker_of
from topodns.cluster.model import ObjectKey
from topodns.inspect.errors import Refused
from topodns.inspect.page import service, snapshot
from topodns.inspect.page import what_if as module
from topodns.inspect.page.what_if import what_if_steps
from topodns.time_slices import do_at_once


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


def supposed(demo: Demo, *changes: str) -> Any:
    return json.loads(do_at_once(what_if_steps(maker_of(demo.generation.clusters[0]), changes)))


def test_without_the_only_endpoint_of_a_zone_its_other_clients_lose(demo: Demo) -> None:
    found = supposed(demo, "node=node-b1:down")
    assert found["nodes"] == 8
    assert {one["id"]: (one["without_endpoints"], one["far"]) for one in found["worse"]} == {
        "data/db-far": (0, 3),
        "data/db-near": (2, 0),
        "shop/cache": (0, 2),
        "shop/sessions": (
            0,
            1,
        ),  # with one of two endpoints zone eu-1b is passed over; node-b2 was beyond its load before
    }
    (near,) = [row for row in found["rows"] if row["id"] == "data/db-near"]
    assert near["zones"]["eu-1b"] == [0, 2, 0, 0]


def test_lost_endpoints_count_also_where_all_clients_still_get_one(demo: Demo) -> None:
    assert supposed(demo, "node=node-b1:down")["endpoints"] == [34, 29]


def test_without_any_node_every_service_loses_its_endpoints(demo: Demo) -> None:
    found = supposed(demo, *(f"zone={zone}:down" for zone in ("eu-1a", "eu-1b", "eu-1c")))
    assert (found["nodes"], found["endpoints"]) == (0, [34, 0])
    assert [(one["id"], one["endpoints"]) for one in found["worse"]] == [
        ("data/db-far", 0),
        ("data/db-near", 0),
        ("data/queue", 0),
        ("monitoring/agent", 0),
        *((f"shop/{name}", 0) for name in ("cache", "kiosk", "search", "sessions")),
    ]


def test_other_keys_may_cover_more(demo: Demo) -> None:
    found = supposed(demo, "keys=data/db-near:topology.kubernetes.io/zone,*")
    assert (found["worse"], found["differ"], found["nodes"]) == ([], 1, 9)
    assert found["rows"][0]["zones"]["eu-1c"] == [0, 3, 3, 0]


def test_a_service_without_keys_may_get_some(demo: Demo) -> None:
    found = supposed(demo, "keys=data/db:topology.kubernetes.io/zone")
    assert [one["id"] for one in found["worse"]] == ["data/db"]


def test_rows_of_the_last_snapshot_are_not_made_again(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    original = service.service_row_steps

    def counted(key: ObjectKey, *more: Any) -> Any:
        made.append(key.name)
        return original(key, *more)

    for user in (module, snapshot):
        monkeypatch.setattr(user, "service_row_steps", counted)

    async def story() -> None:
        maker = maker_of(demo.generation.clusters[0])
        await maker.latest()
        del made[:]
        with_rows = do_at_once(what_if_steps(maker, ["node=node-b1:down"]))
        assert sorted(made) == ["agent", "cache", "db-far", "db-near", "kiosk", "queue", "search", "sessions"]
        maker.forget()
        assert do_at_once(what_if_steps(maker, ["node=node-b1:down"])) == with_rows
        assert len(made) == 8 + 16

    asyncio.run(story())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ((), "found no change, expected change=node=NAME:down or another"),
        (("node=node-a9:down",), "no Node is named 'node-a9', did you mean 'node-a3'?"),
        (("node=node-a1",), "found 'node=node-a1', expected node=NAME:down"),
        (("make it so",), "found 'make it so', expected node=NAME:down"),
        (("scale=data/db:-9",), "data/db has 3 ready Pods, fewer than the 9"),
        (("scale=shop/web:-1",), "Service shop/web is not headless: expected a headless one"),
    ],
)
def test_nonsense_is_refused_with_what_was_found(demo: Demo, changes: tuple[str, ...], problem: str) -> None:
    with pytest.raises(Refused) as refused:
        supposed(demo, *changes)
    assert refused.value.status == 400
    assert str(refused.value).startswith(problem.partition(", did you")[0])


def test_the_rows_are_bounded(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 1)
    found = supposed(demo, "zone=eu-1a:down")
    assert (len(found["rows"]), found["differ"]) == (1, 8)
