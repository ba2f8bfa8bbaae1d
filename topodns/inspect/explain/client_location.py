"""Where a client is, and why: its Node in each cluster and the evidence of each method, for `topodns who`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from topodns.cluster.model import ZONE_LABEL
from topodns.dns.name import name_text
from topodns.inspect.explain.location_evidence import Evidence, gather_evidence, labels_in_use
from topodns.inspect.explain.question import Unexplained, parse_address
from topodns.inspect.explain.reasons import operator_hint
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.topology.client_locator import ClientLocator
from topodns.topology.select import Location

_OWN: Final = "an address of this server itself"


@dataclass(frozen=True, slots=True)
class ClientLocation:
    """The location of one address in one cluster."""

    origins: tuple[str, ...]  # of the `kubernetes` directive
    view: str  # of its server block; "" for none
    node: str  # "" unknown
    method: str
    reason: str
    topology_zone: str  # the Node's label topology.kubernetes.io/zone; "" for none
    labels: Mapping[str, str]  # of the Node, those that some Service's keys name
    lacking: tuple[str, ...]  # keys that some Service names, and the Node has no label for; some of them
    evidence: Evidence  # none without `topology`
    hint: str  # advice for the operator; "" for none

    def as_dict(self) -> dict[str, object]:
        """The location as a JSON object."""
        return {
            "origins": list(self.origins),
            "view": self.view or None,
            "node": self.node or None,
            "method": self.method,
            "because": self.reason,
            "zone": self.topology_zone or None,
            "labels": dict(self.labels),
            "lacking": list(self.lacking),
            "methods": [
                {"method": each.method, "used": each.used, "node": each.node_name or None, "because": each.text}
                for each in self.evidence.methods
            ],
            "contradictions": list(self.evidence.contradictions),
            "hint": self.hint or None,
        }


def who_reply(clusters: Collection[Cluster], arguments: Mapping[str, str]) -> dict[str, object]:
    """The JSON object about the address in the argument `client`: its location in each cluster.

    Raises Unexplained for a text that is no address, and without clusters.
    """
    address = parse_address(arguments.get("client", ""))
    if not clusters:
        raise Unexplained("no server block has a kubernetes directive: nothing is known of any client's node")
    located = [_located(cluster, address).as_dict() for cluster in clusters]
    return {"address": str(ip_address(address)), "clusters": located}


def _located(cluster: Cluster, address: bytes) -> ClientLocation:
    state, locator = cluster.state, cluster.locator
    location = locator.locate(address) if locator is not None else Location()
    evidence = gather_evidence(state, locator, location, address) if locator is not None else Evidence((), ())
    labels, lacking = labels_in_use(state, location.node.labels) if location.node is not None else ({}, ())
    return ClientLocation(
        origins=tuple(map(name_text, cluster.kubernetes.origins)),
        view=cluster.view.name if cluster.view is not None else "",
        node=location.node_name,
        method=location.method,
        reason=_reason(location, locator, evidence),
        topology_zone=location.node.labels.get(ZONE_LABEL, "") if location.node is not None else "",
        labels=labels,
        lacking=lacking,
        evidence=evidence,
        hint=_hint(cluster, None if location.node_name else address),
    )


def _reason(location: Location, locator: ClientLocator | None, evidence: Evidence) -> str:
    if locator is None:
        return "the server block has no `topology`: clients are not located"
    if location.node_name:
        return next((each.text for each in evidence.methods if each.method == location.method), _OWN)
    return f"no method of `locate` has a result: {', '.join(method.value for method in locator.methods)}"


def _hint(cluster: Cluster, unlocated: bytes | None) -> str:
    if not cluster.state.synced:
        return f"the state of the cluster is not complete: waiting for {', '.join(cluster.waiting_for())}"
    return operator_hint(cluster, unlocated)
