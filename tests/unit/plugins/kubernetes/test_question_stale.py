"""Answers of a snapshot: as before, with a TTL of a few seconds and marked as stale; no name is said not to exist."""

import pytest

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from tests.unit.plugins.kubernetes.scene import NS, few_services
from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import ZONE_LABEL, ClusterObject
from topodns.dns.message import Ede, EdeCode
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Scope
from topodns.topology.select import UnknownClient

NOON = 1_764_244_800
SINCE = "snapshot of 2025-11-27T12:00:00Z"
IN_A, IN_B, NOWHERE = "10.0.0.1", "10.0.0.2", "192.0.2.1"


def restored(
    objects: list[ClusterObject],
    kubernetes: KubernetesSettings | None = None,
    topology: TopologySettings | None = None,
) -> ClusterDig:
    """A cluster whose objects are all of a snapshot."""
    dig = ClusterDig(objects, kubernetes or settings(), topology, synced=False)
    dig.state.restore(Restored(dig.state.needed, NOON))
    return dig


def with_keys(topology: TopologySettings | None = None) -> ClusterDig:
    """`db` follows the topology zone, and has an endpoint in zone a."""
    return restored(
        [
            namespace(NS),
            node("n1", {ZONE_LABEL: "a"}, addresses=[IN_A]),
            node("n2", {ZONE_LABEL: "b"}, addresses=[IN_B]),
            service("db", NS, annotation=ZONE_LABEL),
            endpoint_slice("db", endpoint("172.0.0.1", node="n1"), namespace=NS, ports=["http:80"]),
        ],
        topology=topology or TopologySettings(),
    )


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("svc1.testns.svc.cluster.local. A", "svc1.testns.svc.cluster.local. 5 IN A 10.0.0.1"),
        ("svc1.testns.svc.cluster.local. AAAA", "NODATA cluster.local. 5"),
        ("hdls1.testns.svc.cluster.local. A", "hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.2"),
        (
            "_http._tcp.svc1.testns.svc.cluster.local. SRV",
            "_http._tcp.svc1.testns.svc.cluster.local. 5 IN SRV 0 100 80 svc1.testns.svc.cluster.local.\n"
            "+ svc1.testns.svc.cluster.local. 5 IN A 10.0.0.1",
        ),
        ("external.testns.svc.cluster.local. A", "external.testns.svc.cluster.local. 5 IN CNAME ext.interwebs.test."),
        ("1.0.0.10.in-addr.arpa. PTR", "1.0.0.10.in-addr.arpa. 5 IN PTR svc1.testns.svc.cluster.local."),
        ("testns.svc.cluster.local. A", "NODATA cluster.local. 5"),
    ],
)
def test_names_of_the_snapshot_have_their_answers_for_a_few_seconds(question: str, answer: str) -> None:
    dig = restored(few_services(), settings(ttl=300))
    assert dig(question) == answer
    assert dig.resolve(question).response.ede == Ede(EdeCode.STALE_ANSWER, SINCE)


def test_a_ttl_that_is_shorter_stays() -> None:
    dig = restored(few_services(), settings(ttl=2))
    assert dig("svc1.testns.svc.cluster.local. A") == "svc1.testns.svc.cluster.local. 2 IN A 10.0.0.1"
    assert dig("svc1.testns.svc.cluster.local. AAAA") == "NODATA cluster.local. 2"


@pytest.mark.parametrize("fallthrough", [[], ["."]])
@pytest.mark.parametrize("name", ["new.testns.svc", "svc1.new.svc", "foo", "_https._tcp.svc1.testns.svc"])
def test_a_name_that_is_not_in_the_snapshot_is_servfail(name: str, fallthrough: list[str]) -> None:
    dig = restored(few_services(), settings(fallthrough=fallthrough, ttl=300))
    question = f"{name}.cluster.local. A"
    assert dig(question) == "SERVFAIL cluster.local. 5"
    assert dig.resolve(question).response.ede == Ede(EdeCode.NOT_READY, f"{SINCE}: the name is not in it")


def test_a_client_gets_what_its_topology_chooses() -> None:
    dig = with_keys()
    question = "db.testns.svc.cluster.local. A"
    assert dig(question, IN_A) == "db.testns.svc.cluster.local. 5 IN A 172.0.0.1"
    assert dig(question, IN_B) == "NODATA cluster.local. 5"
    ede = dig.resolve(question, IN_B).response.ede
    assert ede == Ede(EdeCode.STALE_ANSWER, f"{SINCE}: no endpoint matches topologyKeys {ZONE_LABEL} for node n2")


@pytest.mark.parametrize("unknown_client", [UnknownClient.STRICT, UnknownClient.REFUSE])
def test_a_client_without_a_location_may_be_newer_than_the_snapshot(unknown_client: UnknownClient) -> None:
    dig = with_keys(TopologySettings(unknown_client=unknown_client))
    resolution = dig.resolve("db.testns.svc.cluster.local. A", NOWHERE)
    assert resolution.response.rcode == Rcode.SERVFAIL
    assert resolution.response.ede == Ede(EdeCode.NOT_READY, f"{SINCE}: the client's location is not in it")
    assert resolution.scope is not Scope.EVERYONE


def test_a_client_without_a_location_that_gets_every_endpoint_does_so() -> None:
    dig = with_keys(TopologySettings(unknown_client=UnknownClient.ALL))
    assert dig("db.testns.svc.cluster.local. A", NOWHERE) == "db.testns.svc.cluster.local. 5 IN A 172.0.0.1"


def test_a_snapshot_that_lacks_a_kind_locates_no_client() -> None:
    dig = with_keys()
    dig.state.restore(Restored(dig.state.needed - {"Node"}, NOON))
    assert dig("db.testns.svc.cluster.local. A", IN_A) == "SERVFAIL cluster.local. 5"


def test_once_all_kinds_are_listed_answers_are_as_usual() -> None:
    dig = restored(few_services(), settings(ttl=300))
    for kind in dig.state.needed:
        assert dig("svc9.testns.svc.cluster.local. A") == "SERVFAIL cluster.local. 5"
        dig.state.complete(kind)
    assert dig("svc1.testns.svc.cluster.local. A") == "svc1.testns.svc.cluster.local. 300 IN A 10.0.0.1"
    assert dig.resolve("svc1.testns.svc.cluster.local. A").response.ede is None
    assert dig("svc9.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 300"
