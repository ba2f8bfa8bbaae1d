"""The verdict on each ready endpoint of a headless Service: whether a client gets it, and why, for an explanation.

For operators only: the selections of an answer are made again, and each endpoint is compared with them.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from ipaddress import ip_address
from itertools import islice
from typing import Final, NamedTuple

from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.endpoints import Group, Identity, Pool, identity_of
from topodns.cluster.label_values import label_of
from topodns.cluster.model import (
    ANY_KEY,
    CLUSTER_KEY,
    NO_KEYS,
    OTHER,
    REGION_LABEL,
    ZONE_LABEL,
    Endpoint,
    InvalidPolicy,
    ObjectKey,
    Policy,
    label_name,
)
from topodns.cluster.state import ClusterState
from topodns.dns.message import Query
from topodns.dns.name import is_below_any
from topodns.dns.rrtype import RRType
from topodns.inspect.documents import EndpointObject, TriedKeyObject
from topodns.inspect.model import Steps
from topodns.inspect.reasons import asked_name, unknown_node
from topodns.inspect.text import named
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.endpoints import FAMILIES, FAMILY_OF_TYPE, backends_of, pools_of
from topodns.plugins.kubernetes.headless import selection_of
from topodns.plugins.kubernetes.question import ServiceName, matching
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.topology.select import Location, Reason, Selection, rank_all, ranked

MAX_POOLS: Final = 32  # sets of endpoints with the same ports that are compared, of one family each
STEP: Final = 1000  # endpoints of a selection identified in one step, about 0.3 ms


def tried_keys(
    cluster: Cluster,
    policy: Policy | InvalidPolicy | None,
    location: Location,
    selection: Selection | None,
    imported: bool = False,
) -> tuple[TriedKeyObject, ...]:
    """The keys that a selection compared, with the client's own value of each, or why it has none.

    `imported`: among the endpoints of a ServiceImport.
    """
    if selection is None:
        return ()
    decides = selection.reason is not Reason.RANKED
    least = policy.min_endpoints if isinstance(policy, Policy) and decides else 1
    found = []
    for at, (key, matches) in enumerate(selection.tried, 1):
        of_cluster = imported and label_name(key) == CLUSTER_KEY
        value = (cluster.state.cluster_set.id or None) if of_cluster else _value(location, key)
        absent = key != ANY_KEY and value is None
        unknown = "the id of this cluster is unknown" if of_cluster else ""
        because = (unknown or _absence(cluster, location.node_name, key)) if absent else None
        short = _shortage(key, value, matches, least) if key != ANY_KEY and 0 < matches < least else None
        if short and at < len(selection.tried):
            short = f"{short}: next key"
        found.append(TriedKeyObject(key=key, value=value, because=because, matches=matches, short=short))
    return tuple(found)


def _value(location: Location, key: str) -> str | None:
    """The value that `topology.select.satisfying` compares for a client at this location."""
    return label_of(location.node, Endpoint(b"", node_name=location.node_name), label_name(key))


def _shortage(key: str, value: str | None, matches: int, least: int) -> str:
    """That a key matches fewer endpoints than one needs to win: `zone eu-1a has 1 of 2`."""
    name = label_name(key).rpartition("/")[2]
    where = f"another {name} than {value}" if key.startswith(OTHER) else f"{name} {value}"
    return f"{where} has {matches} of {least}"


def _absence(cluster: Cluster, node_name: str, key: str) -> str:
    if not node_name:
        return "the client's node is unknown"
    return unknown_node(cluster, node_name) or f"node {node_name} has no label {label_name(key)}"


def verdict_steps(
    cluster: Cluster, kubernetes: KubernetesZone, query: Query, location: Location, ranks: bool
) -> Steps[tuple[EndpointObject, ...]]:
    """The verdicts on the ready endpoints that an answer to this query is chosen among, in slice order.

    None for other names than those of a headless Service and its ports. At most MAX_POOLS sets of ports count.
    `ranks`: the answer has every endpoint, with a priority.
    """
    key, pools = _pools_asked(kubernetes, query)
    policy = None
    if key is not None and kubernetes.topology is not None:
        policy = policy_of_service(kubernetes.state, key, is_imported(cluster, query))
    found: dict[Identity, EndpointObject] = {}
    for pool in pools:
        choice = yield from _choice_steps(kubernetes, policy, pool, location, ranks)
        for endpoint in pool.everyone.endpoints:
            explained = choice.keys and pool.cluster_set is None
            unknown = (yield from _unknown_steps(cluster.state, endpoint.node_name)) if explained else ""
            verdict = choice.verdict(pool, endpoint, unknown)
            identity = identity_of(endpoint)
            if verdict["answered"] or identity not in found:
                found[identity] = verdict
            yield
    return tuple(found.values())


def _pools_asked(kubernetes: KubernetesZone, query: Query) -> tuple[ObjectKey | None, Iterable[Pool]]:
    """(The Service or ServiceImport whose policy filters, the pools of an answer to this query), without those that are
    empty.
    """
    name, question = asked_name(kubernetes, query)
    family, is_srv = FAMILY_OF_TYPE.get(query.qtype), query.qtype == RRType.SRV
    if not isinstance(name, ServiceName) or name.endpoint or not (family or is_srv):
        return None, ()
    service = kubernetes.state.service(ObjectKey(name.namespace, name.service), question.origin.multicluster)
    if service is None or not service.headless:
        return None, ()
    backends = backends_of(kubernetes, service)
    ports = matching(backends.ports, name) if name.port or name.protocol else backends.ports if is_srv else None
    every = pools_of(backends, FAMILIES if family is None else (family,), ports)
    distinct = {id(pool): pool for pool in every if pool.everyone.endpoints}
    return service.key, islice(distinct.values(), MAX_POOLS)


class _Choice(NamedTuple):
    """The endpoints of one pool that a client gets, and how they were chosen."""

    keys: tuple[str, ...]  # whose values were compared, or would be for a client with a known Node; without `*`
    reason: Reason
    chosen: Set[Identity]
    by_key: Mapping[str, Set[Identity]]  # the endpoints that a key chose; with priorities, in their order

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


def is_imported(cluster: Cluster, query: Query) -> bool:
    """Whether the name of this query is under an origin of ServiceImports."""
    return is_below_any(query.qname, cluster.kubernetes.multicluster)


def policy_of_service(state: ClusterState, key: ObjectKey, imported: bool) -> Policy | InvalidPolicy | None:
    """The policy of the Service of this key, or of the ServiceImport."""
    return state.cluster_set.keys.get(key, NO_KEYS).policy if imported else state.policies.get(key)


def _choice_steps(
    kubernetes: KubernetesZone, policy: Policy | InvalidPolicy | None, pool: Pool, location: Location, ranks: bool
) -> Steps[_Choice]:
    selection = selection_of(kubernetes, policy, pool, location)
    chosen = yield from _identity_steps(selection.group)
    by_key = {selection.key: chosen} if selection.key else {}
    if ranks and isinstance(policy, Policy):
        selection = rank_all(selection, pool, policy, location)
        by_key = {}
        for at, key in enumerate(policy.keys):
            by_key[key] = yield from _identity_steps(ranked(pool, policy, location, at))
        chosen = yield from _identity_steps(selection.group)
    tried = [key for key, _ in selection.tried] or (policy.keys if isinstance(policy, Policy) else ())
    return _Choice(tuple(key for key in tried if key != ANY_KEY), selection.reason, chosen, by_key)


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
        return f"node {name} is unknown: {'Nodes cannot be read' if denied else 'it has no NodeLocator'}"
    return (yield from state.unknown_nodes.clause_steps(name))
