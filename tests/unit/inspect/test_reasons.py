"""The sentences of an explanation: why a name does not exist, why a Node is unknown, and the hints."""

from pathlib import Path

import pytest

from tests.support.corefile_settings import settings
from tests.support.explained_cluster import explain_reply, explained, explained_question, with_topology
from tests.support.generation_builder import assembly
from tests.support.model_builders import namespace, service
from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import Replaced, Upserted
from topodns.inspect.errors import Refused
from topodns.inspect.explain import parse_question
from topodns.inspect.reasons import SENTENCES
from topodns.inspect.text import explanation_text
from topodns.kube.informer.informer import ApiSource
from topodns.kube.informer.progress import Progress, Trouble
from topodns.kube.informer.resources import Resource
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.watched_kinds import resources
from topodns.topology.select import Reason

_KUBERNETES = "kubernetes {\n manifests cluster.yaml\n }"
CLUSTER_COREFILE = f"cluster.local {{\n {_KUBERNETES}\n topology {{\n locate nodelocator\n }}\n}}\n"
TWIN = """\
- apiVersion: v1
  kind: Node
  metadata: {name: twin}
  spec: {podCIDRs: [10.3.0.0/16]}
  status: {addresses: [{type: InternalIP, address: 10.0.0.3}]}
"""
PROVEN = """\
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: proven-%d, labels: {kubernetes.io/service-name: proven}}
  addressType: IPv4
  endpoints: [%s]
"""


def test_a_client_in_an_unproven_pod_cidr_is_mentioned(served: Settings) -> None:
    explanation = explained(served, "hard", client="10.3.1.1")
    assert explanation.node == ""
    assert explanation.hint == (
        "the address is in the podCIDR of far, but nothing proves that Pods have addresses of podCIDRs: "
        "add pods to `locate`, or podcidr-unverified if you know that they do"
    )
    assert f"hint     {explanation.hint}" in explanation_text(explanation.as_dict())
    assert explained(served, "hard", client="192.0.2.1").hint == ""


def test_proven_pod_cidrs_that_locate_does_not_use_are_mentioned(directory: Path, served: Settings) -> None:
    hosts = [f"10.3.{i // 250 + 2}.{i % 250 + 1}" for i in range(2000)]
    endpoints = [f"{{addresses: [{host}], nodeName: far, targetRef: {{kind: Pod, name: p}}}}" for host in hosts]
    with open(directory / "cluster.yaml", "a") as manifest:
        for at in (0, 1000):
            manifest.write(PROVEN % (at, ", ".join(endpoints[at : at + 1000])))
    hint = explained(served, "hard", client="10.3.1.1").hint
    assert hint == "the address is in the podCIDR of far: add podcidr to `locate`"


@pytest.mark.parametrize(
    ("client", "hint"),
    [
        ("10.0.0.3", "several Nodes have the address 10.0.0.3, so it is of none: far, twin"),
        ("10.3.1.1", "the address is in a podCIDR that several Nodes have, so it is of none: far, twin"),
    ],
)
def test_nodes_that_share_an_address_or_a_pod_cidr_are_named(directory: Path, client: str, hint: str) -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(TWIN)
    assert explained(with_topology(directory), "hard", client=client).hint == hint


def test_of_a_name_that_does_not_exist_the_object_that_is_missing_is_named(served: Settings) -> None:
    missing = explained(served, "missing", client="10.0.0.1")
    assert (missing.rcode, missing.answer, missing.policy.source) == ("NXDOMAIN", (), "")
    assert missing.reason == "no Service 'missing' in namespace 'shop'"
    assert explanation_text(missing.as_dict()).splitlines()[2:] == [f"because  {missing.reason}", "answer   NXDOMAIN"]


