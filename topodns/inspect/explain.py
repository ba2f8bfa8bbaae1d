"""Explanation of a reply to a client, for /explain of a running server and for the command `topodns explain`.

The cluster of the question is chosen, its `kubernetes` plugin is run on it, and each decision is collected.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final

from topodns.cluster.findings.finding import Finding
from topodns.cluster.findings.labels import import_label_findings
from topodns.cluster.findings.objects import import_findings, service_findings
from topodns.cluster.model import NO_KEYS, ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dns.addresses import packed_address
from topodns.dns.dnslib_text import record_lines
from topodns.dns.message import Edns, Query
from topodns.dns.name import BadName, Name, is_subdomain, name_text, name_wire, parse_name
from topodns.dns.rrtype import Rcode, RRClass, parse_qtype, rcode_text, type_text
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.inspect.documents import VERSION, ExplainDocument, TriedKeyObject
from topodns.inspect.errors import Refused
from topodns.inspect.model import PolicyText, Steps, free_steps, gather_steps, policy_text
from topodns.inspect.reasons import (
    answer_reason,
    missing_object,
    node_offer_steps,
    operator_hint,
    unknown_node,
    whole_names,
    with_slice_at_hand_steps,
)
from topodns.inspect.text import explanation_text, named
from topodns.inspect.verdicts import Candidates, Verdicts, candidates_of, tried_keys, verdict_steps
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.topology.findings import with_origin
from topodns.query.plugin import Client, Resolution, Scope
from topodns.topology.claims import Claim
from topodns.topology.client_locator import ClientLocator
from topodns.topology.select import Location, OnInvalid

SHOWN: Final = 100  # records in the text for the topology page

# A placeholder for any client on the given Node. Records beyond a message are not made: SRV records may be millions.
_ANY_CLIENT: Final = Client(b"\x7f\0\0\1", 53, "tcp", limit=MAX_MESSAGE)


@dataclass(frozen=True, slots=True)
class ExplainQuestion:
    """A name and type, and the client: either its address, or the name of its Node."""

    qname: Name
    qtype: int
    address: bytes | None  # packed
    node: str  # "" with an address


def parse_question(arguments: Mapping[str, str]) -> ExplainQuestion:
    """The question of `name`, `type` (default A), and `client` (an address) or `node`. Raises Refused."""
    qname, qtype = _parse_name(arguments.get("name", "")), _parse_type(arguments.get("type", "A"))
    address, node = arguments.get("client", ""), arguments.get("node", "")
    if bool(address) == bool(node):
        raise Refused("found both or none of client and node, expected one of them")
    return ExplainQuestion(qname, qtype, parse_address(address) if address else None, node)


def _parse_name(text: str) -> Name:
    try:
        qname = parse_name(text)
    except BadName as problem:
        raise Refused(str(problem)) from None
    if not qname:
        raise Refused("no name is given")
    return qname


def _parse_type(text: str) -> int:
    qtype = parse_qtype(text)
    if qtype is None:
        raise Refused(f"{text!r} is no type; expected one such as A, AAAA, SRV, PTR, CNAME or TYPE65")
    return qtype


def parse_address(text: str) -> bytes:
    """The packed address of a client. Raises Refused."""
    try:
        return packed_address(text)
    except ValueError:
        raise Refused(f"{text!r} is no IP address") from None


@dataclass(frozen=True, slots=True)
class Explanation:
    """All decisions behind one reply, ready to print."""

    client: str  # its address; "" if a Node was given instead
    node: str  # "" unknown
    method: str
    name: str
    qtype: str
    policy: PolicyText
    tried: tuple[TriedKeyObject, ...]
    winner: str
    reason: str  # of the selection, of an empty answer or of NXDOMAIN; "" for neither
    hint: str  # advice for the operator about an unlocated client; "" for none
    findings: tuple[str, ...]  # about the keys and annotations of the Service (`cluster.findings`)
    rcode: str
    answer: tuple[str, ...]
    verdicts: Verdicts  # on the ready endpoints of a headless Service, whether the client gets them or not

    def as_dict(self) -> ExplainDocument:
        """The explanation as a JSON object."""
        return {
            "version": VERSION,
            "client": {"address": self.client or None, "node": self.node or None, "method": self.method},
            "question": {"name": self.name, "type": self.qtype},
            "policy": {
                "source": self.policy.source or None,
                "keys": list(self.policy.keys),
                "problem": self.policy.problem or None,
                "guards": self.policy.guards,
            },
            "tried": list(self.tried),
            "winner": self.winner or None,
            "reason": self.reason,
            "hint": self.hint or None,
            "findings": list(self.findings),
            "rcode": self.rcode,
            "bound": self.verdicts.bound,
            "answer": list(self.answer),
            "endpoints": list(self.verdicts.endpoints),
        }


def explanation_json_steps(
    clusters: Collection[Cluster], arguments: Mapping[str, str], with_text: bool = False
) -> Steps[bytes]:
    """The explanation for the arguments of a request, as a JSON object, in steps. Raises Refused.

    `with_text`: it also has a member `text`, for readers, with at most SHOWN records.
    """
    explanation = yield from explanation_steps(clusters, parse_question(arguments))
    endpoints = explanation.verdicts.endpoints
    document: Mapping[str, object] = replace(
        explanation, answer=(), verdicts=explanation.verdicts._replace(endpoints=())
    ).as_dict()
    if with_text:
        document = {"text": explanation_text(_shortened(explanation)), **document}
        yield
    written = [json.dumps(document).removesuffix('[], "endpoints": []}'), "["]
    for members, end in ((explanation.answer, '], "endpoints": ['), (endpoints, "]}")):
        for member in members:  # thousands, and each takes 10 us
            written += json.dumps(member), ", "
            yield
        written[-1:] = (end,) if members else (written[-1], end)
    reply = "".join(written)
    parts: list[object] = [*written, *endpoints]
    del explanation, endpoints, members, written
    yield from free_steps(parts)
    return reply.encode()


def _shortened(explanation: Explanation) -> Mapping[str, object]:
    records = explanation.answer
    more = [f"and {len(records) - SHOWN} more"] if len(records) > SHOWN else []
    return {**explanation.as_dict(), "answer": [*records[:SHOWN], *more]}


def explanation_steps(clusters: Collection[Cluster], question: ExplainQuestion) -> Steps[Explanation]:
    """The explanation of the reply to this question, in steps: the text of thousands of records takes as many times
    14 us. Raises Refused.
    """
    qname = question.qname
    query = Query(0, 0, qname, name_wire(qname), question.qtype, RRClass.IN, Edns(MAX_MESSAGE, 0, False), 0)
    client = _ANY_CLIENT._replace(address=question.address) if question.address is not None else None
    cluster = _cluster_of(clusters, query, client)
    if question.node and cluster.topology is not None and (unknown := unknown_node(cluster, question.node)):
        offer = yield from node_offer_steps(cluster, question.node)
        raise Refused(f"{unknown}{offer}")
    locator = _Pinned(cluster.state, question.node) if question.node else cluster.locator
    kubernetes = KubernetesZone(cluster.kubernetes, cluster.topology, cluster.state, locator)
    resolution = ClusterZone(kubernetes)(query, client or _ANY_CLIENT)
    if not isinstance(resolution, Resolution):
        missing = yield from with_slice_at_hand_steps(cluster, query, missing_object(cluster, query))
        raise Refused(f"{name_text(qname)} falls through `kubernetes`: {missing}")
    answer = yield from gather_steps(record_lines(resolution.response.answer, query.spelling))
    location = _location(resolution, client, locator)
    candidates = candidates_of(kubernetes, query, client or _ANY_CLIENT)
    verdicts = Verdicts()
    if resolution.response.rcode in (Rcode.NOERROR, Rcode.REFUSED):
        verdicts = yield from verdict_steps(cluster, candidates)
    findings = yield from gather_steps(_findings(cluster, candidates, resolution))
    reason = yield from with_slice_at_hand_steps(cluster, query, answer_reason(cluster, query, resolution))
    explanation = Explanation(
        client=str(ip_address(client.address)) if client is not None else "",
        node=location.node_name,
        method=location.method,
        name=name_text(query.qname),
        qtype=type_text(query.qtype),
        policy=_policy_text(cluster.state, candidates, _service_of(resolution)),
        tried=tried_keys(cluster, candidates, location, resolution.selection),
        winner=resolution.selection.key if resolution.selection is not None else "",
        reason=reason,
        hint=operator_hint(cluster, client.address if client is not None and not location.node_name else None),
        findings=tuple(found.text_with_names for found in findings),
        rcode=rcode_text(resolution.response.rcode),
        answer=tuple(answer),
        verdicts=verdicts,
    )
    records: list[object] = [*resolution.response.answer, *resolution.response.additional]
    del resolution
    yield from free_steps(records)
    return explanation


def _location(resolution: Resolution, client: Client | None, locator: ClientLocator | None) -> Location:
    """The client's location, also where the answer did not depend on it."""
    if resolution.location is not None or locator is None:
        return resolution.location or Location()
    return locator.locate(client.address if client is not None else b"")


