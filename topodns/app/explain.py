"""Explains the reply to a client: runs the real `kubernetes` plugin on a query and reports each decision.

Shared by the command line, which loads manifests itself, and /explain of a running server.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from random import Random
from typing import Final

from topodns.app.clusters import Cluster, load_manifests
from topodns.app.generation import Assembly, Machine
from topodns.cluster.model import InvalidPolicy, Kind, ObjectKey, Policy
from topodns.cluster.state import ClusterState
from topodns.dns.addresses import packed_address
from topodns.dns.dnslib_text import record_lines
from topodns.dns.message import Edns, Query
from topodns.dns.name import BadName, Name, is_subdomain, name_text, name_wire, parse_name
from topodns.dns.rrtype import Rcode, RRClass, parse_qtype, rcode_text, type_text
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.kube.informer.informer import ApiSource
from topodns.kube.manifests.source import ManifestSource
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.name_errors import NameErrors
from topodns.plugins.kubernetes.setup import PLUGIN as KUBERNETES
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.view.handler import ViewFilter
from topodns.plugins.view.settings import View
from topodns.query.plugin import Client, Resolution
from topodns.topology.client_locator import Claim, Locator, Method
from topodns.topology.select import Location, Reason

_SOMEBODY: Final = Client(b"\x7f\0\0\1", 53, "tcp")  # a placeholder for any client on the given Node

_METHODS: Final = {
    "nodes": "an address of the node: a process there, or a masqueraded Pod",
    "podcidr": "by its pod CIDR",
    "podcidr-unverified": "by its pod CIDR, unverified",
    "slices": "by an EndpointSlice",
    "pods": "by a Pod",
    "own": "this server's own",
    "given": "as given",
}

_REASONS: Final = {
    Reason.UNFILTERED: "no topology keys: every ready endpoint",
    Reason.MATCHED: "the first key with a match wins, with all its matches",
    Reason.ANY: "no key matched before `*`: every ready endpoint",
    Reason.NO_MATCH: "no endpoint shares any of the keys with the client's node: NODATA for this client",
    Reason.NO_ENDPOINTS: "no ready endpoint of this address family: there was nothing to choose from",
    Reason.UNKNOWN_CLIENT: "the client's node is unknown, and the last key is not `*`: NODATA",
    Reason.UNKNOWN_CLIENT_ALL: "the client's node is unknown: every ready endpoint",
    Reason.INVALID: "the topology keys are invalid and ignored: every ready endpoint",
    Reason.DENIED: "the topology keys are invalid (on_invalid deny): NODATA",
    Reason.NOT_PERMITTED: "RBAC denies the objects that give the client's node or its labels: every ready endpoint",
    Reason.HINTED: "the EndpointSlices' hints were followed",
}


class Unexplained(ValueError):
    """A query that cannot be explained; the message has the found and the expected value."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All decisions behind one reply, ready to print."""

    client: str  # its address; "" if a Node was given instead
    node: str  # "" unknown
    method: str
    name: str
    qtype: str
    keys: tuple[str, ...]
    source: str  # where the keys come from; "" without keys
    problem: str  # of an invalid policy
    tried: tuple[tuple[str, str, int], ...]  # key, the client's value, matches
    winner: str
    reason: str  # of the selection, or of NXDOMAIN; "" for neither
    hint: str  # advice for the operator about an unlocated client; "" for none
    rcode: str
    answer: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """The explanation as a JSON object."""
        return {
            "client": {"address": self.client or None, "node": self.node or None, "method": self.method},
            "question": {"name": self.name, "type": self.qtype},
            "policy": {"source": self.source or None, "keys": list(self.keys), "problem": self.problem or None},
            "tried": [{"key": key, "value": value, "matches": matches} for key, value, matches in self.tried],
            "winner": self.winner or None,
            "reason": self.reason,
            "hint": self.hint or None,
            "rcode": self.rcode,
            "answer": list(self.answer),
        }


