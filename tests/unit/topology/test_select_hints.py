"""Which endpoints of a pool are kept by the hints of their slices, as kube-proxy reads them (KEP-2433, KEP-3015)."""

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, node, packed
from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Pool
from topodns.cluster.model import ZONE_LABEL, Endpoint, EndpointSlice, Node
from topodns.topology.select import goes_by_zone, hinted


def addresses(*texts: str) -> tuple[bytes, ...]:
    return tuple(map(packed, texts))


def backends(*slices: EndpointSlice) -> Backends:
    return Backends(slices, lambda _name: None, terminating_fallback=False)


def in_zone(topology_zone: str | None) -> Node:
    return node("n1", {ZONE_LABEL: topology_zone} if topology_zone is not None else {})


def pool_of(*endpoints: Endpoint) -> Pool:
    return backends(endpoint_slice("db", *endpoints)).pools[4]


# Each endpoint as (its zone hints, its node hints), the client's node, that node's zone -> which of them are kept

HINTED = {
    "no hints: everyone": ([("", ""), ("", "")], "n1", "a", [0, 1]),
    "every endpoint for a zone: those for mine": ([("a", ""), ("b", ""), ("a", "")], "n1", "a", [0, 2]),
    "one endpoint without: zone hints are off": ([("a", ""), ("b", ""), ("", "")], "n1", "a", [0, 1, 2]),
    "none is for my zone: everyone": ([("b", ""), ("c", "")], "n1", "a", [0, 1]),
    "an endpoint for two zones is for both": ([("b a", ""), ("b", "")], "n1", "a", [0]),
    "an endpoint hinted twice for one zone counts once": ([("a a", ""), ("b", "")], "n1", "a", [0]),
    "my zone is unknown: everyone": ([("a", ""), ("b", "")], "n1", None, [0, 1]),
    "my zone is empty: everyone": ([("a", ""), ("b", "")], "n1", "", [0, 1]),
    "every endpoint for a node: those for mine": ([("", "n1"), ("", "n2")], "n1", "a", [0]),
    "node hints come before zone hints": ([("a", "n2"), ("b", "n1"), ("a", "n3")], "n1", "a", [1]),
    "none is for my node: those for my zone": ([("a", "n2"), ("b", "n3")], "n1", "a", [0]),
    "one endpoint without node hint: those for my zone": ([("a", "n1"), ("a", ""), ("b", "n3")], "n1", "a", [0, 1]),
    "neither my node nor my zone: everyone": ([("b", "n2"), ("c", "n3")], "n1", "a", [0, 1]),
    "my node, my zone unknown: those for my node": ([("a", "n1"), ("b", "n2")], "n1", None, [0]),
}


@pytest.mark.parametrize(("hints", "node_name", "topology_zone", "kept"), HINTED.values(), ids=HINTED)
def test_hints_keep(hints: list[tuple[str, str]], node_name: str, topology_zone: str | None, kept: list[int]) -> None:
    endpoints = [
        endpoint(f"10.0.0.{number}", zone_hints=zones.split(), node_hints=nodes.split())
        for number, (zones, nodes) in enumerate(hints)
    ]
    expected = tuple(endpoints[number] for number in kept)
    assert hinted(pool_of(*endpoints), node_name, in_zone(topology_zone)).endpoints == expected


def test_hints_go_by_ready_endpoints_only() -> None:
    pool = pool_of(
        endpoint("10.0.0.1", zone_hints=["a"]),
        endpoint("10.0.0.2", zone_hints=["b"]),
        endpoint("10.0.0.3", ready=False),
    )
    assert hinted(pool, "n1", in_zone("a")).addresses == addresses("10.0.0.1")


def test_hints_of_one_family_do_not_switch_off_those_of_the_other() -> None:
    dual = backends(
        endpoint_slice("db", endpoint("10.0.0.1", zone_hints=["a"]), endpoint("10.0.0.2", zone_hints=["b"])),
        endpoint_slice("db", endpoint("fd00::1"), endpoint("fd00::2")),
    )
    assert hinted(dual.pools[4], "n1", in_zone("a")).addresses == addresses("10.0.0.1")
    assert hinted(dual.pools[6], "n1", in_zone("a")).addresses == addresses("fd00::1", "fd00::2")


def test_hints_of_endpoints_that_are_not_ready_have_no_effect() -> None:
    terminating = [
        endpoint(f"10.0.0.{at}", ready=False, serving=True, terminating=True, zone_hints=[zone], node_hints=[f"n{at}"])
        for at, zone in enumerate("ab", 1)
    ]
    pool = Backends([endpoint_slice("db", *terminating)], lambda _name: None, terminating_fallback=True).pools[4]
    assert hinted(pool, "n1", in_zone("a")) is pool.everyone
    assert not goes_by_zone(pool, "n3")
