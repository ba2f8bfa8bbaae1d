"""A Service as an audit sees it: its policy and its ready endpoints, by reference to the state's own values.

Views are made of a state, one per Service, and changed for a what-if (`inspect.what_if`).
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

from topodns.cluster.model import Endpoint, InvalidPolicy, ObjectKey, Policy
from topodns.cluster.state import ClusterState

FAMILIES: Final = (4, 6)

PodKey = tuple[str, str | bytes]  # the name of its Node, and its own name, or its address


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A headless Service: its policy (None: no filtering) and its ready endpoints of each family, in slice order."""

    key: ObjectKey
    policy: Policy | InvalidPolicy | None = None
    governing: bool = False  # a StatefulSet's spec.serviceName names it
    ipv4: tuple[Endpoint, ...] = ()
    ipv6: tuple[Endpoint, ...] = ()

    def endpoints(self, family: int) -> tuple[Endpoint, ...]:
        """The ready endpoints of family 4 or 6."""
        return self.ipv4 if family == 4 else self.ipv6

    @property
    def families(self) -> Iterator[tuple[int, tuple[Endpoint, ...]]]:
        """(4 or 6, endpoints) of each family with a ready endpoint."""
        return ((family, some) for family in FAMILIES if (some := self.endpoints(family)))


def pod_key(endpoint: Endpoint) -> PodKey:
    """(Node name, Pod name): the key that the endpoints of one Pod share in both families.

    Of an endpoint without a Pod's name: its Node name and its packed address.
    """
    return endpoint.node_name, endpoint.pod_name or endpoint.address


def service_view(state: ClusterState, key: ObjectKey, governing: Container[ObjectKey] = ()) -> ServiceView | None:
    """The view of one Service; None if there is no headless Service of this key.

    `governing`: the state's `governing_services()`, which is taken once for many views. Builds the Service's Backends
    if no query has yet: about 1 ms for 1,000 endpoints.
    """
    service = state.service(key)
    if service is None or not service.headless:
        return None
    pools = state.backends(key).pools
    return ServiceView(
        key,
        state.policies.get(key),
        key in governing,
        pools[4].everyone.endpoints,
        pools[6].everyone.endpoints,
    )
