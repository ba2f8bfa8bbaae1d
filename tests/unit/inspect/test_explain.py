"""The decisions of an explanation: the cluster, the node and its method, and the keys with their matches."""

import json
from pathlib import Path

import pytest

from tests.support.corefile_settings import settings
from tests.support.explained_cluster import (
    explain_reply,
    explained,
    explained_question,
    with_topology,
    without_topology,
)
from tests.support.model_builders import endpoint, endpoint_slice
from topodns.cluster.model import Upserted
from topodns.dns.name import name_wire, parse_name
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.inspect.audit import audit_steps
from topodns.inspect.errors import Refused
from topodns.inspect.explain import Explanation, explanation_steps, parse_question
from topodns.inspect.sources import manifest_clusters
from topodns.plugins.block import Settings
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import do_at_once


def addresses(explanation: Explanation) -> list[str]:
    return sorted(line.split()[-1] for line in explanation.answer)


def tried_of(explanation: Explanation) -> tuple[tuple[str, str | None, int], ...]:
    return tuple((each["key"], each["value"], each["matches"]) for each in explanation.tried)


BOTH = ["10.1.1.1", "10.1.1.2"]
CASES = [
    ("the first key wins", "soft", {"client": "10.0.0.1"}, (("rack", "1", 2),), "rack", BOTH),
    (
        "the second, where the first has nobody",
        "soft",
        {"node": "two"},
        (("rack", "2", 0), ("hall", "north", 2)),
        "hall",
        BOTH,
    ),
    ("any", "soft", {"node": "far"}, (("rack", None, 0), ("hall", "south", 0), ("*", None, 2)), "*", BOTH),
    ("nobody", "hard", {"node": "far"}, (("rack", None, 0), ("hall", "south", 0)), "", []),
    ("any, for a client that nobody knows", "soft", {"client": "192.0.2.1"}, (), "", BOTH),
    ("nobody, for a client that nobody knows", "hard", {"client": "192.0.2.1"}, (), "", []),
    ("invalid keys", "wrong", {"client": "10.0.0.1"}, (), "", BOTH),
    ("no keys", "plain", {"client": "10.0.0.1"}, (), "", BOTH),
    ("no choice at all", "front", {"client": "10.0.0.1"}, (), "", ["10.96.0.1"]),
]