def test_where_nodes_cannot_be_read_it_says_so_and_why() -> None:
    options = "kubernetes {\nendpoint http://127.0.0.1:9\n}\ntopology {\nlocate nodes\n}"
    (cluster,) = assembly().build(settings(f"cluster.local {{\n{options}\n}}\n")).clusters
    assert isinstance(cluster.source, ApiSource)
    (nodes,) = (each for each in resources(cluster.kubernetes, cluster.topology) if each.kind == "Node")
    cluster.source.progress = (Progress(nodes, 0.0, trouble=Trouble("list", 403, "403: forbidden")),)
    cluster.state.do_without("Node")
    question = {"name": "hard.shop.svc.cluster.local", "node": "one"}
    with pytest.raises(Refused) as got:
        explain_reply([cluster], parse_question(question))
    why = "Node (cannot list nodes: 403: forbidden)"
    assert str(got.value) == f"Nodes cannot be read, so that no node is known: {why}"
    explanation = explain_reply([cluster], parse_question({**question, "node": "", "client": "10.0.0.1"}))
    grant = 'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]'
    assert explanation.hint == f"topology lacks {why}; the ClusterRole needs {grant}"


def test_an_answer_of_a_snapshot_is_explained_with_its_time() -> None:
    (cluster,) = (
        assembly().build(settings("cluster.local {\nkubernetes {\nendpoint http://127.0.0.1:9\n}\n}\n")).clusters
    )
    cluster.state.apply(Upserted(namespace("shop")), 0)
    cluster.state.apply(Upserted(service("web", "shop", ["10.96.0.7"])), 0)
    cluster.state.restore(Restored(cluster.state.needed, 1_764_244_800))
    assert isinstance(cluster.source, ApiSource)
    services = Resource("Service", "services", ("/api/v1/services",))
    cluster.source.progress = (Progress(services, 0.0, trouble=Trouble("list", 0, "connection refused")),)
    snapshot = "snapshot of 2025-11-27T12:00:00Z"
    since = f"answers are from the {snapshot}: waiting for Service (cannot list services: connection refused)"

    def reason(name: str) -> str:
        question = {"name": f"{name}.shop.svc.cluster.local", "node": "", "client": "10.0.0.1"}
        return explain_reply([cluster], parse_question(question)).reason

    assert reason("web").endswith(since)
    assert reason("new") == f"{snapshot}: the name is not in it; {since}"


LOCATORS = """\
- apiVersion: topodns.io/v1alpha1
  kind: NodeLocator
  metadata: {name: one}
  spec: {podIPs: [10.9.0.1, 10.9.0.2]}
- apiVersion: topodns.io/v1alpha1
  kind: NodeLocator
  metadata: {name: two}
  spec: {podIPs: [10.9.0.2]}
"""


def test_a_client_that_locators_disagree_about_is_told_which(directory: Path) -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(LOCATORS)
    located = settings(CLUSTER_COREFILE, str(directory))
    assert explained(located, "hard", client="10.9.0.1").method == "nodelocator"
    assert explained(located, "hard", client="10.9.0.2").hint == (
        "NodeLocator one says that 10.9.0.2 is on node one, but NodeLocator two has its address on node two"
    )
    assert explained(located, "hard", client="10.9.0.3").hint == ""


def test_where_locators_are_not_installed_it_says_so_about_clients_that_they_would_locate() -> None:
    options = "kubernetes {\nendpoint http://127.0.0.1:9\n}\ntopology {\nlocate nodelocator\n}"
    (cluster,) = assembly().build(settings(f"cluster.local {{\n{options}\n}}\n")).clusters
    assert isinstance(cluster.source, ApiSource)
    (locators,) = (each for each in resources(cluster.kubernetes, cluster.topology) if each.kind == "NodeLocator")
    cluster.source.progress = (Progress(locators, 0.0, trouble=Trouble("list", 404, "404: not installed")),)
    for kind in cluster.state.needed:
        cluster.state.apply(Replaced(kind, ()), 0)
    question = {"name": "hard.shop.svc.cluster.local", "client": "10.0.0.1"}
    assert explain_reply([cluster], parse_question(question)).hint == (
        "topology reads no NodeLocator (cannot list nodelocators.topodns.io: 404: not installed)"
    )
    with pytest.raises(Refused, match=r"no locator has labels of a Node 'one'"):
        explain_reply([cluster], parse_question({**question, "client": "", "node": "one"}))


