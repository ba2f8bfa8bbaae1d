"""The details of one Service."""

import json
import time
from collections import Counter, defaultdict
from ipaddress import ip_address
from typing import Any

import pytest

from tests.support.demo import Demo
from tests.support.dns_messages import query
from tests.support.model_builders import service as headless
from tests.support.page_cluster import maker_of
from topodns.cluster.model import ZONE_LABEL, ObjectKey, Upserted
from topodns.inspect.errors import Refused
from topodns.inspect.page import service
from topodns.query.query_sample import QuerySample
from topodns.time_slices import do_at_once
from topodns.topology.select import Location, select


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


def detail(demo: Demo, name: str, *changes: str, sample: QuerySample | None = None) -> Any:
    maker = maker_of(demo.generation.clusters[0], sample)
    return json.loads(do_at_once(maker.detail_steps(ObjectKey(*name.split("/")), changes)))


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
    assert any("eu-1c" in one["text"] for one in detail(demo, "data/db-near")["findings"])


def test_flows_go_from_the_zone_of_the_clients_to_those_of_their_endpoints(demo: Demo) -> None:
    """One client on each Node, which divides itself evenly among the endpoints of its answer."""
    assert detail(demo, "shop/cache")["flows"] == [
        {"zone": "eu-1a", "nodes": 3, "all": 3, "nowhere": 0, "own_node": 2.0, "to": [["eu-1a", 3.0]]},
        {"zone": "eu-1b", "nodes": 3, "all": 3, "nowhere": 0, "own_node": 1.0, "to": [["eu-1b", 3.0]]},
        {"zone": "eu-1c", "nodes": 3, "all": 3, "nowhere": 0, "own_node": 0.0, "to": [["eu-1a", 2.0], ["eu-1b", 1.0]]},
    ]
    assert detail(demo, "data/db-near")["flows"][2] == {
        "zone": "eu-1c", "nodes": 3, "all": 3, "nowhere": 3, "own_node": 0.0, "to": [],
    }  # fmt: skip


@pytest.mark.parametrize("name", ["data/db-near", "monitoring/agent", "shop/cache", "shop/kiosk", "shop/search"])
def test_flows_are_the_sums_of_what_each_node_gets(demo: Demo, name: str) -> None:
    state = demo.generation.clusters[0].state
    key = ObjectKey(*name.split("/"))
    pool, policy = state.backends(key).pools[4], state.policies.get(key)
    own_node, nowhere = defaultdict[str, float](float), Counter[str]()
    to = defaultdict[tuple[str, str], float](float)
    for node in state.all_nodes().values():
        endpoints = select(pool, policy, Location(node.name, node)).group.endpoints
        zone = node.labels[ZONE_LABEL]
        nowhere[zone] += not endpoints
        for each in endpoints:
            own_node[zone] += (each.node_name == node.name) / len(endpoints)
            to[zone, state.all_nodes()[each.node_name].labels[ZONE_LABEL]] += 1 / len(endpoints)
    for flow in detail(demo, name)["flows"]:
        zone = flow["zone"]
        assert flow["own_node"] == pytest.approx(own_node[zone], abs=0.01)
        assert flow["nowhere"] == nowhere[zone]
        expected = {there: share for (here, there), share in to.items() if here == zone}
        assert dict(flow["to"]) == pytest.approx(expected, abs=0.01)


def test_flows_are_by_queries_too_where_enough_of_them_are_known(demo: Demo) -> None:
    """Of 30 queries for cache the clients on node-a1 sent 20, those on node-c1 5, and 5 came from no Node."""
    sample = QuerySample()
    for at in range(30):
        source = "127.10.1.100" if at < 20 else "127.10.7.100" if at < 25 else "203.0.113.1"
        asked = query("cache.shop.svc.cluster.local A")
        sample.add(time.perf_counter(), 10, asked, ip_address(source).packed, None)
    found = detail(demo, "shop/cache", sample=sample)["queries"]
    assert (found["minutes"], found["all"], found["unlocated"]) == (5, 300, 50)
    assert found["flows"] == [
        {"zone": "eu-1a", "nodes": 3, "all": 200, "nowhere": 0, "own_node": 200, "to": [["eu-1a", 200]]},
        {"zone": "eu-1b", "nodes": 3, "all": 0, "nowhere": 0, "own_node": 0, "to": [["eu-1b", 0]]},
        {
            "zone": "eu-1c",
            "nodes": 3,
            "all": 50,
            "nowhere": 0,
            "own_node": 0,
            "to": [["eu-1a", 33.33], ["eu-1b", 16.67]],
        },
    ]
    assert detail(demo, "shop/search", sample=sample)["queries"] is None


