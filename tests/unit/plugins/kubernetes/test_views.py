"""`_near.SERVICE` and `_all.SERVICE`, bounded answers and guards, as clients see them (semantics 10.2 to 10.4)."""

from dataclasses import replace

import pytest

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    ClusterObject,
    Deleted,
    Endpoint,
    ObjectKey,
    TopologyInputs,
    Upserted,
)
from topodns.dependency import label_fact
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Scope
from topodns.topology.select import OnInvalid, UnknownClient

H, Z = HOSTNAME_LABEL, ZONE_LABEL
N1, N2, N3, NOWHERE = "10.0.0.1", "10.0.0.2", "10.0.0.3", "192.0.2.1"
ALL = ["172.0.0.1", "172.0.0.2", "172.0.0.3"]


def headless(name: str, **topology: str | None) -> list[ClusterObject]:
    """A Service with an endpoint on each of n1, n2 (zone a) and n3 (zone b), and a port of its own for each family."""

    def on(at: int, prefix: str) -> Endpoint:
        zone = "b" if at == 3 else "a"
        return endpoint(f"{prefix}{at}", node=f"n{at}", hostname=f"e{at}", pod=f"e{at}", topology_zone=zone)

    members, second = ([on(at, prefix) for at in (1, 2, 3)] for prefix in ("172.0.0.", "fd00::"))
    return [
        replace(service(name, "shop"), topology=TopologyInputs(**topology)),  # type: ignore[arg-type]  # texts alone
        endpoint_slice(name, *members, namespace="shop", ports=["http:80", "metrics:9000"]),
        endpoint_slice(name, *second, name=f"{name}-6", namespace="shop", ports=["http:80"]),
    ]


def cluster() -> list[ClusterObject]:
    zones = {"n1": "a", "n2": "a", "n3": "b"}
    return [
        namespace("shop"),
        *(node(name, {H: name, Z: zone}, addresses=[f"10.0.0.{name[1]}"]) for name, zone in zones.items()),
        *headless("plain"),
        *headless("zone", annotation=Z),
        *headless("near", annotation=Z, apply_to="near"),
        *headless("wrong", annotation="a b", apply_to="near"),
        *headless("one", max_endpoints="1"),
        *headless("two", annotation=f"{Z},*", max_endpoints="2"),
        *headless("pair", annotation=f"{Z},*", min_endpoints="2"),
        *headless("fair", annotation=f"{Z},*", max_load="1"),
        service("empty", "shop"),
        service("web", "shop", cluster_ips=["10.96.0.9"], ports=["http:80"]),
        service("out", "shop", external_name="example.com"),
    ]


def server(topology: TopologySettings | None = None, kubernetes: KubernetesSettings | None = None) -> ClusterDig:
    return ClusterDig(cluster(), kubernetes or settings(), topology or TopologySettings())


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return server()


def addresses(dig: ClusterDig, name: str, source: str, rtype: str = "A") -> list[str]:
    lines = dig(f"{name}.shop.svc.cluster.local. {rtype}", source).splitlines()
    last = [line.split()[-1] for line in lines if not line.startswith(("+", "NODATA"))]
    return sorted({each.split(".")[0] if rtype == "SRV" else each for each in last})


ANSWERS = {
    "near without keys is the own node": ("_near.plain", N2, ["172.0.0.2"]),
    "near without a node is everything": ("_near.plain", NOWHERE, ALL),
    "all without keys": ("_all.plain", N2, ALL),
    "the plain name by its keys": ("zone", N1, ["172.0.0.1", "172.0.0.2"]),
    "near by the keys": ("_near.zone", N1, ["172.0.0.1", "172.0.0.2"]),
    "near by the keys, without a match": ("_near.zone", NOWHERE, []),
    "all in spite of keys": ("_all.zone", N1, ALL),
    "keys for near alone leave the plain name": ("near", N1, ALL),
    "and choose at near": ("_near.near", N3, ["172.0.0.3"]),
    "and not at all": ("_all.near", N3, ALL),
    "one of two that a key needs": ("pair", N3, ALL),
    "two of two": ("pair", N1, ["172.0.0.1", "172.0.0.2"]),
    "a guard counts at near": ("_near.pair", N3, ALL),
}


