"""Decides which NodeLocators and PodLocators are believed about the Node of an address.

Write permission for PodLocators in one namespace must not move clients of another. So a locator counts only while no
other known object contradicts it, and only where all other locators with its address agree with it or are provably
older.
"""

from collections.abc import Iterator
from ipaddress import ip_address
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from topodns.cluster.locator_index import MOST, LocatorClaim
from topodns.cluster.model import Kind
from topodns.cluster.state import ClusterState
from topodns.topology.slice_claims import Contradiction, contradiction

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
