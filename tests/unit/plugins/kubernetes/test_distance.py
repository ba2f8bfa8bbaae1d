"""How far the endpoints in answers are from the clients: reference/metrics.md, on two regions with three zones."""

import json
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.api_objects import endpoint_slice, namespace, node, service, service_import
from tests.support.corefile_settings import settings
from tests.support.dns_messages import Opt, node_identity, query
from tests.support.model_builders import endpoint
from tests.support.model_builders import node as node_of
from topodns.dns.addresses import IPV4_MAPPED
from topodns.inspect.sources import manifest_clusters
from topodns.plugins.kubernetes.distance import MAX_ENDPOINTS, MAX_NAMED, EndpointDistances, distance
from topodns.query.label_limiter import OTHERS
from topodns.query.query_sample import QuerySample
from topodns.time_slices import do_at_once
from topodns.topology.select import Location

A1, A2, B1, C1, BARE, UNLOCATED = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "203.0.113.9"
EACH_ONCE: Final = {"10.1.0.1": "a1", "10.1.0.2": "a2", "10.1.0.3": "b1", "10.1.0.4": "c1"}
ALL: Final = "all.shop.svc.cluster.local"
_COREFILE: Final = """cluster.local clusterset.local {
 kubernetes cluster.local clusterset.local {
 manifests cluster.json
 multicluster clusterset.local
 }
 TOPOLOGY
}
"""
_TOPOLOGY: Final = "topology {\n locate nodes\n}"
Object = dict[str, Any]


def labelled(name: str, address: str, zone: str, region: str) -> Object:
    made = node(name, zone, address)
    made["metadata"]["labels"]["topology.kubernetes.io/region"] = region
    return made


def bare(name: str, address: str) -> Object:
    made = node(name, "", address)
    made["metadata"]["labels"] = {}
    return made


NODES: Final = (
    namespace("shop"),
    labelled("a1", A1, "eu-a", "eu"),
    labelled("a2", A2, "eu-a", "eu"),
    labelled("b1", B1, "eu-b", "eu"),
    labelled("c1", C1, "us-c", "us"),
    bare("bare", BARE),
    service("all", "shop"),
    endpoint_slice("all", EACH_ONCE, "shop"),
)


class Counted:
    """A server's sample of queries, and the counter that is fed from it."""

    def __init__(self, directory: Path, objects: Sequence[Object] = (), topology: str = _TOPOLOGY) -> None:
        self._directory = directory
        self.sample = QuerySample()
        self.load(objects, topology)
        self.distances = EndpointDistances(lambda: self.clusters, self.sample)

    def load(self, objects: Sequence[Object] = (), topology: str = _TOPOLOGY) -> None:
        """A Corefile with these objects beside those of NODES."""
        whole = {"kind": "List", "apiVersion": "v1", "items": [*NODES, *objects]}
        (self._directory / "cluster.json").write_text(json.dumps(whole))
        self.clusters = manifest_clusters(settings(_COREFILE.replace("TOPOLOGY", topology), str(self._directory)))

    def receive(
        self, question: str, source: str = A1, queries: int = 1, rcode: int = 0, opt: Opt | None = None
    ) -> None:
        reply = bytes((0, 0, 0x84, rcode))
        self.sample.add(1.0, queries, query(question, opt), ip_address(source).packed, reply)

    def by_labels(self) -> Mapping[tuple[str, ...], float]:
        do_at_once(self.distances.count_steps())
        return dict(self.distances.reading().read())

    def by_distance(self) -> Mapping[str, float]:
        """The sums over all Services."""
        sums: dict[str, float] = {}
        for (far, *_), value in self.by_labels().items():
            sums[far] = sums.get(far, 0.0) + value
        return sums


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


EU_A: Final = {"topology.kubernetes.io/zone": "eu-a", "topology.kubernetes.io/region": "eu"}
EU_B: Final = {**EU_A, "topology.kubernetes.io/zone": "eu-b"}
US_C: Final = {"topology.kubernetes.io/zone": "us-c", "topology.kubernetes.io/region": "us"}
HERE: Final = Location("n1", node_of("n1", EU_A))


