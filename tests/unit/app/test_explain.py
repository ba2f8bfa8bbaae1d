"""The explanation of a client's answer: the node, the method, the keys with their matches, and the reason."""

from pathlib import Path
from random import Random

import pytest

from tests.support.corefile_settings import settings
from topodns.app.explain import Explanation, Unexplained, explain_offline, explain_request, explanation_text
from topodns.app.generation import Assembly, Machine
from topodns.kube.informer.informer import ApiSource
from topodns.kube.informer.sync_state import Progress, Trouble
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.watched_kinds import resources

MANIFEST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- apiVersion: v1
  kind: Node
  metadata: {name: one, labels: {rack: "1", hall: north}}
  status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
- apiVersion: v1
  kind: Node
  metadata: {name: two, labels: {rack: "2", hall: north}}
  status: {addresses: [{type: InternalIP, address: 10.0.0.2}]}
- apiVersion: v1
  kind: Node
  metadata: {name: far, labels: {hall: south}}
  spec: {podCIDRs: [10.3.0.0/16]}
  status: {addresses: [{type: InternalIP, address: 10.0.0.3}]}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: soft, annotations: {topodns.io/topology-keys: "rack,hall,*"}}
  spec: {clusterIP: None}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: hard, annotations: {topodns.io/topology-keys: "rack,hall"}}
  spec: {clusterIP: None}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: wrong, annotations: {topodns.io/topology-keys: "not a key"}}
  spec: {clusterIP: None}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: plain}
  spec: {clusterIP: None}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: front}
  spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
"""
SLICE = """\
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: %(name)s-1, labels: {kubernetes.io/service-name: %(name)s}}
  addressType: IPv4
  endpoints: [{addresses: [10.1.1.1], nodeName: one}, {addresses: [10.1.1.2], nodeName: one}]
"""
PROVEN = """\
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: proven, labels: {kubernetes.io/service-name: proven}}
  addressType: IPv4
  endpoints: [%s]
