"""Clusters of any size as JSON, their objects as large as a real API server's: for the fake API, the bench and tests.

An object is a few values for a template until its text is asked for: 150,000 Pods are 1.1 GB of JSON. Everything
follows from the numbers: Pod number p is on node p % nodes, endpoint number e is Pod number e, and the first
hundredth of the Services has half of all endpoints. Every fifth Service is headless, every tenth follows topology keys.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.support.synthetic_objects import ENDPOINT, NAMESPACE, NODE, POD, SERVICE, SLICE

SLICE_SIZE: Final = 100  # endpoints, the endpoint slice controller's own limit
SERVICES_PER_NAMESPACE: Final = 20
NODES, SERVICES, PODS_PER_NODE = 1 << 16, 1 << 16, 250  # at most: addresses are 10.x.y.z, and z is the Pod
REGIONS: Final = ("eu-1", "us-1")
KEYS: Final = "kubernetes.io/hostname,topology.kubernetes.io/zone,*"
REVISION: Final = "1000"  # of all objects


class Template:
    """JSON text with `%(name)s` in the places of values."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        text = json.dumps(value, separators=(",", ":")).replace('"%(endpoints)s"', "%(endpoints)s")
        self._parts = re.split(r"%\((\w+)\)s", text.replace("%(revision)s", REVISION))
        self._places = self._parts[1::2]

    def filled(self, values: Mapping[str, str]) -> str:
        parts = self._parts.copy()
        parts[1::2] = [values[name] for name in self._places]
        return "".join(parts)


Values = dict[str, str]


