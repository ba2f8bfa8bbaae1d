"""Answers as values: their records, and what is missing where a name does not exist."""

import pytest

from tests.support.cluster_dig import query_of
from tests.support.in_memory_server import NOW
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, pod, service
from tests.support.query_builders import client
from tests.support.random_clusters import KINDS
from topodns.cluster.model import HOSTNAME_LABEL, ClusterObject, Replaced, kind_of
from topodns.cluster.state import ClusterState
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.answer import answer_query, question_of
from topodns.plugins.kubernetes.question import Answer
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone, Origins
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.client_locator import ClientLocator
from topodns.topology.keys import key_reader

OBJECTS: list[ClusterObject] = [
    namespace("a"),
    namespace("b"),
    pod("near-0", ["10.244.1.1"], "a", "n1"),
    node("n1", {HOSTNAME_LABEL: "n1"}, ("10.0.0.1",)),
    node("n2", {HOSTNAME_LABEL: "n2"}, ("10.0.0.2",)),
    service("near", "a", annotation=HOSTNAME_LABEL),
    endpoint_slice("near", endpoint("10.244.1.1", "n1"), namespace="a", ports=()),
    service("all", "a"),
    endpoint_slice("all", endpoint("10.244.1.2", "n1"), endpoint("10.244.1.3", "n2"), namespace="a", ports=()),
    service("wrong", "a", annotation="not a label key"),
    endpoint_slice("wrong", endpoint("10.244.1.4", "n1"), namespace="a", ports=()),
    service("empty", "a"),
    service("alias", "a", external_name="www.example"),
    service("address", "a", external_name="192.0.2.1"),
    service("web", "a", ("10.96.0.1",), ("http:80",)),
]
ON_N1, ON_N2, STRANGER = "10.0.0.1", "10.0.0.2", "192.0.2.1"


def answered(front: str, source: str = ON_N1, rtype: str = "A", pods: PodMode = PodMode.DISABLED) -> Answer:
    """The answer for this name below cluster.local."""
    state = ClusterState(frozenset(KINDS), key_reader(TopologySettings().keys))
    for kind in KINDS:
        state.apply(Replaced(kind, tuple(each for each in OBJECTS if kind_of(each) == kind)), NOW)
    settings = KubernetesSettings((parse_name("cluster.local."), parse_name("in-addr.arpa.")), ttl=30, pods=pods)
    topology = TopologySettings()
    zone = KubernetesZone(settings, topology, state, ClientLocator(state, topology.locate))
    query = query_of(f"{front} {rtype}" if front.endswith("arpa.") else f"{front}.cluster.local. {rtype}")
    origin = zone.origins.match(query.qname)
    assert origin is not None
    _, _, found = answer_query(zone, query, client(source), origin)
    return found


def outcome(found: Answer) -> str:
    """The records of an answer, or what else it is, and the reason for a choice of endpoints."""
    reason = found.selection.reason if found.selection is not None else ""
    if found.missing is not None:
        return f"no {found.missing.name}"
    if found.targets:
        return f"CNAME {'.'.join(found.targets[0])}"
    records = " ".join(".".join(map(str, rdata)) for rdata in found.rdatas)
    return f"{found.ttl if records else ''} {records or 'NODATA'} {reason}".strip()


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("near", ON_N1, "5 10.244.1.1 matched"),
        ("near", ON_N2, "NODATA no_match"),
        ("near", STRANGER, "NODATA unknown_client"),
        ("all", STRANGER, "30 10.244.1.2 10.244.1.3 unfiltered"),
        ("wrong", ON_N1, "30 10.244.1.4 invalid"),
        ("empty", ON_N1, "no READY"),
        ("alias", ON_N1, "CNAME www.example"),
        ("address", ON_N1, "no EXTERNAL_NAME"),
        ("x.alias", ON_N1, "no BELOW_EXTERNAL_NAME"),
        ("web", ON_N1, "30 10.96.0.1"),
        ("_dns._udp.web", ON_N1, "no PORT"),
        ("x.web", ON_N1, "no ENDPOINT"),
        ("nothing", ON_N1, "no SERVICE"),
        ("x.y.z.web", ON_N1, "no NAME"),
    ],
)
def test_a_service_has_the_records_that_topology_leaves_of_it(name: str, source: str, expected: str) -> None:
    assert outcome(answered(f"{name}.a.svc", source)) == expected


def test_a_family_without_addresses_is_nodata() -> None:
    assert {outcome(answered(f"{name}.a.svc", ON_N2, "AAAA")) for name in ("near", "all", "web")} == {"NODATA"}


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("www.example.com", "no NAME"),
        ("x.nothing.a.svc", "no SERVICE"),
        ("_http._tcp.web.c.svc", "no NAMESPACE"),
        ("a.svc", "NODATA"),
        ("c.svc", "no NAMESPACE"),
        ("svc", "NODATA"),
        ("a.pod", "no PODS"),
        ("pod", "NODATA"),
        ("ns.dns", "NODATA"),
        ("dns-version", "NODATA"),
        ("9.9.9.9.in-addr.arpa.", "no ADDRESS"),
        ("x.in-addr.arpa.", "no NAME"),
    ],
)
def test_of_a_name_that_does_not_exist_the_answer_says_what_is_missing(front: str, expected: str) -> None:
    assert outcome(answered(front, rtype="A")) == expected


@pytest.mark.parametrize(
    ("front", "insecure", "verified"),
    [
        ("10-244-1-1.a.pod", "30 10.244.1.1", "30 10.244.1.1"),
        ("x.y.10-244-1-1.a.pod", "30 10.244.1.1", "30 10.244.1.1"),
        ("x.y.z.10-244-1-1.a.pod", "no NAME", "no NAME"),
        ("10-244-1-9.a.pod", "30 10.244.1.9", "no POD"),
        ("10-244-1-1.b.pod", "30 10.244.1.1", "no POD"),
        ("10-244-1-1.c.pod", "no NAMESPACE", "no NAMESPACE"),
        ("web.a.pod", "no POD_ADDRESS", "no POD_ADDRESS"),
        ("2001-db8--1.a.pod", "NODATA", "no POD"),
    ],
)
def test_the_name_of_a_pod_is_answered_by_the_mode(front: str, insecure: str, verified: str) -> None:
    assert outcome(answered(front, pods=PodMode.INSECURE)) == insecure
    assert outcome(answered(front, pods=PodMode.VERIFIED)) == verified
    assert outcome(answered(front)) == ("no NAME" if insecure == "no NAME" else "no PODS")


def test_a_pod_has_an_address_of_one_family() -> None:
    assert outcome(answered("10-244-1-1.a.pod", rtype="AAAA", pods=PodMode.INSECURE)) == "NODATA"
    found = answered("2001-db8--1.a.pod", rtype="AAAA", pods=PodMode.INSECURE)
    assert (found.rcode, found.rdatas) == (Rcode.NOERROR, (packed("2001:db8::1"),))


WEB = parse_name("web.a.svc.cluster.local.")


def test_a_question_has_the_labels_in_front_of_its_origin_and_the_origin_as_spelled() -> None:
    origin = Origins([parse_name("cluster.local.")]).primary
    query = query_of("web.a.svc.cluster.local. A")._replace(spelling=name_wire(("Web", "a", "svc", "CLUSTER", "local")))
    question = question_of(query, client("10.0.0.1"), origin)
    assert (question.labels, question.qname) == (("web", "a", "svc"), WEB)
    assert question.origin_wire == b"\x07CLUSTER\x05local\0"
