"""Decides which claims about the Node of a client's address count.

Every Pod can send a node identity (EDNS option 65518) and a Client Subnet (RFC 7871), so that these count only by the
source address of the query (`ClaimTrust`).

Write permission for EndpointSlices or PodLocators in one namespace must not move clients of another. So an endpoint
counts only for the Pod of its targetRef, in the slice's own namespace, and only while no other known object contradicts
it. A locator counts only while no other known object contradicts it, and only where all other locators with its address
agree with it or are provably older.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from topodns.cluster.locator_index import MOST, LocatorClaim
from topodns.cluster.model import Endpoint, Kind, Pod
from topodns.cluster.state import ClusterState


def node_of_pods(pods: Sequence[Pod]) -> str:
    """The Node name of Pods that share one address (hostNetwork Pods may); "" if there is none, or they disagree.

    Pods that are not terminating decide; if they are on different Nodes, the result is "". If all are terminating, the
    Pod started last decides: it got the address last.
    """
    if not pods:
        return ""
    current = [pod for pod in pods if not pod.terminating]
    if current:
        return _sole(pod.node_name for pod in current)
    last_start = max(pod.started for pod in pods)
    return _sole(pod.node_name for pod in pods if pod.started == last_start)


def client_pod(state: ClusterState, address: bytes) -> Pod | None:
    """The Pod that alone has this packed address, so that clients with it are this Pod; None if there is none.

    A Pod that is terminating counts only without another one, and of several the one started last: it got the address
    last. A hostNetwork Pod shares its address with other processes of the Node.
    """
    pods = state.pods_with_address(address)
    if len(pods) > 1:
        last_start = max(pod.started for pod in pods)
        pods = [pod for pod in pods if not pod.terminating] or [pod for pod in pods if pod.started == last_start]
    return pods[0] if len(pods) == 1 and not pods[0].host_network else None


def node_of_endpoints(state: ClusterState, address: bytes) -> str:
    """The Node name of an address by EndpointSlices; "" if no endpoint counts, or if they disagree.

    Within a namespace an endpoint that is not terminating overrides terminating ones, since a slice may still list the
    previous Pod of an address. Namespaces do not override each other: all must agree.
    """
    if state.knows_all_pods and not state.pods_with_address(address):
        return ""  # no Pod has the address, so no endpoint counts; this saves a walk over very many slices
    by_namespace: dict[str, list[Endpoint]] = {}
    for service, endpoint in state.endpoints_with_address(address):
        if is_evidence(state, endpoint):
            by_namespace.setdefault(service.namespace, []).append(endpoint)
    return _sole(map(_node_of, by_namespace.values()))


def is_evidence(state: ClusterState, endpoint: Endpoint) -> bool:
    """Whether an endpoint of a slice is evidence for its address: it has a Pod and a Node, without contradiction."""
    if not endpoint.node_name or not endpoint.pod_name:
        return False
    return contradiction(state, endpoint.address, endpoint.node_name) is None


class Contradiction(NamedTuple):
    """The evidence against the Node that an object gives for an address."""

    reason: str  # node_address, pod, pod_cidr; of locators also conflict, superseded
    clause: str  # of a log line that begins with what the object says


def contradiction(state: ClusterState, address: bytes, node_name: str) -> Contradiction | None:
    """The evidence against an address being on this Node; None if there is none.

    In order: the Node with the address, the Pods with it, the Node whose pod CIDR holds it, if Pods provably get their
    addresses from pod CIDRs. The first found decides, for or against.
    """
    owner = state.nodes.with_address(address)
    if owner is not None:
        problem = f"that is an address of Node {owner.name}"
        return Contradiction("node_address", problem) if owner.name != node_name else None
    pods = state.pods_with_address(address)
    if pods:
        other = next((pod for pod in pods if pod.node_name != node_name), None)
        if other is None or node_of_pods(pods) == node_name:
            return None
        problem = f"Pod {other.namespace}/{other.name} has its address on node {other.node_name}"
        return Contradiction("pod", problem)
    owner = state.nodes.with_pod_cidr(address)
    if owner is not None and owner.name != node_name and state.nodes.pod_cidrs_verified:
        return Contradiction("pod_cidr", f"that is in the podCIDR of Node {owner.name}")
    return None


def _node_of(endpoints: Sequence[Endpoint]) -> str:
    current = [endpoint for endpoint in endpoints if not endpoint.terminating]
    return _sole(endpoint.node_name for endpoint in current or endpoints)


def _sole(node_names: Iterable[str]) -> str:
    distinct = set(node_names)
    return distinct.pop() if len(distinct) == 1 else ""


_namespace: Final = attrgetter("key.namespace")


class Verdict(NamedTuple):
    """One locator's claim, and the evidence against it; None: it is believed."""

    claim: LocatorClaim
    against: Contradiction | None

    def sentence(self, address: bytes) -> str:
        """What the locator says of this address, and the evidence against that; "" if it is believed."""
        if self.against is None:
            return ""
        said = f"says that {ip_address(address)} is on node {self.claim.node_name}"
        return f"{self.claim.locator} {said}, but {self.against.clause}"


