"""A dump of a cluster of several hundred objects, served to clients located in every way there is."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.dns_messages import ECS, NODE_IDENTITY, Opt, node_identity, subnet
from tests.support.server_process import METRICS, Server, serving

# A cluster as `kubectl get ns,nodes,svc,endpointslices,pods -A -o yaml` prints it: one List, with all its noise. Three
# topology zones and NODES nodes: node number N has the address 127.20.0.N, and its pods are 127.20.N.P. In each
# namespace `team-T` there are, each with a pod on every node: - `front`, with a ClusterIP, - `near`, headless, whose
# keys are the node, then the topology zone, then any, - `zonal`, headless, whose only key is the topology zone, -
# `plain`, headless, without keys.

NODES: Final = 12
TEAMS: Final = 8
SERVICES: Final = ("front", "near", "zonal", "plain")
DOMAINS: Final = ("eu-1a", "eu-1b", "eu-1c")

_KEYS: Final = {
    "near": "kubernetes.io/hostname,topology.kubernetes.io/zone,*",
    "zonal": "topology.kubernetes.io/zone",
}
_CREATED: Final = "2024-05-01T10:00:00Z"

Object = dict[str, Any]


def dump() -> str:
    """The text of the whole cluster."""
    items = [*map(_namespace, namespaces()), *map(_node, range(1, NODES + 1))]
    for team in range(1, TEAMS + 1):
        for service in SERVICES:
            items += [_service(team, service), _slice(team, service)]
            items += [_pod(team, service, node) for node in range(1, NODES + 1)]
    listed = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    return str(yaml.dump(listed, Dumper=yaml.CSafeDumper))


def namespaces() -> Iterator[str]:
    yield from ("default", "kube-node-lease", "kube-public", "kube-system")
    yield from (f"team-{team}" for team in range(1, TEAMS + 1))


def node_name(node: int) -> str:
    return f"node-{node}"


def topology_zone(node: int) -> str:
    return DOMAINS[node % len(DOMAINS)]


def pod_address(team: int, service: str, node: int) -> str:
    return f"127.20.{node}.{team * 10 + SERVICES.index(service)}"


def pod_addresses(team: int, service: str, zone_of: int | None = None) -> list[str]:
    """The addresses of a Service's pods, sorted as text: all, or those in the topology zone of a node."""
    return sorted(
        pod_address(team, service, node)
        for node in range(1, NODES + 1)
        if zone_of is None or topology_zone(node) == topology_zone(zone_of)
    )


def cluster_ip(team: int) -> str:
    return f"10.96.{team}.1"


def _metadata(name: str, namespace: str = "", **more: object) -> Object:
    """The metadata that an API server adds to every object, and no reader needs."""
    noise = {
        "creationTimestamp": _CREATED,
        "managedFields": [
            {
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:selector": {}}},
                "manager": "kube-controller-manager",
                "operation": "Update",
                "time": _CREATED,
            }
        ],
        "resourceVersion": "48151623",
        "uid": "6f1c7d0e-3a52-4c1b-9d3f-5b7f7c6f1a20",
    }
    return {**noise, "name": name, **({"namespace": namespace} if namespace else {}), **more}


def _namespace(name: str) -> Object:
    metadata = _metadata(name, labels={"kubernetes.io/metadata.name": name})
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata,
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _node(node: int) -> Object:
    labels = {
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/hostname": node_name(node),
        "topology.kubernetes.io/zone": topology_zone(node),
    }
    annotations = {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(node_name(node), labels=labels, annotations=annotations),
        "spec": {"podCIDR": f"127.20.{node}.0/24", "podCIDRs": [f"127.20.{node}.0/24"]},
        "status": {
            "addresses": [
                {"address": f"127.20.0.{node}", "type": "InternalIP"},
                {"address": node_name(node), "type": "Hostname"},
            ],
            "allocatable": {"cpu": "8", "memory": "32625108Ki", "pods": "110"},
            "conditions": [
                {"lastHeartbeatTime": _CREATED, "reason": "KubeletReady", "status": "True", "type": "Ready"}
            ],
            "images": [{"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 320368}],
            "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.33.1"},
        },
    }


def _service(team: int, service: str) -> Object:
    address = cluster_ip(team) if service == "front" else "None"
    annotations = {"topodns.io/topology-keys": _KEYS[service]} if service in _KEYS else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(service, f"team-{team}", annotations=annotations, labels={"app": service}),
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
            "selector": {"app": service},
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    }


