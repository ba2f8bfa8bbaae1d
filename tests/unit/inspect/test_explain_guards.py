"""Explanations of guards, bounded answers and the views `_near` and `_all` (semantics 10.2 to 10.4)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.demo import Demo
from tests.support.explained_cluster import explain_reply, explained, with_topology
from topodns.inspect.explain import Explanation, parse_question
from topodns.inspect.text import explanation_text

_SERVICE = """\
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: db, annotations: {%s}}
  spec: {clusterIP: None}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: db-1, labels: {kubernetes.io/service-name: db}}
  addressType: IPv4
  ports: [{name: http, port: 80}]
  endpoints: [%s]
"""
KEYS, ZONE = "topology-keys", "topology.kubernetes.io/zone"


class Asker(Protocol):
    def __call__(self, name: str, node: str = "", qtype: str = "A", client: str = "") -> Explanation: ...


def serve(directory: Path, annotations: Mapping[str, str], *nodes: str, option: str = "") -> Asker:
    """A Service `db` with these annotations of topodns.io, and an endpoint 10.1.1.1, 10.1.1.2, ... on each Node."""
    written = ", ".join(f'topodns.io/{name}: "{value}"' for name, value in annotations.items())
    endpoints = (f"{{addresses: [10.1.1.{at}], nodeName: {node}}}" for at, node in enumerate(nodes, 1))
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(_SERVICE % (written, ", ".join(endpoints)))
    served = with_topology(directory, option)

    def ask(name: str, node: str = "", qtype: str = "A", client: str = "") -> Explanation:
        return explained(served, name, qtype, **({"node": node} if node else {"client": client}))

    return ask


def lines(explanation: Explanation, word: str) -> list[str]:
    """The lines of the text under this word."""
    found, under = [], ""
    for line in explanation_text(explanation.as_dict()).splitlines():
        under = line[:9].strip() or under
        if under == word:
            found.append(line[9:])
    return found


# max-load


def test_a_node_beyond_the_load_of_its_domain_is_told_the_numbers(directory: Path) -> None:
    ask = serve(directory, {KEYS: "hall,*", "max-load": "1"}, "one", "far", "far", "far", "far")
    tried = {name: lines(ask("db", name), "tried") for name in ("one", "two")}
    beyond = (
        "hall = north: 1 matching, "
        "hall north: 1 of 5 endpoints serve 2 of 3 nodes, at most 1 by max-load 1: this node is beyond"
    )
    assert sorted(tried.values()) == [["hall = north: 1 matching  <- wins"], [beyond, "*: 5 matching  <- wins"]]
    (one,) = [name for name, texts in tried.items() if texts[0] == beyond]
    assert lines(ask("db", one), "because") == ["no key before `*` passes the guards: every ready endpoint"]
    assert len(lines(ask("db", one), "answer")) == 1 + 5


def test_a_domain_within_its_load_says_nothing(directory: Path) -> None:
    ask = serve(directory, {KEYS: "hall,*", "max-load": "1.5"}, "one", "two", "far")
    assert lines(ask("db", "one"), "tried") == ["hall = north: 2 matching  <- wins"]
    assert lines(ask("db", "one"), "policy") == ["annotation: hall, *; max-load 1.5"]
    assert lines(ask("db", "one"), "because") == [
        "the first key that matches an endpoint decides: every endpoint that it matches"
    ]


def test_priorities_have_no_guards(directory: Path) -> None:
    annotations = {KEYS: "hall,*", "max-load": "1", "min-endpoints": "3"}
    ask = serve(directory, annotations, "one", "far", "far", option="srv_priority")
    for name in ("one", "two"):
        assert lines(ask("db", name, "SRV"), "tried") == ["hall = north: 1 matching", "*: 3 matching"]


# max-endpoints


def test_a_bounded_answer_says_how_many_of_how_many_and_which_are_not_in_it(directory: Path) -> None:
    ask = serve(directory, {"max-endpoints": "2"}, "one", "two", "far")
    found = ask("db", "one")
    assert lines(found, "policy") == ["no keys; max-endpoints 2"]
    assert lines(found, "bound") == ["2 of 3 endpoints by max-endpoints 2"]
    verdicts = found.verdicts.endpoints
    assert sorted((each["answered"], each["because"]) for each in verdicts) == [
        (False, "not among the 2 of max-endpoints"),
        (True, None),
        (True, None),
    ]
    in_answer = sorted(record.split()[-1] for record in found.answer)
    assert sorted(each["address"] for each in verdicts if each["answered"]) == in_answer


def test_a_bound_comes_after_the_keys(directory: Path) -> None:
    ask = serve(directory, {KEYS: "hall", "max-endpoints": "1"}, "one", "two", "far")
    found = ask("db", "one")
    assert found.as_dict()["bound"] == {"most": 1, "answered": 1, "of": 2}
    assert sorted(str(each["because"]) for each in found.verdicts.endpoints) == [
        "by hall = north",
        "by hall = north; not among the 1 of max-endpoints",
        "hall = south",
    ]
    assert ask("db", "far").as_dict()["bound"] is None, "the only one of its hall"


def test_priorities_are_given_within_the_bound(directory: Path) -> None:
    annotations = {KEYS: "hall,*", "max-endpoints": "2"}
    found = serve(directory, annotations, "one", "two", "far", option="srv_priority")("db", "one", "SRV")
    assert lines(found, "bound") == ["2 of 3 endpoints by max-endpoints 2"]
    assert len(found.answer) == sum(each["answered"] for each in found.verdicts.endpoints) == 2
    assert {str(each["because"]).partition(",")[0] for each in found.verdicts.endpoints} == {"priority 0", "priority 1"}


@pytest.mark.parametrize("client", ["192.0.2.1", "192.0.2.9"])
def test_a_client_without_a_node_is_bounded_by_its_address(directory: Path, client: str) -> None:
    found = serve(directory, {"max-endpoints": "1"}, *["one"] * 9)("db", client=client)
    (answered,) = [each["address"] for each in found.verdicts.endpoints if each["answered"]]
    assert [record.split()[-1] for record in found.answer] == [answered]


# views

ANSWERED = {
    "the plain name, keys for both": ({KEYS: "hall"}, "db", "", ["10.1.1.1", "10.1.1.2"]),
    "the plain name, keys for near alone": (
        {KEYS: "hall", "apply-to": "near"},
        "db",
        "keys apply to _near.db alone: every ready endpoint",
        ["10.1.1.1", "10.1.1.2", "10.1.1.3"],
    ),
    "near": ({KEYS: "hall", "apply-to": "near"}, "_near.db", "", ["10.1.1.1", "10.1.1.2"]),
    "all": (
        {KEYS: "hall"},
        "_all.db",
        "keys do not apply to _all.db: every ready endpoint",
        ["10.1.1.1", "10.1.1.2", "10.1.1.3"],
    ),
    "all without keys": ({}, "_all.db", "no topology keys: every ready endpoint", ["10.1.1.1", "10.1.1.2", "10.1.1.3"]),
    "near without keys": ({}, "_near.db", "", ["10.1.1.1"]),
}


@pytest.mark.parametrize(("annotations", "name", "because", "addresses"), ANSWERED.values(), ids=ANSWERED)
def test_a_name_is_explained_by_its_own_rule(
    directory: Path, annotations: Mapping[str, str], name: str, because: str, addresses: list[str]
) -> None:
    found = serve(directory, annotations, "one", "two", "far")(name, "one")
    matched = "the first key that matches an endpoint decides: every endpoint that it matches"
    assert lines(found, "because") == [because or matched]
    assert bool(found.tried) is not bool(because)
    assert [each["address"] for each in found.verdicts.endpoints if each["answered"]] == addresses
    assert [record.split()[-1] for record in found.answer] == addresses


def test_the_policy_is_that_of_the_service_or_the_usual_one_of_near(directory: Path) -> None:
    ask = serve(directory, {KEYS: "hall", "apply-to": "near"}, "one")
    for name in ("db", "_near.db", "_all.db"):
        assert lines(ask(name, "one"), "policy") == ["annotation: hall; apply-to near"]
    usual = "_near: kubernetes.io/hostname, topology.kubernetes.io/zone, *"
    assert lines(ask("_near.plain", "one"), "policy") == [usual]
    assert lines(ask("plain", "one"), "policy") == []


MISSING = {
    "_near.front": "Service 'front' in namespace 'shop' is not headless: it has no names _near and _all",
    "_all.none": "no Service 'none' in namespace 'shop'",
    "e1._near.plain": "Service 'plain' in namespace 'shop' has no names of endpoints below _near: "
    "they are below 'plain' itself",
}


@pytest.mark.parametrize(("name", "because"), MISSING.items())
def test_a_view_that_does_not_exist_has_its_reason(directory: Path, name: str, because: str) -> None:
    found = explained(with_topology(directory), name, node="one")
    assert (found.rcode, found.reason) == ("NXDOMAIN", because)


def test_a_view_without_records_of_a_type_names_those_that_it_has(directory: Path) -> None:
    ask = serve(directory, {KEYS: "hall"}, "one")
    assert ask("_near.db", "one", "TXT").reason == "the name exists; it has A and SRV only"


# documents of other versions


def test_a_document_of_a_server_without_guards_prints(directory: Path) -> None:
    ask = serve(directory, {KEYS: "hall", "min-endpoints": "3", "max-endpoints": "1"}, "one", "two")
    document = ask("db", "one").as_dict()
    text = explanation_text(document)
    older = {key: value for key, value in document.items() if key != "bound"}
    older["policy"] = {key: value for key, value in document["policy"].items() if key != "guards"}
    older["tried"] = [{key: value for key, value in each.items() if key != "guard"} for each in document["tried"]]
    expected = text.replace("; min-endpoints 3, max-endpoints 1", "").replace(", hall north has 2 of 3", "")
    assert explanation_text(older) == expected.replace("bound    1 of 2 endpoints by max-endpoints 1\n", "")


# the example of `make run`


@pytest.mark.parametrize(
    ("node", "tried"),
    [
        ("node-a1", f"{ZONE} = eu-1a: 1 matching, zone eu-1a has 1 of 2: next key"),
        ("node-b1", f"{ZONE} = eu-1b: 2 matching  <- wins"),
        (
            "node-b2",
            f"{ZONE} = eu-1b: 2 matching, "
            "zone eu-1b: 2 of 7 endpoints serve 3 of 9 nodes, at most 2 by max-load 1: this node is beyond",
        ),
        ("node-c3", f"{ZONE} = eu-1c: 4 matching  <- wins"),
    ],
)
def test_the_guards_of_the_example_are_named(node: str, tried: str) -> None:
    question = parse_question({"name": "sessions.shop.svc.cluster.local", "node": node})
    assert lines(explain_reply(Demo().generation.clusters, question), "tried")[0] == tried
