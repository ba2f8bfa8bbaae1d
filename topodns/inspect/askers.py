"""The Nodes whose clients asked for each headless Service in the last minutes, estimated from the sample of queries."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.dns.addresses import unmapped
from topodns.dns.message import Query
from topodns.inspect.model import Steps
from topodns.inspect.top import node_name_of
from topodns.plugins.kubernetes.answer import parse
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.headless import policy_of_name
from topodns.plugins.kubernetes.question import ServiceName
from topodns.plugins.kubernetes.zone import Origins
from topodns.query.query_sample import QuerySample, query_of

FEWEST: Final = 20  # sampled queries of one Service, below which its shares are chance
REUSED: Final = 5.0  # seconds for which the last result counts
_STEP: Final = 20  # queries read in one step


@dataclass(slots=True)
class Askers:
    """The queries for one Service in the last `query_sample.MINUTES`."""

    sampled: int = 0
    queries: int = 0  # estimate of all
    by_node: Counter[str] = field(default_factory=Counter)  # of `queries`, by the name of the Node; "": unlocated

    @property
    def is_known(self) -> bool:
        """Whether there are enough to divide them by Node."""
        return self.sampled >= FEWEST


NO_ASKERS: Final = Askers()


class RecentAskers:
    """The askers of one cluster's Services. `clock`: monotonic seconds, the one of the sample."""

    def __init__(self, cluster: Cluster, sample: QuerySample, clock: Callable[[], float] = time.perf_counter) -> None:
        self._cluster = cluster
        self._origins = Origins(cluster.kubernetes.origins, cluster.kubernetes.multicluster)
        self._sample = sample
        self._clock = clock
        self._last: tuple[float, Mapping[ObjectKey, Askers]] | None = None

    def steps(self) -> Steps[Mapping[ObjectKey, Askers]]:
        """The askers by Service, of all types of queries for its names and ports that its keys apply to, or any without
        keys; the last ones for REUSED.
        """
        now = self._clock()
        if self._last is not None and now - self._last[0] < REUSED:
            return self._last[1]
        sampled, queries = Counter[tuple[bytes, bytes]](), Counter[tuple[bytes, bytes]]()
        for at, each in enumerate(self._sample.recent(now)):  # without their ids many are equal
            if at % 100 == 0:
                yield
            alike = each.message[2:], unmapped(each.address)
            sampled[alike] += 1
            queries[alike] += each.queries
        yield
        found: dict[ObjectKey, Askers] = {}
        for at, (alike, times) in enumerate(queries.items(), 1):
            if (asked := self._read(*alike)) is not None:
                key, node_name = asked
                askers = found.setdefault(key, Askers())
                askers.sampled += sampled[alike]
                askers.queries += times
                askers.by_node[node_name] += times
            if at % _STEP == 0:
                yield
        self._last = now, found
        return found

    def _read(self, message: bytes, address: bytes) -> tuple[ObjectKey, str] | None:
        """(The Service that a message without its id asks for, the client's Node); None for any other message."""
        query = query_of(b"\0\0" + message)
        key = self._service(query) if query is not None else None
        return None if query is None or key is None else (key, node_name_of(self._cluster, query, address))

    def _service(self, query: Query) -> ObjectKey | None:
        origin = self._origins.match(query.qname)
        if origin is None or origin.reverse or len(query.qname) == len(origin.name):
            return None
        labels = query.qname[: len(query.qname) - len(origin.name)]
        cluster = self._cluster
        name = parse(labels, origin.multicluster, cluster.kubernetes.zonal, cluster.topology is not None)
        if not isinstance(name, ServiceName) or name.endpoint:
            return None
        key = ObjectKey(name.namespace, name.service)
        return key if policy_of_name(cluster.state, key, name.view) is cluster.state.policies.get(key) else None
