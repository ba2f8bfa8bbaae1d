"""The queries: a mix for the client with an even pace, and the names in whose answers changes appear."""

from collections.abc import Iterator, Sequence
from random import Random
from socket import inet_aton
from typing import Final, NamedTuple

from bench.questions import Question
from bench.scale.stand_in import ROLLOUT, Key
from tests.support.synthetic_clusters import SERVICES_PER_NAMESPACE, Cluster, is_headless, namespace_name, service_name

LOOPBACK: Final = inet_aton("127.0.0.1")
MIXED: Final = 5_000  # queries


class Headless(NamedTuple):
    """A Service with one EndpointSlice."""

    name: str
    slice: Key


def mixed_questions(cluster: Cluster, rng: Random) -> Sequence[Question]:
    """Names of Services of all sizes, names that do not exist, as by a search path, and names of Pods; few twice."""

    def one() -> str:
        kind, number = rng.random(), rng.randrange(cluster.services)
        if kind < 0.5:
            return _name(number)
        if kind < 0.9:
            return f"host{number}.example.{namespace_name(0)}.svc.cluster.local"
        return f"{cluster.address(number).replace('.', '-')}.{namespace_name(0)}.pod.cluster.local"

    return [Question(LOOPBACK, one()) for _ in range(MIXED)]


def last_known(cluster: Cluster) -> tuple[Question, bytes]:
    """(A query for the last headless Service, an address in its answer once nearly all of the cluster is known)."""
    number = next(number for number in reversed(range(cluster.services)) if is_headless(number))
    return Question(LOOPBACK, _name(number)), inet_aton(cluster.address(cluster.endpoints_of(number)[0]))


def small_headless(cluster: Cluster) -> Iterator[Headless]:
    """The headless Services with few endpoints, which have one EndpointSlice each."""
    for number in range(cluster.services // 100, cluster.services):
        if is_headless(number):
            fields = next(cluster.slices(number)).fields
            yield Headless(_name(number), (fields["metadata.namespace"], fields["metadata.name"]))


def rollout_name(address: str) -> str:
    """The name of the Pod with this address, an endpoint of the rollout's Service."""
    return f"{address.replace('.', '-')}.{ROLLOUT}.{namespace_name(0)}.svc.cluster.local"


def _name(service: int) -> str:
    return f"{service_name(service)}.{namespace_name(service // SERVICES_PER_NAMESPACE)}.svc.cluster.local"