def test_zones_without_a_column_share_one_flow(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_COLUMNS", 2)
    assert [(flow["zone"], flow["nodes"]) for flow in detail(demo, "shop/cache")["flows"]] == [
        ("eu-1a", 3), ("eu-1b", 3), (None, 3),
    ]  # fmt: skip


def test_details_may_be_those_after_a_hypothetical_change(demo: Demo) -> None:
    near = detail(demo, "data/db-near", "node=node-b1:down")
    assert [(flow["zone"], flow["nodes"], flow["nowhere"]) for flow in near["flows"]] == [
        ("eu-1a", 3, 0), ("eu-1b", 2, 2), ("eu-1c", 3, 3),
    ]  # fmt: skip
    with pytest.raises(Refused, match="no Node is named 'node-z1'"):
        detail(demo, "data/db-near", "node=node-z1:down")


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


# guards and views


def answered(found: Any) -> list[tuple[str, int, list[tuple[str, str, int]]]]:
    return sorted(
        (group["zone"], group["size"], [(each["reason"], each["key"], each["endpoints"]) for each in group["answers"]])
        for group in found["clients"]
    )


def test_guards_are_shown_and_what_clients_get_by_them(demo: Demo) -> None:
    """Zone eu-1a has one endpoint of the two that a key needs, and of zone eu-1b one Node is beyond the load."""
    found = detail(demo, "shop/sessions")
    assert found["guards"] == {"min-endpoints": "2", "max-load": "1", "max-endpoints": "4"}
    assert {answers[0] for _, _, answers in answered(found)} == {
        ("any", "*", 4),
        ("matched", ZONE_LABEL, 2),
        ("matched", ZONE_LABEL, 4),
    }
    by_zone = Counter((zone, answers[0][1]) for zone, size, answers in answered(found) for _ in range(size))
    assert by_zone == {("eu-1a", "*"): 3, ("eu-1b", ZONE_LABEL): 2, ("eu-1b", "*"): 1, ("eu-1c", ZONE_LABEL): 3}


def test_flows_go_where_guards_send_each_node(demo: Demo) -> None:
    """As the server answers: two Nodes of zone eu-1b stay in it, and the third does not."""
    state = demo.generation.clusters[0].state
    to = defaultdict[tuple[str, str], float](float)
    for node in state.all_nodes().values():
        (address,) = [each for each in node.addresses if len(each) == 4]
        reply = demo.ask("sessions.shop.svc.cluster.local A", str(ip_address(address)))
        for answered_address in reply.data:
            (_, one), *_ = state.endpoints_with_address(ip_address(answered_address).packed)
            there = state.all_nodes()[one.node_name].labels[ZONE_LABEL]
            to[node.labels[ZONE_LABEL], there] += 1 / len(reply.data)
    flows = detail(demo, "shop/sessions")["flows"]
    assert {(flow["zone"], there): share for flow in flows for there, share in flow["to"]} == pytest.approx(
        to, abs=0.01
    )
    assert all(flow["nowhere"] == 0 for flow in flows)


NAMES = {
    "keys": ({"annotation": ZONE_LABEL}, "x and _near.x by the keys; _all.x without keys"),
    "no keys": ({"max_endpoints": "2"}, "_near.x by hostname, zone and *; x and _all.x without keys"),
    "keys for near alone": (
        {"annotation": ZONE_LABEL, "apply_to": "near"},
        "_near.x by the keys, and so the figures here; x and _all.x without keys",
    ),
}


@pytest.mark.parametrize(("annotations", "names"), NAMES.values(), ids=NAMES)
def test_the_names_to_which_keys_apply_are_in_words(annotations: dict[str, Any], names: str) -> None:
    changed = Demo()
    changed.generation.clusters[0].state.apply(Upserted(headless("x", "shop", **annotations)), 0)
    assert detail(changed, "shop/x")["names"] == names


def test_a_bound_that_counts_as_even_still_shows_how_many_a_client_gets(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topodns.inspect.coverage.MAX_HASHED", 0)
    assert {answers[0] for _, _, answers in answered(detail(demo, "shop/sessions"))} == {
        ("any", "*", 4),
        ("matched", ZONE_LABEL, 2),
        ("matched", ZONE_LABEL, 4),
    }
