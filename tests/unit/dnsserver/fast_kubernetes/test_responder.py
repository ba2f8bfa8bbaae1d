"""The fast path of plain questions to `kubernetes`: to the octet what the chain answers, and closed to all others."""

import struct
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.dns_messages import DO, RD, Opt, Reply, node_identity, query
from tests.support.fast_path_sockets import Socket
from tests.support.in_memory_server import NOW
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, service
from tests.support.random_clusters import (
    CLIENTS,
    KINDS,
    History,
    histories,
    kubernetes_settings,
    roaming_histories,
    roaming_topology,
    topology_settings,
)
from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, ClusterObject, Endpoint, Replaced, Upserted, kind_of
from topodns.cluster.namespace_budget import further, placeholder
from topodns.cluster.state import ClusterState
from topodns.dns.message import Flag
from topodns.dns.name import name_wire, parse_name
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import key_reader
from topodns.topology.select import UnknownClient

pytestmark = pytest.mark.usefixtures("pod_cidrs_of_small_clusters_can_be_verified")

AD, CD = Flag.AD, Flag.CD
ALL_KINDS = frozenset(KINDS)

NAMES = [
    *("s0.a.svc.cluster.local.", "s1.a.svc.cluster.local.", "s0.b.svc.cluster.local.", "s1.b.svc.cluster.local."),
    *("nothing.a.svc.cluster.local.", "s0.nowhere.svc.cluster.local.", "a.svc.cluster.local.", "svc.cluster.local."),
    *("h0.s0.a.svc.cluster.local.", "h0.nothing.a.svc.cluster.local.", "h0.s0.nowhere.svc.cluster.local."),
    *("_http._tcp.s0.a.svc.cluster.local.", "_http._tcp.nothing.a.svc.cluster.local.", "_tcp.s0.a.svc.cluster.local."),
    *("_http._tcp.s1.a.svc.cluster.local.", "http.tcp.s0.a.svc.cluster.local.", "_._udp.s0.b.svc.cluster.local."),
    *("z1.pin._zone.s0.a.svc.cluster.local.", "a.b.c.d.e.f.s0.a.svc.cluster.local."),
    *("10-244-0-1.a.pod.cluster.local.", "nothing.a.pod.cluster.local.", "pod.cluster.local.", "a.pod.cluster.local."),
    *("10-244-0-2.b.pod.cluster.local.", "2001-db8--1.a.pod.cluster.local.", "--ffff-10.244.0.1.a.pod.cluster.local."),
    *("x.y.10-244-0-1.a.pod.cluster.local.", "x.y.z.10-244-0-1.a.pod.cluster.local.", "x.nowhere.pod.cluster.local."),
    *("dns.cluster.local.", "ns.dns.cluster.local.", "x.dns.cluster.local.", "dns-version.cluster.local."),
    *("x.dns-version.cluster.local.", "www.example.com.cluster.local.", "com.cluster.local.", "cluster.local."),
    *("local.", "example.", ".", "1.1.244.10.in-addr.arpa.", "svc.", "s0.a.svc.", "s0.a.svc.local."),
    f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 45}.cluster.local.",
]
OPTS = [None, Opt(), Opt(size=0), Opt(size=600), Opt(size=4096), Opt(flags=DO), Opt(size=700, flags=DO)]
CLAIMS = [
    *(Opt(options=[node_identity(name)]) for name in ("n0", "n1", "n2", "nowhere", "", "N1", "a" * 254)),
    Opt(size=700, flags=DO, options=[node_identity("n1")]),
]
OTHER_OPTS = [
    Opt(version=1),
    Opt(version=1, options=[node_identity("n1")]),
    Opt(options=[(10, b"8 octets")]),
    Opt(options=[node_identity("n1"), node_identity("n1")]),
    Opt(options=[node_identity("n1"), node_identity("n2")]),
    Opt(options=[node_identity("n1"), (10, b"8 octets")]),
    Opt(options=[node_identity("n1"), (11, b"")]),
    Opt(options=[(8, b"\0\1\x20\0\x0a\xf4\0\1"), node_identity("n1")]),
]
QUESTIONS = [query(f"{name} {qtype}", ident=7) for name in NAMES for qtype in ("A", "AAAA", "SRV")]
MORE = [
    *(
        query(f"s0.a.svc.cluster.local. {qtype}", opt, ident=7)
        for qtype in ("A", "AAAA", "SRV")
        for opt in OPTS + CLAIMS + OTHER_OPTS
    ),
    *(
        query("s0.a.svc.cluster.local. A", opt, flags, 7)
        for opt in OPTS[:2]
        for flags in (0, RD | AD, CD, RD | AD | CD)
    ),
    *(query(f"s0.a.svc.cluster.local. {qtype}", ident=7) for qtype in ("TXT", "ANY", "SOA", "CH A")),
    *(query("nothing.a.svc.cluster.local. A", opt, ident=7) for opt in OPTS + CLAIMS),
    *(query("10-244-0-1.a.pod.cluster.local. A", opt, ident=7) for opt in CLAIMS),
    *(query("s0.a.svc.cluster.local. A", opt, ident=7)[:-1] for opt in CLAIMS[:1]),
    *(query("s0.a.svc.cluster.local. A", opt, ident=7) + b"\0" for opt in CLAIMS[:1]),
    query("S0.a.svc.cluster.local. A", ident=7),
    query("nothing.a.svc.Cluster.local. A", ident=7),
    query("s0.a.svc.cluster.local. A", ident=7) + b"\0",
    query("s0.a.svc.cluster.local. A", ident=7)[:-1],
]
PLAIN = kubernetes_settings.map(
    lambda drawn: replace(
        drawn, namespaces=frozenset(), namespace_labels=None, noendpoints=False, ignore_empty_service=False, ttl=30
    )
)