"""
COREFILE = "cluster.local {\n kubernetes {\n manifests cluster.yaml\n }\n %s\n}\n"
TOPOLOGY = "topology {\n locate nodes\n %s\n}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    slices = "".join(SLICE % {"name": name} for name in ("soft", "hard", "wrong", "plain"))
    (tmp_path / "cluster.yaml").write_text(MANIFEST + slices)
    return tmp_path


@pytest.fixture
def served(directory: Path) -> Settings:
    return settings(COREFILE % (TOPOLOGY % ""), str(directory))


def explained(served: Settings, service: str, qtype: str = "A", **client: str) -> Explanation:
    return explain_offline(served, {"name": f"{service}.shop.svc.cluster.local", "type": qtype, **client})


def addresses(explanation: Explanation) -> list[str]:
    return sorted(line.split()[-1] for line in explanation.answer)


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
    ("any", "soft", {"node": "far"}, (("rack", "", 0), ("hall", "south", 0), ("*", "", 2)), "*", BOTH),
    ("nobody", "hard", {"node": "far"}, (("rack", "", 0), ("hall", "south", 0)), "", []),
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
    tried: tuple[tuple[str, str, int], ...],
    winner: str,
    answer: list[str],
) -> None:
    explanation = explained(served, service, **client)
    assert (explanation.tried, explanation.winner, addresses(explanation)) == (tried, winner, answer)
    assert explanation.rcode == "NOERROR"


def test_a_client_in_an_unproven_pod_cidr_is_mentioned(served: Settings) -> None:
    explanation = explained(served, "hard", client="10.3.1.1")
    assert explanation.node == ""
    assert explanation.hint == (
        "the address is in the podCIDR of far, but nothing has proven that the network plugin goes by podCIDRs; "
        "`locate` can have podcidr-unverified or pods"
    )
    assert f"hint     {explanation.hint}" in explanation_text(explanation.as_dict())
    assert explained(served, "hard", client="192.0.2.1").hint == ""


def test_proven_pod_cidrs_that_locate_does_not_use_are_mentioned(directory: Path, served: Settings) -> None:
    hosts = (f"10.3.{i // 250 + 2}.{i % 250 + 1}" for i in range(2000))
    endpoints = ", ".join(
        f"{{addresses: [{host}], nodeName: far, targetRef: {{kind: Pod, name: p}}}}" for host in hosts
    )
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(PROVEN % endpoints)
    hint = explained(served, "hard", client="10.3.1.1").hint
    assert hint == "the address is in the podCIDR of far; `locate` can have podcidr"


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
    good, wrong = explained(served, "hard", node="one"), explained(served, "wrong", node="one")
    assert (good.source, good.keys, good.problem) == ("annotation", ("rack", "hall"), "")
    assert (wrong.source, wrong.keys) == ("annotation", ())
    assert wrong.problem == "expected a label key or *, found 'not a key'"


def test_options_of_the_corefile_count(directory: Path) -> None:
    strict = settings(COREFILE % (TOPOLOGY % "on_invalid deny"), str(directory))
    assert addresses(explained(strict, "wrong", node="one")) == []
    generous = settings(COREFILE % (TOPOLOGY % "unknown_client all"), str(directory))
    assert addresses(explained(generous, "hard", client="192.0.2.1")) == BOTH
    refusing = settings(COREFILE % (TOPOLOGY % "unknown_client refuse"), str(directory))
    assert explained(refusing, "hard", client="192.0.2.1").rcode == "REFUSED"


def test_of_a_name_that_does_not_exist_the_object_that_is_missing_is_named(served: Settings) -> None:
    missing = explained(served, "missing", client="10.0.0.1")
    assert (missing.rcode, missing.answer, missing.source) == ("NXDOMAIN", (), "")
    assert missing.reason == "no Service 'missing' in namespace 'shop'"
    assert explanation_text(missing.as_dict()).splitlines()[2:] == [f"because  {missing.reason}", "answer   NXDOMAIN"]


def test_without_topology_nothing_is_chosen(directory: Path) -> None:
    plain = settings(COREFILE % "", str(directory))
    explanation = explained(plain, "hard", client="10.0.0.1")
    assert (addresses(explanation), explanation.tried, explanation.keys) == (BOTH, (), ())
    assert explanation.hint == "the server block has no `topology`: every client gets the same answer"
    assert explained(plain, "hard", node="wherever").hint == explanation.hint


def test_where_nodes_cannot_be_read_it_says_so_and_why() -> None:
    denied = settings(COREFILE.replace("manifests cluster.yaml", "endpoint http://127.0.0.1:9") % (TOPOLOGY % ""))
    (cluster,) = Assembly(Machine("", "", frozenset(), Random(0)), lambda line: None).build(denied).clusters
    assert isinstance(cluster.source, ApiSource)
    (nodes,) = (each for each in resources(cluster.kubernetes, cluster.topology) if each.kind == "Node")
    cluster.source.progress = (Progress(nodes, 0.0, trouble=Trouble("list", 403, "403: forbidden")),)
    cluster.state.do_without("Node")
    question = {"name": "hard.shop.svc.cluster.local", "node": "one"}
    with pytest.raises(Unexplained) as told:
        explain_request([cluster], question)
    why = "Node (cannot list nodes: 403: forbidden)"
    assert str(told.value) == f"Nodes cannot be read, so that no node is known: {why}"
    explanation = explain_request([cluster], {**question, "node": "", "client": "10.0.0.1"})
    grant = 'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]'
    assert explanation.hint == f"topology lacks {why}; the ClusterRole needs {grant}"


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
    assert explained(viewed, "hard", client="10.0.0.1").keys == ("rack", "hall")
    assert explained(viewed, "hard", client="10.9.0.1").hint.startswith("the server block has no `topology`")


def test_without_an_address_the_view_of_a_client_is_unknown(directory: Path) -> None:
    with pytest.raises(Unexplained, match="the view 'near' goes by the client's address: name a client, not a node"):
        explained(settings(VIEWED % "", str(directory)), "hard", node="one")


def test_a_question_that_no_view_takes_is_said_to_be(directory: Path) -> None:
    viewed = settings(VIEWED % "view never {\n expr false\n }", str(directory))
    with pytest.raises(Unexplained, match="no view with a kubernetes directive takes this client's question"):
        explained(viewed, "hard", client="10.9.0.1")


FAULTS = [
    ("neither client nor node", {}, "found both or none of client and node, expected one of them"),
    ("both", {"client": "10.0.0.1", "node": "one"}, "found both or none of client and node, expected one of them"),
    ("no such node", {"node": "three"}, "no Node is named 'three'"),
    ("no address", {"client": "one"}, "'one' is no IP address"),
    ("no name", {"client": "10.0.0.1", "name": ""}, "no name is given"),
    ("a bad name", {"client": "10.0.0.1", "name": "a..b"}, ""),
    ("a name elsewhere", {"client": "10.0.0.1", "name": "example.org"}, "example.org. is below no origin"),
    ("an unknown type", {"client": "10.0.0.1", "type": "FOO"}, "'FOO' is no type; expected one such as A"),
]


@pytest.mark.parametrize(("arguments", "why"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_an_explain_without_a_result_says_what_was_found(served: Settings, arguments: dict[str, str], why: str) -> None:
    with pytest.raises(Unexplained) as told:
        explain_offline(served, {"name": "hard.shop.svc.cluster.local", **arguments})
    assert str(told.value).startswith(why)


def test_a_name_that_falls_through_is_explained_by_the_object_that_is_missing(directory: Path) -> None:
    text = "cluster.local {\n kubernetes {\n manifests cluster.yaml\n fallthrough\n }\n topology\n}\n"
    with pytest.raises(Unexplained) as told:
        explained(settings(text, str(directory)), "missing", client="10.0.0.1")
    name, why = "missing.shop.svc.cluster.local.", "no Service 'missing' in namespace 'shop'"
    assert str(told.value) == f"{name} falls through `kubernetes`: {why}"


def test_the_text_reads_from_the_client_to_the_answer(served: Settings) -> None:
    assert explanation_text(explained(served, "soft", node="two").as_dict()).splitlines()[:6] == [
        "client   any on node two (as given)",
        "name     soft.shop.svc.cluster.local. A",
        "policy   annotation: rack, hall, *",
        "tried    rack = 2: 0 matching",
        "tried    hall = north: 2 matching  <- wins",
        "because  the first key with a match wins, with all its matches",
    ]


def test_the_text_of_a_denial_has_no_records(served: Settings) -> None:
    text = explanation_text(explained(served, "hard", client="192.0.2.1").as_dict())
    assert text.startswith("client   192.0.2.1 on an unknown node\n")
    assert text.endswith("\nanswer   NOERROR")