def explanation_text(explained: Mapping[str, object]) -> str:
    """The object of `as_dict` as text for people."""
    client, question, policy = (_mapping(explained[part]) for part in ("client", "question", "policy"))
    lines = [
        f"client   {client['address'] or 'any'} on {_node_text(client)}",
        f"name     {question['name']} {question['type']}",
    ]
    if policy["keys"] or policy["problem"]:
        keys = ", ".join(str(key) for key in _items(policy["keys"]))
        lines.append(f"policy   {policy['source']}: {policy['problem'] or keys}")
    for attempt in map(_mapping, _items(explained["tried"])):
        wins = "  <- wins" if attempt["key"] == explained["winner"] else ""
        value = f" = {attempt['value']}" if attempt["value"] else ""
        lines.append(f"tried    {attempt['key']}{value}: {attempt['matches']} matching{wins}")
    if explained["reason"]:
        lines.append(f"because  {explained['reason']}")
    if explained["hint"]:
        lines.append(f"hint     {explained['hint']}")
    lines.append(f"answer   {explained['rcode']}")
    lines += [f"         {record}" for record in _items(explained["answer"])]
    return "\n".join(lines)


def explain_request(clusters: Iterable[Cluster], arguments: Mapping[str, str]) -> Explanation:
    """The explanation for `name`, `type` (default A), and `client` (an address) or `node`. Raises Unexplained."""
    qname, qtype = _parse_name(arguments.get("name", "")), _parse_type(arguments.get("type", "A"))
    query = Query(0, 0, qname, name_wire(qname), qtype, RRClass.IN, Edns(MAX_MESSAGE, 0, False), 0)
    address, node = arguments.get("client", ""), arguments.get("node", "")
    if bool(address) == bool(node):
        raise Unexplained("found both or none of client and node, expected one of them")
    client = Client(_parse_address(address), 53, "tcp") if address else None
    cluster = _cluster_of(clusters, query, client)
    if node and cluster.topology is not None:
        _check_node(cluster, node)
    locator = _Pinned(cluster.state, node) if node else cluster.locator
    step = ClusterZone(KubernetesZone(cluster.kubernetes, cluster.topology, cluster.state, locator))
    resolution = step(query, client or _SOMEBODY)
    if not isinstance(resolution, Resolution):
        raise Unexplained(f"{name_text(qname)} falls through `kubernetes`: {_why_not_there(cluster, query)}")
    return _explanation(cluster, query, client, locator, resolution)


def _check_node(cluster: Cluster, name: str) -> None:
    """Refuse an unknown Node; the message differs where no Node is known because Nodes cannot be read."""
    if cluster.state.node(name) is not None:
        return
    if "Node" in cluster.state.known:
        raise Unexplained(f"no Node is named {name!r}")
    raise Unexplained(f"Nodes cannot be read, so that no node is known: {_why_unread(cluster.source, 'Node')}")


def _why_unread(source: ManifestSource | ApiSource, kind: Kind) -> str:
    if isinstance(source, ManifestSource):
        return f"manifest files that cannot be read: {source.files_bad}"
    return next((progress.describe() for progress in source.progress if progress.resource.kind == kind), kind)


def explain_offline(settings: Settings, arguments: Mapping[str, str]) -> Explanation:
    """The explanation from the manifests of a Corefile, without a server. Raises Unexplained, OSError."""
    if any(
        (kubernetes := block.get(KUBERNETES)) is not None and kubernetes.api is not None for block in settings.blocks
    ):
        raise Unexplained("the Corefile has an API server for a source, not manifests: ask a running server (--server)")
    machine = Machine("", "", frozenset(), Random(0))
    generation = Assembly(machine, lambda line: None).build(settings)
    load_manifests(generation.clusters)
    return explain_request(generation.clusters, arguments)


class _Pinned(Locator):
    """Locates every client on one given Node."""

    def __init__(self, state: ClusterState, node_name: str) -> None:
        super().__init__(state, ())
        self._location = Location(node_name, state.node(node_name), "given")

    def locate(self, source: bytes, claim: Claim | None = None) -> Location:
        return self._location


def _explanation(
    cluster: Cluster, query: Query, client: Client | None, locator: Locator | None, resolution: Resolution
) -> Explanation:
    location = resolution.location
    if location is None:  # the answer did not depend on it, but the explanation shows it
        location = locator.locate(client.address if client is not None else b"") if locator is not None else Location()
    selection = resolution.selection
    policy = _policy_of(cluster.state, resolution)
    labels = location.node.labels if location.node is not None else {}
    return Explanation(
        client=str(ip_address(client.address)) if client is not None else "",
        node=location.node_name,
        method=location.method,
        name=name_text(query.qname),
        qtype=type_text(query.qtype),
        keys=policy.keys if isinstance(policy, Policy) else (),
        source=policy.source.value if policy is not None else "",
        problem=policy.problem if isinstance(policy, InvalidPolicy) else "",
        tried=tuple((key, labels.get(key, ""), matches) for key, matches in selection.tried) if selection else (),
        winner=selection.key if selection is not None else "",
        reason=_reason(cluster, query, resolution),
        hint=_hint(cluster, client.address if client is not None and not location.node_name else None),
        rcode=rcode_text(resolution.response.rcode),
        answer=tuple(record_lines(resolution.response.answer, query.spelling)),
    )