@pytest.mark.parametrize(
    ("service", "client", "tried", "winner", "answer"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_every_key_tried_is_there_with_the_clients_value_and_its_matches(
    served: Settings,
    service: str,
    client: dict[str, str],
    tried: tuple[tuple[str, str | None, int], ...],
    winner: str,
    answer: list[str],
) -> None:
    explanation = explained(served, service, **client)
    assert (tried_of(explanation), explanation.winner, addresses(explanation)) == (tried, winner, answer)
    assert explanation.rcode == "NOERROR"


def test_an_explanation_takes_steps_for_each_record_each_endpoint_and_each_label(served: Settings) -> None:
    question = parse_question({"name": "soft.shop.svc.cluster.local", "node": "far"})
    steps = list(explanation_steps(manifest_clusters(served), question))
    assert len(steps) == 2 * len(BOTH) + 2 * len(("rack", "hall")) + 1  # in the last one the records are freed


@pytest.mark.parametrize(
    ("client", "node", "method"),
    [
        ({"client": "10.0.0.2"}, "two", "nodes"),
        ({"node": "two"}, "two", "given"),
        ({"client": "192.0.2.1"}, "", "unknown"),
    ],
)
def test_the_node_is_there_with_the_method_that_found_it(
    served: Settings, client: dict[str, str], node: str, method: str
) -> None:
    for service in ("hard", "front"):
        explanation = explained(served, service, **client)
        assert (explanation.node, explanation.method) == (node, method)


def test_a_policy_is_named_with_its_source_and_its_problem(served: Settings) -> None:
    good, wrong = (explained(served, name, node="one").policy for name in ("hard", "wrong"))
    assert (good.source, good.keys, good.problem) == ("annotation", ("rack", "hall"), "")
    assert (wrong.source, wrong.keys) == ("annotation", ())
    assert wrong.problem == "expected a label key or *, found 'not a key' (keys are separated by commas)"


def test_what_is_wrong_with_keys_and_annotations_is_there_in_the_words_of_the_log(directory: Path) -> None:
    misspelt = {"name": "misspelt", "namespace": "shop", "annotations": {"topodns.io/topologykeys": "rack"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": misspelt, "spec": {"clusterIP": "None"}}
    with (directory / "cluster.yaml").open("a") as manifests:
        manifests.write(f"---\n{json.dumps(service)}\n")
    name = "annotation 'topodns.io/topologykeys' is unknown and has no effect"
    asked = explained(with_topology(directory), "misspelt", node="two")
    assert asked.findings == (f"{name}, did you mean 'topodns.io/topology-keys'?",)
    assert explained(with_topology(directory), "soft", node="two").findings == ()
    assert explained(without_topology(directory), "misspelt", client="10.0.0.1").findings == ()


def labelled(name: str, **labels: str) -> str:
    """The manifest of one more Node with these labels."""
    return f"---\n{json.dumps({'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name, 'labels': labels}})}\n"


def test_what_is_wrong_with_labels_of_nodes_that_are_keys_is_there_in_the_words_of_an_audit(directory: Path) -> None:
    with (directory / "cluster.yaml").open("a") as manifests:
        manifests.write(labelled("alike", hall="North", rack="3") + labelled("other", Rack="4", hall="south"))
    served = with_topology(directory)
    found = explained(served, "soft", node="two").findings
    assert found == (
        "values 'North' (alike) and 'north' (one, ...) of the label hall differ in case only, and are two domains",
        "2 of 5 Nodes lack the label rack (some have Rack), so it matches nothing there: far, other",
    )
    (cluster,) = manifest_clusters(served)
    report, _ = do_at_once(audit_steps(cluster.state, TopologySettings()))
    assert set(found) <= {each.text for each in report.findings}
    assert explained(served, "plain", node="two").findings == (), "a Service without keys"


def test_options_of_the_corefile_count(directory: Path) -> None:
    strict = with_topology(directory, "on_invalid deny")
    assert addresses(explained(strict, "wrong", node="one")) == []
    generous = with_topology(directory, "unknown_client all")
    assert addresses(explained(generous, "hard", client="192.0.2.1")) == BOTH
    refusing = with_topology(directory, "unknown_client refuse")
    assert explained(refusing, "hard", client="192.0.2.1").rcode == "REFUSED"


def test_without_topology_nothing_is_chosen(directory: Path) -> None:
    plain = without_topology(directory)
    explanation = explained(plain, "hard", client="10.0.0.1")
    assert (addresses(explanation), explanation.tried, explanation.policy.keys) == (BOTH, (), ())
    assert explanation.hint == "the server block has no `topology`: every client gets the same answer"
    assert explained(plain, "hard", node="wherever").hint == explanation.hint


VIEWED = """cluster.local {
 view near {
  expr incidr(client_ip(), '10.0.0.0/24')
 }
 kubernetes {
  manifests cluster.yaml
 }
 topology {
  locate nodes
 }
}
cluster.local {
 %s
 kubernetes {
  manifests cluster.yaml
 }
}
"""


def test_the_view_that_takes_the_clients_question_is_asked(directory: Path) -> None:
    viewed = settings(VIEWED % "", str(directory))
    assert explained(viewed, "hard", client="10.0.0.1").policy.keys == ("rack", "hall")
    assert explained(viewed, "hard", client="10.9.0.1").hint.startswith("the server block has no `topology`")


def test_without_an_address_the_view_of_a_client_is_unknown(directory: Path) -> None:
    with pytest.raises(Refused, match="the view 'near' goes by the client's address: name a client, not a node"):
        explained(settings(VIEWED % "", str(directory)), "hard", node="one")


def test_a_question_that_no_view_takes_is_said_to_be(directory: Path) -> None:
    viewed = settings(VIEWED % "view never {\n expr false\n }", str(directory))
    with pytest.raises(Refused, match="no view with a kubernetes directive takes this client's question"):
        explained(viewed, "hard", client="10.9.0.1")


FAULTS = [
    ("no such node", {"node": "three"}, "no Node is named 'three'"),
    ("a name elsewhere", {"client": "10.0.0.1", "name": "example.org"}, "example.org. is in no zone of"),
]


@pytest.mark.parametrize(("arguments", "why"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_a_question_that_no_cluster_can_explain_is_refused(
    served: Settings, arguments: dict[str, str], why: str
) -> None:
    with pytest.raises(Refused) as refused:
        explained_question(served, {"name": "hard.shop.svc.cluster.local", **arguments})
    assert str(refused.value).startswith(why)


def test_a_corefile_with_an_api_server_has_no_manifests_to_explain() -> None:
    text = "cluster.local {\n kubernetes {\n endpoint http://127.0.0.1:9\n }\n}\n"
    with pytest.raises(Refused, match="an API server for a source, not manifests: ask a running server"):
        manifest_clusters(settings(text))


def test_a_name_that_falls_through_is_explained_by_the_object_that_is_missing(directory: Path) -> None:
    text = "cluster.local {\n kubernetes {\n manifests cluster.yaml\n fallthrough\n }\n topology\n}\n"
    with pytest.raises(Refused) as got:
        explained(settings(text, str(directory)), "missing", client="10.0.0.1")
    name, why = "missing.shop.svc.cluster.local.", "no Service 'missing' in namespace 'shop'"
    assert str(got.value) == f"{name} falls through `kubernetes`: {why}"


_RANKED = """\
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: ranked, annotations: {topodns.io/topology-keys: "rack,hall,*"}}
  spec: {clusterIP: None}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: ranked-1, labels: {kubernetes.io/service-name: ranked}}
  addressType: IPv4
  ports: [{name: http, port: 80}]
  endpoints: [{addresses: [10.1.1.1], nodeName: one}, {addresses: [10.1.1.2], nodeName: two}]
"""


def test_with_srv_priority_each_key_is_explained_and_the_answer_has_the_priorities(directory: Path) -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(_RANKED)
    explanation = explained(with_topology(directory, "srv_priority"), "ranked", "SRV", node="two")
    assert tried_of(explanation) == (("rack", "2", 1), ("hall", "north", 2), ("*", None, 2))
    assert explanation.winner == ""
    assert explanation.reason == (
        "srv_priority: every ready endpoint, its priority is the index of the first key it matches"
    )
    assert [line.split(" SRV ")[1] for line in explanation.answer] == [
        "0 100 80 10-1-1-2.ranked.shop.svc.cluster.local.",
        "1 100 80 10-1-1-1.ranked.shop.svc.cluster.local.",
    ]
    assert explained(with_topology(directory, "srv_priority"), "ranked", "A", node="two").winner == "rack"


@pytest.mark.parametrize("client", [{"node": "two"}, {"client": "10.0.0.2"}])
def test_srv_records_beyond_the_longest_reply_are_not_made(directory: Path, client: dict[str, str]) -> None:
    """There may be 5,000 endpoints and 100 ports: half a million records, made in one step, take a second."""
    (cluster,) = manifest_clusters(with_topology(directory, "srv_priority"))
    many = [endpoint(f"10.9.0.{number}", "one") for number in range(100)]
    ports = [f"p{number}:{number + 1}" for number in range(100)]
    cluster.state.apply(Upserted(endpoint_slice("soft", *many, namespace="shop", ports=ports)), 0)
    question = parse_question({"name": "soft.shop.svc.cluster.local", "type": "SRV", **client})
    answer = explain_reply([cluster], question).answer
    assert 500 < len(answer) < MAX_MESSAGE // len(name_wire(parse_name("10-9-0-1.soft.shop.svc.cluster.local")))
