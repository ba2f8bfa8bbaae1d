"""The verdict on each ready endpoint: whether the client gets it, and why; and the client's own values."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.corefile_settings import settings
from tests.support.explained_cluster import explained, with_topology, without_topology
from tests.support.generation_builder import assembly
from topodns.inspect import verdicts
from topodns.inspect.explain import Explanation, explanation_steps, parse_question
from topodns.inspect.sources import manifest_clusters
from topodns.inspect.text import explanation_text
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.time_slices import do_at_once

_SERVICE = """\
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: %(name)s, annotations: {topodns.io/topology-keys: "%(keys)s"}}
  spec: {clusterIP: None}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: %(name)s-1, labels: {kubernetes.io/service-name: %(name)s}}
  addressType: IPv4
  ports: [{name: http, port: 80}]
  endpoints: [%(endpoints)s]
"""
_NODE = """\
- apiVersion: v1
  kind: Node
  metadata: {name: %s, labels: {rack: "7", kubernetes.io/hostname: %s}}
"""
_ZONE = "topology.kubernetes.io/zone"


def add(directory: Path, keys: str, *endpoints: str, name: str = "mixed") -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(_SERVICE % {"name": name, "keys": keys, "endpoints": ", ".join(endpoints)})


def add_node(directory: Path, name: str) -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(_NODE % (name, name))


def reasons(explanation: Explanation) -> list[tuple[str, bool, str | None]]:
    """(Address, whether it is answered, what is wrong with its Node and why) of each endpoint."""
    return [
        (each["address"], each["answered"], "; ".join(filter(None, (each["fault"], each["because"]))) or None)
        for each in explanation.verdicts.endpoints
    ]


def reason(directory: Path, keys: str, endpoint: str, node: str = "one") -> str | None:
    """Why a client on a Node gets, or does not get, the only endpoint of a Service."""
    add(directory, keys, endpoint)
    ((_, _, because),) = reasons(explained(with_topology(directory), "mixed", node=node))
    return because


def test_each_ready_endpoint_has_its_verdict_with_the_labels_that_were_compared(directory: Path) -> None:
    add(
        directory,
        "rack,hall",
        "{addresses: [10.1.1.1], nodeName: one}",
        "{addresses: [10.1.1.2], nodeName: two}",
        "{addresses: [10.1.1.3], nodeName: one, conditions: {ready: false}}",
    )
    assert explained(with_topology(directory), "mixed", node="one").verdicts.endpoints == (
        {
            "address": "10.1.1.1",
            "node": "one",
            "answered": True,
            "labels": {"rack": "1"},
            "because": "by rack = 1",
            "fault": None,
        },
        {
            "address": "10.1.1.2",
            "node": "two",
            "answered": False,
            "labels": {"rack": "2"},
            "because": "rack = 2",
            "fault": None,
        },
    )
    assert reasons(explained(with_topology(directory), "mixed", node="far")) == [
        ("10.1.1.1", False, "rack = 1; hall = north"),
        ("10.1.1.2", False, "rack = 2; hall = north"),
    ]


def test_a_key_of_other_domains_shows_the_value_that_differs(directory: Path) -> None:
    add(directory, "!rack", "{addresses: [10.1.1.1], nodeName: one}", "{addresses: [10.1.1.2], nodeName: two}")
    found = explained(with_topology(directory), "mixed", node="one")
    assert reasons(found) == [("10.1.1.1", False, "rack = 1"), ("10.1.1.2", True, "by !rack, whose value is 2")]
    assert found.tried == ({"key": "!rack", "value": "1", "because": None, "matches": 1, "guard": None},)
    (attempt,) = explained(with_topology(directory), "mixed", node="far").tried
    assert (attempt["value"], attempt["because"]) == (None, "node far has no label rack")


LEAST = 'topodns.io/min-endpoints: "2"'
SHORT: Mapping[str, tuple[str, str, list[str], str]] = {
    "the next key has enough": (
        "rack,hall,*",
        "",
        ["rack = 1: 1 matching, rack 1 has 1 of 2: next key", "hall = north: 2 matching  <- wins"],
        "the first key that matches and passes the guards decides: every endpoint that it matches",
    ),
    "none has, but there is *": (
        "rack,*",
        "",
        ["rack = 1: 1 matching, rack 1 has 1 of 2: next key", "*: 2 matching  <- wins"],
        "no key before `*` passes the guards: every ready endpoint",
    ),
    "none has": (
        "rack,!rack",
        "",
        [
            "rack = 1: 1 matching, rack 1 has 1 of 2: next key  <- wins",
            "!rack = 1: 1 matching, another rack than 1 has 1 of 2",
        ],
        "no key passes the guards of the Service's annotations: the endpoints of the first with any",
    ),
    "priorities have no winner": (
        "rack,hall,*",
        "srv_priority",
        ["rack = 1: 1 matching", "hall = north: 2 matching", "*: 2 matching"],
        "srv_priority: every ready endpoint, its priority is the index of the first key it matches",
    ),
}


@pytest.mark.parametrize(("keys", "option", "tried", "because"), SHORT.values(), ids=SHORT)
def test_a_key_that_matches_too_few_endpoints_says_how_many_it_needs(
    directory: Path, keys: str, option: str, tried: list[str], because: str
) -> None:
    add(
        directory,
        f'{keys}", {LEAST}, x: "',
        "{addresses: [10.1.1.1], nodeName: one}",
        "{addresses: [10.1.1.2], nodeName: two}",
    )
    found = explained(with_topology(directory, option), "mixed", "SRV" if option else "A", node="one")
    lines = explanation_text(found.as_dict()).splitlines()
    assert [line.removeprefix("tried    ") for line in lines if line.startswith("tried")] == tried
    assert f"because  {because}" in lines


def test_a_text_of_an_older_server_has_no_numbers(directory: Path) -> None:
    document = explained(with_topology(directory), "soft", node="two").as_dict()
    older = [{key: value for key, value in tried.items() if key != "guard"} for tried in document["tried"]]
    assert explanation_text({**document, "tried": older}) == explanation_text(document)


def test_a_node_without_the_label_is_named(directory: Path) -> None:
    assert reason(directory, "rack", "{addresses: [10.1.1.1], nodeName: far}") == "node far has no label rack"


def test_a_node_that_does_not_exist_is_named_with_the_one_that_may_be_meant(directory: Path) -> None:
    add_node(directory, "worker-1")
    endpoint = "{addresses: [10.1.1.1], nodeName: wroker-1, zone: eu-1}"
    assert reason(directory, f"rack,{_ZONE}", endpoint) == (
        f"there is no Node wroker-1 (worker-1?); {_ZONE} = eu-1, by its EndpointSlice"
    )


def test_it_is_named_also_where_the_zone_of_the_slice_matches(directory: Path) -> None:
    """The clients of the Node that is meant, whose key for the node misses the endpoint, learn why."""
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(_NODE.replace("rack", _ZONE) % ("worker-1", "worker-1"))
    endpoint = '{addresses: [10.1.1.1], nodeName: wroker-1, zone: "7"}'
    assert reason(directory, f"kubernetes.io/hostname,{_ZONE}", endpoint, node="worker-1") == (
        f"there is no Node wroker-1 (worker-1?); by {_ZONE} = 7"
    )


def test_an_endpoint_without_a_node_is_said_to_be(directory: Path) -> None:
    assert reason(directory, "rack", "{addresses: [10.1.1.1]}") == "it names no node"


def test_any_endpoint_is_answered_with_the_values_that_did_not_match(directory: Path, served: Settings) -> None:
    assert reasons(explained(served, "soft", node="far")) == [
        ("10.1.1.1", True, "by *; rack = 1; hall = north"),
        ("10.1.1.2", True, "by *; rack = 1; hall = north"),
    ]


def test_the_values_are_shown_for_a_client_of_unknown_location(served: Settings) -> None:
    unknown = explained(served, "hard", client="192.0.2.1")
    assert reasons(unknown) == [
        ("10.1.1.1", False, "rack = 1; hall = north"),
        ("10.1.1.2", False, "rack = 1; hall = north"),
    ]
    unlocated = explained(served, "soft", client="192.0.2.1").verdicts.endpoints
    assert [each["answered"] for each in unlocated] == [True, True]


@pytest.mark.parametrize("service", ["plain", "wrong"])
def test_without_valid_keys_nothing_was_compared(served: Settings, service: str) -> None:
    assert reasons(explained(served, service, node="one")) == [("10.1.1.1", True, None), ("10.1.1.2", True, None)]


def test_without_topology_every_endpoint_is_answered(directory: Path) -> None:
    found = explained(without_topology(directory), "hard", client="10.0.0.1")
    assert reasons(found) == [("10.1.1.1", True, None), ("10.1.1.2", True, None)]


def test_hints_are_the_reason_where_they_decide(directory: Path) -> None:
    add(
        directory,
        "",
        "{addresses: [10.1.1.1], nodeName: one, hints: {forNodes: [{name: one}]}}",
        "{addresses: [10.1.1.2], nodeName: two, hints: {forNodes: [{name: two}], forZones: [{name: b}]}}",
    )
    assert reasons(explained(with_topology(directory, "keys hints"), "mixed", node="one")) == [
        ("10.1.1.1", True, "hinted for node one"),
        ("10.1.1.2", False, "hinted for node two, zone b"),
    ]


def test_with_srv_priority_each_endpoint_has_its_priority_and_its_key(directory: Path) -> None:
    add(directory, "rack,hall,*", "{addresses: [10.1.1.1], nodeName: two}", "{addresses: [10.1.1.2], nodeName: far}")
    ranked = with_topology(directory, "srv_priority")
    assert reasons(explained(ranked, "mixed", "SRV", node="one")) == [
        ("10.1.1.1", True, "priority 1, by hall = north"),
        ("10.1.1.2", True, "node far has no label rack; priority 2, by *; hall = south"),
    ]
    assert reasons(explained(ranked, "mixed", node="one"))[1][1] is False


def test_an_endpoint_that_is_answered_at_one_port_is_answered(directory: Path) -> None:
    add(directory, "rack", "{addresses: [10.1.1.1], nodeName: one}")
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write("""\
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: mixed-2, labels: {kubernetes.io/service-name: mixed}}
  addressType: IPv4
  ports: [{name: metrics, port: 81}]
  endpoints: [{addresses: [10.1.1.2], nodeName: two}]