class _Pinned(ClientLocator):
    """Locates every client on one given Node."""

    def __init__(self, state: ClusterState, node_name: str) -> None:
        super().__init__(state, ())
        self._location = Location(node_name, state.node(node_name), "given")

    def locate(self, source: bytes, claim: Claim | None = None) -> Location:
        return self._location


def _policy_text(state: ClusterState, candidates: Candidates, service: ObjectKey | None) -> PolicyText:
    """The policy of the Service, whichever of its names is asked for; that of the name if the Service has none."""
    if service is None:
        return policy_text(None, None)
    if candidates.imported:
        keys = state.cluster_set.keys.get(service, NO_KEYS)
        return policy_text(keys.policy, keys.max_endpoints)
    return policy_text(state.policies.get(service) or candidates.rule.policy, state.max_endpoints.get(service))


def _service_of(resolution: Resolution) -> ObjectKey | None:
    """The first Service among the answer's facts (dependencies); None if there is none."""
    for fact in resolution.facts:
        if fact.kind == "service" and isinstance(fact.name, str):
            return ObjectKey(fact.namespace, fact.name)
    return None


def _findings(cluster: Cluster, candidates: Candidates, resolution: Resolution) -> Iterator[Finding | None]:
    """The findings about the keys and annotations of the Service asked for, in steps; none without `topology`."""
    service = _service_of(resolution)
    if service is None or cluster.topology is None:
        return
    if candidates.imported:
        yield from import_findings(cluster.state, service)
        yield from import_label_findings(cluster.state, service)
    else:
        policy = cluster.state.policies.get(service)
        for found in service_findings(cluster.state, service, cluster.topology.on_invalid is OnInvalid.IGNORE):
            yield found and with_origin(found, policy, cluster.topology)


