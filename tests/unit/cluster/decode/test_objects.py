"""Kubernetes API objects, as kubectl prints them, to the model: the value of each field, and refusals."""

import json
import re
from contextlib import suppress
from sys import getsizeof
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kubectl_documents import API_VERSIONS, Document, decoded, document
from tests.support.model_builders import packed, packed_cidr
from topodns.cluster.annotations import TOPOLOGY_KEYS, BadAnnotation
from topodns.cluster.decode.objects import DecodeError, decode_object, decode_whole
from topodns.cluster.decode.structs import WIDE
from topodns.cluster.label_selector import parse_selector
from topodns.cluster.model import (
    MAX_KEYS_TEXT,
    MAX_PORTS,
    ClusterObject,
    ClusterProperty,
    Endpoint,
    EndpointSlice,
    MisannotatedPod,
    Namespace,
    Node,
    ObjectKey,
    Pod,
    Service,
    ServicePort,
    StatefulSet,
    TopologyInputs,
)


def decoded_service(**spec: Any) -> Service:
    value = decoded(document("Service", spec=spec))
    assert isinstance(value, Service)
    return value


def decoded_node(metadata: Document | None = None, **fields: Any) -> Node:
    value = decoded(document("Node", "n1", metadata, **fields))
    assert isinstance(value, Node)
    return value


def decoded_pods(metadata: Document | None = None, **fields: Any) -> tuple[ClusterObject, ...]:
    source = document("Pod", "db-0", metadata, **fields)
    values = decode_object("Pod", source)
    assert decode_object("Pod", json.dumps(source).encode()) == values
    return values


def problem_of(source: Document | bytes, kind: str = "") -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode_object(kind or (source["kind"] if isinstance(source, dict) else "Service"), source)
    return caught.value


# Namespaces and Nodes


def test_a_namespace_is_its_name_and_labels() -> None:
    source = document("Namespace", "shop", {"labels": {"team": "a"}}, spec={"finalizers": ["kubernetes"]})
    assert decoded(source) == Namespace("shop", {"team": "a"})


def test_a_node_has_the_fields_that_locate_clients_and_endpoints() -> None:
    node = decoded_node(
        {
            "labels": {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a"},
            "creationTimestamp": "2024-05-01T10:00:00Z",
        },
        spec={"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24", "fd00:10:244:1::/64"]},
        status={
            "addresses": [
                {"type": "InternalIP", "address": "192.168.0.11"},
                {"type": "InternalIP", "address": "fd00::11"},
                {"type": "ExternalIP", "address": "203.0.113.11"},
                {"type": "Hostname", "address": "10.9.9.9"},
                {"type": "InternalDNS", "address": "n1.internal"},
            ],
            "conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
        },
    )
    assert node == Node(
        name="n1",
        labels={"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a"},
        addresses=(packed("192.168.0.11"), packed("fd00::11"), packed("203.0.113.11")),
        pod_cidrs=(packed_cidr("10.244.1.0/24"), packed_cidr("fd00:10:244:1::/64")),
        created="2024-05-01T10:00:00Z",
        ready=True,
    )
    assert node.key == ObjectKey("", "n1")


TUNNELS = {
    "flannel": ({"flannel.alpha.coreos.com/public-ip": "192.0.2.1"}, ["192.0.2.1"]),
    "Calico IPIP": ({"projectcalico.org/IPv4IPIPTunnelAddr": "10.244.9.0"}, ["10.244.9.0"]),
    "Calico VXLAN of both families": (
        {
            "projectcalico.org/IPv4VXLANTunnelAddr": "10.244.9.1",
            "projectcalico.org/IPv6VXLANTunnelAddr": "fd00:244::1",
        },
        ["10.244.9.1", "fd00:244::1"],
    ),
    "Calico WireGuard": ({"projectcalico.org/IPv4WireguardInterfaceAddr": "10.244.9.2"}, ["10.244.9.2"]),
    "Cilium": (
        {"network.cilium.io/ipv4-cilium-host": "10.0.1.7", "network.cilium.io/ipv6-cilium-host": "fd00::7"},
        ["10.0.1.7", "fd00::7"],
    ),
    "Cilium before 1.12": ({"io.cilium.network.ipv4-cilium-host": "10.0.1.8"}, ["10.0.1.8"]),
    "the same address twice": (
        {"network.cilium.io/ipv4-cilium-host": "10.0.1.7", "io.cilium.network.ipv4-cilium-host": "10.0.1.7"},
        ["10.0.1.7"],
    ),
    "an address with its prefix length": ({"projectcalico.org/IPv4IPIPTunnelAddr": "10.244.9.0/32"}, ["10.244.9.0"]),
    "an address that is none": ({"projectcalico.org/IPv4IPIPTunnelAddr": "soon"}, []),
    "another annotation": ({"example.com/address": "10.0.1.9"}, []),
}