@pytest.mark.parametrize(("name", "source", "got"), ANSWERS.values(), ids=ANSWERS)
def test_a_service_has_a_near_and_a_whole_view(dig: ClusterDig, name: str, source: str, got: list[str]) -> None:
    assert addresses(dig, name, source) == got
    assert addresses(dig, name, source, "AAAA") == [each.replace("172.0.0.", "fd00::") for each in got]
    assert addresses(dig, name, source, "SRV") == [f"e{each[-1]}" for each in got]
    of_port = addresses(dig, f"_http._tcp.{name}", source, "SRV")
    assert of_port == [f"e{each[-1]}" for each in got]


def test_near_without_keys_follows_the_labels_of_the_endpoints_nodes() -> None:
    dig = ClusterDig(
        [
            namespace("shop"),
            *(node(f"n{at}", {H: f"n{at}", Z: "a"}, addresses=[f"10.0.0.{at}"]) for at in (1, 2, 3)),
            service("plain", "shop"),
            endpoint_slice("plain", endpoint("172.0.0.2", "n2"), endpoint("172.0.0.3", "n3"), namespace="shop"),
        ],
        settings(),
        TopologySettings(),
    )
    assert addresses(dig, "_near.plain", N1) == ["172.0.0.2", "172.0.0.3"]
    facts = dig.state.apply(Upserted(node("n3", {H: "n3", Z: "b"}, addresses=[N3])), 0)
    assert set(dig.resolve("_near.plain.shop.svc.cluster.local. A", N1).facts) & facts
    assert addresses(dig, "_near.plain", N1) == ["172.0.0.2"]


def test_targets_of_a_view_are_the_usual_names(dig: ClusterDig) -> None:
    (line,) = [each for each in dig("_near.near.shop.svc.cluster.local. SRV", N3).splitlines() if " 80 " in each][:1]
    assert line.endswith(" e3.near.shop.svc.cluster.local.")


NAMES = {
    "another type": ("_near.plain", "TXT", "NODATA"),
    "no ready endpoint": ("_near.empty", "A", "NODATA"),
    "all of none": ("_all.empty", "AAAA", "NODATA"),
    "a ClusterIP": ("_near.web", "A", "NXDOMAIN"),
    "a protocol below a ClusterIP": ("_tcp._near.web", "A", "NXDOMAIN"),
    "an ExternalName": ("_all.out", "A", "NXDOMAIN"),
    "no such Service": ("_near.nothing", "A", "NXDOMAIN"),
    "an endpoint below": ("e1._near.plain", "A", "NXDOMAIN"),
    "a view below a view": ("_near._all.plain", "A", "NXDOMAIN"),
    "a protocol below": ("_tcp._near.plain", "A", "NODATA"),
    "another protocol": ("_sctp._near.plain", "A", "NXDOMAIN"),
    "a port that is none": ("_ftp._tcp._near.plain", "SRV", "NXDOMAIN"),
    "another word": ("_far.plain", "A", "NXDOMAIN"),
}


@pytest.mark.parametrize(("name", "rtype", "word"), NAMES.values(), ids=NAMES)
def test_other_names_and_types_have_no_records(dig: ClusterDig, name: str, rtype: str, word: str) -> None:
    assert dig(f"{name}.shop.svc.cluster.local. {rtype}", N1).startswith(word)


def test_without_topology_there_are_no_views() -> None:
    without = ClusterDig(cluster(), settings(), None)
    assert without("_near.plain.shop.svc.cluster.local. A", N1).startswith("NXDOMAIN")
    assert without("_all.plain.shop.svc.cluster.local. A", N1).startswith("NXDOMAIN")


# max-endpoints


def test_a_bounded_answer_is_the_same_for_a_node_in_both_families_and_srv(dig: ClusterDig) -> None:
    (ipv4,) = addresses(dig, "one", N1)
    assert addresses(dig, "one", N1, "AAAA") == [f"fd00::{ipv4[-1]}"]
    assert addresses(dig, "one", N1, "SRV") == [f"e{ipv4[-1]}"]
    assert addresses(dig, "_all.one", N1) == [ipv4]


