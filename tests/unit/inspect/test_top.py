"""/top: the queries to config/demo by client, Pod, namespace, node and name."""

import json
from ipaddress import ip_address
from typing import Any

import pytest

from tests.support.demo import Demo
from tests.support.dns_messages import Opt, node_identity, query
from tests.support.document_schema import faults
from topodns.inspect import top
from topodns.inspect.errors import Refused
from topodns.inspect.text import top_text
from topodns.inspect.top import UNREADABLE, top_steps
from topodns.query.query_sample import MINUTES, QuerySample
from topodns.time_slices import do_at_once

NOERROR, NXDOMAIN = b"id\x84\x80", b"id\x84\x83"


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


@pytest.fixture
def sample() -> QuerySample:
    """50 queries of a Pod, 20 of a process on a node, 10 of a stranger, 15 by a node cache, 9 that are unreadable."""
    made = QuerySample()
    for at, (queries, source, message, reply) in enumerate(
        (
            (30, "127.10.1.100", query("Cache.shop.svc.cluster.local A"), NOERROR),
            (20, "127.10.1.100", query("cache.shop.svc.cluster.local.default.svc.cluster.local A"), NXDOMAIN),
            (20, "127.10.0.5", query("cache.shop.svc.cluster.local AAAA"), NOERROR),
            (10, "203.0.113.1", query("www.example.org A"), None),
            (15, "127.10.0.7", query("nowhere.example.org A", Opt(options=[node_identity("node-c1")])), NXDOMAIN),
            (5, "203.0.113.2", query("www.example.org A", flags=0x8000), None),
            (4, "203.0.113.2", b"", NXDOMAIN),
        )
    ):
        made.add(float(at), queries, message, ip_address(source).packed, reply)
    return made


def document(demo: Demo, sample: QuerySample, by: str, now: float = 10.0) -> Any:
    steps = top_steps(demo.generation.clusters, sample, {"by": by}, lambda: now)
    found = json.loads(do_at_once(steps))
    assert faults(found, "TopDocument") == []
    return found


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        ("client", {"127.10.1.100": 50, "127.10.0.5": 20, "127.10.0.7": 15, "203.0.113.1": 10, "203.0.113.2": 9}),
        ("pod", {"default/shell-a1": 50, "node node-b2": 20, "node node-c1": 15, "203.0.113.1": 10, "203.0.113.2": 9}),
        ("namespace", {"default": 50, "node node-b2": 20, "node node-c1": 15, "203.0.113.1": 10, "203.0.113.2": 9}),
        ("node", {"node-a1": 50, "node-b2": 20, "node-c1": 15, "203.0.113.1": 10, "203.0.113.2": 9}),
        (
            "name",
            {
                "cache.shop.svc.cluster.local.": 50,
                "cache.shop.svc.cluster.local.default.svc.cluster.local.": 20,
                "nowhere.example.org.": 15,
                "www.example.org.": 10,
                UNREADABLE: 9,
            },
        ),
        (
            "nxdomain",
            {"cache.shop.svc.cluster.local.default.svc.cluster.local.": 20, "nowhere.example.org.": 15, UNREADABLE: 4},
        ),
    ],
)
def test_the_most_come_first(demo: Demo, sample: QuerySample, by: str, rows: dict[str, int]) -> None:
    found = document(demo, sample, by)
    assert [(row["value"], row["queries"]) for row in found["rows"]] == list(rows.items())
    assert (found["queries"], found["others"]) == (sum(rows.values()), 0)


def test_queries_older_than_some_minutes_do_not_count(demo: Demo, sample: QuerySample) -> None:
    assert document(demo, sample, "client", now=4.0 + MINUTES * 60)["queries"] == 24


def test_rows_beyond_the_first_are_summed(demo: Demo, sample: QuerySample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "MAX_ROWS", 2)
    found = document(demo, sample, "client")
    assert [row["queries"] for row in found["rows"]] == [50, 20]
    assert found["others"] == 34


def test_without_clusters_a_client_is_its_address(sample: QuerySample) -> None:
    found = json.loads(do_at_once(top_steps([], sample, {"by": "pod"}, lambda: 10.0)))
    assert found["rows"][0] == {"value": "127.10.1.100", "queries": 50}


def test_an_unknown_aspect_is_refused(demo: Demo, sample: QuerySample) -> None:
    with pytest.raises(Refused, match="found by='nodes', expected client, pod, namespace, node, name or nxdomain"):
        document(demo, sample, "nodes")


def test_the_text_is_a_table(demo: Demo, sample: QuerySample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "MAX_ROWS", 2)
    assert top_text(document(demo, sample, "pod")).splitlines() == [
        "about 104 queries in 5 minutes, by a sample of 7",
        "",
        "    QUERIES    SHARE  POD",
        "         50   48.1 %  default/shell-a1",
        "         20   19.2 %  node node-b2",
        "         34   32.7 %  others",
    ]


def test_the_text_of_no_query_is_one_line(demo: Demo) -> None:
    assert top_text(document(demo, QuerySample(), "name")) == "about 0 queries in 5 minutes, by a sample of 0"