@dataclass(frozen=True, slots=True)
class Synthetic:
    """One object, as tests.support.fake_api stores them: made anew from its number whenever it is asked for."""

    make: Callable[[int], str]
    describe: Callable[[int], Values]
    number: int

    @property
    def labels(self) -> Mapping[str, str]:
        service = self.describe(self.number).get("service")
        return {"kubernetes.io/service-name": service} if service else {}

    @property
    def fields(self) -> Mapping[str, str]:
        values = self.describe(self.number)
        return {
            "metadata.name": values["name"],
            "metadata.namespace": values.get("namespace", ""),
            "spec.nodeName": values.get("node", ""),
            "status.phase": "Running",
        }

    def body(self) -> bytes:
        return self.make(self.number).encode()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of this size. At least one node and one Service; no more Pods or endpoints than nodes have room for."""

    nodes: int
    services: int
    endpoints: int
    pods: int

    def __post_init__(self) -> None:
        if not 0 < self.nodes <= NODES or not 0 < self.services <= SERVICES:
            raise ValueError(f"{self}: expected up to {NODES} nodes and {SERVICES} Services, at least one of each")
        if max(self.pods, self.endpoints) > self.nodes * PODS_PER_NODE:
            raise ValueError(f"{self}: a node has room for {PODS_PER_NODE} Pods")

    def objects(self) -> Iterator[tuple[str, Synthetic]]:
        """(resource, object), everything there is."""
        yield from (("namespaces", self.namespace(number)) for number in range(self._namespaces))
        yield from (("nodes", self.node(number)) for number in range(self.nodes))
        for number in range(self.services):
            yield "services", self.service(number)
            yield from (("endpointslices", one) for one in self.slices(number))
        yield from (("pods", self.pod(number)) for number in range(self.pods))

    @property
    def _namespaces(self) -> int:
        return -(-self.services // SERVICES_PER_NAMESPACE)

    def namespace(self, number: int) -> Synthetic:
        return Synthetic(lambda at: _NAMESPACE.filled(_about_namespace(at)), _about_namespace, number)

    def node(self, number: int) -> Synthetic:
        return Synthetic(lambda at: _NODE.filled(_about_node(at)), _about_node, number)

    def service(self, number: int) -> Synthetic:
        return Synthetic(lambda at: _SERVICE.filled(_about_service(at)), _about_service, number)

    def pod(self, number: int) -> Synthetic:
        return Synthetic(self._make_pod, self._about_pod, number)

    def slices(self, service: int) -> Iterator[Synthetic]:
        """Those of a Service, of up to SLICE_SIZE endpoints each; a slice's number is its first endpoint's."""

        def about(first: int) -> Values:
            return _about_slice(service, first)

        mine = self.endpoints_of(service)

        def make(first: int) -> str:
            of_slice = range(first, min(first + SLICE_SIZE, mine.stop))
            endpoints = ",".join(_ENDPOINT.filled(self._about_endpoint(service, number)) for number in of_slice)
            return _SLICE.filled({**about(first), "endpoints": endpoints})

        return (Synthetic(make, about, first) for first in range(mine.start, mine.stop, SLICE_SIZE))

    def endpoints_of(self, service: int) -> range:
        """The numbers of a Service's endpoints."""
        large = self.services // 100
        half = self.endpoints // 2 if large else 0
        if service < large:
            return range(half * service // large, half * (service + 1) // large)
        rest, small, at = self.endpoints - half, self.services - large, service - large
        return range(half + rest * at // small, half + rest * (at + 1) // small)

    def address(self, pod: int) -> str:
        node = pod % self.nodes
        return f"10.{node >> 8}.{node & 255}.{2 + pod // self.nodes}"

    def _about_endpoint(self, service: int, number: int) -> Values:
        node = number % self.nodes
        return {
            "address": self.address(number),
            "namespace": namespace_name(service // SERVICES_PER_NAMESPACE),
            "pod": _pod_name(number),
            "uid": _uid("0d", number),
            "node": node_name(node),
            "topology_zone": topology_zone(node),
        }

    def _make_pod(self, number: int) -> str:
        node = number % self.nodes
        about = {"address": self.address(number), "host_address": _node_address(node), "owner_uid": _uid("5e", 0)}
        return _POD.filled({**self._about_pod(number), **about})

    def _about_pod(self, number: int) -> Values:
        return {
            "name": _pod_name(number),
            "namespace": namespace_name(number % self._namespaces),
            "backend": "backend",
            "uid": _uid("0d", number),
            "node": node_name(number % self.nodes),
        }


def _about_namespace(number: int) -> Values:
    return {"name": namespace_name(number), "uid": _uid("a0", number)}


def _about_node(number: int) -> Values:
    return {
        "name": node_name(number),
        "uid": _uid("de", number),
        "address": _node_address(number),
        "pod_cidr": f"10.{number >> 8}.{number & 255}.0/24",
        "topology_zone": topology_zone(number),
        "region": topology_zone(number)[:-1],
    }


def _about_service(number: int) -> Values:
    return {
        "name": service_name(number),
        "namespace": namespace_name(number // SERVICES_PER_NAMESPACE),
        "uid": _uid("5c", number),
        "cluster_ip": "None" if is_headless(number) else f"172.30.{number >> 8}.{number & 255}",
        "annotation": "topodns.io/topology-keys" if has_keys(number) else "example.com/note",
        "keys": KEYS,
    }


def _about_slice(service: int, first: int) -> Values:
    return {
        "name": f"{service_name(service)}-{first:05x}",
        "namespace": namespace_name(service // SERVICES_PER_NAMESPACE),
        "service": service_name(service),
        "uid": _uid("51", first),
        "owner_uid": _uid("5c", service),
        "headless_label": "service.kubernetes.io/headless" if is_headless(service) else "example.com/label",
    }


def service_name(number: int) -> str:
    return f"service-{number:05}"


def is_headless(service: int) -> bool:
    return service % 5 == 0


def has_keys(service: int) -> bool:
    return service % 10 == 0


def node_name(number: int) -> str:
    return f"ip-172-20-{number >> 8}-{number & 255}.internal"


def topology_zone(node: int) -> str:
    """Three topology zones in each region, node after node."""
    return REGIONS[node // 3 % 2] + "abc"[node % 3]


def _node_address(number: int) -> str:
    return f"172.20.{number >> 8}.{number & 255}"


def namespace_name(number: int) -> str:
    return f"team-{number:03}"


def _pod_name(number: int) -> str:
    return f"backend-7d4b9c6f5d-{number:05x}"


def _uid(kind: str, number: int) -> str:
    return f"{kind}{number:06x}-7d3b-4c1b-9d3f-5b7f7c6f1a20"


_NAMESPACE: Final = Template(NAMESPACE)
_NODE: Final = Template(NODE)
_SERVICE: Final = Template(SERVICE)
_SLICE: Final = Template(SLICE)
_ENDPOINT: Final = Template(ENDPOINT)
_POD: Final = Template(POD)