def state_of(
    objects: list[ClusterObject], kubernetes: KubernetesSettings, topology: TopologySettings | None
) -> ClusterState:
    state = ClusterState(
        ALL_KINDS,
        key_reader(topology.keys) if topology is not None else None,
        topology is not None and topology.terminating_fallback,
        kubernetes.endpoint_pod_names,
        all_pods=True,
    )
    for kind in KINDS:
        state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), NOW)
    return state


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    history=st.one_of(roaming_histories, roaming_histories, histories),
    kubernetes=st.one_of(PLAIN, PLAIN, kubernetes_settings),
    topology=st.one_of(roaming_topology, roaming_topology, topology_settings, st.none()),
    udp=st.booleans(),
    balanced=st.booleans(),
    trust=st.sets(st.sampled_from(CLIENTS)),
    seed=st.integers(0, 1 << 32),
)
def test_both_ways_give_the_same_octets_counts_and_dependencies(
    history: History,
    kubernetes: KubernetesSettings,
    topology: TopologySettings | None,
    udp: bool,
    balanced: bool,
    trust: set[bytes],
    seed: int,
) -> None:
    (objects, changes), order = history, Random(seed)
    state = state_of(objects, kubernetes, topology)
    leave_out_some(state, objects, order)
    fast, chain = (Socket(way, state, kubernetes, topology, udp, balanced, trust) for way in (True, False))
    for change in (None, *changes):
        facts = state.apply(change, NOW) if change is not None else frozenset()
        for socket in (fast, chain):
            socket.handler.table.forget(facts)
        some = [*QUESTIONS[:2], *order.sample(QUESTIONS, 10), *order.sample(MORE, 8)]
        asked = [(data, client) for data in some for client in order.sample(CLIENTS, 4)]
        for data, client in asked + asked[::2] + asked[::4]:  # the packet cache keeps a reply from the second time on
            if order.random() < 0.7:
                for socket in (fast, chain):
                    socket.forget_what_was_asked()
            assert fast.ask(data, client) == chain.ask(data, client), (data, client)
        assert fast.kept == chain.kept
    assert fast.counted == chain.counted


def leave_out_some(state: ClusterState, objects: list[ClusterObject], chance: Random) -> None:
    """Of every other cluster some objects, and perhaps some without a placeholder."""
    if chance.random() < 0.5:
        return
    placeholders = [placeholder(each, 5000) for each in objects if chance.random() < 0.2]
    cut = [further("a")] if chance.random() < 0.2 else []
    for other in (*placeholders, *cut):
        if other is not None:
            state.apply(Upserted(other), NOW)


def socket_pair(
    objects: list[ClusterObject], udp: bool = True, trust: frozenset[bytes] = frozenset()
) -> tuple[Socket, Socket]:
    origins = (parse_name("cluster.local."), parse_name("in-addr.arpa."))
    kubernetes = KubernetesSettings(origins, pods=PodMode.INSECURE)
    state = state_of(objects, kubernetes, TopologySettings())
    fast, chain = (Socket(way, state, kubernetes, TopologySettings(), udp, trust=trust) for way in (True, False))
    return fast, chain


CLIENT = packed("10.0.0.1")