@pytest.mark.parametrize(("annotations", "addresses"), TUNNELS.values(), ids=TUNNELS.keys())
def test_tunnel_addresses_come_from_the_annotations_of_cnis(annotations: Document, addresses: list[str]) -> None:
    assert decoded_node({"annotations": annotations}).tunnel_addresses == tuple(map(packed, addresses))


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_node_is_as_ready_as_its_condition_says(status: str, ready: bool) -> None:
    assert decoded_node(status={"conditions": [{"type": "Ready", "status": status}]}).ready is ready


def test_a_node_without_the_ready_condition_is_ready() -> None:
    assert decoded_node(status={"conditions": None}).ready


def test_a_node_address_that_is_no_ip_is_left_out() -> None:
    addresses = [{"type": "InternalIP", "address": "n1.internal"}, {"type": "InternalIP", "address": "10.0.0.1"}]
    assert decoded_node(status={"addresses": addresses}).addresses == (packed("10.0.0.1"),)


def test_pod_cidr_is_read_where_pod_cidrs_is_missing() -> None:
    assert decoded_node(spec={"podCIDR": "10.244.1.0/24"}).pod_cidrs == (packed_cidr("10.244.1.0/24"),)


# Services and ServiceImports


def test_a_cluster_ip_service_has_addresses_and_ports() -> None:
    ports = [
        {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web", "nodePort": 30080},
        {"port": 53, "protocol": "UDP"},
        {"port": 54},
    ]
    ips = ["10.96.0.7", "fd00:96::7"]
    service = decoded_service(type="NodePort", clusterIP=ips[0], clusterIPs=ips, ports=ports, selector={"app": "web"})
    assert service == Service(
        namespace="shop",
        name="web",
        cluster_ips=(packed("10.96.0.7"), packed("fd00:96::7")),
        ports=(ServicePort("http", "TCP", 80), ServicePort("", "UDP", 53), ServicePort("", "TCP", 54)),
    )


KINDS_OF_SERVICE = {
    "clusterIPs None": ({"clusterIPs": ["None"], "clusterIP": "None"}, [], True, None),
    "clusterIP None alone": ({"clusterIP": "None"}, [], True, None),
    "clusterIP alone": ({"clusterIP": "10.96.0.7"}, ["10.96.0.7"], False, None),
    "no address yet": ({"clusterIP": ""}, [], False, None),
    "ExternalName": ({"type": "ExternalName", "externalName": "db.Example.com."}, [], False, "db.Example.com."),
    "ExternalName that was a ClusterIP": (
        {"type": "ExternalName", "externalName": "db.example.com", "clusterIPs": ["10.96.0.7"]},
        [],
        False,
        "db.example.com",
    ),
    "externalName on another type": (
        {"clusterIP": "10.96.0.7", "externalName": "x.example"},
        ["10.96.0.7"],
        False,
        None,
    ),
}


@pytest.mark.parametrize(
    ("spec", "ips", "headless", "external_name"), KINDS_OF_SERVICE.values(), ids=KINDS_OF_SERVICE.keys()
)
def test_a_service_is_headless_external_or_has_addresses(
    spec: Document, ips: list[str], headless: bool, external_name: str | None
) -> None:
    service = decoded_service(**spec)
    assert service.cluster_ips == tuple(map(packed, ips))
    assert service.headless is headless
    assert service.external_name == external_name


def test_the_families_of_a_headless_service_with_a_selector_are_those_of_its_slices() -> None:
    spec = {"clusterIP": "None", "ipFamilies": ["IPv6", "IPv4"], "selector": {"app": "db"}}
    assert decoded_service(**spec).ip_families == ("IPv6", "IPv4")
    assert decoded_service(**spec).ip_families is decoded_service(**spec).ip_families, "10,000 Services share one tuple"


@pytest.mark.parametrize(
    "spec",
    [
        {"clusterIP": "10.96.0.1"},
        {"type": "ExternalName", "externalName": "example.org"},
        {"clusterIP": "None", "selector": None},
        {"clusterIP": "None", "selector": {}},
        {"clusterIP": "None", "ipFamilies": None},
        {"clusterIP": "None", "ipFamilies": ["IPv5"]},
    ],
)
def test_no_slice_of_each_family_is_expected_of_another_service(spec: Document) -> None:
    """To a headless Service without a selector the API server gives both families in any cluster."""
    service = decoded_service(**{"ipFamilies": ["IPv4", "IPv6"], "selector": {"app": "db"}, **spec})
    assert service.ip_families == ()


OUTSIDE = {
    "nothing": ({}, {}, (), ()),
    "addresses of its own, then those of its load balancer": (
        {"externalIPs": ["192.0.2.1"]},
        {"loadBalancer": {"ingress": [{"ip": "2001:db8::1"}, {"ip": "192.0.2.2", "hostname": "lb.example"}]}},
        ("192.0.2.1", "2001:db8::1", "192.0.2.2"),
        (),
    ),
    "a load balancer with a name only": (
        {},
        {"loadBalancer": {"ingress": [{"hostname": "lb.example", "ipMode": "VIP"}]}},
        (),
        ("lb.example",),
    ),
    "a load balancer that is not there yet": ({}, {"loadBalancer": {}}, (), ()),
    "nulls": ({"externalIPs": None}, {"loadBalancer": {"ingress": None}}, (), ()),
    "an address that is none": ({"externalIPs": ["192.0.2.1", "x"]}, {}, ("192.0.2.1",), ()),
}


@pytest.mark.parametrize(("spec", "status", "ips", "hostnames"), OUTSIDE.values(), ids=OUTSIDE)
def test_a_service_is_reached_from_outside_at(
    spec: Document, status: Document, ips: tuple[str, ...], hostnames: tuple[str, ...]
) -> None:
    service = decoded(document("Service", spec={"clusterIP": "10.96.0.1", **spec}, status=status))
    assert isinstance(service, Service)
    assert (service.external_ips, service.external_hostnames) == (tuple(map(packed, ips)), hostnames)


def test_whatever_a_service_says_about_topology_is_taken_over_unread() -> None:
    annotations = {
        "topodns.io/topology-keys": " a,b",
        "topodns.io/ttl": "ten",
        "topodns.io/min-endpoints": "two",
        "openyurt.io/topologyKeys": "openyurt.io/nodepool",
        "topologyKeys": '["zone1"]',
    }
    spec = {
        "clusterIP": "None",
        "topologyKeys": ["kubernetes.io/hostname", "*"],
        "trafficDistribution": "PreferClose",
        "internalTrafficPolicy": "Local",
    }
    service = decoded(document("Service", metadata={"annotations": annotations}, spec=spec))
    assert isinstance(service, Service)
    assert service.topology == TopologyInputs(
        annotation=" a,b",
        field=("kubernetes.io/hostname", "*"),
        openyurt="openyurt.io/nodepool",
        superedge='["zone1"]',
        traffic_distribution="PreferClose",
        internal_traffic_policy="Local",
        ttl="ten",
        min_endpoints="two",
    )


def test_annotations_without_effect_are_kept_by_name() -> None:
    annotations = {"topodns.io/topologykeys": "zone", "example.com/other": "x"}
    service = decoded(document("Service", metadata={"annotations": annotations}))
    assert isinstance(service, Service)
    assert service.topology == TopologyInputs(bad=(BadAnnotation("topodns.io/topologykeys", TOPOLOGY_KEYS),))


@pytest.mark.parametrize("value", [30, True, None, ["zone"], {"a": "b"}])
def test_an_annotation_of_a_manifest_that_is_no_text_costs_no_other_field(value: object) -> None:
    found = decode_whole("Service", document("Service", metadata={"annotations": {TOPOLOGY_KEYS: value}}))
    assert found is not None
    [service] = found.objects
    assert isinstance(service, Service)
    assert service.topology.annotation is None
    assert [each.name for each in service.topology.bad] == [TOPOLOGY_KEYS]
    assert found.left_out == "", "it is a finding about the Service"
    other = decode_whole("Service", document("Service", metadata={"annotations": {"example.com/owner": value}}))
    assert other is not None
    assert other.left_out.startswith("left out metadata.annotations.example.com/owner: expected text, found ")


@pytest.mark.parametrize(
    ("annotation", "field", "most"),
    [
        ("topodns.io/topology-keys", "annotation", MAX_KEYS_TEXT + 1),
        ("topologyKeys", "superedge", MAX_KEYS_TEXT + 1),
        ("openyurt.io/topologyKeys", "openyurt", 103),
        ("topodns.io/ttl", "ttl", 103),
        ("topodns.io/min-endpoints", "min_endpoints", 103),
    ],
)
def test_of_an_annotation_that_is_too_long_only_the_beginning_is_kept(annotation: str, field: str, most: int) -> None:
    text = "30" + " " * 200_000
    service = decoded(document("Service", metadata={"annotations": {annotation: text}}, spec={"clusterIP": "None"}))
    assert isinstance(service, Service)
    kept = getattr(service.topology, field)
    assert (len(kept), kept[:10]) == (most, text[:10])
    assert getsizeof(kept) < most + 100


def test_a_service_that_says_nothing_about_topology_has_no_inputs() -> None:
    assert decoded_service(clusterIP="None", topologyKeys=[]).topology == TopologyInputs()


def test_only_a_pod_with_annotations_of_a_service_has_room_for_them() -> None:
    [plain] = decoded_pods({"annotations": {"example.com/other": "x"}}, status={"podIP": "10.0.0.1"})
    assert type(plain) is Pod
    [pod] = decoded_pods({"annotations": {TOPOLOGY_KEYS: "zone"}}, status={"podIP": "10.0.0.1"})
    assert isinstance(pod, MisannotatedPod)
    assert pod.bad == (BadAnnotation(TOPOLOGY_KEYS, TOPOLOGY_KEYS),)
    assert pod != plain


def test_a_service_import_is_an_imported_service() -> None:
    spec = {"type": "ClusterSetIP", "ips": ["10.97.0.1"], "ports": [{"name": "http", "protocol": "TCP", "port": 80}]}
    assert decoded(document("ServiceImport", spec=spec)) == Service(
        "shop", "web", cluster_ips=(packed("10.97.0.1"),), ports=(ServicePort("http", "TCP", 80),), imported=True
    )


def test_a_headless_service_import_is_headless() -> None:
    service = decoded(document("ServiceImport", spec={"type": "Headless", "ports": []}))
    assert service == Service("shop", "web", headless=True, imported=True)


def test_a_service_import_has_the_keys_of_our_own_annotations_alone() -> None:
    ours = {"topodns.io/topology-keys": "cluster", "topodns.io/ttl": "9", "topodns.io/max-endpoints": "2"}
    metadata = {"annotations": {**ours, "openyurt.io/topologyKeys": "kubernetes.io/zone", "topologyKeys": '["a"]'}}
    service = decoded(document("ServiceImport", metadata=metadata, spec={"type": "Headless", "topologyKeys": ["b"]}))
    assert isinstance(service, Service)
    assert service.topology == TopologyInputs(annotation="cluster", ttl="9", max_endpoints="2")


@pytest.mark.parametrize(
    ("spec", "value"), [({"value": "east"}, "east"), ({"value": "a..b"}, ""), ({}, ""), (None, "")]
)
def test_the_property_with_this_clusters_id_is_read(spec: dict[str, str] | None, value: str) -> None:
    name = "cluster.clusterset.k8s.io"
    source = {"apiVersion": "about.k8s.io/v1alpha1", "metadata": {"name": name}, "spec": spec}
    assert decode_object("ClusterProperty", source) == (ClusterProperty(name, value),)


def test_no_other_property_is_read() -> None:
    source = {"apiVersion": "about.k8s.io/v1alpha1", "metadata": {"name": "clusterset.k8s.io"}, "spec": {"value": "s"}}
    assert decode_object("ClusterProperty", source) == ()


# Pods and StatefulSets


def test_a_pod_is_its_addresses_and_its_node() -> None:
    pods = decoded_pods(
        spec={"nodeName": "n1", "containers": [{"name": "db"}]},
        status={
            "phase": "Running",
            "hostIP": "192.168.0.11",
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "startTime": "2024-05-01T10:00:00Z",
        },
    )
    ips = (packed("10.0.0.1"), packed("fd00::1"))
    assert pods == (Pod("shop", "db-0", ips, node_name="n1", started="2024-05-01T10:00:00Z"),)


def test_pod_ip_is_read_where_pod_ips_is_missing() -> None:
    assert decoded_pods(status={"podIP": "10.0.0.1"}) == (Pod("shop", "db-0", (packed("10.0.0.1"),)),)


def test_a_pod_says_that_it_uses_its_hosts_address_and_that_it_is_going() -> None:
    (pod,) = decoded_pods(
        {"deletionTimestamp": "2024-05-01T11:00:00Z"}, spec={"hostNetwork": True}, status={"podIP": "192.168.0.11"}
    )
    assert isinstance(pod, Pod)
    assert pod.host_network
    assert pod.terminating


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Unknown"])
def test_a_pod_that_is_over_is_not_there(phase: str) -> None:
    assert decoded_pods(spec={"nodeName": "n1"}, status={"phase": phase, "podIP": "10.0.0.1"}) == ()


def test_a_pod_without_an_address_is_not_there() -> None:
    assert decoded_pods(spec={"nodeName": "n1"}, status={"phase": "Pending", "podIPs": []}) == ()


def test_a_stateful_set_is_the_name_of_its_governing_service() -> None:
    source = document("StatefulSet", "db", spec={"serviceName": "db-headless", "replicas": 3})
    assert decoded(source) == StatefulSet("shop", "db", "db-headless")


# What is not ours, and what is broken


NOT_OURS: dict[str, Document] = {
    "a kind that nobody asks for": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}},
    "a kind that does not exist": {"apiVersion": "v1", "kind": "Zone", "metadata": {"name": "web"}},
    "a Service of Knative": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "web"}},
    "a broken object of another group": {"apiVersion": "example.com/v1", "kind": "Service", "metadata": 5},
}


