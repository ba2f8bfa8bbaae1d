"""The values that audits, what-ifs and the topology page share: Services, groups of Nodes, coverage of a Service.

A ServiceView and the NodeGroups are made of a state and changed for a what-if (`inspect.what_if`); `inspect.coverage`
makes a Coverage of both.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

from topodns.cluster.annotations import APPLY_TO, MAX_ENDPOINTS, MAX_LOAD, MIN_ENDPOINTS
from topodns.cluster.endpoints import Group
from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, Endpoint, InvalidPolicy, Node, ObjectKey, Policy
from topodns.cluster.node_labels import NodeLabels
from topodns.cluster.state import ClusterState
from topodns.memory.bounded import LRUCache
from topodns.topology.guards import Domains, Guards, guards_of
from topodns.topology.select import Reason

FAMILIES: Final = (4, 6)
MAX_GROUPINGS: Final = 32  # kept; each has a reference per Node
_OWN_DOMAIN: Final = "topodns.io/"
STEP: Final = 250  # Nodes grouped in one step, about 0.2 ms
FREED: Final = 250  # objects with all that they alone refer to, in one step

T = TypeVar("T")
Steps = Generator[None, None, T]  # steps of less than 1 ms, between which queries are answered, then a result


def gather_steps(values: Iterable[T | None]) -> Steps[list[T]]:
    """The values among these, of which one is taken in each step; None is a step without a value."""
    found = []
    for value in values:
        if value is not None:
            found.append(value)
        yield
    return found


def free_steps(parts: list[object]) -> Iterator[None]:
    """Free these objects in steps: to free thousands at once takes milliseconds."""
    while parts:
        del parts[-FREED:]
        yield


PodKey = tuple[str, str | bytes]  # the name of its Node, and its own name, or its address


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A headless Service: its policy (None: no filtering) and its ready endpoints of each family, in slice order.

    The endpoints are the state's own values, by reference.
    """

    key: ObjectKey
    policy: Policy | InvalidPolicy | None = None
    governing: bool = False  # of a StatefulSet: see `Policies.governs`
    ipv4: tuple[Endpoint, ...] = ()
    ipv6: tuple[Endpoint, ...] = ()
    guards: Guards = field(default_factory=Guards)  # of its annotations, those without an effect on `policy`, too

    def endpoints(self, family: int) -> tuple[Endpoint, ...]:
        """The ready endpoints of family 4 or 6."""
        return self.ipv4 if family == 4 else self.ipv6

    @property
    def families(self) -> Iterator[tuple[int, tuple[Endpoint, ...]]]:
        """(4 or 6, endpoints) of each family with a ready endpoint."""
        return ((family, some) for family in FAMILIES if (some := self.endpoints(family)))


def pod_key(endpoint: Endpoint) -> PodKey:
    """(Node name, Pod name): the key that the endpoints of one Pod share in both families.

    Of an endpoint without a Pod's name: its Node name and its packed address.
    """
    return endpoint.node_name, endpoint.pod_name or endpoint.address


def service_view(state: ClusterState, key: ObjectKey) -> ServiceView | None:
    """The view of one Service; None if there is no headless Service of this key.

    Builds the Service's Backends if no query has yet: about 1 ms for 1,000 endpoints.
    """
    service = state.service(key)
    if service is None or not service.headless:
        return None
    pools = state.backends(key).pools
    return ServiceView(
        key,
        state.policies.get(key),
        state.policies.governs(key),
        pools[4].everyone.endpoints,
        pools[6].everyone.endpoints,
        guards_of(service),
    )


def parse_service(text: str) -> ObjectKey | None:
    """The key of a Service in the spelling NAMESPACE/NAME; None for another text."""
    namespace, _, name = text.partition("/")
    return ObjectKey(namespace, name) if namespace and name and "/" not in name else None


class PolicyText(NamedTuple):
    """A policy in the words of documents."""

    keys: tuple[str, ...]  # empty if invalid, without a policy, or if it follows the hints
    source: str  # of the keys, as in the option `keys`; "" without a policy
    problem: str  # of an invalid policy
    guards: Mapping[str, str]  # the values of annotations that have an effect, by name without `topodns.io/`


def policy_text(policy: Policy | InvalidPolicy | None, max_endpoints: int | None) -> PolicyText:
    """`max_endpoints`: of an answer of the Service at most; None: no bound."""
    return PolicyText(
        policy.keys if isinstance(policy, Policy) else (),
        policy.source.value if policy is not None else "",
        policy.problem if isinstance(policy, InvalidPolicy) else "",
        {name.removeprefix(_OWN_DOMAIN): value for name, value in _guards(policy, max_endpoints)},
    )


def _guards(policy: Policy | InvalidPolicy | None, max_endpoints: int | None) -> Iterator[tuple[str, str]]:
    if isinstance(policy, Policy) and policy.keys:
        if policy.min_endpoints > 1:
            yield MIN_ENDPOINTS, str(policy.min_endpoints)
        if policy.max_load is not None:
            yield MAX_LOAD, decimal_text(policy.max_load.factor)
    if max_endpoints is not None:
        yield MAX_ENDPOINTS, str(max_endpoints)
    if isinstance(policy, Policy) and policy.near_only:
        yield APPLY_TO, "near"


def decimal_text(factor: Fraction) -> str:
    """A factor of `max-load`, which has at most 3 digits and 9 decimals, as an exact decimal: `1.5`."""
    return f"{float(factor):.12g}"


_Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes with the same values of some labels, and all with labels or all without."""

    nodes: tuple[Node, ...]  # at least one
    topology_zone: str  # label topology.kubernetes.io/zone; "" for none


class NodeGrouping:
    """The groups by one set of labels, which never has kubernetes.io/hostname: that value is usually unique.

    `select` gives clients of one group the same endpoints, unless it uses the name of the Node.
    """

    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = labels
        self._members: dict[_Values, list[Node]] = {}
        self._groups: dict[_Values, NodeGroup] = {}

    @property
    def groups(self) -> Mapping[_Values, NodeGroup]:
        """The groups by their values, once `add` had all Nodes."""
        if not self._groups:
            self._groups = {
                values: NodeGroup(tuple(nodes), nodes[0].labels.get(ZONE_LABEL, ""))
                for values, nodes in self._members.items()
            }
        return self._groups

    def add(self, node: Node) -> None:
        self._members.setdefault(self.values(node), []).append(node)

    def values(self, node: Node) -> _Values:
        """The key of this Node's group: "" if it has labels, else None; then its value of each label, None for none."""
        labels = node.labels
        return "" if labels else None, *map(labels.get, self._labels)


class NodeGroups:
    """The groupings of one set of Nodes, which is taken when this is made, as are the Nodes by hostname.

    Most Services of a cluster share a few lists of keys, so that each grouping is made once and kept.
    """

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = dict(nodes)
        self._groupings: LRUCache[tuple[str, ...], NodeGrouping] = LRUCache(MAX_GROUPINGS)
        self._counted: NodeLabels | None = None

    @cached_property
    def domains(self) -> Domains:
        """These Nodes as those that share the load of a policy with `max_load`."""
        nodes = self.nodes
        return Domains(lambda: nodes, self.labels)

    @property
    def labels(self) -> NodeLabels:
        """The labels of these Nodes; in small steps, `grouping_steps` has them counted."""
        for _ in self._count_steps():
            pass
        assert self._counted is not None
        return self._counted

    def _count_steps(self) -> Iterator[None]:
        if self._counted is not None:
            return
        counted = NodeLabels()
        for at, node in enumerate(self.nodes.values(), 1):
            counted.move(None, node)
            if at % STEP == 0:
                yield
        self._counted = counted

    def grouping_steps(self, labels: frozenset[str]) -> Iterator[None]:
        """Make the grouping by these labels and the zone, if it is not kept, in small steps; then `grouping` has it."""
        yield from self._count_steps()
        wanted = _wanted(labels)
        if wanted in self._groupings:
            return
        grouping = NodeGrouping(wanted)
        for at, node in enumerate(self.nodes.values(), 1):
            grouping.add(node)
            if at % STEP == 0:
                yield
        self._groupings[wanted] = grouping

    def grouping(self, labels: frozenset[str]) -> NodeGrouping:
        """The groups by these labels and the zone."""
        for _ in self.grouping_steps(labels):
            pass
        return self._groupings[_wanted(labels)]

    def with_hostnames(self, values: Collection[str]) -> set[str]:
        """The names of the Nodes whose label kubernetes.io/hostname has one of these values, and maybe a few others.

        Without the label its value is the name.
        """
        others = self.labels.other_hostnames
        return set(values).union(*(others[value] for value in others.keys() & values))


def _wanted(labels: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted((labels | {ZONE_LABEL}) - {HOSTNAME_LABEL}))


class FamilyAnswer(NamedTuple):
    """The endpoints of one family, 4 or 6, for clients of one group: a Selection."""

    family: int
    reason: Reason
    key: str  # the winning key; "" if none
    group: Group  # with a bound the subset of the Node, or all from which it is taken: see `inspect.coverage`
    matches: int  # endpoints before `max-endpoints`
    alone: bool = False  # whether these clients would get no endpoint without the only match, if looked for


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """Nodes whose clients get the same answers: those of `members`, except the names in `without`."""

    members: NodeGroup
    without: frozenset[str]
    answers: tuple[FamilyAnswer, ...]  # of each family with a ready endpoint
    size: int  # how many Nodes
    covered: bool  # whether clients get an endpoint of some family
    near: bool  # whether they get endpoints by another key than `*`

    @property
    def nodes(self) -> Iterator[Node]:
        return (node for node in self.members.nodes if node.name not in self.without)

    @property
    def topology_zone(self) -> str:
        """The zone of all these Nodes; "" for none."""
        return self.members.topology_zone


@dataclass(frozen=True, slots=True)
class ZoneCoverage:
    """The Nodes and endpoints with one value of topology.kubernetes.io/zone, or without one."""

    nodes: int
    covered: int  # Nodes whose clients get an endpoint
    endpoints: int  # ready ones there, of the family that has more
    near: int = field(compare=False)  # Nodes whose clients get endpoints by another key than `*`; in no audit


class EndpointLoad(NamedTuple):
    """The share of an endpoint, if a client on each Node asks once and divides itself evenly among its answer."""

    endpoint: Endpoint
    clients: float


@dataclass(frozen=True, slots=True)
class Coverage:
    """The endpoints of one Service that a client on each Node gets, in groups of Nodes, and sums of them."""

    service: ServiceView
    clients: tuple[ClientGroup, ...]
    zones: Mapping[str, ZoneCoverage]  # by the name of the zone, in its order; "" for Nodes and endpoints without one
    load: tuple[EndpointLoad, ...]  # of each ready endpoint
    nodes: int  # how many there are
    covered: int  # how many of them have clients that get an endpoint
    endpoints: int  # ready ones, of the family that has more
    skew: float  # the highest load over the mean, of the family where that is higher; 0 without load
