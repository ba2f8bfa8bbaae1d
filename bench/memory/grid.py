"""The clusters that are measured: for the formula one size varied at a time, and some of all sizes to check it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.memory.fit import Sizes
from tests.support.synthetic_clusters import Cluster

NODES, SERVICES, SLICES, ENDPOINTS, PODS = THINGS = "Nodes", "Services", "EndpointSlices", "endpoints", "Pods"
VERIFIED, LOCATED = "pods verified", "locate pods"


@dataclass(frozen=True)
class Point:
    """One cluster, and the options of the Corefile that need its Pods: of VERIFIED and LOCATED."""

    cluster: Cluster
    uses_of_pods: tuple[str, ...] = ()

    def __str__(self) -> str:
        sizes = self.cluster
        pods = f", {sizes.pods:,} Pods ({', '.join(self.uses_of_pods)})" if self.uses_of_pods else ""
        return f"{sizes.nodes:,} Nodes, {sizes.services:,} Services, {sizes.endpoints:,} endpoints{pods}"

    @property
    def sizes(self) -> Sizes:
        """The number of each of THINGS."""
        cluster = self.cluster
        slices = sum(len(list(cluster.slices(number))) for number in range(cluster.services))
        counted = (cluster.nodes, cluster.services, slices, cluster.endpoints, cluster.pods)
        return dict(zip(THINGS, counted, strict=True))


def fitted(part: int = 1) -> Sequence[Point]:
    """The clusters to which the formula is fitted; all numbers are divided by `part`."""
    return [
        _point(part, 1_000, 1_000, 20_000),  # Nodes, Services, endpoints, Pods
        _point(part, 200, 1_000, 20_000),
        _point(part, 3_000, 1_000, 20_000),
        _point(part, 5_000, 1_000, 20_000),
        _point(part, 1_000, 5_000, 0),
        _point(part, 1_000, 10_000, 0),
        _point(part, 1_000, 5_000, 20_000),
        _point(part, 1_000, 10_000, 20_000),
        _point(part, 1_000, 1_000, 75_000),
        _point(part, 1_000, 1_000, 150_000),
        _point(part, 100, 200, 1_000),
        _point(part, 1_000, 1_000, 20_000, 50_000, VERIFIED),
        _point(part, 1_000, 1_000, 20_000, 150_000, VERIFIED),
        _point(part, 1_000, 1_000, 20_000, 50_000, LOCATED),
        _point(part, 1_000, 1_000, 20_000, 150_000, LOCATED),
    ]


def checked(part: int = 1) -> Sequence[Point]:
    """The clusters with which the formula is compared; all numbers are divided by `part`."""
    return [
        _point(part, 50, 200, 1_500),
        _point(part, 500, 1_500, 15_000),
        _point(part, 5_000, 10_000, 150_000),
        _point(part, 5_000, 10_000, 150_000, 150_000, VERIFIED),
        _point(part, 500, 1_500, 15_000, 15_000, VERIFIED, LOCATED),
    ]


def _point(part: int, nodes: int, services: int, endpoints: int, pods: int = 0, *uses_of_pods: str) -> Point:
    return Point(Cluster(nodes // part, services // part, endpoints // part, pods // part), uses_of_pods)
