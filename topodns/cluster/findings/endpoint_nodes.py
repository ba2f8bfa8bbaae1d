"""Findings about the Nodes of a Service's endpoints: Nodes that do not exist, and other zones than those of slices."""

from collections.abc import Generator, Iterator, Sequence
from heapq import nsmallest
from ipaddress import ip_address
from typing import Final, NamedTuple

from topodns.cluster.findings.finding import MAX_NAMED, Finding, Findings
from topodns.cluster.model import ZONE_LABEL, Endpoint, InvalidPolicy, ObjectKey, Policy
from topodns.cluster.slices import SliceOwner
from topodns.cluster.state import ClusterState

_NO_NODE_NAME: Final = "ready endpoints have no nodeName: keys match them at most by their zone"


class _OtherZone(NamedTuple):
    """A zone that a slice has for endpoints, and that of their Node."""

    node_name: str
    of_slice: str
    of_node: str


class _Walked:
    """What the ready endpoints of one Service have: each attribute is of the first MAX_NAMED only, in order."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()  # nodeNames without a Node, one more than MAX_NAMED: "" if some have none
        self.zones: dict[_OtherZone, list[bytes]] = {}  # the addresses of the endpoints

    def add(self, state: ClusterState, ready: Sequence[Endpoint], zoned: bool) -> None:
        names = {each.node_name for each in ready}
        self.unknown.update(name for name in names if not name or state.node(name) is None)
        self.unknown = set(nsmallest(MAX_NAMED + 1, self.unknown))
        if zoned and (wrong := _other_zones(state, ready)):
            for each in ready:
                if (zones := wrong.get((each.node_name, _zone_of(each)))) is not None:
                    self.zones.setdefault(zones, []).append(each.address)
            first = nsmallest(MAX_NAMED, self.zones)
            self.zones = {zones: nsmallest(MAX_NAMED, self.zones[zones]) for zones in first}


def endpoint_node_findings(
    state: ClusterState, key: ObjectKey, policy: Policy | InvalidPolicy | None, unknown: set[str]
) -> Findings:
    """The findings about the Nodes of a Service's ready endpoints, in steps; the names of Nodes that do not exist are
    added to `unknown`. None without keys, or without any Node. Their texts do not change while Pods come and go.
    """
    if not _applies(state, policy):
        return
    walked = yield from _walk_steps(state, key, policy)
    if "" in walked.unknown:
        yield Finding(key, "unknown_node", _NO_NODE_NAME)
    missing = sorted(walked.unknown - {""})[:MAX_NAMED]
    unknown.update(missing)
    for name in missing:
        clause = yield from state.unknown_nodes.clause_steps(name)
        yield Finding(key, "unknown_node", f"{clause}, which is the nodeName of ready endpoints")
    yield from _zone_findings(key, walked)


def endpoint_zone_findings(state: ClusterState, key: ObjectKey, policy: Policy | InvalidPolicy | None) -> Findings:
    """Those of `endpoint_node_findings` about zones: an explanation names the Nodes that do not exist by endpoint."""
    if _applies(state, policy) and _is_zoned(policy):
        walked = yield from _walk_steps(state, key, policy)
        yield from _zone_findings(key, walked)


def _applies(state: ClusterState, policy: Policy | InvalidPolicy | None) -> bool:
    labelled = isinstance(policy, Policy) and bool(policy.labels)
    return labelled and state.synced and "Node" in state.known and bool(state.nodes.by_name)


def _is_zoned(policy: Policy | InvalidPolicy | None) -> bool:
    return isinstance(policy, Policy) and ZONE_LABEL in policy.labels


def _walk_steps(
    state: ClusterState, key: ObjectKey, policy: Policy | InvalidPolicy | None
) -> Generator[None, None, _Walked]:
    walked, zoned = _Walked(), _is_zoned(policy)
    for one in state.slice_table.owned.counted(SliceOwner(key)):
        walked.add(state, [each for each in one.endpoints if each.ready], zoned)
        yield
    return walked


def _zone_of(endpoint: Endpoint) -> str | None:
    return endpoint.topology.get(ZONE_LABEL) if endpoint.topology_zone is None else endpoint.topology_zone


def _other_zones(state: ClusterState, ready: Sequence[Endpoint]) -> dict[tuple[str, str | None], _OtherZone]:
    """By nodeName and zone of endpoints: the zones that a Node's contradicts; one without a zone contradicts none."""
    found: dict[tuple[str, str | None], _OtherZone] = {}
    for name, of_slice in {(each.node_name, _zone_of(each)) for each in ready}:
        node = state.node(name)
        of_node = node.labels.get(ZONE_LABEL) if node is not None else None
        if of_slice is not None and of_node is not None and of_node != of_slice:
            found[name, of_slice] = _OtherZone(name, of_slice, of_node)
    return found


def _zone_findings(key: ObjectKey, walked: _Walked) -> Iterator[Finding]:
    for zones, addresses in walked.zones.items():
        text = (
            f"ready endpoints have zone {zones.of_slice}, but their Node {zones.node_name} is in {zones.of_node}, "
            "which counts"
        )
        some = tuple(str(ip_address(each)) for each in addresses)
        yield Finding(key, "other_zone", text, node_names=(zones.node_name,), noun="endpoint", names=some)