""")
    served = with_topology(directory)
    assert [each[:2] for each in reasons(explained(served, "mixed", "SRV", node="two"))] == [
        ("10.1.1.1", False),
        ("10.1.1.2", True),
    ]
    assert [each[0] for each in reasons(explained(served, "_http._tcp.mixed", node="two"))] == ["10.1.1.1"]


@pytest.mark.parametrize("name", ["front", "missing", "10-1-1-1.soft"])
def test_names_that_topology_does_not_filter_have_no_verdicts(served: Settings, name: str) -> None:
    assert explained(served, name, node="one").verdicts.endpoints == ()


def test_a_key_that_the_clients_node_lacks_has_the_reason_in_words(served: Settings) -> None:
    rack, hall = explained(served, "hard", node="far").tried
    assert rack == {"key": "rack", "value": None, "because": "node far has no label rack", "matches": 0, "guard": None}
    assert hall == {"key": "hall", "value": "south", "because": None, "matches": 0, "guard": None}
    text = explanation_text(explained(served, "hard", node="far").as_dict())
    assert "tried    rack: 0 matching, as node far has no label rack\n" in text


def test_a_node_without_the_hostname_label_has_its_name_as_its_value(directory: Path) -> None:
    add(directory, "kubernetes.io/hostname", "{addresses: [10.1.1.1], nodeName: one}")
    explanation = explained(with_topology(directory), "mixed", node="two")
    assert explanation.tried[0]["value"] == "two"
    assert reasons(explanation) == [("10.1.1.1", False, "kubernetes.io/hostname = one")]


def test_while_nodes_cannot_be_read_no_endpoint_is_said_to_name_a_wrong_one() -> None:
    options = "kubernetes {\nendpoint http://127.0.0.1:9\n}\ntopology"
    (cluster,) = assembly().build(settings(f"cluster.local {{\n{options}\n}}\n")).clusters
    cluster.state.do_without("Node")
    fault = do_at_once(verdicts._unknown_steps(cluster.state, "one"))
    assert fault == "node one is unknown: Nodes cannot be read"


def test_the_endpoints_are_those_of_the_answer_for_each_client(directory: Path) -> None:
    add(directory, "rack,hall,*", *(f"{{addresses: [10.1.1.{at}], nodeName: {node}}}" for at, node in NODES))
    (cluster,) = manifest_clusters(with_topology(directory))
    for node in ("one", "two", "far"):
        for service in ("mixed", "soft", "hard", "plain"):
            found = of(cluster, service, node)
            answered = sorted(each["address"] for each in found.verdicts.endpoints if each["answered"])
            assert answered == sorted(line.split()[-1] for line in found.answer)


NODES = [(1, "one"), (2, "two"), (3, "far"), (4, "none")]


def of(cluster: Cluster, service: str, node: str) -> Explanation:
    question = parse_question({"name": f"{service}.shop.svc.cluster.local", "node": node})
    return do_at_once(explanation_steps([cluster], question))


def test_a_selection_is_identified_in_steps(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(directory, "*", *(f"{{addresses: [10.2.0.{at}], nodeName: one}}" for at in range(1, 6)))
    (cluster,) = manifest_clusters(with_topology(directory))
    question = parse_question({"name": "mixed.shop.svc.cluster.local", "node": "one"})
    whole = len(list(explanation_steps([cluster], question)))
    monkeypatch.setattr(verdicts, "STEP", 2)
    assert len(list(explanation_steps([cluster], question))) == whole + 2  # two, two and one