def _slice(team: int, service: str) -> Object:
    labels = {
        "app": service,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": service,
    }
    return {
        "addressType": "IPv4",
        "apiVersion": "discovery.k8s.io/v1",
        "endpoints": [_endpoint(team, service, node) for node in range(1, NODES + 1)],
        "kind": "EndpointSlice",
        "metadata": _metadata(f"{service}-x7k2p", f"team-{team}", generateName=f"{service}-", labels=labels),
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def _endpoint(team: int, service: str, node: int) -> Mapping[str, object]:
    return {
        "addresses": [pod_address(team, service, node)],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "nodeName": node_name(node),
        "targetRef": {"kind": "Pod", "name": f"{service}-{node}", "namespace": f"team-{team}"},
        "zone": topology_zone(node),
    }


def _pod(team: int, service: str, node: int) -> Object:
    address = pod_address(team, service, node)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(f"{service}-{node}", f"team-{team}", labels={"app": service}),
        "spec": {
            "containers": [{"image": "registry.k8s.io/pause:3.10", "name": "main", "resources": {}}],
            "nodeName": node_name(node),
            "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {
            "conditions": [{"lastTransitionTime": _CREATED, "status": "True", "type": "Ready"}],
            "hostIP": f"127.20.0.{node}",
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": _CREATED,
        },
    }


COREFILE = """
. {
    bind HERE
    prometheus HERE:%(metrics)d
    kubernetes cluster.local in-addr.arpa {
        manifests cluster.yaml
        pods %(pods)s
    }
    topology {
        locate %(locate)s
        trust 127.0.0.0/16
    }
}
"""
TRUSTED, UNTRUSTED = "127.0.0.1", "127.99.0.1"  # neither is a node's nor a pod's

NEAR, ZONAL = "near.team-3.svc.cluster.local A", "zonal.team-3.svc.cluster.local A"
ALL_NEAR = pod_addresses(3, "near")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dump")
    (directory / "cluster.yaml").write_text(dump())
    return directory


def cluster(directory: Path, pods: str, locate: str = "nodes podcidr slices") -> str:
    return COREFILE % {"metrics": METRICS, "pods": pods, "locate": locate}


@pytest.fixture(scope="module")
def served(directory: Path) -> Iterator[Server]:
    with serving(directory, cluster(directory, "verified")) as server:
        yield server


def test_every_object_of_the_dump_is_held(served: Server) -> None:
    held = {kind: served.metric("topodns_state_objects", kind=kind) for kind in ("Node", "Service", "Pod")}
    assert held == {"Node": 12, "Service": 32, "Pod": 384}
    assert served.metric("topodns_manifest_objects_skipped") == 0


@pytest.mark.parametrize("node", range(1, NODES + 1))
def test_each_client_is_located_by_its_source_address(served: Server, node: int) -> None:
    for source in (pod_address(1, "front", node), f"127.20.0.{node}", f"127.20.{node}.250"):
        assert served.ask(NEAR, source).data == [pod_address(3, "near", node)]
        assert served.ask(ZONAL, source).data == pod_addresses(3, "zonal", zone_of=node)


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_a_service_without_keys_has_the_same_answer_for_every_client(served: Server, tcp: bool) -> None:
    for source in (TRUSTED, "127.20.4.11"):
        assert served.ask("front.team-3.svc.cluster.local A", source, tcp=tcp).data == [cluster_ip(3)]
        assert served.ask("plain.team-3.svc.cluster.local A", source, tcp=tcp).data == pod_addresses(3, "plain")


ECS_CASES = [
    ("a pod's address", "127.20.5.11/32", [pod_address(3, "near", 5)], 32),
    ("a node's address", "127.20.0.5/32", [pod_address(3, "near", 5)], 32),
    ("a node's podCIDR", "127.20.5.0/24", [pod_address(3, "near", 5)], 24),
    ("more than one node", "127.20.0.0/16", ALL_NEAR, 0),
    ("nobody's", "10.1.2.0/24", ALL_NEAR, 0),
]


@pytest.mark.parametrize(
    ("claimed", "expected", "scope"), [case[1:] for case in ECS_CASES], ids=[case[0] for case in ECS_CASES]
)
def test_a_client_subnet_from_a_trusted_source_is_believed(
    served: Server, claimed: str, expected: list[str], scope: int
) -> None:
    code, data = subnet(claimed)
    reply = served.ask(NEAR, TRUSTED, Opt(options=[(code, data)]))
    assert reply.data == expected
    # RFC 7871 section 7.2.1: everything but SCOPE comes back as it was sent.
    assert reply.options == {ECS: data[:3] + bytes([scope]) + data[4:]}