def _reason(cluster: Cluster, query: Query, resolution: Resolution) -> str:
    """Why the name does not exist, or why these endpoints were selected; "" where neither is the case."""
    if resolution.response.rcode == Rcode.NXDOMAIN:
        return _why_not_there(cluster, query)
    return _REASONS[resolution.selection.reason] if resolution.selection is not None else ""


def _why_not_there(cluster: Cluster, query: Query) -> str:
    return NameErrors(cluster.kubernetes, cluster.state).reason(query.qname, query.qtype)


def _hint(cluster: Cluster, unknown: bytes | None) -> str:
    """Advice for the operator. `unknown`: the address of a client whose Node is not known, else None."""
    state = cluster.state
    if cluster.topology is None:
        return "the server block has no `topology`: every client gets the same answer"
    if lacking := "; ".join(cluster.lacks()):
        return f"topology lacks {lacking}"
    node = state.nodes.with_pod_cidr(unknown) if unknown is not None else None
    if node is None:
        return ""
    if state.nodes.pod_cidrs_verified:
        return f"the address is in the podCIDR of {node.name}; `locate` can have podcidr"
    unproven = "but nothing has proven that the network plugin goes by podCIDRs"
    by_pods = Method.PODS in cluster.topology.locate
    unseen, others = ("no Pod has it, and ", "") if by_pods else ("", " or pods")
    return (
        f"the address is in the podCIDR of {node.name}, {unproven}; "
        f"{unseen}`locate` can have podcidr-unverified{others}"
    )


def _policy_of(state: ClusterState, resolution: Resolution) -> Policy | InvalidPolicy | None:
    """The policy of the answer's Service: the first Service among its facts (dependencies)."""
    for fact in resolution.facts:
        if fact.kind == "service" and isinstance(fact.name, str):
            return state.policies.get(ObjectKey(fact.namespace, fact.name))
    return None


def _cluster_of(clusters: Iterable[Cluster], query: Query, client: Client | None) -> Cluster:
    """The cluster with the longest origin above the name; with several views, the first that takes the query."""
    origins = [(origin, cluster) for cluster in clusters for origin in cluster.kubernetes.origins]
    matching = [(origin, cluster) for origin, cluster in origins if is_subdomain(query.qname, origin)]
    name = name_text(query.qname)
    if not matching:
        served = ", ".join(name_text(origin) for origin, _ in origins) or "none"
        raise Unexplained(f"{name} is below no origin of a kubernetes directive (there are: {served})")
    matching.sort(key=lambda match: -len(match[0]))
    for _, cluster in matching:
        if cluster.view is None or _takes(cluster.view, query, client):
            return cluster
    raise Unexplained(f"no view with a kubernetes directive takes this client's question for {name}")


def _takes(view: View, query: Query, client: Client | None) -> bool:
    view_filter = ViewFilter(view, "")
    if client is None and view_filter.of_client:
        raise Unexplained(f"the view {view.name!r} goes by the client's address: name a client, not a node")
    return view_filter(query, client or _SOMEBODY)


def _parse_name(text: str) -> Name:
    try:
        qname = parse_name(text)
    except BadName as problem:
        raise Unexplained(str(problem)) from None
    if not qname:
        raise Unexplained("no name is given")
    return qname


def _parse_type(text: str) -> int:
    qtype = parse_qtype(text)
    if qtype is None:
        raise Unexplained(f"{text!r} is no type; expected one such as A, AAAA, SRV, PTR, CNAME or TYPE65")
    return qtype


def _parse_address(text: str) -> bytes:
    try:
        return packed_address(text)
    except ValueError:
        raise Unexplained(f"{text!r} is no IP address") from None


def _node_text(client: Mapping[str, object]) -> str:
    if not client["node"]:
        return "an unknown node"
    return f"node {client['node']} ({_METHODS.get(str(client['method']), client['method'])})"


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, dict)
    return value


def _items(value: object) -> Iterable[object]:
    assert isinstance(value, list)
    return value
