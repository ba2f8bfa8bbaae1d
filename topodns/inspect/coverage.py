"""Coverage of one Service: which clients get an endpoint, by which key, and how the endpoints share the load.

One client on each Node is assumed. `topology.select` decides once for each group of Nodes whose clients get the same
endpoints (`inspect.model.NodeGroups`), and for each Node where a guard goes by its name; this module has no rules of
selection.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from topodns.cluster.endpoints import Group, Pool, Segment
from topodns.cluster.model import ANY_KEY, HOSTNAME_LABEL, ZONE_LABEL, Endpoint, InvalidPolicy, KeySource, Node, Policy
from topodns.inspect.model import (
    ClientGroup,
    Coverage,
    EndpointLoad,
    FamilyAnswer,
    NodeGroup,
    NodeGrouping,
    NodeGroups,
    ServiceView,
    Steps,
    T,
    ZoneCoverage,
    free_steps,
)
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.guards import Load, bounded
from topodns.topology.select import Location, Reason, Selection, UnknownClient, select

MAX_OTHERS: Final = 500
"""Endpoints of a Service beyond which a key `!kubernetes.io/hostname` counts them all for every client: without its own
Node's for each one, time and memory would grow with their square.
"""
MAX_HASHED: Final = 200_000
"""Nodes times endpoints of a Service beyond which `max-endpoints` counts as evenly spread: each client then loads all
endpoints that its own few are taken from. The hash, which takes 1 us for each, spreads them nearly so.
"""
STEP: Final = 500  # endpoints indexed or counted in one step, about 0.5 ms
SELECTIONS: Final = 25  # in one step

_node_name: Final[Callable[[Endpoint], str]] = attrgetter("node_name")
_node_hints: Final[Callable[[Endpoint], tuple[str, ...]]] = attrgetter("node_hints")


def use_coverage_steps(
    service: ServiceView,
    nodes: NodeGroups,
    topology: TopologySettings,
    use: Callable[[Coverage], Steps[T]],
    with_alone: bool = True,
) -> Steps[T]:
    """The result of `use` for the coverage of a Service, which is then freed in steps.

    `use` keeps neither its groups of clients nor its loads, which are numerous. `with_alone`: as of `coverage_steps`.
    """
    found = yield from coverage_steps(service, nodes, topology, with_alone)
    result = yield from use(found)
    parts: list[object] = [*found.clients, *found.load]
    del found
    yield from free_steps(parts)
    return result


def coverage_steps(
    service: ServiceView, nodes: NodeGroups, topology: TopologySettings, with_alone: bool = True
) -> Steps[Coverage]:
    """The coverage of one Service under the options of `topology`, in steps of less than 1 ms.

    `with_alone`: look for `FamilyAnswer.alone`, which takes a fifth of the time.

    Time and memory grow with the endpoints and with the distinct values of labels, not with their product; under
    `max-load` and `max-endpoints` also with the Nodes, and below MAX_HASHED with Nodes times endpoints.
    """
    labels = frozenset(service.policy.labels if isinstance(service.policy, Policy) else ())
    yield from nodes.grouping_steps(labels)
    pools: dict[int, Pool] = {}
    for family, endpoints in service.families:
        pools[family] = yield from _pool_steps(endpoints, labels | {ZONE_LABEL}, nodes.nodes.get)

    rule = _Rule(service, pools, nodes, topology, with_alone)
    yield from rule.prepare_steps()
    grouping = nodes.grouping(labels)
    apart = yield from _apart_steps(service.policy, labels, pools.values(), nodes)
    tally = _Tally()
    pause = SELECTIONS if service.guards.max_endpoints is None else 1  # a subset takes as long as its endpoints
    for members, without in _client_groups(grouping, apart):
        one = next(node for node in members.nodes if node.name not in without)
        answers = rule.answers(one)
        if len(members.nodes) - len(without) > 1 and rule.differs(one, answers):
            yield from _each_steps(tally, rule, members, without)
            continue
        tally.add(members, without, answers)
        if len(tally.clients) % pause == 0:
            yield
    load, skew = yield from _load_steps(tally.askers, service)
    tally.askers.clear()
    yield
    zones = _zones(tally, pools.values())
    yield
    return Coverage(
        service=service,
        clients=tuple(tally.clients),
        zones=zones,
        load=tuple(load),
        nodes=tally.nodes.total(),
        covered=tally.covered.total(),
        endpoints=max((len(pool.everyone.endpoints) for pool in pools.values()), default=0),
        skew=skew,
    )


class _Tally:
    """The groups of clients, counted as they are found."""

    def __init__(self) -> None:
        self.clients: list[ClientGroup] = []
        self.nodes: Counter[str] = Counter()  # by zone
        self.covered: Counter[str] = Counter()
        self.near: Counter[str] = Counter()
        self.askers: dict[int, tuple[int, Group, int]] = {}  # by id() of endpoints: family, endpoints, clients

    def add(self, members: NodeGroup, without: frozenset[str], answers: tuple[FamilyAnswer, ...]) -> None:
        size, covered, near = len(members.nodes) - len(without), False, False
        for answer in answers:
            if answer.group.endpoints:
                covered = True
                near = near or answer.key not in ("", ANY_KEY)
                _, _, before = self.askers.get(id(answer.group), (0, answer.group, 0))
                self.askers[id(answer.group)] = answer.family, answer.group, before + size
        self.clients.append(ClientGroup(members, without, answers, size, covered, near))
        self.nodes[members.topology_zone] += size
        if covered:
            self.covered[members.topology_zone] += size
        if near:
            self.near[members.topology_zone] += size


def _pool_steps(
    endpoints: tuple[Endpoint, ...], labels: frozenset[str], node_of: Callable[[str], Node | None]
) -> Steps[Pool]:
    """A Pool of these endpoints with the indexes by these labels.

    It shares nothing with the pools of the state, as their indexes hold for the state's own Nodes only.
    """
    segments = [Segment(endpoints[at : at + STEP]) for at in range(0, len(endpoints), STEP)]
    for segment in segments:
        for label in labels:
            Pool((segment,), node_of).index((label,))
            yield
    return Pool(segments, node_of, Group(endpoints))


class _Rule(NamedTuple):
    """How the endpoints of one Service are chosen for clients on each Node."""

    service: ServiceView
    pools: Mapping[int, Pool]  # by family
    nodes: NodeGroups
    topology: TopologySettings
    with_alone: bool

    def answers(self, node: Node) -> tuple[FamilyAnswer, ...]:
        location = Location(node.name, node)
        return tuple(self._answer(family, pool, location) for family, pool in self.pools.items())

    def _answer(self, family: int, pool: Pool, location: Location) -> FamilyAnswer:
        policy, topology = self.service.policy, self.topology
        found = select(pool, policy, location, topology.unknown_client, topology.on_invalid, self.nodes.domains)
        matches, group, most = len(found.group.endpoints), found.group, self.service.guards.max_endpoints
        if most is not None and self._is_bounded_exactly:
            group = bounded(group, most, self.service.key, location.node_name)
        single = self.with_alone and matches == 1
        alone = single and not _has_spare(found, pool, policy, location, topology.unknown_client)
        return FamilyAnswer(family, found.reason, found.key, group, matches, alone)

    @property
    def _is_bounded_exactly(self) -> bool:
        endpoints = sum(len(pool.everyone.endpoints) for pool in self.pools.values())
        return endpoints * len(self.nodes.nodes) <= MAX_HASHED

    def differs(self, node: Node, answers: tuple[FamilyAnswer, ...]) -> bool:
        """Whether another Node with this one's labels may have other answers than these, by its name alone."""
        if any(len(each.group.endpoints) < each.matches for each in answers):
            return True
        return any(load.endpoints and load.nodes > load.capacity for load in self._loads(node.labels))

    def prepare_steps(self) -> Iterator[None]:
        """Group the Nodes by each label whose values share a load, a label in each step, before `differs` asks."""
        if isinstance(self.service.policy, Policy):
            for _ in self._loads(dict.fromkeys(self.service.policy.labels, "")):
                yield

    def _loads(self, labels: Mapping[str, str]) -> Iterator[Load]:
        """The loads of these values of labels, by each family; none without `max_load`."""
        policy = self.service.policy
        if not isinstance(policy, Policy) or policy.max_load is None:
            return
        for label in policy.labels:
            if label in labels and label != HOSTNAME_LABEL:
                for pool in self.pools.values():
                    yield self.nodes.domains.load(pool, label, labels[label], policy.max_load.factor)


