"""EndpointSlices and Endpoints, as kubectl prints them, to the model."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kubectl_documents import Document, decoded, document
from tests.support.model_builders import packed
from topodns.cluster.decode.objects import Decoded, DecodeError, decode_again, decode_object, decode_whole
from topodns.cluster.model import Alias, Endpoint, EndpointPort, EndpointSlice

IMPORT_NAME, SOURCE_CLUSTER = (f"multicluster.kubernetes.io/{each}" for each in ("service-name", "source-cluster"))


def decoded_slice(*endpoints: Document, metadata: Document | None = None, **fields: Any) -> EndpointSlice:
    labelled = {"labels": {"kubernetes.io/service-name": "db"}} | (metadata or {})
    fields = {"addressType": "IPv4", "endpoints": list(endpoints), "ports": None} | fields
    value = decoded(document("EndpointSlice", "db-x7k2p", labelled, **fields))
    assert isinstance(value, EndpointSlice)
    return value


def decoded_endpoint(**fields: Any) -> Endpoint:
    (endpoint,) = decoded_slice({"addresses": ["10.0.0.1"], **fields}).endpoints
    return endpoint


# EndpointSlices


def test_a_slice_belongs_to_the_service_of_its_label() -> None:
    one = decoded_slice(metadata={"generation": 7}, ports=[{"name": "sql", "port": 5432, "protocol": "TCP"}])
    assert one == EndpointSlice(
        "shop", "db-x7k2p", "db", "IPv4", ports=(EndpointPort("sql", "TCP", 5432),), generation=7
    )


def test_a_slice_without_the_label_belongs_to_no_service() -> None:
    assert decoded_slice(metadata={"labels": {"app": "db"}}).service_name == ""


def test_a_slice_of_an_imported_service_names_the_cluster_it_is_from() -> None:
    one = decoded_slice(
        metadata={
            "labels": {
                "multicluster.kubernetes.io/service-name": "db",
                "multicluster.kubernetes.io/source-cluster": "east",
                "kubernetes.io/service-name": "derived-8a7f",
            }
        }
    )
    assert (one.service_name, one.imported, one.cluster_id) == ("db", True, "east")


@pytest.mark.parametrize(
    ("labels", "topology"),
    [
        (
            {"multicluster.kubernetes.io/service-name": "db", "multicluster.kubernetes.io/source-cluster": "East"},
            {"rack": "7", "cluster": "east"},
        ),
        ({"multicluster.kubernetes.io/service-name": "db"}, {"rack": "7"}),
        ({"kubernetes.io/service-name": "db"}, {"rack": "7", "cluster": "forged"}),
    ],
)
def test_an_imported_endpoint_is_in_the_cluster_of_its_slice_whatever_its_topology(
    labels: dict[str, str], topology: dict[str, str]
) -> None:
    source = {"addresses": ["10.0.0.1"], "deprecatedTopology": {"rack": "7", "cluster": "forged"}}
    one = decoded_slice(source, metadata={"labels": labels})
    assert one.endpoints[0].topology == topology


def test_an_endpoint_has_all_that_dns_and_topology_ask_for() -> None:
    endpoint = decoded_endpoint(
        conditions={"ready": True, "serving": True, "terminating": False},
        hostname="db-0",
        nodeName="n1",
        zone="a",
        hints={"forZones": [{"name": "a"}, {"name": "b"}], "forNodes": [{"name": "n1"}]},
        targetRef={"kind": "Pod", "name": "db-0-pod", "namespace": "shop", "uid": "1"},
    )
    assert endpoint == Endpoint(
        packed("10.0.0.1"),
        hostname="db-0",
        node_name="n1",
        topology_zone="a",
        pod_name="db-0-pod",
        zone_hints=("a", "b"),
        node_hints=("n1",),
    )


CONDITIONS = {
    "none at all": (None, (True, True, False)),
    "all unset": ({}, (True, True, False)),
    "ready unset": ({"ready": None, "terminating": None}, (True, True, False)),
    "not ready": ({"ready": False}, (False, False, False)),
    "serving while terminating": ({"ready": False, "serving": True, "terminating": True}, (False, True, True)),
    "ready while terminating": ({"ready": True, "serving": True, "terminating": True}, (True, True, True)),
}


@pytest.mark.parametrize(("conditions", "expected"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_unset_conditions_are_read_as_the_api_defines(
    conditions: Document | None, expected: tuple[bool, bool, bool]
) -> None:
    endpoint = decoded_endpoint(conditions=conditions)
    assert (endpoint.ready, endpoint.serving, endpoint.terminating) == expected


CLUSTER_IDS = {"east": "east", "C1.eu": "C1.eu", "a..b": "", ".a": "", "a.": "", "x" * 64: "", "k\u00f6ln": "", "": ""}


@pytest.mark.parametrize(("text", "cluster_id"), CLUSTER_IDS.items())
def test_a_cluster_id_is_a_subdomain_and_any_other_text_costs_the_slice_nothing_else(
    text: str, cluster_id: str
) -> None:
    labels = {
        "multicluster.kubernetes.io/service-name": "db",
        "multicluster.kubernetes.io/source-cluster": text,
    }
    one = decoded_slice({"addresses": ["10.0.0.1"]}, metadata={"labels": labels})
    assert (one.cluster_id, len(one.endpoints)) == (cluster_id, 1)


def test_every_address_of_an_endpoint_is_an_endpoint() -> None:
    one = decoded_slice({"addresses": ["10.0.0.1", "10.0.0.2"], "hostname": "db-0"})
    assert one.endpoints == (
        Endpoint(packed("10.0.0.1"), hostname="db-0"),
        Endpoint(packed("10.0.0.2"), hostname="db-0"),
    )


TARGETS = {
    "a Pod": ({"kind": "Pod", "name": "db-0", "namespace": "shop"}, ("db-0", "")),
    "a Pod without a namespace": ({"kind": "Pod", "name": "db-0"}, ("db-0", "")),
    "a Pod of another namespace": ({"kind": "Pod", "name": "db-0", "namespace": "another"}, ("", "db-0")),
    "a Node": ({"kind": "Node", "name": "node-x"}, ("", "node-x")),
    "an object of a custom kind": ({"kind": "VirtualMachine", "name": "vm-0", "namespace": "shop"}, ("", "vm-0")),
    "an object of no kind": ({"name": "vm-0"}, ("", "vm-0")),
    "a name that no object has": ({"kind": "Node", "name": "kn\u00f6ten"}, ("", "")),
}


@pytest.mark.parametrize(("target", "names"), TARGETS.values(), ids=TARGETS)
def test_any_target_names_an_endpoint_but_only_a_pod_of_its_namespace_is_one(
    target: Document, names: tuple[str, str]
) -> None:
    endpoint = decoded_endpoint(targetRef=target)
    assert (endpoint.pod_name, endpoint.other_target) == names
    subset = {"addresses": [{"ip": "10.0.0.1", "targetRef": target}]}
    (mirrored,) = decode_object("Endpoints", document("Endpoints", "db", subsets=[subset]))
    assert isinstance(mirrored, EndpointSlice)
    assert (mirrored.endpoints[0].pod_name, mirrored.endpoints[0].other_target) == names


def test_what_is_too_long_to_be_the_name_of_a_pod_or_a_zone_is_not_kept() -> None:
    longest = decoded_endpoint(targetRef={"kind": "Pod", "name": "p" * 253}, zone="z" * 63)
    assert (len(longest.pod_name), len(longest.topology_zone or "")) == (253, 63)
    longer = decoded_endpoint(targetRef={"kind": "Pod", "name": "p" * 254}, zone="z" * 64)
    assert (longer.pod_name, longer.topology_zone) == ("", None)


def test_the_topology_map_of_old_slices_says_node_and_zone_where_the_fields_do_not() -> None:
    topology = {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a"}
    endpoint = decoded_endpoint(topology=topology)
    assert (endpoint.node_name, endpoint.topology_zone, endpoint.topology) == ("n1", "a", topology)


def test_the_fields_of_a_slice_win_over_its_topology_map() -> None:
    topology = {"topology.kubernetes.io/zone": "a", "example.com/rack": "7"}
    endpoint = decoded_endpoint(nodeName="n2", zone="b", deprecatedTopology=topology)
    assert (endpoint.node_name, endpoint.topology_zone, endpoint.topology) == ("n2", "b", topology)


def test_a_v1beta1_slice_is_read_like_a_v1_one() -> None:
    source = document("EndpointSlice", addressType="IPv4", endpoints=[{"addresses": ["10.0.0.1"]}])
    assert decode_object("EndpointSlice", {**source, "apiVersion": "discovery.k8s.io/v1beta1"}) == (decoded(source),)


def test_ports_may_be_without_a_name_or_a_number() -> None:
    one = decoded_slice(ports=[{"name": None, "port": 80}, {"name": "any", "port": None}, {"name": "", "port": 81}])
    assert one.ports == (EndpointPort("", "TCP", 80), EndpointPort("any", "TCP", None), EndpointPort("", "TCP", 81))


def test_a_slice_may_print_null_for_its_lists() -> None:
    one = decoded_slice(endpoints=None, ports=None)
    assert (one.endpoints, one.ports) == ((), ())


def test_an_fqdn_slice_has_an_alias_for_each_host_name() -> None:
    one = decoded_slice(
        {"addresses": ["db.example.com", "db.example.net"], "hostname": "db-0", "zone": "a"},
        {"addresses": ["x" * 256, "Y.example"], "conditions": {"ready": False}, "targetRef": {"name": "vm-0"}},
        {"addresses": None},
        addressType="FQDN",
    )
    assert (one.address_type, one.endpoints) == ("FQDN", ())
    assert one.aliases == (
        Alias("db.example.com", "db-0", "a"),
        Alias("db.example.net", "db-0", "a"),
        Alias("Y.example", ready=False, other_target="vm-0"),
    )


def test_a_slice_of_an_unknown_address_type_has_no_endpoints_either() -> None:
    """A manifest may have any; in an index of addresses it would be between the slices that are read."""
    assert decoded_slice({"addresses": ["10.0.0.1"]}, addressType="IPv5").endpoints == ()
    assert decoded_slice({"addresses": ["10.0.0.1"]}, addressType="").endpoints


def test_an_ipv4_mapped_address_is_the_ipv4_address() -> None:
    one = decoded_slice({"addresses": ["::ffff:10.0.0.1"]}, addressType="IPv6")
    assert one.endpoints == (Endpoint(packed("10.0.0.1")),)


# v1 Endpoints


def test_an_endpoints_becomes_a_mirrored_slice_per_subset_and_family() -> None:
    source = document(
        "Endpoints",
        "db",
        subsets=[
            {
                "addresses": [
                    {
                        "ip": "10.0.0.1",
                        "hostname": "db-0",
                        "nodeName": "n1",
                        "targetRef": {"kind": "Pod", "name": "p0"},
                    },
                    {"ip": "fd00::1", "nodeName": "n1"},
                ],
                "notReadyAddresses": [{"ip": "10.0.0.2"}],
                "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}],
            },
            {"addresses": [{"ip": "10.0.0.3"}], "ports": None},
        ],
    )
    slices = decode_object("Endpoints", source)
    ports = (EndpointPort("sql", "TCP", 5432),)
    first = Endpoint(packed("10.0.0.1"), hostname="db-0", node_name="n1", pod_name="p0")
    second = Endpoint(packed("10.0.0.2"), ready=False, serving=False)
    assert slices == (
        EndpointSlice("shop", "db/0/IPv4", "db", "IPv4", ports, (first, second), mirrored=True),
        EndpointSlice(
            "shop", "db/0/IPv6", "db", "IPv6", ports, (Endpoint(packed("fd00::1"), node_name="n1"),), mirrored=True
        ),
        EndpointSlice("shop", "db/1/IPv4", "db", "IPv4", (), (Endpoint(packed("10.0.0.3")),), mirrored=True),
    )
    assert decode_object("Endpoints", json.dumps(source).encode()) == slices


LEFT_ALONE: dict[str, tuple[Document, int]] = {
    "no metadata": ({}, 1),
    "the label": ({"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, 0),
    "another value of the label": ({"labels": {"endpointslice.kubernetes.io/skip-mirror": "True"}}, 1),
    "the lock of a leader": ({"annotations": {"control-plane.alpha.kubernetes.io/leader": ""}}, 0),
    "other annotations": ({"annotations": {"example.com/leader": "a"}, "labels": None}, 1),
}


@pytest.mark.parametrize(("metadata", "slices"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_an_endpoints_that_the_control_plane_would_not_mirror_is_nothing(metadata: Document, slices: int) -> None:
    source = document("Endpoints", "db", metadata, subsets=[{"addresses": [{"ip": "10.0.0.1"}]}])
    assert len(decode_object("Endpoints", source)) == slices


def test_of_each_subset_the_first_thousand_addresses_are_mirrored_and_ready_ones_first() -> None:
    ready, others = ([{"ip": f"10.{part}.{at >> 8}.{at & 255}"} for at in range(600)] for part in (1, 2))
    subset = {"notReadyAddresses": others, "addresses": ready}
    slices = decode_object("Endpoints", document("Endpoints", "db", subsets=[subset, subset]))
    mirrored = [one.endpoints for one in slices if isinstance(one, EndpointSlice)]
    assert [sum(each.ready for each in endpoints) for endpoints in mirrored] == [600, 600]
    assert [len(endpoints) for endpoints in mirrored] == [1000, 1000]


def test_an_endpoints_without_subsets_is_nothing() -> None:
    assert decode_object("Endpoints", document("Endpoints", subsets=None)) == ()


def test_a_slice_of_more_than_two_thousand_addresses_is_refused() -> None:
    def of(number: int) -> Document:
        endpoints = [{"addresses": [f"10.0.{at}.{each}" for each in range(100)]} for at in range(number // 100)]
        return document("EndpointSlice", addressType="IPv4", endpoints=endpoints)

    found = decoded(of(2000))
    assert isinstance(found, EndpointSlice)
    assert len(found.endpoints) == 2000
    with pytest.raises(DecodeError, match="expected at most 2000 addresses, found 2100"):
        decode_object("EndpointSlice", of(2100))


# A slice of which an earlier version is held


def again(source: Document, held: EndpointSlice | None) -> Decoded[Any] | str:
    """The slice decoded again, or the problem with it."""
    try:
        found = decode_again(lambda _kind, _key: held, "EndpointSlice", json.dumps(source).encode())
    except DecodeError as problem:
        return str(problem)
    assert found is not None
    return found


def whole(source: Document) -> Decoded[Any] | str:
    try:
        found = decode_whole("EndpointSlice", json.dumps(source).encode())
    except DecodeError as problem:
        return str(problem)
    assert found is not None
    return found


def of_version(*endpoints: Document, **fields: Any) -> Document:
    labels = {"labels": {"kubernetes.io/service-name": "db"}}
    return document("EndpointSlice", "db-x7k2p", labels, addressType="IPv4", endpoints=list(endpoints)) | fields


def pod(number: int, **fields: Any) -> Document:
    return {"addresses": [f"10.0.0.{number}"], "nodeName": f"node{number}", **fields}


def slice_again(source: Document, held: EndpointSlice | None = None) -> EndpointSlice:
    found = again(source, held)
    assert not isinstance(found, str)
    (one,) = found.objects
    assert isinstance(one, EndpointSlice)
    return one


def test_endpoints_that_the_held_version_has_are_the_same_objects() -> None:
    held = slice_again(of_version(pod(1), pod(2), pod(3)))
    new = slice_again(of_version(pod(3), pod(4), pod(1, hostname="a"), pod(2)), held)
    assert [each.address[-1] for each in new.endpoints] == [3, 4, 1, 2]
    assert new.endpoints[0] is held.endpoints[2]
    assert new.endpoints[3] is held.endpoints[1]
    assert new.endpoints[2].hostname == "a"
    assert slice_again(of_version(pod(4)), new).endpoints[0] is new.endpoints[1]


def test_endpoints_of_another_cluster_of_the_set_are_none_of_the_held_version() -> None:
    def imported(cluster: str) -> Document:
        labels = {IMPORT_NAME: "db", SOURCE_CLUSTER: cluster}
        return of_version(pod(1)) | {"metadata": {"namespace": "shop", "name": "db-x7k2p", "labels": labels}}

    held = slice_again(imported("east"))
    assert slice_again(imported("west"), held) == whole(imported("west")).objects[0]  # type: ignore[union-attr]
    assert slice_again(of_version(pod(1)), held) == whole(of_version(pod(1))).objects[0]  # type: ignore[union-attr]


ENDPOINTS: Final = (
    *(pod(number) for number in range(1, 5)),
    pod(1, conditions={"ready": False}),
    pod(2, hostname="a.b"),
    pod(3, zone="z1", hints={"forZones": [{"name": "z1"}]}, targetRef={"kind": "Pod", "name": "p"}),
    {"addresses": ["10.0.0.5", "10.0.0.6"]},
    {"addresses": ["10.0.0.300"]},
    {"addresses": []},
    {"addresses": ["fd00::1"]},
    {"addresses": "10.0.0.7"},
    {"addresses": ["10.0.0.8"], "nodeName": 8},
)
FIELDS: Final[tuple[Document, ...]] = (
    *({},) * 6,
    {"addressType": "FQDN"},
    {"addressType": "MAC"},
    {"ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}]},
    {"ports": [{"name": "sql", "port": 70000}]},
    {"ports": [{"name": 1}]},
    {"apiVersion": "discovery.k8s.io/v2"},
    {"endpoints": None},
    {"endpoints": {}},
)


@given(st.lists(st.tuples(st.lists(st.sampled_from(ENDPOINTS), max_size=5), st.sampled_from(FIELDS)), max_size=6))
def test_decoded_again_each_version_is_what_it_is_decoded_alone(
    versions: list[tuple[list[Document], Document]],
) -> None:
    held: EndpointSlice | None = None
    for endpoints, fields in versions:
        source = of_version(*endpoints, **fields)
        if "apiVersion" in fields:
            assert decode_again(lambda *_: None, "EndpointSlice", json.dumps(source).encode()) is None
            continue
        found = again(source, held)
        assert found == whole(source)
        held = held if isinstance(found, str) else found.objects[0]