def _cluster_of(clusters: Collection[Cluster], query: Query, client: Client | None) -> Cluster:
    """The cluster with the longest origin at or above the name, without a view or with one that takes the query.

    With equal origins, the first one. Raises Refused if there is none, or a view cannot decide without an address.
    """
    origins = [(origin, cluster) for cluster in clusters for origin in cluster.kubernetes.origins]
    matching = [(origin, cluster) for origin, cluster in origins if is_subdomain(query.qname, origin)]
    name = name_text(query.qname)
    if not matching:
        served = ", ".join(name_text(origin) for origin, _ in origins) or "none"
        whole = named(whole_names(clusters, query.qname))
        offer = f"did you mean {whole}?" if whole else "search domains are not added"
        raise Refused(f"{name} is in no zone of a kubernetes directive (there are: {served}); {offer}")
    matching.sort(key=lambda match: -len(match[0]))
    for _, cluster in matching:
        if _takes(cluster, query, client):
            return cluster
    raise Refused(f"no view with a kubernetes directive takes this client's question for {name}")


def _takes(cluster: Cluster, query: Query, client: Client | None) -> bool:
    view_filter = cluster.view_filter()
    if cluster.view is None or view_filter is None:
        return True
    if client is None and view_filter.scope is not Scope.EVERYONE:
        raise Refused(f"the view {cluster.view.name!r} goes by the client's address: name a client, not a node")
    return view_filter(query, client or _ANY_CLIENT)