@pytest.mark.parametrize(
    ("expected", "location", "found", "labels"),
    [
        ("node", HERE, endpoint("10.1.0.1", "n1"), EU_A),
        ("node", Location("n1"), endpoint("10.1.0.1", "n1"), None),
        ("zone", HERE, endpoint("10.1.0.1", "n2"), EU_A),
        ("region", HERE, endpoint("10.1.0.1", "n2"), EU_B),
        ("farther", HERE, endpoint("10.1.0.1", "n2"), US_C),
        ("farther", HERE, endpoint("10.1.0.1", "n2"), {}),
        ("farther", Location("n1", node_of("n1")), endpoint("10.1.0.1", "n2"), {}),
        ("zone", HERE, endpoint("10.1.0.1", "n2", topology_zone="eu-a"), None),
        ("zone", HERE, endpoint("10.1.0.1", topology_zone="eu-a"), None),
        ("region", HERE, endpoint("10.1.0.1", "n2", topology=EU_B), None),
        ("farther", HERE, endpoint("10.1.0.1", topology_zone="us-c"), None),
        ("farther", HERE, endpoint("10.1.0.1", "n2", topology_zone="eu-a"), US_C),  # the Node's own label counts
        ("unknown", HERE, endpoint("10.1.0.1", "n2"), None),
        ("unknown", HERE, endpoint("10.1.0.1"), None),
        ("unknown", Location("n1"), endpoint("10.1.0.1", "n2"), EU_A),
        ("unknown", Location(), endpoint("10.1.0.1", topology_zone="eu-a"), None),
        ("unknown", Location(), endpoint("10.1.0.1"), None),
    ],
)
def test_the_distance_is_that_between_the_client_s_node_and_the_endpoint_s(
    expected: str, location: Location, found: Any, labels: Mapping[str, str] | None
) -> None:
    its_node = None if labels is None else node_of(found.node_name, labels)
    assert distance(location, found, its_node) == expected


def test_an_answer_adds_1_split_evenly_over_its_endpoints(counted: Counted) -> None:
    counted.receive(f"{ALL} A")
    assert counted.by_labels() == {(far, "shop", "all"): 0.25 for far in ("node", "zone", "region", "farther")}


def test_a_sampled_query_counts_for_those_that_were_passed_over(counted: Counted) -> None:
    counted.receive(f"{ALL} A", queries=40)
    assert counted.by_distance() == dict.fromkeys(("node", "zone", "region", "farther"), 10.0)


@pytest.mark.parametrize(
    ("question", "source", "expected"),
    [
        (f"{ALL} SRV", A1, {"node": 0.25, "zone": 0.25, "region": 0.25, "farther": 0.25}),
        (f"_http._tcp.{ALL} SRV", C1, {"node": 0.25, "farther": 0.75}),
        (f"_http._tcp.{ALL} A", C1, {"node": 0.25, "farther": 0.75}),
        (f"_near.{ALL} A", A2, {"node": 1.0}),
        (f"_all.{ALL} A", C1, {"node": 0.25, "farther": 0.75}),
        (f"_http._tcp._near.{ALL} SRV", A2, {"node": 1.0}),
        (f"{ALL.upper()} A", C1, {"node": 0.25, "farther": 0.75}),
        (f"{ALL} A", BARE, {"farther": 1.0}),
        (f"{ALL} A", UNLOCATED, {"unknown": 1.0}),
        (f"{ALL} AAAA", A1, {}),
        (f"{ALL} TXT", A1, {}),
        (f"_dns._udp.{ALL} SRV", A1, {}),
        (f"10-1-0-1.{ALL} A", A1, {}),
        ("none.shop.svc.cluster.local A", A1, {}),
        ("shop.svc.cluster.local A", A1, {}),
        ("www.example.org A", A1, {}),
    ],
)
def test_a_name_counts_by_the_endpoints_that_it_has_for_the_client(
    counted: Counted, question: str, source: str, expected: Mapping[str, float]
) -> None:
    counted.receive(question, source)
    assert counted.by_distance() == expected