def node_of_locators(state: ClusterState, kind: Kind, address: bytes) -> str:
    """The Node name of an address by the locators of this kind; "" if none has it, or none is believed."""
    claims = state.locators.claims(address)
    if not claims:
        return ""
    for claim, against in verdicts(state, address, claims):
        if against is None and claim.kind == kind:
            return claim.node_name
    return ""


def verdicts(state: ClusterState, address: bytes, claims: tuple[LocatorClaim, ...]) -> Iterator[Verdict]:
    """A verdict on each of the claims to this address; all that are believed name the same Node.

    A claim is not believed if a Node, a Pod or a proven pod CIDR contradicts it. Of the others, an address that a
    NodeLocator has as the Node's own is of no Pod; of two NodeLocators, or two PodLocators of one namespace, that name
    different Nodes, only one that is later than the other is believed; and if after that two name different Nodes, none
    is.
    """
    if len(claims) > MOST:
        too_many = Contradiction("conflict", f"more than {MOST} locators have its address")
        yield from (Verdict(claim, too_many) for claim in claims)
        return
    standing: list[LocatorClaim] = []
    found = {name: contradiction(state, address, name) for name in {claim.node_name for claim in claims}}
    for claim in claims:
        against = found[claim.node_name]
        if against is None:
            standing.append(claim)
        else:
            yield Verdict(claim, against)
    if len({claim.node_name for claim in standing}) < 2:
        yield from (Verdict(claim, None) for claim in standing)
        return
    yield from _among_themselves(standing)


def _among_themselves(claims: list[LocatorClaim]) -> Iterator[Verdict]:
    """The verdicts on claims that name different Nodes, which no other object contradicts."""
    owners = [claim for claim in claims if claim.of_node]
    newest: list[LocatorClaim] = []
    for _, several in groupby(sorted(owners or claims, key=_namespace), _namespace):
        in_order = list(several)  # sorted() is stable: still in order of arrival
        newest += in_order[max((at for at, claim in enumerate(in_order) if claim.later), default=0) :]
    for claim in claims:
        yield Verdict(claim, _against(claim, newest, bool(owners)))


def _against(claim: LocatorClaim, newest: list[LocatorClaim], owned: bool) -> Contradiction | None:
    other = next((each for each in newest if each.node_name != claim.node_name), None)
    if other is None:
        return None
    if owned and not claim.of_node:
        return Contradiction("node_address", f"{other.locator} has it as an address of its Node")
    if claim in newest or any(each.node_name == claim.node_name for each in newest):
        return Contradiction("conflict", f"{other.locator} has its address on node {other.node_name}")
    return Contradiction("superseded", f"{other.locator}, which is newer, has its address on node {other.node_name}")


@dataclass(frozen=True, slots=True)
class Claim:
    """The client's location by the EDNS options of a query. `ClaimTrust` decides which claims count."""

    node_name: str | None = None  # EDNS option 65518, decoded
    subnet: tuple[bytes, int] | None = None  # EDNS Client Subnet: packed address (4 or 16 octets), source prefix length
    client: bytes | None = None  # EDNS option 65519: packed address


class ClaimTrust:
    """The claims that count from each source. `trust`: the sources (packed) of which every claim counts."""

    def __init__(self, state: ClusterState, trust: Container[bytes] = ()) -> None:
        self._state = state
        self._trust = trust

    def trusts(self, source: bytes) -> bool:
        """Whether ECS from this source counts. For other sources ECS is not enabled: neither read nor echoed.

        (RFC 7871 section 7.2.1: a server that has not enabled ECS ignores the option and sends none.)
        """
        return source in self._trust

    def may_name(self, source: bytes, node_name: str) -> bool:
        """Whether a source may claim that its client is on this Node.

        A trusted source may name any Node, another one only the Node that has the source's address.

        An untrusted source with an address of the Node is a node cache, a hostNetwork Pod or, with masquerading, any
        Pod of the Node; the method `nodes` would mostly find the same. The first two addresses of a pod CIDR count as
        the Node's: queries of a node cache on the server's own Node come from the bridge's address, which is in no Node
        object. No proof is needed there that Pods get addresses from pod CIDRs: claim and CIDR agree independently.
        """
        if source in self._trust:
            return True
        nodes = self._state.nodes
        owner = nodes.with_address(source) or nodes.with_pod_gateway(source)
        return owner is not None and owner.name == node_name
