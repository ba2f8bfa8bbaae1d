"""The settings of a `topology` directive."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from topodns.cluster.model import KeySource, Kind
from topodns.corefile.arguments import Address, Network
from topodns.topology.client_locator import Method
from topodns.topology.keys import DefaultKeys
from topodns.topology.select import OnInvalid, UnknownClient

DEFAULT_PAGE: Final = Address("127.0.0.1", 8182)


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The topology page, an HTTP server for browsers."""

    listen: Address = DEFAULT_PAGE  # of loopback unless `public`
    public: bool = False  # serves clients that are not on loopback, too
    queries: bool = False  # explains any name for any client's address, and shows prefixes of unlocated clients


@dataclass(frozen=True, slots=True)
class TopologySettings:
    keys: tuple[KeySource, ...] = (KeySource.ANNOTATION, KeySource.FIELD, KeySource.OPENYURT)
    locate: tuple[Method, ...] = (Method.NODES, Method.PODCIDR, Method.PODS, Method.SLICES)
    trust: tuple[Network, ...] = ()  # sources whose node identity and ECS are trusted
    unknown_client: UnknownClient = UnknownClient.STRICT
    on_invalid: OnInvalid = OnInvalid.IGNORE
    ttl: int | None = None  # seconds, 0..3600; None: min(5, ttl of kubernetes)
    filter_hostnames: bool = False
    terminating_fallback: bool = False
    srv_priority: bool = False
    page: PageSettings | None = None  # None: there is no page
    defaults: tuple[DefaultKeys, ...] = ()  # the first that holds for a Service counts

    @property
    def placing_kinds(self) -> frozenset[Kind]:
        """The kinds needed to locate clients and for the values of keys, which are Nodes' labels.

        Locators have the labels, too: with them Nodes are needed only by the methods that read Nodes.
        """
        kinds = {kind for method, kind in _KINDS.items() if method in self.locate}
        return frozenset(kinds if not kinds.isdisjoint(_LABELLED) else {*kinds, "Node"})


_KINDS: Final[Mapping[Method, Kind]] = {
    Method.NODES: "Node",
    Method.PODCIDR: "Node",
    Method.PODCIDR_UNVERIFIED: "Node",
    Method.PODS: "Pod",
    Method.NODELOCATOR: "NodeLocator",
    Method.PODLOCATOR: "PodLocator",
}
"""The kinds that methods read; `slices` reads what every cluster has."""
_LABELLED: Final = frozenset[Kind](("NodeLocator", "PodLocator"))