def test_the_endpoints_are_those_that_the_keys_leave(tmp_path: Path) -> None:
    near = (service("near", "shop", keys="topology.kubernetes.io/zone"), endpoint_slice("near", EACH_ONCE, "shop"))
    counted = Counted(tmp_path, near)
    for source in (A1, B1, UNLOCATED, BARE):  # the last two get NODATA
        counted.receive("near.shop.svc.cluster.local A", source)
    assert counted.by_labels() == {("node", "shop", "near"): 1.5, ("zone", "shop", "near"): 0.5}


@pytest.mark.parametrize("rcode", [1, 2, 3, 5])
def test_an_answer_with_an_error_does_not_count(counted: Counted, rcode: int) -> None:
    counted.receive(f"{ALL} A", rcode=rcode)
    assert counted.by_labels() == {}


def test_an_answer_that_came_later_counts(counted: Counted) -> None:
    counted.sample.add(1.0, 1, query(f"{ALL} A"), ip_address(C1).packed, None)
    assert counted.by_distance() == {"node": 0.25, "farther": 0.75}


def test_a_message_that_is_not_kept_does_not_count(counted: Counted) -> None:
    counted.sample.add(1.0, 7, b"", b"", None)
    assert counted.by_labels() == {}


def test_a_client_behind_a_node_cache_is_on_the_node_that_the_cache_names(tmp_path: Path) -> None:
    counted = Counted(tmp_path, topology="topology {\n locate nodes\n trust 10.9.0.0/16\n}")
    counted.receive(f"{ALL} A", "10.9.0.1", opt=Opt(options=[node_identity("c1")]))
    assert counted.by_distance() == {"node": 0.25, "farther": 0.75}


def test_an_ipv4_address_mapped_into_ipv6_is_that_address(counted: Counted) -> None:
    counted.sample.add(1.0, 1, query(f"{ALL} A"), IPV4_MAPPED + ip_address(C1).packed, bytes(4))
    assert counted.by_distance() == {"node": 0.25, "farther": 0.75}


def test_without_topology_no_client_has_a_location(tmp_path: Path) -> None:
    counted = Counted(tmp_path, topology="")
    counted.receive(f"{ALL} A")
    assert counted.by_distance() == {"unknown": 1.0}


def test_services_that_are_not_headless_and_those_of_other_clusters_do_not_count(tmp_path: Path) -> None:
    others = (
        service("front", "shop", cluster_ip="10.96.0.1"),
        endpoint_slice("front", EACH_ONCE, "shop"),
        service_import("all", (), "shop"),
    )
    counted = Counted(tmp_path, others)
    counted.receive("front.shop.svc.cluster.local A")
    counted.receive("all.shop.svc.clusterset.local A")
    assert counted.by_labels() == {}


def test_each_query_counts_once_however_often_metrics_are_read(counted: Counted) -> None:
    for number in range(1, 4):
        counted.receive(f"{ALL} A")
        for _ in range(2):
            assert sum(counted.by_labels().values()) == number


def test_jobs_that_overlap_count_each_query_once(counted: Counted) -> None:
    for _ in range(10):
        counted.receive(f"{ALL} A")
    first, second = counted.distances.count_steps(), counted.distances.count_steps()
    next(first)
    do_at_once(second)
    do_at_once(first)
    assert sum(counted.by_labels().values()) == 10


def test_after_a_reload_the_counts_go_on(counted: Counted) -> None:
    counted.receive(f"{ALL} A")
    before = counted.by_distance()
    counted.load([service("more", "shop"), endpoint_slice("more", {"10.1.0.9": "c1"}, "shop")])
    counted.receive("more.shop.svc.cluster.local A", C1)
    assert counted.by_distance() == {**before, "node": before["node"] + 1}


