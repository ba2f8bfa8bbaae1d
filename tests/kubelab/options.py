"""How a lab is to be, and the addresses that follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")

API, API6 = "10.201.0.1", "fd00:10:201::1"  # the control plane; nodes are 10.201.0.11, .12, ...
POD_CIDRS: Final = ("10.244.0.0/16", "fd00:10:244::/48")
SERVICE_CIDRS: Final = ("10.96.0.0/16", "fd00:10:96::/112")
FIRST_SERVICES: Final = ("10.96.0.1", "fd00:10:96::1")  # Service `kubernetes`
CLUSTER_DNS, CLUSTER_DNS_IPV6 = "10.96.0.10", "fd00:10:96::a"
NODE_LEASE, NODE_GRACE = 8, 20  # seconds: a kubelet's lease, and silence until its node counts as NotReady


@dataclass(frozen=True, slots=True)
class Node:
    """A node and its place. `index` counts from 1 and is part of all its addresses."""

    index: int
    topology_zone: str
    region: str

    @property
    def name(self) -> str:
        return f"node{self.index}"

    @property
    def ips(self) -> list[str]:
        return [f"10.201.0.{10 + self.index}", f"fd00:10:201::{10 + self.index}"]

    @property
    def pod_cidrs(self) -> list[str]:
        return [f"10.244.{self.index}.0/24", f"fd00:10:244:{self.index}::/64"]

    @property
    def gateways(self) -> list[str]:
        """The addresses from which processes of the node reach its pods: CNI's end of their cables."""
        return [f"10.244.{self.index}.1", f"fd00:10:244:{self.index}::1"]

    @property
    def labels(self) -> dict[str, str]:
        return {"topology.kubernetes.io/zone": self.topology_zone, "topology.kubernetes.io/region": self.region}


@dataclass(frozen=True, slots=True)
class Options:
    nodes: Sequence[Node]
    dual_stack: bool = False
    proxy_mode: str = "nftables"  # or iptables, or none: no kube-proxy
    cluster_dns: str = CLUSTER_DNS  # pods' nameservers, with commas
    audit: bool = False  # what service accounts of kube-system ask for is noted in control-plane/log/audit.log

    def families(self, both: Sequence[T]) -> list[T]:
        """Of an IPv4 and an IPv6 value, those that the lab uses."""
        return list(both if self.dual_stack else both[:1])


def node_list(zones: str, count: int | None = None) -> list[Node]:
    """`a,a,b,c`, or with regions `east/a,east/b,west/c`; fewer zones than nodes go round."""
    places = [place.strip().rpartition("/") for place in zones.split(",")]
    chosen = [places[i % len(places)] for i in range(count or len(places))]
    return [Node(i + 1, zone, region or "lab") for i, (region, _, zone) in enumerate(chosen)]