def web(endpoints: int, keys: str = HOSTNAME_LABEL, family: int = 4) -> list[ClusterObject]:
    """A headless Service with so many endpoints on the Node of CLIENT, and a ClusterIP beside it."""
    form = "10.244.{}.{}" if family == 4 else "2001:db8::{:x}:{:x}"
    some = [endpoint(form.format(number // 250, number % 250 + 1), "n1") for number in range(endpoints)]
    return [
        namespace("a"),
        node("n1", {HOSTNAME_LABEL: "n1"}, ("10.0.0.1",)),
        service("web", "a", annotation=keys),
        endpoint_slice("web", *some, namespace="a", ports=("http:80",)),
        service("one", "a", ("10.96.0.1",)),
        service("both", "a", ("10.96.0.2", "2001:db8::2")),
    ]


@pytest.mark.parametrize("endpoints", [1, 2, 29, 30, 63, 64, 65, 75, 76, 300])
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("udp", [True, False])
def test_a_cut_answer_and_its_order_are_those_of_the_chain(endpoints: int, family: int, udp: bool) -> None:
    fast, chain = socket_pair(web(endpoints, family=family), udp)
    qtypes, sizes = ("A", "AAAA"), (None, Opt(size=512), Opt(size=700), Opt(size=1232), Opt(size=4096, flags=DO))
    for data in (query(f"web.a.svc.cluster.local. {qtype}", opt, ident=7) for qtype in qtypes for opt in sizes):
        assert fast.ask(data, CLIENT) == chain.ask(data, CLIENT)
    assert fast.short == len(qtypes) * len(sizes)
    assert fast.counted == chain.counted


@pytest.mark.parametrize(
    ("question", "rcode", "data"),
    [
        ("web.a.svc.cluster.local. A", "NOERROR", ["10.244.0.1"]),
        ("web.a.svc.cluster.local. AAAA", "NOERROR", []),
        ("one.a.svc.cluster.local. A", "NOERROR", ["10.96.0.1"]),
        ("one.a.svc.cluster.local. AAAA", "NOERROR", []),
        ("both.a.svc.cluster.local. AAAA", "NOERROR", ["2001:db8::2"]),
        ("no.a.svc.cluster.local. A", "NXDOMAIN", []),
        ("web.b.svc.cluster.local. A", "NXDOMAIN", []),
        ("x.no.a.svc.cluster.local. A", "NXDOMAIN", []),
        ("www.example.com.cluster.local. AAAA", "NXDOMAIN", []),
        ("10-244-0-1.a.pod.cluster.local. A", "NOERROR", ["10.244.0.1"]),
        ("10-244-0-1.a.pod.cluster.local. AAAA", "NOERROR", []),
        ("2001-db8--1.a.pod.cluster.local. AAAA", "NOERROR", ["2001:db8::1"]),
        ("10-244-0-1.b.pod.cluster.local. A", "NXDOMAIN", []),
    ],
)
def test_the_fast_path_answers_services_pods_and_names_that_do_not_exist(
    question: str, rcode: str, data: list[str]
) -> None:
    fast, chain = socket_pair(web(1))
    wire = fast.ask(query(question, ident=7), CLIENT)
    reply = Reply(wire)
    assert (reply.rcode, reply.data) == (rcode, data)
    assert bool(reply.authority) is not bool(data)
    assert fast.short == 1
    assert wire == chain.ask(query(question, ident=7), CLIENT)


@pytest.mark.parametrize(
    ("name", "ports"),
    [
        ("web", {80, 53}),
        ("_http._tcp.web", {80}),
        ("http.tcp.web", {80}),
        ("_._udp.web", {53}),
    ],
)
@pytest.mark.parametrize("opt", [None, Opt(flags=DO), Opt(size=4096)])
def test_the_srv_records_of_a_headless_service_come_with_the_addresses_of_their_targets(
    name: str, ports: set[int], opt: Opt | None
) -> None:
    objects = [*web(2), endpoint_slice("web", *two_families(), namespace="a", ports=("http:80", "dns:53/UDP"))]
    fast, chain = socket_pair(objects)
    data = query(f"{name}.a.svc.cluster.local. SRV", opt, ident=7)
    wire = fast.ask(data, CLIENT)
    assert wire == chain.ask(data, CLIENT)
    assert fast.short == 1
    assert fast.counted == chain.counted
    reply = Reply(wire)
    assert {int(each.split()[2]) for each in reply.data} == ports
    assert len(reply.additional) == 2


def two_families() -> list[Endpoint]:
    return [endpoint("10.244.0.1", "n1", hostname="tcp"), endpoint("10.244.0.2", "n1")]


@pytest.mark.parametrize("endpoints", [1, 4, 5, 9, 10, 20, 21, 40, 300])
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("udp", [True, False])
def test_srv_records_and_addresses_are_cut_as_by_the_chain(endpoints: int, family: int, udp: bool) -> None:
    fast, chain = socket_pair(web(endpoints, family=family), udp)
    questions = [
        query("web.a.svc.cluster.local. SRV", None if size is None else Opt(size=size), ident=7)
        for size in (None, *range(512, 700, 9), 1232, 4096)
    ]
    for data in questions:
        assert fast.ask(data, CLIENT) == chain.ask(data, CLIENT)
    assert fast.short == (0 if endpoints == 300 and not udp else len(questions))  # targets that no pointer reaches
    assert fast.counted == chain.counted


def test_a_client_on_a_node_without_labels_takes_the_chain_and_gets_all_endpoints_by_the_option() -> None:
    """Its reply is counted with the prefix of its address."""
    kubernetes = KubernetesSettings((parse_name("cluster.local."),), ttl=30)
    topology = TopologySettings(unknown_client=UnknownClient.ALL)
    state = state_of([*web(2, ZONE_LABEL), node("n1", {}, ("10.0.0.1",))], kubernetes, topology)
    fast, chain = (Socket(way, state, kubernetes, topology) for way in (True, False))
    data = query("web.a.svc.cluster.local. A", ident=7)
    assert fast.ask(data, CLIENT) == chain.ask(data, CLIENT)
    assert fast.short == 0
    assert fast.counted == chain.counted


@pytest.mark.parametrize(("ttl", "written"), [(None, 5), ("9", 9)])
def test_the_ttl_of_a_policy_is_that_of_the_addresses(ttl: str | None, written: int) -> None:
    kubernetes, topology = KubernetesSettings((parse_name("cluster.local."),), ttl=30), TopologySettings()
    objects = [*web(2), service("web", "a", annotation=HOSTNAME_LABEL, ttl=ttl)]
    state = state_of(objects, kubernetes, topology)
    fast, chain = (Socket(way, state, kubernetes, topology) for way in (True, False))
    data = query("web.a.svc.cluster.local. A", ident=7)
    wire = fast.ask(data, CLIENT)
    assert wire == chain.ask(data, CLIENT)
    assert {line.split()[1] for line in Reply(wire).answer} == {str(written)}
    assert fast.short == 1


@pytest.mark.parametrize(
    "question",
    [
        *("web.a.svc.cluster.local. TXT", "Web.a.svc.cluster.local. A", "cluster.local. A", "example. A"),
        *("ns.dns.cluster.local. A", "x.hostmaster.cluster.local. A"),
    ],
)
def test_other_questions_take_the_chain(question: str) -> None:
    fast, chain = socket_pair(web(1))
    assert fast.ask(query(question, ident=7), CLIENT) == chain.ask(query(question, ident=7), CLIENT)
    assert fast.short == 0


def test_a_client_without_a_location_takes_the_chain() -> None:
    fast, chain = socket_pair(web(1))
    data, stranger = query("web.a.svc.cluster.local. A", Opt(), ident=7), packed("192.0.2.1")
    assert fast.ask(data, stranger) == chain.ask(data, stranger)
    assert fast.short == 0


@pytest.mark.parametrize("udp", [True, False])
def test_each_question_of_a_node_cache_is_answered_for_the_node_that_it_names(udp: bool) -> None:
    """Also the second one: no packet cache keeps the replies."""
    cache = packed("192.0.2.1")
    objects = [*web(2), node("n2", {HOSTNAME_LABEL: "n2"}, ("10.0.0.2",))]
    there = endpoint_slice("web", endpoint("10.244.9.9", "n2"), namespace="a", name="other", ports=("http:80",))
    fast, chain = socket_pair([*objects, there], udp, frozenset({cache}))
    asked = [
        query(f"{name}.a.{branch}.cluster.local. {qtype}", Opt(size=1232, options=[node_identity("n2")]), ident=7)
        for name, branch, qtype in (("web", "svc", "A"), ("web", "svc", "SRV"), ("10-244-0-1", "pod", "A"))
    ]
    for data in asked * 2:
        wire = fast.ask(data, cache)
        assert wire == chain.ask(data, cache)
    assert fast.short == len(asked) * 2
    assert fast.counted == chain.counted
    wire = fast.ask(asked[0], cache)
    assert Reply(wire).data == ["10.244.9.9"]
    assert len(fast.handler.table) == 0


def test_a_claim_of_a_source_that_may_not_name_the_node_does_not_count() -> None:
    fast, chain = socket_pair([*web(1), node("n2", {HOSTNAME_LABEL: "n2"}, ("10.0.0.2",))])
    data = query("web.a.svc.cluster.local. A", Opt(options=[node_identity("n2")]), ident=7)
    wire = fast.ask(data, CLIENT)
    assert wire == chain.ask(data, CLIENT)
    assert Reply(wire).data == ["10.244.0.1"]
    assert fast.short == 1


def test_claims_that_are_kept_are_bounded() -> None:
    fast, _ = socket_pair(web(1))
    for number in range(3000):
        fast.ask(query("one.a.svc.cluster.local. A", Opt(options=[node_identity(f"n{number}")]), ident=7), CLIENT)
    assert fast.short == 3000
    assert fast.responder is not None
    assert 0 < len(fast.responder._claims) <= 1024


def test_the_reply_to_the_second_query_is_kept_and_the_third_is_answered_by_the_packet_cache() -> None:
    fast, _ = socket_pair(web(1))
    data, table = query("web.a.svc.cluster.local. A", ident=7), fast.handler.table
    sizes = []
    for _ in range(3):
        fast.ask(data, CLIENT)
        sizes.append(len(table))
    assert (fast.short, sizes) == (2, [0, 1, 1])


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=60), st.sampled_from(["a.svc.cluster.local.", "cluster.local.", "svc.cluster.local."]))
def test_whatever_labels_come_both_ways_say_the_same(octets: bytes, below: str) -> None:
    fast, chain = socket_pair(web(1))
    for front in (octets, bytes([len(octets)]) + octets, octets + b"\0"):
        data = struct.pack("!HHHHHH", 7, RD, 1, 0, 0, 0) + front + name_wire(parse_name(below)) + b"\0\1\0\1"
        assert fast.ask(data, CLIENT) == chain.ask(data, CLIENT)
        assert fast.ask(data + octets, CLIENT) == chain.ask(data + octets, CLIENT)
    assert fast.counted == chain.counted


@pytest.mark.parametrize(
    "question",
    [
        *("one.a.svc.cluster.local. SRV", "_http._tcp.one.a.svc.cluster.local. SRV", "a.svc.cluster.local. A"),
        *("10-244-0-1.web.a.svc.cluster.local. A", "a.pod.cluster.local. A", "dns-version.cluster.local. A"),
    ],
)
def test_every_name_of_the_schema_has_the_fast_path(question: str) -> None:
    fast, chain = socket_pair(web(1))
    assert fast.ask(query(question, ident=7), CLIENT) == chain.ask(query(question, ident=7), CLIENT)
    assert fast.short == 1
    assert fast.counted == chain.counted


def test_the_soa_of_a_denial_follows_the_serial() -> None:
    kubernetes = KubernetesSettings((parse_name("cluster.local."),))
    state = state_of(web(1), kubernetes, None)
    fast = Socket(True, state, kubernetes, None)
    for serial in (NOW, NOW, NOW + 7):
        state.apply(Upserted(service(f"new{serial}", "a", ("10.96.0.9",))), serial)
        fast.forget_what_was_asked()
        wire = fast.ask(query("nothing.a.svc.cluster.local. A", ident=7), CLIENT)
        assert Reply(wire).authority[0].split()[6] == str(serial)
    assert fast.short == 3


def test_while_the_state_is_of_a_snapshot_both_ways_say_the_same() -> None:
    kubernetes = KubernetesSettings((parse_name("cluster.local."),))
    state = ClusterState(ALL_KINDS)
    for each in web(1):
        state.apply(Upserted(each), NOW)
    state.restore(Restored(ALL_KINDS, NOW))
    fast, chain = (Socket(way, state, kubernetes, None) for way in (True, False))
    for data in QUESTIONS * 2:  # the second time from the packet cache
        assert fast.ask(data, CLIENT) == chain.ask(data, CLIENT)
    assert fast.counted == chain.counted


@pytest.mark.parametrize("denied", [False, True])
def test_while_a_kind_is_not_listed_or_denied_both_ways_say_the_same(denied: bool) -> None:
    kubernetes = KubernetesSettings((parse_name("cluster.local."),))
    state = ClusterState(ALL_KINDS)
    for kind in KINDS:
        if kind != "Pod":
            state.apply(Replaced(kind, tuple(each for each in web(1) if kind_of(each) == kind)), NOW)
    if denied:
        state.do_without("Pod")
    fast, chain = (Socket(way, state, kubernetes, None) for way in (True, False))
    for data in QUESTIONS:
        assert fast.ask(data, CLIENT) == chain.ask(data, CLIENT)
    assert fast.counted == chain.counted
