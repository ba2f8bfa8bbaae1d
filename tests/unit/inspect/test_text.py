"""An explanation as text."""

from dataclasses import replace

from tests.support.explained_cluster import explained
from topodns.inspect.documents import EndpointObject
from topodns.inspect.text import ENDPOINTS, explanation_text
from topodns.inspect.verdicts import Verdicts
from topodns.plugins.block import Settings


def test_the_text_reads_from_the_client_to_the_answer(served: Settings) -> None:
    assert explanation_text(explained(served, "soft", node="two").as_dict()).splitlines() == [
        "client   any on node two (as given)",
        "name     soft.shop.svc.cluster.local. A",
        "policy   annotation: rack, hall, *",
        "tried    rack = 2: 0 matching",
        "tried    hall = north: 2 matching  <- wins",
        "because  the first key that matches an endpoint decides: every endpoint that it matches",
        "ready    yes 10.1.1.1 on one: by hall = north",
        "         yes 10.1.1.2 on one: by hall = north",
        "answer   NOERROR",
        "         soft.shop.svc.cluster.local. 5 IN A 10.1.1.1",
        "         soft.shop.svc.cluster.local. 5 IN A 10.1.1.2",
    ]


def test_the_text_of_a_denial_has_no_records(served: Settings) -> None:
    text = explanation_text(explained(served, "hard", client="192.0.2.1").as_dict())
    assert text.startswith("client   192.0.2.1 on an unknown node\n")
    assert text.endswith("\nanswer   NOERROR")


def endpoint(address: str, answered: bool, fault: str | None = None) -> EndpointObject:
    return {
        "address": address,
        "node": "one",
        "answered": answered,
        "labels": {"rack": "1"},
        "because": "rack = 1",
        "fault": fault,
    }


def test_the_text_has_the_first_endpoints_those_with_a_fault_before_others(served: Settings) -> None:
    endpoints = [endpoint(f"10.1.2.{at}", at % 2 == 0) for at in range(ENDPOINTS + 3)]
    endpoints.append(endpoint("10.1.3.1", False, "there is no Node one"))
    document = replace(explained(served, "plain", node="two"), verdicts=Verdicts(tuple(endpoints))).as_dict()
    lines = explanation_text(document).splitlines()
    first = lines.index("ready    no  10.1.3.1 on one: there is no Node one; rack = 1")
    assert lines[first + 1] == "         yes 10.1.2.0 on one: rack = 1"
    assert lines[first + ENDPOINTS] == "         and 4 more, 2 of them yes (--json has all)"
    assert len(document["endpoints"]) == ENDPOINTS + 4


def test_names_from_the_cluster_cannot_forge_a_line(served: Settings) -> None:
    forged = {**endpoint("10.1.2.1", True), "node": "one\nanswer   NXDOMAIN", "because": "\x1b[2J"}
    document = {**explained(served, "plain", node="two").as_dict(), "endpoints": [forged]}
    assert "ready    yes 10.1.2.1 on one\\nanswer   NXDOMAIN: \\x1b[2J" in explanation_text(document).splitlines()