def test_every_reason_of_a_selection_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Reason)


_CHOSEN_NOT = """\
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: keyed, annotations: {topodns.io/topology-keys: "rack"}}
  spec: {clusterIP: 10.96.0.2, clusterIPs: [10.96.0.2, "fd00::2"], ports: [{name: http, port: 80}]}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: away, annotations: {topodns.io/topology-keys: "rack"}}
  spec: {type: ExternalName, externalName: web.example.org}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: unassigned}
  spec: {ports: [{name: http, port: 80}]}
"""


@pytest.mark.parametrize(
    ("service", "qtype", "reason"),
    [
        ("keyed", "A", "keys have no effect: the Service has a ClusterIP"),
        ("away", "A", "keys have no effect: the Service is of type ExternalName"),
        ("10-1-1-1.hard", "A", "keys have no effect: the name is that of one endpoint"),
        ("front", "A", "the Service has a ClusterIP: kube-proxy, not DNS, chooses the endpoint"),
        ("unassigned", "A", "the name exists, but the Service has no spec.clusterIP"),
        ("10-1-1-1.plain", "A", ""),
        ("keyed", "MX", "the name exists; it has A, AAAA and SRV only"),
        ("front", "AAAA", "the name exists; it has A and SRV only"),
        ("soft", "AAAA", "the name exists; it has A only"),
        ("soft", "SRV", "the name exists; it has A only"),
        ("_tcp.front", "A", "the name exists; it has no records of any type"),
        ("missing", "SOA", "no Service 'missing' in namespace 'shop'"),
    ],
)
def test_an_answer_that_no_key_chose_and_an_empty_one_have_their_reason(
    directory: Path, service: str, qtype: str, reason: str
) -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(_CHOSEN_NOT)
    explanation = explained(with_topology(directory), service, qtype, node="far")
    assert (explanation.reason, explanation.rcode) == (reason, "NOERROR")
    assert bool(explanation.answer) == (qtype == "A" and "exists" not in reason)


_DUAL = """\
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: dual}
  spec: {clusterIP: None, ipFamilies: [IPv4, IPv6], selector: {app: dual}}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: dual-1, labels: {kubernetes.io/service-name: dual}}
  addressType: IPv4
  endpoints: [{addresses: [10.1.7.1], nodeName: one}]
"""


@pytest.mark.parametrize(("name", "with_slices"), [("dual", True), ("_all.dual", True), ("10-1-7-1.dual", False)])
def test_an_empty_answer_of_a_family_without_slices_says_so(directory: Path, name: str, with_slices: bool) -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write(_DUAL)
    exists = "the name exists; it has A only"
    slices = (
        "; the Service has no EndpointSlice of addressType IPv6, though spec.ipFamilies has it; one would have the "
        "label kubernetes.io/service-name=dual"
    )
    answer = explained(with_topology(directory), name, "AAAA", node="one")
    assert (answer.reason, answer.rcode) == (exists + slices * with_slices, "NOERROR")
    assert explained(with_topology(directory), name, "TXT", node="one").reason == exists


_UNREADABLE = """\
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: %s, name: dual-2, labels: {kubernetes.io/service-name: dual}}
  addressType: IPv6
  ports: [{protocol: tpc}]
"""


@pytest.mark.parametrize(("namespace", "named"), [("shop", True), ("shop-2", False)])
def test_where_a_service_lacks_slices_one_of_its_namespace_that_cannot_be_read_is_named(
    directory: Path, namespace: str, named: bool
) -> None:
    for manifest, qtype in ((_DUAL, "AAAA"), (_DUAL.partition("- apiVersion: discovery")[0], "A")):
        before = (directory / "cluster.yaml").read_text()
        (directory / "cluster.yaml").write_text(before + manifest + _UNREADABLE % namespace)
        reason = explained(with_topology(directory), "dual", qtype, node="one").reason
        assert "kubernetes.io/service-name=dual" in reason
        words = "service-name=dual; one of the namespace cannot be read: "
        assert (words in reason and "skipped EndpointSlice shop/dual-2: " in reason) is named
        (directory / "cluster.yaml").write_text(before)


