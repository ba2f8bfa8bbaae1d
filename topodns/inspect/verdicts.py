"""The verdict on each ready endpoint of a headless Service: whether a client gets it, and why, for an explanation.

For operators only: the selections of an answer are made again, and each endpoint is compared with them.
"""

from collections.abc import Iterator, Mapping, Set
from ipaddress import ip_address
from itertools import islice
from typing import Final, NamedTuple

from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.endpoints import Group, Identity, Pool, identity_of
from topodns.cluster.label_values import label_of
from topodns.cluster.model import (
    ANY_KEY,
    CLUSTER_KEY,
    OTHER,
    REGION_LABEL,
    ZONE_LABEL,
    Endpoint,
    ObjectKey,
    Policy,
    label_name,
)
from topodns.cluster.state import ClusterState
from topodns.dns.message import Query
from topodns.dns.rrtype import RRType
from topodns.inspect.documents import BoundObject, EndpointObject, TriedKeyObject
from topodns.inspect.model import Steps, decimal_text
from topodns.inspect.reasons import asked_name, unknown_node
from topodns.inspect.text import named
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.endpoints import FAMILIES, FAMILY_OF_TYPE, backends_of, pools_of
from topodns.plugins.kubernetes.headless import Rule, rule_of
from topodns.plugins.kubernetes.question import ServiceName, matching
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.query.plugin import Client
from topodns.topology.select import Location, Reason, Selection, rank_all, ranked

MAX_POOLS: Final = 32  # sets of endpoints with the same ports that are compared, of one family each
STEP: Final = 1000  # endpoints of a selection identified in one step, about 0.3 ms


class Candidates(NamedTuple):
    """The endpoints that an answer is chosen among, and by which rule; without pools for other names than those of a
    headless Service and its ports.
    """

    rule: Rule
    pools: tuple[Pool, ...]  # none is empty; at most MAX_POOLS
    imported: bool = False  # of a ServiceImport

    @property
    def decided_on(self) -> Pool | None:
        """The pool of the selection that an answer shows."""
        return self.rule.first(self.pools)[1]


def candidates_of(kubernetes: KubernetesZone, query: Query, client: Client) -> Candidates:
    """What the answer to this client is made of."""
    name, question = asked_name(kubernetes, query, client)
    if not isinstance(name, ServiceName):
        return Candidates(Rule(kubernetes, ttl=0), ())
    service = kubernetes.state.service(ObjectKey(name.namespace, name.service), question.origin.multicluster)
    if service is None or not service.headless:
        return Candidates(Rule(kubernetes, ttl=0), (), question.origin.multicluster)
    family, is_srv = FAMILY_OF_TYPE.get(query.qtype), query.qtype == RRType.SRV
    rule = rule_of(kubernetes, service.key, question, name.view, is_srv, service.imported)
    if name.endpoint or not (family or is_srv):
        return Candidates(rule._replace(bound=None), (), service.imported)
    backends = backends_of(kubernetes, service)
    ports = matching(backends.ports, name) if name.port or name.protocol else backends.ports if is_srv else None
    every = pools_of(backends, FAMILIES if family is None else (family,), ports)
    distinct = {id(pool): pool for pool in every if pool.everyone.endpoints}
    return Candidates(rule, tuple(islice(distinct.values(), MAX_POOLS)), service.imported)


def tried_keys(
    cluster: Cluster, candidates: Candidates, location: Location, selection: Selection | None
) -> tuple[TriedKeyObject, ...]:
    """The keys that a selection compared, with the client's own value of each, or why it has none."""
    if selection is None:
        return ()
    guards = _Guards(candidates, location) if selection.reason is not Reason.RANKED else None
    found = []
    for at, (key, matches) in enumerate(selection.tried, 1):
        of_cluster = candidates.imported and label_name(key) == CLUSTER_KEY
        value = (cluster.state.cluster_set.id or None) if of_cluster else _value(location, key)
        absent = key != ANY_KEY and value is None
        unknown = "the id of this cluster is unknown" if of_cluster else ""
        because = (unknown or _absence(cluster, location.node_name, key)) if absent else None
        guard = guards.against(key, value or "", matches, at == len(selection.tried)) if guards is not None else None
        found.append(TriedKeyObject(key=key, value=value, because=because, matches=matches, guard=guard))
    return tuple(found)


