"""How far the endpoints in answers of headless Services are from the clients, estimated from the sample of queries.

The queries are counted in slices before an exposition, not when they are answered, and by the state of that moment.
Specification: docs/reference/metrics.md#distance.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from topodns.cluster.label_values import label_of
from topodns.cluster.model import REGION_LABEL, ZONE_LABEL, Endpoint, Node, ObjectKey
from topodns.dns.addresses import unmapped
from topodns.dns.message import Query
from topodns.dns.rrtype import Rcode, RRType
from topodns.metrics.registry import Reading
from topodns.plugins.kubernetes.answer import name_of, question_of
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.endpoints import FAMILIES, FAMILY_OF_TYPE, backends_of, pools_of
from topodns.plugins.kubernetes.headless import located, rule_of
from topodns.plugins.kubernetes.question import ServiceName, ZoneQuestion, matching
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin
from topodns.plugins.view.handler import ViewFilter
from topodns.query.label_limiter import OTHERS, LabelLimiter
from topodns.query.plugin import BadOption, Client
from topodns.query.query_sample import QuerySample, SampledQuery, query_of
from topodns.time_slices import Job
from topodns.topology.select import Location

MAX_NAMED: Final = 50  # Services with labels of their own
MAX_ENDPOINTS: Final = 100  # of one family or port in an answer: of more, so many at equal intervals stand for all
MAX_POOLS: Final = 64  # families and ports of one answer; further ones are left out

_TYPES: Final = frozenset({*FAMILY_OF_TYPE, RRType.SRV})
_BY_LABEL: Final = (("zone", ZONE_LABEL), ("region", REGION_LABEL))
_Labels = tuple[str, str, str]  # (distance, namespace, Service)


def distance(location: Location, endpoint: Endpoint, node: Node | None) -> str:
    """`node`, `zone`, `region`, `farther` or `unknown`: from a client to an endpoint. `node`: the endpoint's, if known.

    `unknown` where the Node of the client is, or neither the Node nor a zone of the endpoint is known.
    """
    if location.node_name and endpoint.node_name == location.node_name:
        return "node"
    if location.node is None:
        return "unknown"
    is_located = node is not None
    for name, key in _BY_LABEL:
        value = label_of(node, endpoint, key)
        if value is not None and value == location.node.labels.get(key):
            return name
        is_located = is_located or value is not None
    return "farther" if is_located else "unknown"


class _Served(NamedTuple):
    """The names of one server block with `kubernetes`."""

    kubernetes: KubernetesZone
    view: ViewFilter | None


class EndpointDistances:
    """The metric topodns_selected_endpoints_total of this process, which outlives a reload.

    `clusters` gives the present ones, in the order of the Corefile: always the same object until a reload.
    """

    def __init__(self, clusters: Callable[[], Collection[Cluster]], sample: QuerySample) -> None:
        self._clusters = clusters
        self._sample = sample
        self._seen = 0  # of `QuerySample.added`
        self._served: tuple[Collection[Cluster], tuple[_Served, ...]] = (), ()
        self._limiter: LabelLimiter[ObjectKey] = LabelLimiter("/".join, MAX_NAMED)
        self._sums: dict[_Labels, float] = {}

    def reading(self) -> Reading:
        return Reading(
            "topodns_selected_endpoints",
            "Answers of headless Services, split over their endpoints' distances from the client; estimated.",
            "counter",
            ("distance", "namespace", "service"),
            lambda: list(self._sums.items()),
        )

    def count_steps(self) -> Job[None]:
        """Count the sampled queries that are not counted yet, each once, also if two such jobs overlap."""
        fresh, self._seen = self._sample.since(self._seen), self._sample.added
        served = self._present()
        for sampled in fresh:
            # Without an rcode the reply came later, as for a client whose Pod was not known yet.
            query = query_of(sampled.message) if sampled.rcode in (None, Rcode.NOERROR) else None
            if query is not None and query.qtype in _TYPES:
                yield from self._query_steps(served, query, sampled)
            yield

    def _present(self) -> tuple[_Served, ...]:
        clusters = self._clusters()
        if self._served[0] is not clusters:
            self._served = clusters, tuple(map(_served, clusters))
        return self._served[1]

    def _query_steps(self, served: Sequence[_Served], query: Query, sampled: SampledQuery) -> Job[None]:
        """Count one query: 1 for each query that it counts for, split evenly over the endpoints of the answer."""
        client = Client(unmapped(sampled.address), 0, "udp")
        found = _zone_of(served, query, client)
        if found is None:
            return
        kubernetes, origin = found
        question = question_of(query, client, origin)
        name = name_of(kubernetes, question)
        if not isinstance(name, ServiceName) or name.endpoint:
            return
        try:
            numbers = yield from _numbers_steps(kubernetes, name, question)
        except BadOption:
            return
        total, key = sum(numbers.values()), self._limiter.named(ObjectKey(name.namespace, name.service))
        for far, number in numbers.items():
            labels = (far, *key) if key is not None else (far, "", OTHERS)
            self._sums[labels] = self._sums.get(labels, 0.0) + sampled.queries * number / total


def _served(cluster: Cluster) -> _Served:
    kubernetes = KubernetesZone(cluster.kubernetes, cluster.topology, cluster.state, cluster.locator)
    return _Served(kubernetes, cluster.view_filter())


def _zone_of(served: Sequence[_Served], query: Query, client: Client) -> tuple[KubernetesZone, Origin] | None:
    """The first one with the longest origin at or above the name, without a view or with one that takes the query."""
    best = None
    for kubernetes, view in served:
        origin = kubernetes.origins.match(query.qname)
        if origin is None or (best is not None and len(origin.name) <= len(best[1].name)):
            continue
        if view is None or view(query, client):
            best = kubernetes, origin
    return best


def _numbers_steps(kubernetes: KubernetesZone, name: ServiceName, question: ZoneQuestion) -> Job[dict[str, float]]:
    """The numbers of endpoints of the answer by distance; none for another Service than a headless one of the cluster.

    Raises BadOption as `rule_of`.
    """
    numbers: dict[str, float] = {}
    key = ObjectKey(name.namespace, name.service)
    service = None if question.origin.multicluster else kubernetes.state.services.get(key)
    if service is None or not service.headless:
        return numbers
    backends, is_srv = backends_of(kubernetes, service), question.qtype == RRType.SRV
    ports = matching(backends.ports, name) if name.port or name.protocol else backends.ports if is_srv else None
    families = FAMILIES if is_srv else (FAMILY_OF_TYPE[question.qtype],)
    location, _ = located(kubernetes, question)
    rule = rule_of(kubernetes, key, question, name.view)
    groups = {}  # by identity: most ports have the same endpoints
    for pool in islice(pools_of(backends, families, ports), MAX_POOLS):
        group = rule.group(pool)
        yield
        if not group.endpoints or id(group) in groups:
            continue
        groups[id(group)] = group
        shown = list(_evenly(group.endpoints))
        for endpoint in shown:
            far = distance(location, endpoint, kubernetes.state.node(endpoint.node_name))
            numbers[far] = numbers.get(far, 0.0) + len(group.endpoints) / len(shown)
        yield
    return numbers


def _evenly(endpoints: Sequence[Endpoint]) -> Iterator[Endpoint]:
    """MAX_ENDPOINTS of them at equal intervals; all if there are no more."""
    number = min(len(endpoints), MAX_ENDPOINTS)
    return (endpoints[at * len(endpoints) // number] for at in range(number))