def test_a_client_subnet_from_anyone_else_is_ignored_and_not_echoed(served: Server) -> None:
    for source, expected in ((UNTRUSTED, ALL_NEAR), ("127.20.7.11", [pod_address(3, "near", 7)])):
        reply = served.ask(NEAR, source, Opt(options=[subnet("127.20.5.11/32")]))
        assert (reply.data, reply.options) == (expected, {})


def test_a_subnet_does_not_stick_to_the_source_that_claimed_it(served: Server) -> None:
    for node in (5, 6, 5):
        reply = served.ask(NEAR, TRUSTED, Opt(options=[subnet(f"127.20.{node}.11/32")]))
        assert reply.data == [pod_address(3, "near", node)]
    assert served.ask(NEAR, TRUSTED, Opt()).data == ALL_NEAR


def test_a_malformed_client_subnet_is_formerr_only_where_it_is_read(served: Server) -> None:
    broken = Opt(options=[(ECS, b"\0\1\x20\0\x7f")])  # 1 octet of an address of 32 bits
    assert served.ask(NEAR, TRUSTED, broken).rcode == "FORMERR"
    assert served.ask(NEAR, UNTRUSTED, broken).rcode == "NOERROR"


IDENTITY_CASES = [
    ("a trusted source", TRUSTED, "node-5", [pod_address(3, "near", 5)]),
    ("a node, for the node it is", "127.20.0.5", "node-5", [pod_address(3, "near", 5)]),
    ("a node, for another", "127.20.0.6", "node-5", [pod_address(3, "near", 6)]),
    ("a podCIDR's gateway, for its own node", "127.20.5.1", "node-5", [pod_address(3, "near", 5)]),
    ("a podCIDR's gateway, for another node", "127.20.6.1", "node-5", [pod_address(3, "near", 6)]),
    ("a pod, for another node", "127.20.7.11", "node-5", [pod_address(3, "near", 7)]),
    ("nobody", UNTRUSTED, "node-5", ALL_NEAR),
    ("no node name", TRUSTED, "Node 5", ALL_NEAR),
]


@pytest.mark.parametrize(
    ("source", "claimed", "expected"), [case[1:] for case in IDENTITY_CASES], ids=[case[0] for case in IDENTITY_CASES]
)
def test_a_node_identity_is_believed_from_trusted_addresses(
    served: Server, source: str, claimed: str, expected: list[str]
) -> None:
    reply = served.ask(NEAR, source, Opt(options=[node_identity(claimed)]))
    assert reply.data == expected
    assert NODE_IDENTITY not in (reply.options or {})


def test_a_node_identity_wins_over_a_client_subnet(served: Server) -> None:
    reply = served.ask(NEAR, TRUSTED, Opt(options=[subnet("127.20.5.11/32"), node_identity(node_name(9))]))
    assert reply.data == [pod_address(3, "near", 9)]


A_POD, NO_POD = "127-20-1-10.team-1.pod.cluster.local A", "127-20-1-99.team-1.pod.cluster.local A"
ELSEWHERE, NO_ADDRESS = "127-20-1-10.team-2.pod.cluster.local A", "a-b-c-d.team-1.pod.cluster.local A"

POD_MODES = [
    ("verified", {A_POD: "127.20.1.10", NO_POD: "NXDOMAIN", ELSEWHERE: "NXDOMAIN", NO_ADDRESS: "NXDOMAIN"}),
    ("insecure", {A_POD: "127.20.1.10", NO_POD: "127.20.1.99", ELSEWHERE: "127.20.1.10", NO_ADDRESS: "NXDOMAIN"}),
    ("disabled", {A_POD: "NXDOMAIN", NO_POD: "NXDOMAIN", ELSEWHERE: "NXDOMAIN", NO_ADDRESS: "NXDOMAIN"}),
]


@pytest.mark.parametrize(("mode", "expected"), POD_MODES, ids=[case[0] for case in POD_MODES])
def test_pod_names_are_as_the_mode_says(directory: Path, tmp_path: Path, mode: str, expected: dict[str, str]) -> None:
    (tmp_path / "cluster.yaml").symlink_to(directory / "cluster.yaml")
    with serving(tmp_path, cluster(tmp_path, mode, "nodes pods")) as server:
        got = {}
        for question in expected:
            reply = server.ask(question)
            got[question] = reply.data[0] if reply.data else reply.rcode
        assert got == expected
        assert server.ask(NEAR, pod_address(1, "front", 4)).data == [pod_address(3, "near", 4)]
