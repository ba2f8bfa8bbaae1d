"""What a PlainZone answers by itself; tests/unit/dnsserver/fast_kubernetes compares its replies with the handler's."""

import pytest

from tests.support.in_memory_server import NOW
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, pod, service
from tests.support.random_clusters import KINDS
from topodns.cluster.model import HOSTNAME_LABEL, ClusterObject, Replaced, Upserted, kind_of
from topodns.cluster.state import ClusterState
from topodns.dns.name import label_wire, parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes.plain_answers import NAME_ERROR, NO_DATA, PlainAnswer, PlainZone, plain_zones
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.topology import TopologySettings
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
    service("web", "a", ("10.96.0.1",)),
]
ON_N1, ON_N2, STRANGER = map(packed, ("10.0.0.1", "10.0.0.2", "192.0.2.1"))


def zone(pods: PodMode = PodMode.DISABLED) -> tuple[ClusterState, PlainZone]:
    state = ClusterState(frozenset(KINDS), key_reader(TopologySettings().keys))
    for kind in KINDS:
        state.apply(Replaced(kind, tuple(each for each in OBJECTS if kind_of(each) == kind)), NOW)
    settings = KubernetesSettings((parse_name("cluster.local."),), ttl=30, pods=pods)
    topology = TopologySettings()
    ((_, made),) = plain_zones(KubernetesZone(settings, topology, state, ClientLocator(state, topology.locate)))
    return state, made


def found(ttl: int, *addresses: str, outcome: str = "", key: str = "") -> PlainAnswer:
    return PlainAnswer(Rcode.NOERROR, tuple(map(packed, addresses)), ttl, outcome, key)


@pytest.mark.parametrize(
    ("name", "client", "answer"),
    [
        ("near", ON_N1, found(5, "10.244.1.1", outcome="matched", key=HOSTNAME_LABEL)),
        ("near", ON_N2, None),  # a miss, which has an extended error and a counter by Service
        ("near", STRANGER, None),
        ("all", STRANGER, found(30, "10.244.1.2", "10.244.1.3", outcome="unfiltered")),
        ("wrong", ON_N1, None),
        ("empty", ON_N1, None),
        ("alias", ON_N1, None),
        ("web", ON_N1, found(30, "10.96.0.1")),
        ("nothing", ON_N1, NAME_ERROR),
    ],
)
def test_a_service_is_answered_unless_its_answer_is_rare(name: str, client: bytes, answer: PlainAnswer | None) -> None:
    _, made = zone()
    assert made.service(name, "a", RRType.A, client, 512) == answer


def test_a_family_without_addresses_is_nodata() -> None:
    _, made = zone()
    assert {made.service(name, "a", RRType.AAAA, ON_N2, 512) for name in ("near", "all", "web")} == {NO_DATA}


@pytest.mark.parametrize(
    ("front", "answer"),
    [
        ("www.example.com", NAME_ERROR),
        ("x.nothing.a.svc", NAME_ERROR),
        ("_http._tcp.web.b.svc", NAME_ERROR),
        ("1.2.3.web.a.svc", NAME_ERROR),
        ("x.web.a.svc", None),
        ("_http._tcp.web.a.svc", None),
        ("a.svc", None),
        ("svc", None),
        ("a.pod", None),
        ("pod", None),
        ("ns.dns", None),
        ("dns-version", None),
    ],
)
def test_of_other_names_only_those_that_cannot_exist_are_answered(front: str, answer: PlainAnswer | None) -> None:
    _, made = zone()
    assert other(made, front) == answer


def other(made: PlainZone, front: str, qtype: int = RRType.A) -> PlainAnswer | None:
    return made.other([label_wire(label) for label in front.split(".")], qtype, ON_N1, 512)


THERE = found(30, "10.244.1.1")


@pytest.mark.parametrize(
    ("front", "disabled", "insecure", "verified"),
    [
        ("10-244-1-1.a.pod", NAME_ERROR, THERE, THERE),
        ("x.y.10-244-1-1.a.pod", NAME_ERROR, THERE, THERE),
        ("x.y.z.10-244-1-1.a.pod", NAME_ERROR, NAME_ERROR, NAME_ERROR),
        ("10-244-1-9.a.pod", NAME_ERROR, found(30, "10.244.1.9"), NAME_ERROR),
        ("10-244-1-1.b.pod", NAME_ERROR, found(30, "10.244.1.1"), NAME_ERROR),
        ("10-244-1-1.c.pod", NAME_ERROR, NAME_ERROR, NAME_ERROR),
        ("web.a.pod", NAME_ERROR, NAME_ERROR, NAME_ERROR),
        ("2001-db8--1.a.pod", NAME_ERROR, NO_DATA, NAME_ERROR),
    ],
)
def test_the_name_of_a_pod_is_answered_by_the_mode(
    front: str, disabled: PlainAnswer, insecure: PlainAnswer, verified: PlainAnswer
) -> None:
    answers = {PodMode.DISABLED: disabled, PodMode.INSECURE: insecure, PodMode.VERIFIED: verified}
    assert {mode: other(zone(mode)[1], front) for mode in PodMode} == answers


def test_a_pod_has_an_address_of_one_family() -> None:
    _, made = zone(PodMode.INSECURE)
    assert other(made, "10-244-1-1.a.pod", RRType.AAAA) == NO_DATA
    assert other(made, "2001-db8--1.a.pod", RRType.AAAA) == found(30, "2001:db8::1")


def test_the_soa_follows_the_serial() -> None:
    state, made = zone()
    before = made.negative_record(0xC00C)
    assert made.negative_record(0xC00C) is before
    state.apply(Upserted(service("new", "a", ("10.96.0.9",))), NOW + 7)
    after = made.negative_record(0xC00C)
    assert (NOW + 7).to_bytes(4, "big") in after
    assert after == before.replace(NOW.to_bytes(4, "big"), (NOW + 7).to_bytes(4, "big"))