def test_a_bound_comes_after_the_keys(dig: ClusterDig) -> None:
    assert addresses(dig, "two", N1) == ["172.0.0.1", "172.0.0.2"]
    assert addresses(dig, "two", N3) == ["172.0.0.3"]
    assert len(addresses(dig, "_all.two", N3)) == 2
    assert len(addresses(dig, "two", NOWHERE)) == 2


def test_a_bounded_answer_is_shared_by_the_clients_of_a_node_alone(dig: ClusterDig) -> None:
    name = "one.shop.svc.cluster.local. A"
    assert dig.resolve(name, N1).scope is Scope.NODE
    assert dig.resolve(name, NOWHERE).scope is Scope.CLIENT, "its address is in place of the Node"


def test_the_name_of_an_endpoint_is_not_bounded() -> None:
    filtering = server(TopologySettings(filter_hostnames=True))
    for at in (1, 2, 3):
        assert addresses(filtering, f"e{at}.one", N1) == [f"172.0.0.{at}"]


def test_zonal_names_are_bounded_for_each_node() -> None:
    zonal = server(kubernetes=settings(zonal=True))
    whole = {each for at in (1, 2) for each in addresses(zonal, "a.pin._zone.one", f"10.0.0.{at}")}
    assert whole <= {"172.0.0.1", "172.0.0.2"}
    for name in ("a.pin._zone.one", "nowhere.prefer._zone.one"):
        (ipv4,) = addresses(zonal, name, N1)
        assert addresses(zonal, name, N1, "SRV") == [f"e{ipv4[-1]}"]
        assert zonal.resolve(f"{name}.shop.svc.cluster.local. A", N1).scope is Scope.NODE
        assert zonal.resolve(f"{name}.shop.svc.cluster.local. A", NOWHERE).scope is Scope.CLIENT
    assert zonal.resolve("a.pin._zone.plain.shop.svc.cluster.local. A", N1).scope is Scope.EVERYONE


def test_invalid_keys_for_near_alone_are_denied_there_alone() -> None:
    denying = server(TopologySettings(on_invalid=OnInvalid.DENY))
    assert addresses(denying, "wrong", N1) == ALL
    assert addresses(denying, "_near.wrong", N1) == []


def test_srv_priorities_are_those_of_the_bounded_endpoints() -> None:
    ranking = server(TopologySettings(srv_priority=True))
    assert len(addresses(ranking, "two", N1, "SRV")) == 2
    assert addresses(ranking, "two", N1, "SRV") == [f"e{each[-1]}" for each in addresses(ranking, "_all.two", N1)]


def test_a_client_that_is_refused_is_refused_at_the_near_view_too() -> None:
    refusing = server(TopologySettings(unknown_client=UnknownClient.REFUSE))
    assert refusing("_near.zone.shop.svc.cluster.local. A", NOWHERE).startswith("REFUSED")
    assert addresses(refusing, "_all.zone", NOWHERE) == ALL


# max-load


def test_an_answer_under_a_load_depends_on_the_nodes_with_the_label() -> None:
    dig = server()
    name = "fair.shop.svc.cluster.local. A"
    assert label_fact(Z) in dig.resolve(name, N3).facts
    assert addresses(dig, "fair", N3) == ["172.0.0.3"]
    touched = dig.state.apply(Upserted(node("n4", {H: "n4", Z: "b"}, addresses=["10.0.0.4"])), 1)
    assert label_fact(Z) in touched
    both = {tuple(addresses(dig, "fair", source)) for source in (N3, "10.0.0.4")}
    assert both == {("172.0.0.3",), tuple(ALL)}, "one of two Nodes: 1 * 4 * 1 / 3"
    assert label_fact(Z) in dig.state.apply(Deleted("Node", ObjectKey("", "n4")), 2)
    assert addresses(dig, "fair", N3) == ["172.0.0.3"]


@pytest.mark.parametrize("name", ["plain", "zone", "pair"])
def test_answers_without_a_load_do_not(dig: ClusterDig, name: str) -> None:
    assert label_fact(Z) not in dig.resolve(f"{name}.shop.svc.cluster.local. A", N3).facts
