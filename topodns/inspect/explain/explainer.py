"""Explains a reply: chooses the cluster, runs its `kubernetes` plugin on the question, and collects each decision."""

from collections.abc import Iterable
from ipaddress import ip_address
from random import Random
from typing import Final

from topodns.app.generation import Assembly, Machine
from topodns.cluster.model import InvalidPolicy, ObjectKey, Policy
from topodns.cluster.state import ClusterState
from topodns.dns.dnslib_text import record_lines
from topodns.dns.message import Edns, Query
from topodns.dns.name import is_subdomain, name_text, name_wire
from topodns.dns.rrtype import RRClass, rcode_text, type_text
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.inspect.explain.explanation import Explanation
from topodns.inspect.explain.question import ExplainQuestion, Unexplained
from topodns.inspect.explain.reasons import answer_reason, missing_object, operator_hint, unknown_node
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import Cluster, load_manifests
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.setup import PLUGIN as KUBERNETES
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.view.handler import ViewFilter
from topodns.plugins.view.settings import View
from topodns.query.plugin import Client, Resolution
from topodns.time_slices import Job, do_at_once
from topodns.topology.claim_trust import Claim
from topodns.topology.client_locator import ClientLocator
from topodns.topology.select import Location

_ANY_CLIENT: Final = Client(b"\x7f\0\0\1", 53, "tcp")  # a placeholder for any client on the given Node


def explain_reply(clusters: Iterable[Cluster], question: ExplainQuestion) -> Explanation:
    """The explanation of the reply to this question. Raises Unexplained."""
    return do_at_once(explanation_job(clusters, question))


def explanation_job(clusters: Iterable[Cluster], question: ExplainQuestion) -> Job[Explanation]:
    """As `explain_reply`, in steps: the text of thousands of records takes as many times 14 us."""
    qname = question.qname
    query = Query(0, 0, qname, name_wire(qname), question.qtype, RRClass.IN, Edns(MAX_MESSAGE, 0, False), 0)
    client = Client(question.address, 53, "tcp") if question.address is not None else None
    cluster = _cluster_of(clusters, query, client)
    if question.node and cluster.topology is not None and (unknown := unknown_node(cluster, question.node)):
        raise Unexplained(unknown)
    locator = _Pinned(cluster.state, question.node) if question.node else cluster.locator
    step = ClusterZone(KubernetesZone(cluster.kubernetes, cluster.topology, cluster.state, locator))
    resolution = step(query, client or _ANY_CLIENT)
    if not isinstance(resolution, Resolution):
        raise Unexplained(f"{name_text(qname)} falls through `kubernetes`: {missing_object(cluster, query)}")
    answer = []
    for line in record_lines(resolution.response.answer, query.spelling):
        answer.append(line)
        yield
    return _explanation(cluster, query, client, locator, resolution, tuple(answer))


def manifest_clusters(settings: Settings) -> list[Cluster]:
    """The clusters of a Corefile, read from its manifests without a server.

    Raises Unexplained if one has an API server as its source; otherwise as `Assembly.build`.
    """
    of_blocks = [KUBERNETES.settings_of(block) for block in settings.blocks]
    if any(kubernetes is not None and kubernetes.api is not None for kubernetes in of_blocks):
        raise Unexplained("the Corefile has an API server for a source, not manifests: ask a running server (--server)")
    machine = Machine("", "", frozenset(), Random(0))
    generation = Assembly(machine, lambda line: None).build(settings)
    load_manifests(generation.clusters)
    return generation.clusters


class _Pinned(ClientLocator):
    """Locates every client on one given Node."""

    def __init__(self, state: ClusterState, node_name: str) -> None:
        super().__init__(state, ())
        self._location = Location(node_name, state.node(node_name), "given")

    def locate(self, source: bytes, claim: Claim | None = None) -> Location:
        return self._location


def _explanation(
    cluster: Cluster,
    query: Query,
    client: Client | None,
    locator: ClientLocator | None,
    resolution: Resolution,
    answer: tuple[str, ...],
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
        reason=answer_reason(cluster, query, resolution),
        hint=operator_hint(cluster, client.address if client is not None and not location.node_name else None),
        rcode=rcode_text(resolution.response.rcode),
        answer=answer,
    )


def _policy_of(state: ClusterState, resolution: Resolution) -> Policy | InvalidPolicy | None:
    """The policy of the first Service among the answer's facts (dependencies); None if it has none, or no Service."""
    for fact in resolution.facts:
        if fact.kind == "service" and isinstance(fact.name, str):
            return state.policies.get(ObjectKey(fact.namespace, fact.name))
    return None


def _cluster_of(clusters: Iterable[Cluster], query: Query, client: Client | None) -> Cluster:
    """The cluster with the longest origin at or above the name, without a view or with one that takes the query.

    With equal origins, the first one. Raises Unexplained if there is none, or a view cannot decide without an address.
    """
    origins = [(origin, cluster) for cluster in clusters for origin in cluster.kubernetes.origins]
    matching = [(origin, cluster) for origin, cluster in origins if is_subdomain(query.qname, origin)]
    name = name_text(query.qname)
    if not matching:
        served = ", ".join(name_text(origin) for origin, _ in origins) or "none"
        raise Unexplained(
            f"{name} is in no zone of a kubernetes directive (there are: {served}); search domains are not added"
        )
    matching.sort(key=lambda match: -len(match[0]))
    for _, cluster in matching:
        if cluster.view is None or _takes(cluster.view, query, client):
            return cluster
    raise Unexplained(f"no view with a kubernetes directive takes this client's question for {name}")


def _takes(view: View, query: Query, client: Client | None) -> bool:
    view_filter = ViewFilter(view, "")
    if client is None and view_filter.of_client:
        raise Unexplained(f"the view {view.name!r} goes by the client's address: name a client, not a node")
    return view_filter(query, client or _ANY_CLIENT)