def _value(location: Location, key: str) -> str | None:
    """The value that `topology.select.satisfying` compares for a client at this location."""
    return label_of(location.node, Endpoint(b"", node_name=location.node_name), label_name(key))


class _Guards:
    """The guards of a policy in words, for a client at a location."""

    def __init__(self, candidates: Candidates, location: Location) -> None:
        rule = candidates.rule
        self._policy, self._domains, self._node = rule.policy, rule.kubernetes.domains, location.node
        self._pool = candidates.decided_on

    def against(self, key: str, value: str, matches: int, last: bool) -> str | None:
        """Why a guard passes over a key that matches; None if none does. `last`: no key is tried after it."""
        policy = self._policy
        if not isinstance(policy, Policy) or key == ANY_KEY or not matches:
            return None
        if matches < policy.min_endpoints:
            where = f"another {_word(key)} than {value}" if key.startswith(OTHER) else f"{_word(key)} {value}"
            return f"{where} has {matches} of {policy.min_endpoints}{'' if last else ': next key'}"
        if policy.max_load is None or self._node is None or self._pool is None:
            return None
        if self._domains.admits(self._pool, key, self._node, policy.max_load):
            return None
        load = self._domains.load(self._pool, key, value, policy.max_load.factor)
        return (
            f"{_word(key)} {value}: {load.endpoints} of {load.of_endpoints} endpoints serve {load.nodes} of "
            f"{load.of_nodes} nodes, at most {load.capacity} by max-load {decimal_text(policy.max_load.factor)}: "
            "this node is beyond"
        )


def _word(key: str) -> str:
    """The last part of a label: `zone` of topology.kubernetes.io/zone."""
    return label_name(key).rpartition("/")[2]


def _absence(cluster: Cluster, node_name: str, key: str) -> str:
    if not node_name:
        return "the client's node is unknown"
    return unknown_node(cluster, node_name) or f"node {node_name} has no label {label_name(key)}"


class Verdicts(NamedTuple):
    """The verdicts on the ready endpoints that an answer is chosen among, in slice order."""

    endpoints: tuple[EndpointObject, ...] = ()
    bound: BoundObject | None = None


def verdict_steps(cluster: Cluster, candidates: Candidates) -> Steps[Verdicts]:
    """The verdicts on the endpoints that an answer is chosen among, an endpoint in each step."""
    found: dict[Identity, EndpointObject] = {}
    left_out: set[Identity] = set()
    for pool in candidates.pools:
        choice = yield from _choice_steps(candidates.rule, pool)
        left_out |= choice.left_out
        for endpoint in pool.everyone.endpoints:
            explained = choice.keys and not candidates.imported
            unknown = (yield from _unknown_steps(cluster.state, endpoint.node_name)) if explained else ""
            verdict = choice.verdict(pool, endpoint, unknown)
            identity = identity_of(endpoint)
            if verdict["answered"] or identity not in found:
                found[identity] = verdict
            yield
    answered = {identity for identity, verdict in found.items() if verdict["answered"]}
    bound = None
    if candidates.rule.bound is not None and (beyond := len(left_out - answered)):
        bound = BoundObject(most=candidates.rule.bound.most, answered=len(answered), of=len(answered) + beyond)
    return Verdicts(tuple(found.values()), bound)


