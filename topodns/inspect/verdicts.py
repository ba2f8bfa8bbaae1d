"""The verdict on each ready endpoint of a headless Service: whether a client gets it, and why, for an explanation.

For operators only: the selections of an answer are made again, and each endpoint is compared with them.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from ipaddress import ip_address
from itertools import islice
from typing import Final, NamedTuple

from topodns.cluster.endpoints import Group, Identity, Pool, identity_of, label_of
from topodns.cluster.model import ANY_KEY, OTHER, Endpoint, InvalidPolicy, ObjectKey, Policy, label_name
from topodns.cluster.state import ClusterState
from topodns.dns.message import Query
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


def tried_keys(cluster: Cluster, location: Location, selection: Selection | None) -> tuple[TriedKeyObject, ...]:
    """The keys that a selection compared, with the client's own value of each, or why it has none."""
    found = []
    for key, matches in selection.tried if selection is not None else ():
        value = _value(location, key)
        absent = key != ANY_KEY and value is None
        because = _absence(cluster, location.node_name, key) if absent else None
        found.append(TriedKeyObject(key=key, value=value, because=because, matches=matches))
    return tuple(found)


def _value(location: Location, key: str) -> str | None:
    """The value that `topology.select.satisfying` compares for a client at this location."""
    return label_of(location.node, Endpoint(b"", node_name=location.node_name), label_name(key))


def _absence(cluster: Cluster, node_name: str, key: str) -> str:
    return unknown_node(cluster, node_name) or f"node {node_name} has no label {label_name(key)}"


def verdict_steps(
    cluster: Cluster, kubernetes: KubernetesZone, query: Query, location: Location, ranks: bool
) -> Steps[tuple[EndpointObject, ...]]:
    """The verdicts on the ready endpoints that an answer to this query is chosen among, in slice order.

    None for other names than those of a headless Service and its ports. At most MAX_POOLS sets of ports count.
    `ranks`: the answer has every endpoint, with a priority.
    """
    key, pools = _pools_asked(kubernetes, query)
    policy = kubernetes.state.policies.get(key) if key is not None and kubernetes.topology is not None else None
    found: dict[Identity, EndpointObject] = {}
    for pool in pools:
        choice = yield from _choice_steps(kubernetes, policy, pool, location, ranks)
        for endpoint in pool.everyone.endpoints:
            unknown = (yield from _unknown_steps(cluster.state, endpoint.node_name)) if choice.keys else ""
            verdict = choice.verdict(kubernetes, endpoint, unknown)
            identity = identity_of(endpoint)
            if verdict["answered"] or identity not in found:
                found[identity] = verdict
            yield
    return tuple(found.values())


def _pools_asked(kubernetes: KubernetesZone, query: Query) -> tuple[ObjectKey | None, Iterable[Pool]]:
    """(The Service whose policy filters, the pools of an answer to this query), without those that are empty.

    No policy filters the endpoints of a ServiceImport.
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
    return None if service.imported else service.key, islice(distinct.values(), MAX_POOLS)


class _Choice(NamedTuple):
    """The endpoints of one pool that a client gets, and how they were chosen."""

    keys: tuple[str, ...]  # whose values were compared, or would be for a client with a known Node; without `*`
    reason: Reason
    chosen: Set[Identity]
    by_key: Mapping[str, Set[Identity]]  # the endpoints that a key chose; with priorities, in their order

    def verdict(self, kubernetes: KubernetesZone, endpoint: Endpoint, unknown: str) -> EndpointObject:
        """`unknown`: why the endpoint's Node is unknown; "" if it is known."""
        node = kubernetes.state.node(endpoint.node_name)
        labels = {key: label_of(node, endpoint, label_name(key)) for key in self.keys}
        winner = next((key for key, some in self.by_key.items() if identity_of(endpoint) in some), "")
        names = dict.fromkeys(label_name(key) for key, value in labels.items() if value is None)
        lacking = [f"node {endpoint.node_name} has no label {name}" for name in names]
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
        return f"node {name} is unknown: {'Nodes cannot be read' if denied else 'no locator has its labels'}"
    return (yield from state.unknown_nodes.clause_steps(name))