def _each_steps(tally: _Tally, rule: _Rule, members: NodeGroup, without: frozenset[str]) -> Iterator[None]:
    """Add these Nodes with the answers of each, those with the same together, a Node in each step."""
    alike: dict[tuple[tuple[Reason, str, int], ...], tuple[tuple[FamilyAnswer, ...], list[Node]]] = {}
    for node in members.nodes:
        if node.name not in without:
            answers = rule.answers(node)
            same = tuple((each.reason, each.key, id(each.group)) for each in answers)
            alike.setdefault(same, (answers, []))[1].append(node)
            yield
    for answers, some in alike.values():
        tally.add(NodeGroup(tuple(some), members.topology_zone), frozenset(), answers)
        yield


def _has_spare(
    found: Selection,
    pool: Pool,
    policy: Policy | InvalidPolicy | None,
    location: Location,
    unknown_client: UnknownClient,
) -> bool:
    """Whether this client would get other endpoints if the only one of `found` were not there."""
    if len(pool.everyone.endpoints) == 1:
        return False
    if not isinstance(policy, Policy) or not found.key:
        return True  # by hints: they never leave a client without an answer
    # Also the keys before it: where a guard passes over one, it counts again if no other key is left.
    for key in policy.keys if found.key in policy.keys else policy.keys_if_unlabelled or ():
        of_key = replace(policy, keys=(key,), keys_if_unlabelled=None)
        later = select(pool, of_key, location, unknown_client).group.endpoints
        if later and later != found.group.endpoints:
            return True
    return False


