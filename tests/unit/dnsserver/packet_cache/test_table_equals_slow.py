"""Ready-made answers are those that the steps would give: byte for byte, and after any changes of the cluster."""

import re
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.dns_messages import DO, Opt, node_identity, query
from tests.support.in_memory_server import ClusterServer
from tests.support.random_clusters import (
    CLIENTS,
    KINDS,
    History,
    clusters,
    histories,
    kubernetes_settings,
    roaming_histories,
    roaming_topology,
    topology_settings,
)
from topodns.cluster.model import Change, ClusterObject, Deleted, Kind, ObjectKey, Replaced, Upserted, kind_of
from topodns.dns.name import parse_name
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.topology.settings import TopologySettings

pytestmark = pytest.mark.usefixtures("pod_cidrs_of_small_clusters_can_be_verified")

NAMES = (
    "s0.a.svc.cluster.local. A",
    "s0.a.svc.cluster.local. AAAA",
    "s0.a.svc.cluster.local. SRV",
    "s0.a.svc.cluster.local. TXT",
    "s1.b.svc.cluster.local. A",
    "_http._tcp.s0.a.svc.cluster.local. SRV",
    "_dns._udp.s1.a.svc.cluster.local. SRV",
    "h0.s0.a.svc.cluster.local. A",
    "p0.s0.a.svc.cluster.local. A",
    "10-244-1-1.s0.a.svc.cluster.local. A",
    "a.svc.cluster.local. A",
    "nothing.a.svc.cluster.local. A",
    "10-244-0-1.a.pod.cluster.local. A",
    "cluster.local. SOA",
    "cluster.local. NS",
    "1.1.244.10.in-addr.arpa. PTR",
    "2.1.244.10.in-addr.arpa. PTR",
    "1.0.96.10.in-addr.arpa. PTR",
)
COOKIE = 10
CLAIM = Opt(options=[node_identity("n1")])
QUESTIONS = (
    *(query(name, ident=7) for name in NAMES),
    *(query(NAMES[at], Opt(), ident=7) for at in (0, 2)),
    query(NAMES[0], Opt(flags=DO), ident=7),
    query(NAMES[0], CLAIM, ident=7),  # is never kept, and must not leak into what is
    query(NAMES[0].upper(), ident=7),
    query(NAMES[0], Opt(options=[(COOKIE, b"8 octets")]), ident=7),
    query("Nothing.A.svc.Cluster.local. A", ident=7),
)
A_FEW = CLIENTS[1:11:4]  # on a node, in a pod, and unknown
SOA_NUMBERS = re.compile(rb"....(?=" + re.escape(bytes.fromhex("00001c20 00000708 00015180")) + rb")", re.DOTALL)


def without_serial(reply: bytes | None) -> bytes | None:
    """The reply with the serial of its SOA record, which is the time of the state's last change, as zero."""
    return None if reply is None else SOA_NUMBERS.sub(bytes(4), reply)


class Cluster:
    """The objects of a cluster, and which kinds have been listed whole: all that a server can know."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Kind, ObjectKey], ClusterObject] = {}
        self.listed: set[Kind] = set()

    def apply(self, change: Change) -> None:
        match change:
            case Upserted(value):
                self.objects[kind_of(value), value.key] = value
            case Deleted(kind, key):
                self.objects.pop((kind, key), None)
            case Replaced(kind, values):
                self.objects = {at: value for at, value in self.objects.items() if at[0] != kind}
                self.objects.update({(kind, value.key): value for value in values})
                self.listed.add(kind)

    def started(self, kubernetes: KubernetesSettings, topology: TopologySettings | None) -> ClusterServer:
        """A server that has just learned all of it."""
        server = ClusterServer(kubernetes, topology)
        for kind in KINDS:
            values = tuple(value for (each, _), value in self.objects.items() if each == kind)
            if kind in self.listed:
                server.apply(Replaced(kind, values))
            else:
                for value in values:
                    server.apply(Upserted(value))
        return server


def listed_whole(objects: Sequence[ClusterObject]) -> Cluster:
    cluster = Cluster()
    for kind in KINDS:
        cluster.apply(Replaced(kind, tuple(value for value in objects if kind_of(value) == kind)))
    return cluster


def varied(data: bytes, rng: Random) -> bytes:
    """The same question in another packet, mostly: with its name in mixed case (0x20), or with a cookie."""
    match rng.randrange(3), query_read(data):
        case 0, (end, _):
            name = "".join(rng.choice((char, char.upper())) for char in data[12:end].decode("latin-1"))
            return data[:12] + name.encode("latin-1") + data[end:]
        case 1, (end, False):
            return data[:11] + b"\1" + data[12:] + Opt(options=[(COOKIE, rng.randbytes(8))]).wire()
    return data


def query_read(data: bytes) -> tuple[int, bool]:
    """Where the name of a question ends, and whether the message has an OPT record."""
    return data.index(b"\0", 12) + 1, bool(data[11])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters, kubernetes_settings, st.none() | topology_settings, st.integers(0, 1 << 32))
def test_an_answer_is_the_same_from_the_table_as_from_the_steps(
    objects: list[ClusterObject], kubernetes: KubernetesSettings, topology: TopologySettings | None, seed: int
) -> None:
    cluster, rng = listed_whole(objects), Random(seed)
    warm, cold = (cluster.started(kubernetes, topology) for _ in range(2))
    asked = [(data, client, transport) for data in QUESTIONS for client in CLIENTS[::2] for transport in ("udp", "tcp")]
    asked *= 3
    rng.shuffle(asked)
    for question, client, transport in asked:
        data = varied(question, rng)
        assert warm.ask(data, client, transport) == cold.ask_anew(data, client, transport)
    assert warm.ready_made_answers > 2 * len(NAMES)  # the tables were warm


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, st.booleans(), kubernetes_settings, st.none() | topology_settings)
def test_after_any_changes_answers_are_those_of_a_server_that_starts_now(
    history: History, listed: bool, kubernetes: KubernetesSettings, topology: TopologySettings | None
) -> None:
    objects, changes = history
    cluster = listed_whole(objects) if listed else Cluster()
    server = cluster.started(kubernetes, topology)
    for change in changes:
        ask_thrice(server, cluster.started(kubernetes, topology), QUESTIONS, A_FEW)
        cluster.apply(change)
        server.apply(change)
    ask_thrice(server, cluster.started(kubernetes, topology), QUESTIONS, CLIENTS)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(roaming_histories, roaming_topology)
def test_clients_and_endpoints_that_move_get_the_answers_of_where_they_are_now(
    history: History, topology: TopologySettings
) -> None:
    kubernetes = KubernetesSettings((parse_name("cluster.local."),))
    objects, changes = history
    cluster = listed_whole(objects)
    server = cluster.started(kubernetes, topology)
    for change in changes:
        ask_thrice(server, cluster.started(kubernetes, topology), QUESTIONS[0:3:2], CLIENTS)
        cluster.apply(change)
        server.apply(change)
    ask_thrice(server, cluster.started(kubernetes, topology), QUESTIONS[:3], CLIENTS)


def ask_thrice(
    server: ClusterServer, started_now: ClusterServer, questions: Sequence[bytes], clients: Sequence[bytes]
) -> None:
    """In rounds, so that what one client leaves in the tables meets each other one."""
    asked = [(data, client) for data in questions for client in clients]
    expected = [without_serial(started_now.ask_anew(*each)) for each in asked]
    for _ in range(3):
        assert [without_serial(server.ask(*each)) for each in asked] == expected