class _Choice(NamedTuple):
    """The endpoints of one pool that a client gets, and how they were chosen."""

    keys: tuple[str, ...]  # whose values were compared, or would be for a client with a known Node; without `*`
    reason: Reason
    chosen: Set[Identity]
    by_key: Mapping[str, Set[Identity]]  # the endpoints that a key chose; with priorities, in their order
    most: int  # by max-endpoints; 0 for no bound
    left_out: Set[Identity]  # by max-endpoints alone

    def verdict(self, pool: Pool, endpoint: Endpoint, unknown: str) -> EndpointObject:
        """`unknown`: why the endpoint's Node is unknown; "" if it is known, and at a ServiceImport."""
        labels = {key: pool.value_of(endpoint, label_name(key)) for key in self.keys}
        winner = next((key for key, some in self.by_key.items() if identity_of(endpoint) in some), "")
        names = dict.fromkeys(label_name(key) for key, value in labels.items() if value is None)
        lacking = [_lack(pool.cluster_set, endpoint, name) for name in names]
        faults = [unknown] if unknown else lacking if winner in ("", ANY_KEY) else []
        return EndpointObject(
            address=str(ip_address(endpoint.address)),
            node=endpoint.node_name or None,
            answered=identity_of(endpoint) in self.chosen,
            labels=labels,
            because="; ".join(self._reasons(endpoint, winner, labels, bool(unknown))) or None,
            fault="; ".join(faults) or None,
        )

    def _reasons(
        self, endpoint: Endpoint, winner: str, labels: Mapping[str, str | None], of_slice: bool
    ) -> Iterator[str]:
        """`of_slice`: the values are copies in the endpoint's slice."""
        if winner:
            priority = f"priority {list(self.by_key).index(winner)}, " if self.reason is Reason.RANKED else ""
            other = f", whose value is {labels[winner]}" if winner.startswith(OTHER) else f" = {labels.get(winner)}"
            yield f"{priority}by {winner}{other if winner != ANY_KEY else ''}"
        elif self.reason is Reason.HINTED:
            yield _hints(endpoint)
        if winner in ("", ANY_KEY):
            source = ", by its EndpointSlice" if of_slice else ""
            values = {label_name(key): value for key, value in labels.items() if value is not None}
            yield from (f"{name} = {value}{source}" for name, value in values.items())
        if identity_of(endpoint) in self.left_out:
            yield f"not among the {self.most} of max-endpoints"


def _lack(cluster_set: ClusterSet | None, endpoint: Endpoint, name: str) -> str:
    """Why an endpoint has no value of a topology key."""
    if cluster_set is not None:
        if name == CLUSTER_KEY:
            return "its EndpointSlice names no cluster"
        if name in (ZONE_LABEL, REGION_LABEL) and endpoint.topology_zone is None:
            return "its EndpointSlice has no zone"
        if name == REGION_LABEL:
            return f"the nodes of this cluster show no one region of zone {endpoint.topology_zone}"
        if not cluster_set.has(endpoint):
            where = endpoint.topology.get(CLUSTER_KEY)
            return f"{name} counts in this cluster alone, and it is in {f'cluster {where}' if where else 'none'}"
    return f"node {endpoint.node_name} has no label {name}"


def _choice_steps(rule: Rule, pool: Pool) -> Steps[_Choice]:
    location, policy, bound = rule.location or Location(), rule.policy, rule.bound
    selection = rule._replace(bound=None).selection(pool)
    by_key = {}
    if rule.ranking is not None:
        selection = rank_all(selection, pool, rule.ranking, location)
    matching = yield from _identity_steps(selection.group)
    if selection.reason is Reason.RANKED and rule.ranking is not None:
        for at, key in enumerate(rule.ranking.keys):
            by_key[key] = yield from _identity_steps(ranked(pool, rule.ranking, location, at))
    elif selection.key:
        by_key = {selection.key: matching}
    chosen = matching if bound is None else (yield from _identity_steps(bound.group(selection.group)))
    tried = [key for key, _ in selection.tried] or (policy.keys if isinstance(policy, Policy) else ())
    keys = tuple(key for key in tried if key != ANY_KEY)
    return _Choice(keys, selection.reason, chosen, by_key, 0 if bound is None else bound.most, matching - chosen)


def _identity_steps(group: Group) -> Steps[Set[Identity]]:
    found: set[Identity] = set()
    for at in range(0, len(group.endpoints), STEP):
        if at:
            yield
        found.update(map(identity_of, group.endpoints[at : at + STEP]))
    return found


def _hints(endpoint: Endpoint) -> str:
    hints = [f"node {each}" for each in endpoint.node_hints] + [f"zone {each}" for each in endpoint.zone_hints]
    return f"hinted for {named(hints)}" if hints else "without hints"


def _unknown_steps(state: ClusterState, name: str) -> Steps[str]:
    """A clause on why the Node of this name is unknown, "" if it is known, in steps."""
    if not name:
        return "it names no node"
    if state.node(name) is not None:
        return ""
    if "Node" not in state.known:
        denied = "Node" in state.needed
        return f"node {name} is unknown: {'Nodes cannot be read' if denied else 'no locator has its labels'}"
    return (yield from state.unknown_nodes.clause_steps(name))