def test_of_a_service_that_cannot_be_read_the_reason_is_named(directory: Path) -> None:
    with (directory / "cluster.yaml").open("a") as manifest:
        manifest.write(
            "- {apiVersion: v1, kind: Service, metadata: {namespace: shop, name: odd}, spec: {clusterIP: no}}\n"
        )
    reason = explained(with_topology(directory), "odd", node="one").reason
    assert reason.startswith("no Service 'odd' in namespace 'shop'; it cannot be read: ")
    assert "skipped Service shop/odd: " in reason
    assert "cannot be read" not in explained(with_topology(directory), "od", node="one").reason


@pytest.mark.parametrize(
    ("name", "qtype", "reason"),
    [
        ("cluster.local", "MX", "the name exists; it has SOA and NS only"),
        ("cluster.local", "NS", "the records are made of the server's own addresses, which `explain` does not know"),
        ("ns.dns.cluster.local", "TXT", "the name exists; it has A and AAAA only"),
        ("dns-version.cluster.local", "A", "the name exists; it has TXT only"),
        ("shop.svc.cluster.local", "A", "the name exists; it has no records of any type"),
    ],
)
def test_an_empty_answer_of_another_name_has_its_reason(served: Settings, name: str, qtype: str, reason: str) -> None:
    assert explained_question(served, {"name": name, "type": qtype, "node": "one"}).reason == reason


@pytest.mark.parametrize(
    ("name", "offer"),
    [
        ("soft.shop", "did you mean soft.shop.svc.cluster.local.?"),
        ("soft", "did you mean soft.shop.svc.cluster.local.?"),
        ("soft.shop.svc", "did you mean soft.shop.svc.cluster.local.?"),
        ("soft.shop.svc.example.internal", "did you mean soft.shop.svc.cluster.local.?"),
        ("10-1-1-1.soft.shop", "did you mean 10-1-1-1.soft.shop.svc.cluster.local.?"),
        ("none.shop", "search domains are not added"),
        ("example.org", "search domains are not added"),
    ],
)
def test_a_short_name_is_refused_with_the_whole_name_if_that_exists(served: Settings, name: str, offer: str) -> None:
    with pytest.raises(Refused) as got:
        explained_question(served, {"name": name, "node": "one"})
    assert str(got.value) == (f"{name}. is in no zone of a kubernetes directive (there are: cluster.local.); {offer}")


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("fra", "no Node is named 'fra', did you mean 'far'?"),
        ("elsewhere", "no Node is named 'elsewhere'; there are 'far', 'one', 'two', 'worker-1'"),
        ("worker-11", "no Node is named 'worker-11', did you mean 'worker-1'?"),
        ("x" * 1000, f"no Node is named {'x' * 1000!r}; there are 'far', 'one', 'two', 'worker-1'"),
    ],
    ids=["fra", "elsewhere", "worker-11", "long"],
)
def test_an_unknown_node_is_refused_with_the_one_that_may_be_meant(directory: Path, node: str, text: str) -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        manifest.write("- {apiVersion: v1, kind: Node, metadata: {name: worker-1}}\n")
    with pytest.raises(Refused) as got:
        explained(with_topology(directory), "soft", node=node)
    assert str(got.value) == text


def test_an_unknown_node_is_refused_with_all_that_are_equally_similar(directory: Path) -> None:
    with open(directory / "cluster.yaml", "a") as manifest:
        for at in range(1, 8):
            manifest.write(f"- {{apiVersion: v1, kind: Node, metadata: {{name: node-b{at}}}}}\n")
    with pytest.raises(Refused) as got:
        explained(with_topology(directory), "soft", node="node-bl")
    meant = "'node-b1', 'node-b2', 'node-b3', 'node-b4', 'node-b5' and 2 more"
    assert str(got.value) == f"no Node is named 'node-bl', did you mean one of {meant}?"