@pytest.mark.parametrize("source", NOT_OURS.values(), ids=NOT_OURS.keys())
def test_an_object_of_another_kind_is_decoded_to_nothing(source: Document) -> None:
    assert decode_object(source["kind"], source) == ()
    assert decode_object(source["kind"], json.dumps(source).encode()) == ()


def test_an_item_of_a_list_needs_no_api_version() -> None:
    source = document("Namespace", "shop")
    del source["apiVersion"]
    assert decoded(source) == Namespace("shop")


def test_an_object_without_a_namespace_is_in_default() -> None:
    source = document("Service", metadata={"namespace": None}, spec={"clusterIP": "None"})
    assert decoded(source) == Service("default", "web", headless=True)


def test_a_selector_lets_only_matching_objects_in() -> None:
    source = document("Service", metadata={"labels": {"app": "web"}}, spec={})
    assert decode_object("Service", source, parse_selector("app=web"))
    assert decode_object("Service", source, parse_selector("app=db")) == ()
    assert decode_object("Service", document("Service"), parse_selector("app")) == ()


BROKEN: dict[str, tuple[Document, str, str]] = {
    "a field of the wrong type": (
        document("Service", spec={"ports": "x"}),
        "shop/web",
        r"Expected `array \| null`, got `str` - at `\$\.spec\.ports`",
    ),
    "a Service of no name": (document("Service", ""), "shop/", r"^metadata\.name: empty$"),
    "a ServiceImport of no name": (document("ServiceImport", ""), "shop/", r"^metadata\.name: empty$"),
    "an Endpoints of no name": (document("Endpoints", ""), "shop/", r"^metadata\.name: empty$"),
    "a name that is too long for a label": (
        document("Service", "a" * 64),
        f"shop/{'a' * 64}",
        r"^metadata\.name: longer than 63 octets$",
    ),
    "a Service's name that is too long for a label": (
        document("EndpointSlice", metadata={"labels": {"kubernetes.io/service-name": "a" * 64}}),
        "shop/web",
        r"^the label kubernetes\.io/service-name: longer than 63 octets$",
    ),
    "the only ClusterIP": (document("Service", spec={"clusterIP": "10.96.0"}), "shop/web", r"^spec\.clusterIP: '10"),
    "the only pod CIDR": (document("Node", "n1", spec={"podCIDR": "10.0.0.0/33"}), "shop/n1", r"^spec\.podCIDR: "),
    "a Pod's only address": (document("Pod", status={"podIP": "?"}), "shop/web", r"^status\.podIP: "),
    "a generation of more than 63 bits": (
        document("EndpointSlice", metadata={"generation": 2**63}),
        "shop/web",
        r"^metadata\.generation: not in 0\.\.9223372036854775807$",
    ),
    "a label that is no text": (document("Namespace", metadata={"labels": {"a": 1}}), "shop/web", "Expected `str`"),
    "no metadata": ({"apiVersion": "v1", "kind": "Node"}, "", "missing required field `metadata`"),
    "no name": ({"apiVersion": "v1", "kind": "Node", "metadata": {}}, "", "missing required field `name`"),
    "a name that is no text": ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": 7}}, "", "Expected `str`"),
}