def _apart_steps(
    policy: Policy | InvalidPolicy | None, labels: frozenset[str], pools: Collection[Pool], nodes: NodeGroups
) -> Steps[dict[str, Node]]:
    """The Nodes, by name, for which `select` goes by the name or the hostname and may find an endpoint by it."""
    apart: dict[str, Node] = {}
    by_hints = isinstance(policy, Policy) and policy.source is KeySource.HINTS
    by_name = isinstance(policy, Policy) and HOSTNAME_LABEL in (*policy.keys, *(policy.keys_if_unlabelled or ()))
    for pool in pools if by_hints or HOSTNAME_LABEL in labels else ():
        if not (by_hints or by_name) and len(pool.everyone.endpoints) > MAX_OTHERS:
            continue
        for segment in pool.segments:
            some = segment.endpoints
            names = set(chain.from_iterable(map(_node_hints, some)) if by_hints else map(_node_name, some))
            yield
            if not by_hints:
                names |= nodes.with_hostnames(Pool((segment,), nodes.nodes.get).counts(HOSTNAME_LABEL).keys())
                yield
            apart.update((name, node) for name in names if (node := nodes.nodes.get(name)) is not None)
            yield
    return apart


def _client_groups(grouping: NodeGrouping, apart: Mapping[str, Node]) -> Iterator[tuple[NodeGroup, frozenset[str]]]:
    """Each Node that is apart, and each group with the names of its Nodes that are; no group is empty."""
    without: dict[int, set[str]] = {}
    for name, node in apart.items():
        members = grouping.groups[grouping.values(node)]
        without.setdefault(id(members), set()).add(name)
        yield NodeGroup((node,), members.topology_zone), frozenset()
    for members in grouping.groups.values():
        names = frozenset(without.get(id(members), ()))
        if len(names) < len(members.nodes):
            yield members, names


def _load_steps(
    askers: Mapping[int, tuple[int, Group, int]], service: ServiceView
) -> Steps[tuple[list[EndpointLoad], float]]:
    """The load of the endpoints of each family, and the higher skew of the two.

    Each group of endpoints is gone through once, not once per client.
    """
    shares: dict[int, dict[int, float]] = {family: {} for family, _ in service.families}
    done = 0
    for family, group, count in askers.values():
        share, of_family = count / len(group.endpoints), shares[family]
        for endpoint in group.endpoints:
            of_family[id(endpoint)] = of_family.get(id(endpoint), 0.0) + share
            done += 1
            if done % STEP == 0:
                yield
    load: list[EndpointLoad] = []
    skew = 0.0
    for family, endpoints in service.families:
        of_family = shares[family]
        total = sum(of_family.values())
        skew = max(skew, max(of_family.values()) * len(endpoints) / total if total else 0.0)
        for at in range(0, len(endpoints), STEP):
            load += [EndpointLoad(each, of_family.get(id(each), 0.0)) for each in endpoints[at : at + STEP]]
            yield
    return load, skew


def _zones(tally: _Tally, pools: Collection[Pool]) -> Mapping[str, ZoneCoverage]:
    endpoints: Counter[str] = Counter()
    for pool in pools:
        counts = Counter(pool.counts(ZONE_LABEL))
        counts[""] += len(pool.everyone.endpoints) - counts.total()
        endpoints |= counts
    names = sorted({*tally.nodes, *endpoints})
    return {
        name: ZoneCoverage(tally.nodes[name], tally.covered[name], endpoints[name], tally.near[name]) for name in names
    }
