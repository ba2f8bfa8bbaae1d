"""The EndpointSlices and locators that other objects contradict: a record for the log and metrics.

No location depends on it. Whether an endpoint or a locator is contradicted is decided in `topology.claims`; here two
slices of different namespaces that contradict each other are recorded too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

from topodns.cluster.locator_index import kind_of_key
from topodns.cluster.model import Endpoint, EndpointSlice, Kind, ObjectKey
from topodns.cluster.state import ClusterState
from topodns.topology.claims import Verdict, contradiction, is_evidence, verdicts

MAX_FOUND: Final = 1000  # contradicted slices, and addresses in locators, that are recorded
CHECKED_AT_ONCE: Final = 50  # endpoints per step


class Contradictions:
    """The contradicted slices of one cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._found: dict[ObjectKey, str] = {}

    def check(self) -> Iterator[None]:
        """Check the slices in the state's `unchecked_slices`, which is empty at the end, and update `found`.

        One step (a yield) checks at most 50 endpoints of one slice.
        """
        unchecked = self._state.unchecked_slices
        while unchecked:
            key = unchecked.pop()
            one = self._state.held("EndpointSlice", key)
            problem = ""
            if isinstance(one, EndpointSlice) and one.service_name and not one.imported:
                for at, endpoint in enumerate(one.endpoints):
                    problem = self._problem(one.namespace, endpoint)
                    if problem:
                        break
                    if at % CHECKED_AT_ONCE == CHECKED_AT_ONCE - 1:
                        yield
            if not problem:
                self._found.pop(key, None)
            elif key in self._found or len(self._found) < MAX_FOUND:
                self._found[key] = problem
            yield

    def _problem(self, namespace: str, endpoint: Endpoint) -> str:
        """The predicate of a sentence whose subject is the slice, if the endpoint is contradicted; else ""."""
        if not endpoint.node_name or not endpoint.pod_name:
            return ""
        against = contradiction(self._state, endpoint.address, endpoint.node_name)
        problem = against.clause if against is not None else _conflict(self._state, namespace, endpoint)
        return problem and f"says that Pod {endpoint.pod_name} is on node {endpoint.node_name}, but {problem}"

    @property
    def pending(self) -> bool:
        """Whether slices are still to be checked."""
        return bool(self._state.unchecked_slices)

    def found(self) -> Mapping[ObjectKey, str]:
        """The contradicted slices, at most 1,000, each with the predicate of a sentence about it. A live view."""
        return MappingProxyType(self._found)


def _conflict(state: ClusterState, namespace: str, endpoint: Endpoint) -> str:
    """The conflict with a slice of another namespace that has this address on another Node, as a clause; "" if none.

    "" also where the state's Pods or Nodes decide which of the two is right.
    """
    if state.knows_all_pods or state.pods_with_address(endpoint.address):
        return ""
    if state.nodes.with_address(endpoint.address) is not None:
        return ""
    for service, other in state.endpoints_with_address(endpoint.address, besides=namespace):
        if other.node_name != endpoint.node_name and is_evidence(state, other):
            return f"Service {service.namespace}/{service.name} has its address on node {other.node_name}"
    return ""


class LocatorContradictions:
    """The contradicted addresses in NodeLocators and PodLocators of one cluster, and those that were refused."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._found: dict[bytes, list[Verdict]] = {}

    def check(self) -> Iterator[None]:
        """Check the addresses that have changed; one step (a yield) checks one address."""
        locators = self._state.locators
        while (address := locators.next_unchecked()) is not None:
            claims = locators.claims(address)
            bad = [verdict for verdict in verdicts(self._state, address, claims) if verdict.against is not None]
            if not bad:
                self._found.pop(address, None)
            elif address in self._found or len(self._found) < MAX_FOUND:
                self._found[address] = bad
            yield

    @property
    def pending(self) -> bool:
        """Whether addresses are still to be checked."""
        return self._state.locators.pending

    def counts(self) -> Mapping[tuple[Kind, str], int]:
        """How many contradicted addresses there are by kind of locator and reason; of at most 1,000 addresses."""
        every = (verdict for several in self._found.values() for verdict in several)
        return Counter((claim.kind, against.reason) for claim, against in every if against is not None)

    def lines(self) -> Iterator[str]:
        """A log line for each of at most 1,000 contradicted addresses, and of at most 1,000 locators with refused ones.

        Of several locators with one address, the first is named. They may change between two lines.
        """
        for address, several in tuple(self._found.items()):
            yield f"{several[0].sentence(address)}; it locates no client with that address"
        for key, refused in tuple(islice(self._state.locators.refusing.items(), MAX_FOUND)):
            name = "/".join(filter(None, key))
            for each in refused:
                more = f", with {each.number - 1} more" if each.number > 1 else ""
                yield f"{kind_of_key(key)} {name}: {each.first} is {_WORDS[each.reason]}; ignored{more}"


_WORDS: Final = {
    "malformed": "no IP address",
    "loopback": "loopback",
    "link_local": "link-local",
    "multicast": "multicast",
    "unspecified": "the unspecified address",
    "broadcast": "the broadcast address",
    "too_many": "beyond the limit of the field",
}