@pytest.mark.parametrize(("source", "name", "problem"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_object_is_refused_by_name_with_the_field(source: Document, name: str, problem: str) -> None:
    for form in (source, json.dumps(source).encode()):
        error = problem_of(form, source["kind"])
        assert (error.kind, error.name) == (source["kind"], name)
        assert re.search(problem, error.problem)


def test_a_parsed_document_with_half_of_a_surrogate_pair_is_refused_by_its_readable_name() -> None:
    error = problem_of(document("Service", metadata={"annotations": {"topodns.io/topology-keys": "\ud800"}}))
    assert (error.name, error.problem.rpartition(": ")[2]) == ("shop/web", "surrogates not allowed")
    assert problem_of({"metadata": {"name": "\ud800"}}, "Namespace").name == ""


def test_an_error_reads_as_one_line() -> None:
    error = problem_of(document("Service", spec={"clusterIP": "x"}))
    assert str(error) == "Service shop/web: spec.clusterIP: 'x' does not appear to be an IPv4 or IPv6 address"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'{"metadata":', b"\xff", b'{"x":' + b"[" * 100_000])
def test_bytes_that_are_no_object_are_refused(text: bytes) -> None:
    assert problem_of(text).name == ""


FIELDS = st.sampled_from(
    [
        "metadata",
        "name",
        "labels",
        "spec",
        "status",
        "endpoints",
        "addresses",
        "subsets",
        "ports",
        "ip",
        "podIPs",
        "type",
    ]
)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.just("10.0.0.1")
)


JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4))


@given(st.sampled_from(sorted({*API_VERSIONS, "Namespace", "Node", "Service", "Endpoints", "Pod"})), JSON, JSON, JSON)
def test_no_document_raises_anything_but_a_decode_error(kind: str, spec: Any, status: Any, rest: Any) -> None:
    source = {"metadata": {"name": "x"}, "spec": spec, "status": status, "subsets": rest, "endpoints": rest}
    for form in (source, json.dumps(source).encode()):
        with suppress(DecodeError):
            decode_object(kind, form)


def test_names_that_repeat_are_kept_once() -> None:
    def made() -> Endpoint:
        (one,) = decode_object(
            "EndpointSlice",
            b'{"metadata":{"name":"x"},"endpoints":[{"addresses":["10.0.0.1"],"nodeName":"worker-1","zone":"zone-a"}]}',
        )
        assert isinstance(one, EndpointSlice)
        return one.endpoints[0]

    first, second = made(), made()
    assert first.node_name is second.node_name
    assert first.topology_zone is second.topology_zone


def test_a_service_has_its_first_thousand_addresses_outside() -> None:
    source = document("Service", spec={"externalIPs": [f"192.0.{at >> 8}.{at & 255}" for at in range(5000)]})
    found = decoded(source)
    assert isinstance(found, Service)
    assert found.external_ips == tuple(packed(f"192.0.{at >> 8}.{at & 255}") for at in range(1000))