def test_queries_that_the_sample_no_longer_keeps_are_lost(counted: Counted) -> None:
    for _ in range(10_000):
        counted.receive(f"{ALL} A")
    kept = len(counted.sample.since(0))
    assert kept < 10_000
    assert sum(counted.by_labels().values()) == kept


def test_the_first_fifty_services_are_named_and_the_others_are_others(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(MAX_NAMED + 2)]
    services = [service(name, "shop") for name in names]
    counted = Counted(tmp_path, [*services, *(endpoint_slice(name, {"10.1.0.1": "a1"}, "shop") for name in names)])
    for name in names:
        counted.receive(f"{name}.shop.svc.cluster.local A")
    expected = {("node", "shop", name): 1.0 for name in names[:50]}
    assert counted.by_labels() == {**expected, ("node", "", OTHERS): 2.0}


def test_of_very_many_endpoints_some_at_equal_intervals_stand_for_all(tmp_path: Path) -> None:
    slices = [
        endpoint_slice("many", {f"10.2.{at}.{low}": on for low in range(250)}, "shop", f"many-{at}")
        for at, on in enumerate([*["a1"] * 5, *["a2"] * 5, *["b1"] * 5, *["c1"] * 5])
    ]
    counted = Counted(tmp_path, [service("many", "shop"), *slices])
    counted.receive("many.shop.svc.cluster.local A")
    assert sum(counted.by_distance().values()) == pytest.approx(1.0)
    assert counted.by_distance() == pytest.approx(
        dict.fromkeys(("node", "zone", "region", "farther"), 0.25), abs=1 / MAX_ENDPOINTS
    )


def test_with_two_server_blocks_the_one_with_the_longest_origin_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    counted = Counted(first)
    other = Counted(second, [service("only", "shop"), endpoint_slice("only", {"10.1.0.1": "a1"}, "shop")])
    corefile = f"local {{\n kubernetes local {{\n manifests {first}/cluster.json\n }}\n {_TOPOLOGY}\n}}\n"
    corefile += (
        f"cluster.local {{\n kubernetes cluster.local {{\n manifests {second}/cluster.json\n }}\n {_TOPOLOGY}\n}}\n"
    )
    counted.clusters = manifest_clusters(settings(corefile))
    counted.receive("only.shop.svc.cluster.local A")
    counted.receive("all.shop.svc.local A")
    assert counted.by_labels() == {
        ("node", "shop", "only"): 1.0,
        **{(far, "shop", "all"): 0.25 for far in ("node", "zone", "region", "farther")},
    }
    assert other.by_labels() == {}


def test_a_block_with_a_view_counts_only_the_queries_that_the_view_takes(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    block = f"kubernetes cluster.local {{\n manifests {tmp_path}/cluster.json\n }}\n"
    corefile = f"cluster.local {{\n view some {{\n expr incidr(client_ip(), '{C1}/32')\n }}\n {block} {_TOPOLOGY}\n}}\n"
    counted.clusters = manifest_clusters(settings(corefile + f"cluster.local {{\n {block}\n}}\n"))
    counted.receive(f"{ALL} A", C1)
    counted.receive(f"{ALL} A", A1)  # of the second block, which locates no client
    assert counted.by_distance() == {"node": 0.25, "farther": 0.75, "unknown": 1.0}


def test_a_view_may_go_by_metadata(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    block = f"metadata\n kubernetes cluster.local {{\n manifests {tmp_path}/cluster.json\n }}\n"
    view = "view some {\n expr metadata('kubernetes/namespace') == 'shop'\n }\n"
    counted.clusters = manifest_clusters(settings(f"cluster.local {{\n {view} {block} {_TOPOLOGY}\n}}\n"))
    counted.receive(f"{ALL} A", A1)
    assert sum(counted.by_distance().values()) == 1
