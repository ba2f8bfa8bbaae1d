"""Which changes move the SOA serial: those that CoreDNS counts."""

from dataclasses import replace

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, pod, service
from topodns.cluster.model import Alias, ClusterObject, StatefulSet
from topodns.cluster.soa_serial import counts_in_serial

CLUSTER_IP = service("web", cluster_ips=["10.96.0.7"], ports=["http:80"])
EXTERNAL = service("out", external_name="example.com")
IMPORT = service("web", cluster_ips=["10.97.0.1"], ports=["http:80"], imported=True)
SLICE = endpoint_slice("db", endpoint("10.0.0.1", node="n1", hostname="db-0"), ports=["sql:5432"])
POD = pod("db-0", ["10.0.0.1", "fd00::1"], node="n1")


def with_endpoint(**fields: str | bool) -> ClusterObject:
    return endpoint_slice("db", endpoint("10.0.0.1", **{"node": "n1", "hostname": "db-0"} | fields), ports=["sql:5432"])  # type: ignore[arg-type]


COUNTED = {
    "a port of a Service": (CLUSTER_IP, replace(CLUSTER_IP, ports=())),
    "an external name": (EXTERNAL, service("out", external_name="example.org")),
    "the type of a ServiceImport": (IMPORT, replace(IMPORT, headless=True)),
    "the port of a ServiceImport": (IMPORT, replace(IMPORT, ports=())),
    "an address of a slice": (SLICE, endpoint_slice("db", endpoint("10.0.0.2", hostname="db-0"), ports=["sql:5432"])),
    "a hostname of a slice": (SLICE, with_endpoint(hostname="db-1")),
    "a port of a slice": (SLICE, replace(SLICE, ports=())),
    "an alias in a slice": (SLICE, replace(SLICE, aliases=(Alias("www.example.org"),))),
    "readiness": (SLICE, with_endpoint(ready=False)),
    "the first address of a Pod": (POD, replace(POD, ips=(packed("10.0.0.2"),))),
}
NOT_COUNTED = {
    "the policy of a Service": (service("db"), service("db", annotation="topology.kubernetes.io/zone")),
    "the ClusterIP of a Service": (CLUSTER_IP, replace(CLUSTER_IP, cluster_ips=(packed("10.96.0.8"),))),
    "the node of an endpoint": (SLICE, with_endpoint(node="n2")),
    "the zone of an endpoint": (SLICE, with_endpoint(topology_zone="b")),
    "an endpoint that is not ready": (
        endpoint_slice("db"),
        endpoint_slice("db", endpoint("10.0.0.9", ready=False)),
    ),
    "the second address of a Pod": (POD, replace(POD, ips=POD.ips[:1])),
    "the end of a Pod": (POD, replace(POD, terminating=True)),
    "the labels of a Namespace": (namespace("shop"), namespace("shop", {"team": "a"})),
    "the labels of a Node": (node("n1"), node("n1", {"rack": "7"})),
}
KINDS = {"Service": CLUSTER_IP, "ServiceImport": IMPORT, "EndpointSlice": endpoint_slice("db"), "Pod": POD}
KINDS_WITHOUT = {"Namespace": namespace("shop"), "Node": node("n1"), "StatefulSet": StatefulSet("default", "db", "db")}


@pytest.mark.parametrize(("old", "new"), COUNTED.values(), ids=COUNTED.keys())
def test_a_change_that_shows_in_an_answer_moves_the_serial(old: ClusterObject, new: ClusterObject) -> None:
    assert counts_in_serial(old, new)


@pytest.mark.parametrize(("old", "new"), NOT_COUNTED.values(), ids=NOT_COUNTED.keys())
def test_a_change_that_coredns_does_not_compare_leaves_the_serial(old: ClusterObject, new: ClusterObject) -> None:
    assert not counts_in_serial(old, new)


@pytest.mark.parametrize("value", KINDS.values(), ids=KINDS.keys())
def test_an_object_that_comes_or_goes_moves_the_serial(value: ClusterObject) -> None:
    assert counts_in_serial(None, value)
    assert counts_in_serial(value, None)


@pytest.mark.parametrize("value", KINDS_WITHOUT.values(), ids=KINDS_WITHOUT.keys())
def test_kinds_that_coredns_does_not_count_never_move_the_serial(value: ClusterObject) -> None:
    assert not counts_in_serial(None, value)
    assert not counts_in_serial(value, None)