# Lists without a limit in the API: of each only as many elements are read and held as answers can have.

PORTS = [{"name": f"p{number}", "port": number % 65535 + 1} for number in range(30_000)]


def made(**parts: Document | list[Document]) -> Document:
    return {"metadata": {"name": "wide", "namespace": "tenant"}, **parts}


def both_forms(kind: str, source: Document) -> list[Any]:
    """The value as read from an API server's JSON, and from a manifest."""
    octets = json.dumps(source).encode()
    assert len(octets) > WIDE
    return [decode_object(kind, form)[0] for form in (octets, source)]


@pytest.mark.parametrize("kind", ["Service", "ServiceImport"])
def test_the_first_thousand_ports_of_a_service_are_held(kind: str) -> None:
    for value in both_forms(kind, made(spec={"ports": PORTS})):
        assert isinstance(value, Service)
        assert [port.name for port in value.ports] == [f"p{number}" for number in range(MAX_PORTS)]


def test_the_first_thousand_ports_of_a_slice_are_held() -> None:
    for value in both_forms("EndpointSlice", made(ports=PORTS, endpoints=[{"addresses": ["10.0.0.1"]}])):
        assert isinstance(value, EndpointSlice)
        assert [port.name for port in value.ports] == [f"p{number}" for number in range(MAX_PORTS)]
        assert len(value.endpoints) == 1


