"""The details of one Service."""

import json
from typing import Any

import pytest

from tests.support.demo import Demo
from tests.support.page_cluster import maker_of
from topodns.cluster.model import ObjectKey
from topodns.inspect.errors import Refused
from topodns.inspect.page import service
from topodns.time_slices import do_at_once


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


def detail(demo: Demo, name: str) -> Any:
    maker = maker_of(demo.generation.clusters[0])
    return json.loads(do_at_once(maker.detail_steps(ObjectKey(*name.split("/")))))


def test_clients_are_grouped_by_what_they_get_and_those_without_an_endpoint_come_first(demo: Demo) -> None:
    near = detail(demo, "data/db-near")
    assert [(group["zone"], group["covered"], group["near"], group["nodes"]) for group in near["clients"]] == [
        ("eu-1c", False, False, ["node-c1", "node-c2", "node-c3"]),
        ("eu-1a", True, True, ["node-a1", "node-a2", "node-a3"]),
        ("eu-1b", True, True, ["node-b1", "node-b2", "node-b3"]),
    ]
    (answer,) = near["clients"][0]["answers"]
    assert answer == {"family": 4, "reason": "no_match", "key": "", "endpoints": 0}


def test_endpoints_have_their_place_and_their_load(demo: Demo) -> None:
    near = detail(demo, "data/db-near")
    assert near["listed"][2] == {
        "address": "127.10.4.50",
        "hostname": "",
        "node": "node-b1",
        "zone": "eu-1b",
        "clients": 3.0,
    }
    assert (near["listed_of"], near["skew"]) == (3, 1.5)


def test_what_an_audit_finds_is_in_it(demo: Demo) -> None:
    assert any("eu-1c" in text for text in detail(demo, "data/db-near")["findings"])


def test_all_of_it_is_bounded(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_ENDPOINTS", "MAX_GROUPS", "MAX_NAMES"):
        monkeypatch.setattr(service, name, 2)
    near = detail(demo, "data/db-near")
    assert (len(near["listed"]), near["listed_of"]) == (2, 3)
    assert (len(near["clients"]), near["clients_left_out"]) == (2, 1)
    assert (near["clients"][0]["nodes"], near["clients"][0]["size"]) == (["node-c1", "node-c2"], 3)


@pytest.mark.parametrize("name", ["shop/nothing", "shop/web"])
def test_a_service_that_is_not_there_or_not_headless_is_refused(demo: Demo, name: str) -> None:
    with pytest.raises(Refused, match=f"no headless Service '{name[5:]}' in namespace 'shop'") as refused:
        detail(demo, name)
    assert refused.value.status == 404
