"""Answers about large Services: as if everything were built and then cut, though little of it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from random import Random
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dns_messages import Opt, query
from tests.support.in_memory_server import NOW, PORT, block, handler
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, service
from tests.support.query_builders import client
from tests.support.rewrite_directives import rules
from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Pool, endpoint_label
from topodns.cluster.model import ClusterObject, Endpoint, EndpointPort, EndpointSlice, Kind, Replaced, kind_of
from topodns.cluster.state import ClusterState
from topodns.dns.addresses import NetworkList
from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import label_wire, name_wire, parse_name
from topodns.dns.rrtype import TYPE_NAMES, RRType
from topodns.dns.wire_reader import read_query
from topodns.dns.wire_writer import write_response
from topodns.dnsserver.handler import Handler
from topodns.plugins.k8s_external.handler import ExternalZone
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.records import GroupOffer, endpoint_srv_records
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.rewrite import response as amendments
from topodns.plugins.rewrite.handler import Rewriter
from topodns.plugins.rewrite.response import Rename, rename_value
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import ANY_SIZE, Client, Resolution
from topodns.topology.client_locator import ClientLocator
from topodns.topology.keys import key_reader

ZONE = "topology.kubernetes.io/zone"
NODES = [node(f"n{each}", {ZONE: each}, [f"192.168.0.{at}"]) for at, each in enumerate("ab", 1)]
CLIENT = packed("192.168.0.1")  # on the node of topology zone a
KUBERNETES = KubernetesSettings(
    (parse_name("cluster.local."), parse_name("set.local.")), multicluster=(parse_name("set.local."),), zonal=True
)
EXTERNAL = K8sExternal((parse_name("ext.example."),), headless=True)
TYPES = {4: RRType.A, 6: RRType.AAAA}
KINDS: tuple[Kind, ...] = ("Namespace", "Node", "Service", "ServiceImport", "EndpointSlice", "Pod")


@dataclass(frozen=True)
class Scene:
    """Two Services `db`, one of them imported, with the same kinds of endpoints, and how they are asked for."""

    slices: list[EndpointSlice]
    keys: str | None
    name: str
    qtype: int


# What is right, written down in the plainest way: everything first, then the writer cuts.


def label_of(one: Endpoint) -> str:
    dashed = str(ip_address(one.address)).replace(".", "-").replace(":", "-")
    return one.hostname or (dashed + "0" if dashed.endswith("-") else dashed)


def family_of(one: Endpoint) -> int:
    return ip_address(one.address).version


def distinct_ports(slices: Sequence[EndpointSlice]) -> list[EndpointPort]:
    return list(dict.fromkeys(port for one in slices for port in one.ports))


def merged(slices: Sequence[EndpointSlice]) -> list[Endpoint]:
    """Those that are ready, where they are first ready."""
    ready = (each for one in slices for each in one.endpoints if each.ready)
    first: dict[tuple[bytes, str, str], Endpoint] = {}
    for each in ready:
        first.setdefault(identity(each), each)
    return list(first.values())


def identity(one: Endpoint) -> tuple[bytes, str, str]:
    return one.address, one.hostname, one.pod_name


def exposing(slices: Sequence[EndpointSlice], port: EndpointPort, family: int) -> list[Endpoint]:
    return [each for each in merged([one for one in slices if port in one.ports]) if family_of(each) == family]


def by_topology(pool: list[Endpoint], keys: str | None) -> list[Endpoint]:
    near = [each for each in pool if each.node_name == "na"]
    return pool if keys is None or (not near and keys.endswith("*")) else near


def left_of_service(name: str) -> list[str]:
    return name.split("db.default.")[0].split(".")[:-1]


def meant_ports(scene: Scene) -> list[EndpointPort]:
    left, ports = left_of_service(scene.name), distinct_ports(scene.slices)
    if len(left) != 2:
        return ports
    name, protocol = (label.removeprefix("_") for label in left)
    return [port for port in ports if name in ("", port.name) and protocol in ("", port.protocol.lower())]


def got(scene: Scene, pool: list[Endpoint]) -> list[Endpoint]:
    """The endpoints of these that the name means, and that the client gets."""
    left = left_of_service(scene.name)
    if len(left) == 1:  # in the order of the name's endpoints, which is that of all slices
        there = {identity(each) for each in pool}
        return [each for each in merged(scene.slices) if label_of(each).lower() == left[0] and identity(each) in there]
    if "_zone" in left:
        zone, way, _ = left
        missed = not any(each.topology_zone == zone for each in merged(scene.slices))
        return pool if missed and way == "prefer" else [each for each in pool if each.topology_zone == zone]
    return by_topology(pool, scene.keys) if scene.name.endswith("svc.cluster.local.") else pool


def pools(scene: Scene) -> Iterator[tuple[str, int, list[Endpoint], int | None]]:
    """(cluster, family, endpoints, port number) of all that the name means."""
    imported = scene.name.endswith("set.local.")
    for cluster in dict.fromkeys(one.cluster_id for one in scene.slices) if imported else [""]:
        slices = [one for one in scene.slices if one.cluster_id == cluster or not imported]
        for port in meant_ports(scene):
            for family in (4, 6):
                yield cluster, family, got(scene, exposing(slices, port, family)), port.number


def everything(scene: Scene, spelled_origin: bytes) -> Response:
    if scene.qtype != RRType.SRV:
        return Response(answer=addresses(scene))
    below = [label_wire(each) for each in ("db", "default")]
    suffix = b"".join(below if scene.name.endswith("ext.example.") else [*below, label_wire("svc")]) + spelled_origin
    offers = [
        (label_wire(label_of(each)) + (label_wire(cluster) if cluster else b"") + suffix, each.address, port)
        for cluster, _, pool, port in pools(scene)
        for each in pool
    ]
    if not offers:
        return Response()
    weight = max(1, 100 // len(offers))
    rdatas = dict.fromkeys(pack("!HHH", 0, weight, port) + target for target, _, port in offers)
    glue: dict[tuple[bytes, int], dict[bytes, None]] = {}
    for target, address, _ in offers:
        glue.setdefault((target, TYPES[4 if len(address) == 4 else 6]), {})[address] = None
    additional = tuple(RRset(target, rtype, 5, tuple(found)) for (target, rtype), found in glue.items())
    return Response(answer=(RRset(b"", RRType.SRV, 5, tuple(rdatas)),), additional=additional)


def addresses(scene: Scene) -> tuple[RRset, ...]:
    """By port only where ports are asked for."""
    found: dict[bytes, None] = {}
    if len(left_of_service(scene.name)) == 2 and "_._." not in scene.name:
        for _, family, pool, _ in pools(scene):
            if TYPES[family] == scene.qtype:
                found |= dict.fromkeys(each.address for each in pool)
    else:
        everyone = [each for each in merged(scene.slices) if TYPES[family_of(each)] == scene.qtype]
        found = dict.fromkeys(each.address for each in got(scene, everyone))
    return (RRset(b"", scene.qtype, 5, tuple(found)),) if found else ()


# Random scenes: the numbers come from a seed, since hypothesis draws no thousand endpoints.

PORTS = (["http:80"], ["http:80", "metrics:9090"], ["dns:53/UDP", "dns-tcp:53"])
NAMES = (
    "db.default.svc.cluster.local.",
    "_http._tcp.db.default.svc.cluster.local.",
    "_._udp.db.default.svc.cluster.local.",
    "_._.db.default.svc.cluster.local.",
    "h0.db.default.svc.cluster.local.",
    "10-0-0-3.db.default.svc.cluster.local.",
    "a.pin._zone.db.default.svc.cluster.local.",
    "none.prefer._zone.db.default.svc.cluster.local.",
    "db.default.svc.set.local.",
    "db.default.ext.example.",
    "_http._tcp.db.default.ext.example.",
    "h0.db.default.ext.example.",
)


def random_slices(rng: Random, number: int) -> list[EndpointSlice]:
    hostnames = rng.choice(([""], ["h0"], ["", "h0", "H1"], [f"h{each}" for each in range(number)]))
    ports = rng.choice((PORTS[1:2], PORTS))
    slices: list[EndpointSlice] = []
    made = 0
    while made < number:
        size = min(number - made, rng.choice((1, 7, 100)))
        six = rng.random() < 0.3
        members = [random_endpoint(rng, at, six, hostnames) for at in range(made, made + size)]
        if slices and rng.random() < 0.2:  # a copy, as while the controller moves endpoints
            members.append(replace(slices[-1].endpoints[0], ready=True))
        of_cluster = f"c{rng.randrange(2)}"
        slices.append(
            endpoint_slice("db", *members, name=f"db-{made:05}", ports=rng.choice(ports), cluster_id=of_cluster)
        )
        made += size
    return slices


def random_endpoint(rng: Random, at: int, six: bool, hostnames: Sequence[str]) -> Endpoint:
    zone = rng.choice("ab")
    address = f"fd00::{at >> 8:x}:{at & 255:x}" if six else f"10.0.{at >> 8}.{at & 255}"
    hostname, ready = rng.choice(hostnames), rng.random() < 0.9
    return endpoint(address, f"n{zone}", hostname=hostname, topology_zone=zone, ready=ready)


def serving(scene: Scene, transport: str, payload_size: int) -> tuple[ClusterState, Handler]:
    topology = TopologySettings()
    state = ClusterState(frozenset(KINDS), key_reader(topology.keys))
    services = [service("db", annotation=scene.keys), service("db", imported=True)]
    copies = [replace(one, name=f"i{one.name}", imported=True) for one in scene.slices]
    own = [replace(one, cluster_id="") for one in scene.slices]
    objects: list[ClusterObject] = [namespace("default"), *NODES, *services, *own, *copies]
    for kind in KINDS:
        state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), NOW)
    locator = ClientLocator(state, topology.locate, NetworkList(topology.trust))
    steps = ExternalZone(EXTERNAL, KUBERNETES, state), ClusterZone(KubernetesZone(KUBERNETES, topology, state, locator))
    return state, handler(block(".", *steps, payload_size=payload_size), transport=transport)


PORT_80 = (EndpointPort("http", "TCP", 80),)
SIZES = st.integers(1, 60) | st.sampled_from((300, 1500))
OPTS = st.none() | st.sampled_from((0, 512, 600, 1232, 4000, 65535)).map(Opt)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1 << 32),
    SIZES,
    st.sampled_from((None, ZONE, f"{ZONE},*")),
    st.sampled_from(NAMES),
    st.sampled_from((RRType.SRV, RRType.SRV, RRType.A, RRType.AAAA)),
    st.sampled_from(("udp", "udp", "tcp")),
    OPTS,
    st.sampled_from((512, 1232, 4096)),
)
def test_an_answer_is_all_of_it_cut_where_the_reply_is_full(
    seed: int,
    number: int,
    keys: str | None,
    name: str,
    qtype: int,
    transport: str,
    opt: Opt | None,
    payload_size: int,
) -> None:
    rng = Random(seed)
    scene = Scene(random_slices(rng, number), keys, name, qtype)
    state, answering = serving(scene, transport, payload_size)
    spelled = "".join(rng.choice((char.lower(), char.upper())) for char in name)
    data = query(f"{spelled} {TYPE_NAMES[qtype]}", opt, ident=7)
    asked = read_query(data)
    origin = asked.spelling[-sum(len(label) + 1 for label in name.split(".")[-3:-1]) - 1 :]

    limit = 65535 if transport == "tcp" else max(512, min(opt.size, payload_size)) if opt is not None else 512
    expected = everything(scene, origin)
    for _ in range(3):  # the second time some of it is kept
        reply = answering.answer(data, CLIENT, PORT)
        assert isinstance(reply, bytes)
        if expected.answer:
            assert reply == write_response(asked, expected, limit, payload_size)
        else:
            assert reply[6:8] == b"\0\0"
        answering.table.clear()
    assert state.synced


# How little is built


def many(number: int = 5000, hostname: str = "") -> Pool:
    slices = [
        endpoint_slice(
            "db", *(endpoint(f"10.0.{at >> 8}.{at & 255}", hostname=hostname) for at in range(first, first + 100))
        )
        for first in range(0, number, 100)
    ]
    return Backends(slices, lambda _name: None, False).pools[4]


SUFFIX = (
    label_wire("db") + label_wire("default") + label_wire("svc") + label_wire("cluster") + label_wire("local") + b"\0"
)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[Endpoint]:
    """The endpoints whose labels are made from now on."""
    endpoints: list[Endpoint] = []

    def label(one: Endpoint, pod_names: bool) -> str:
        endpoints.append(one)
        return endpoint_label(one, pod_names)

    monkeypatch.setattr("topodns.plugins.kubernetes.label_cache.endpoint_label", label)
    return endpoints


@pytest.mark.parametrize(("limit", "most"), [(512, 12), (1232, 28), (65535, 1400)])
def test_no_more_labels_are_made_than_a_reply_has_room_for(limit: int, most: int, looked_at: list[Endpoint]) -> None:
    pool, kept = many(), KeptLabels(pod_names=False)
    for port in (80, 81, 80):
        [answer], additional = endpoint_srv_records([GroupOffer(pool.everyone, port, SUFFIX)], kept, 5, limit)
        assert additional == ()
        assert sum(12 + len(rdata) for rdata in answer.rdatas) > limit  # so that the writer sets TC
    assert len(looked_at) <= most  # all three times together


def test_thousands_of_endpoints_of_one_name_are_one_record_and_looked_at_once(looked_at: list[Endpoint]) -> None:
    pool, kept = many(hostname="same"), KeptLabels(pod_names=False)
    for _ in range(3):
        [answer], [glue] = endpoint_srv_records([GroupOffer(pool.everyone, 80, SUFFIX)], kept, 5, 1232)
        assert len(answer.rdatas) == 1
        assert glue.rdatas is pool.everyone.addresses
    assert len(looked_at) == 5000


def named_endpoints(number: int) -> list[EndpointSlice]:
    return [endpoint_slice("db", endpoint(f"10.0.{at >> 8}.{at & 255}", hostname=f"h{at}")) for at in range(number)]


def test_a_client_that_wants_all_of_an_answer_gets_it() -> None:
    slices = [replace(each, name=f"db-{at:04}", ports=PORT_80) for at, each in enumerate(named_endpoints(500))]
    scene = Scene(slices, None, "db.default.svc.cluster.local.", RRType.SRV)
    step = ClusterZone(KubernetesZone(KUBERNETES, None, serving(scene, "udp", 1232)[0], None))
    resolution = step(read_query(query("db.default.svc.cluster.local. SRV")), client())  # as `explain` asks
    assert isinstance(resolution, Resolution)
    assert resolution.response == everything(scene, label_wire("cluster") + label_wire("local") + b"\0")
    assert len(resolution.response.answer[0].rdatas) == len(resolution.response.additional) == 500


SHORTENING = r"""
rewrite stop {
    name exact db.x. db.default.svc.cluster.local.
    answer value (.*)\.db\.default\.svc\.cluster\.local\. {1}.x.
}
"""


def test_names_that_are_rewritten_to_shorter_ones_leave_room_for_more_of_them() -> None:
    slices = [replace(each, name=f"db-{at:04}", ports=PORT_80) for at, each in enumerate(named_endpoints(30))]
    state, _ = serving(Scene(slices, None, "", RRType.SRV), "udp", 1232)
    step = ClusterZone(KubernetesZone(KUBERNETES, None, state, None))
    rewriter = Rewriter(rules(SHORTENING))
    asked = read_query(query("db.x. SRV", Opt()))

    def below(asking: Query, who: Client) -> Resolution:
        resolution = step(asking, who)
        assert isinstance(resolution, Resolution)
        return resolution

    replies = []
    for limit in (1232, ANY_SIZE):
        resolution = rewriter(asked, client()._replace(limit=limit), below)
        assert isinstance(resolution, Resolution)
        replies.append(write_response(asked, resolution.response, 1232, 1232))
    assert replies[0] == replies[1]
    assert replies[0][6:8] == bytes((0, 30))


@pytest.mark.parametrize("limit", [512, 1232, 65535])
def test_of_an_answer_that_is_too_large_the_values_that_fit_are_renamed_and_no_others(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed: list[bytes] = []

    def counting(rtype: int, rdata: bytes, rename: Rename) -> bytes:
        renamed.append(rdata)
        return rename_value(rtype, rdata, rename)

    monkeypatch.setattr(amendments, "rename_value", counting)
    values = tuple(
        pack("!HHH", 0, 1, 80) + label_wire(f"pod-{at}") + name_wire(parse_name("db.default.svc.cluster.local."))
        for at in range(5000)
    )
    asked = read_query(query("db.x. SRV", Opt(limit)))
    rewriter = Rewriter(rules(SHORTENING))

    def below(asking: Query, who: Client) -> Resolution:
        return Resolution(Response(answer=(RRset(b"", RRType.SRV, 5, values),)), "kubernetes")

    replies = []
    for client_limit in (limit, ANY_SIZE):
        renamed.clear()
        resolution = rewriter(asked, client()._replace(limit=client_limit), below)
        assert isinstance(resolution, Resolution)
        turned_back = 5000  # by the rule for the name itself, after which others may shorten the values
        assert len(renamed) <= turned_back + (limit / 20 if client_limit == limit else 5000)
        replies.append(write_response(asked, resolution.response, limit, limit))
    assert replies[0] == replies[1]


def test_addresses_that_do_not_fit_stay_with_those_that_do_for_the_next_turn() -> None:
    addresses = tuple(pack("!I", at) for at in range(5000))
    rewriter = Rewriter(rules(SHORTENING))
    asked = read_query(query("db.x. A", Opt()))

    def below(asking: Query, who: Client) -> Resolution:
        return Resolution(Response(answer=(RRset(b"", RRType.A, 5, addresses),)), "kubernetes")

    resolution = rewriter(asked, client()._replace(limit=1232), below)
    assert isinstance(resolution, Resolution)
    assert resolution.response.answer[0].rdatas == addresses