@pytest.mark.parametrize(("kind", "field"), [("Service", "externalIPs"), ("ServiceImport", "ips")])
def test_the_first_thousand_addresses_of_a_service_are_held(kind: str, field: str) -> None:
    addresses = [f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(30_000)]
    for value in both_forms(kind, made(spec={field: addresses})):
        assert isinstance(value, Service)
        assert len(value.external_ips or value.cluster_ips) == 1000


def test_an_unreadable_element_behind_those_that_count_costs_nothing() -> None:
    (value,) = decode_object("Service", json.dumps(made(spec={"ports": [*PORTS, "port"]})).encode())
    assert isinstance(value, Service)
    assert len(value.ports) == MAX_PORTS


def test_of_an_endpoint_so_many_hints_and_topology_labels_are_held_as_the_api_allows() -> None:
    endpoint = {
        "addresses": ["10.0.0.1"],
        "deprecatedTopology": {f"k{number}": "v" for number in range(100)},
        "hints": {"forZones": [{"name": f"z{number}"} for number in range(100)]},
    }
    (value,) = decode_object("EndpointSlice", made(endpoints=[endpoint]))
    assert isinstance(value, EndpointSlice)
    assert (len(value.endpoints[0].topology), len(value.endpoints[0].zone_hints)) == (16, 8)


port_lists = st.lists(
    st.fixed_dictionaries(
        {}, optional={"name": st.text("ab", max_size=3), "port": st.integers(1, 65535), "other": st.text(max_size=5)}
    ),
    max_size=20,
)


@given(ports=port_lists, addresses=st.lists(st.ip_addresses(v=4).map(str), max_size=20), none=st.booleans())
@settings(max_examples=50)
def test_a_wide_object_is_read_like_a_narrow_one(ports: list[Document], addresses: list[str], none: bool) -> None:
    spec: Document = {"type": "LoadBalancer", "ports": None if none else ports, "externalIPs": addresses}
    status = {"loadBalancer": None if none else {"ingress": [{"ip": each} for each in addresses]}}
    padding = {"annotations": {"padding": "x" * WIDE}}
    narrow = {"metadata": {"name": "web"}, "spec": spec, "status": status}
    wide = {**narrow, "metadata": {"name": "web", **padding}}
    assert decode_object("Service", json.dumps(narrow).encode()) == decode_object("Service", json.dumps(wide).encode())
