"""The clusters of `kubernetes` directives: what each one knows, what feeds it, who finds its clients. Nothing runs yet.

A `Feed` may outlive the generation that it was made for: where the next Corefile asks for the same one, it goes on, and
a reload costs neither a list nor a moment in which less is known.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from topodns.cluster.facts import Fact
from topodns.cluster.locate import Locator
from topodns.cluster.model import Change, Kind, Replaced
from topodns.cluster.policy import KeySource
from topodns.cluster.selector import Selector
from topodns.cluster.state import ClusterState
from topodns.cluster.topology import OnInvalid
from topodns.edge.api_source import ApiSource, Resource, needed_kinds, resources
from topodns.edge.file_watch import watch_files
from topodns.edge.kube_api import OURS, KubeApi, RequestTally, connect
from topodns.edge.manifests import ManifestSource
from topodns.edge.service_events import NAMESPACE, EventWriter
from topodns.resolve.audit import Finding, audit
from topodns.resolve.rosters import Rosters
from topodns.settings.kubernetes import ApiSettings, KubernetesSettings
from topodns.settings.topology import TopologySettings
from topodns.settings.view import View


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """All that a feed is made of. Whatever else a Corefile says of a cluster is only about how it is answered for."""

    api: ApiSettings | None
    manifests: tuple[str, ...]
    labels: Selector | None
    needed: frozenset[Kind]
    resources: tuple[Resource, ...]  # what an API server is asked for
    key_sources: tuple[KeySource, ...]
    terminating_fallback: bool
    pod_names: bool
    writes_events: bool

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for two feeds that are read from the same place, though not the same of it."""
        return self.api, self.manifests


def feed_settings(kubernetes: KubernetesSettings, topology: TopologySettings | None) -> FeedSettings:
    """What these two directives ask of a feed."""
    return FeedSettings(
        api=kubernetes.api,
        manifests=kubernetes.manifests,
        labels=kubernetes.labels,
        needed=needed_kinds(kubernetes, topology),
        resources=resources(kubernetes, topology),
        key_sources=topology.keys if topology is not None else (),
        terminating_fallback=topology is not None and topology.terminating_fallback,
        pod_names=kubernetes.endpoint_pod_names,
        writes_events=kubernetes.api is not None and topology is not None,
    )


class Feed:
    """A cluster's state and what keeps it up to date: the manifests, or the API server that `connecting` leads to.

    `changed` is called with the facts that a change touched, in the same turn of the loop; it is whoever's who is in
    charge, and until somebody is, nobody's.
    """

    def __init__(
        self,
        settings: FeedSettings,
        rng: Random,
        connecting: Callable[[], Awaitable[KubeApi]] | None = None,
        event_writer: EventWriter | None = None,
    ) -> None:
        self.settings = settings
        self.state = ClusterState(
            settings.needed, settings.key_sources, settings.terminating_fallback, settings.pod_names
        )
        self.changed: Callable[[frozenset[Fact]], None] = lambda facts: None
        self.event_writer = event_writer  # where there are topology keys, and an API server to tell of their flaws
        self.source: ManifestSource | ApiSource
        if connecting is None:
            self.source = ManifestSource(settings.manifests, self._take_in, settings.labels)
        else:
            self.source = ApiSource(settings.resources, self.state, self._publish, connecting, rng)

    @property
    def arrives_late(self) -> bool:
        """Whether it is worth waiting for: it is not all there when `begin` returns."""
        return isinstance(self.source, ApiSource)

    async def begin(self) -> None:
        """Read the manifests, or find out how the API server is reached. Raises ApiError."""
        if isinstance(self.source, ApiSource):
            await self.source.connect()
        else:
            await self.source.load_gently()

    def works(self) -> Iterator[tuple[str, Coroutine[None, None, None]]]:
        """What goes on in the background once it has begun, with a name for its task."""
        if isinstance(self.source, ApiSource):
            yield "api", self.source.run()
            if self.event_writer is not None:
                yield "service events", self.event_writer.run()
        else:
            yield "manifests", self.source.run(watch_files(self.source.paths))

    async def close(self) -> None:
        """End its connections; what it works has ended."""
        if isinstance(self.source, ApiSource):
            await self.source.close()

    def _publish(self, facts: frozenset[Fact]) -> None:
        self.changed(facts)

    def _take_in(self, change: Change) -> Iterator[None]:
        """Take a change of the manifests in, a large one a little with each step."""
        for facts in _taken_in(self.state, change):
            if facts:
                self._publish(facts)
            yield


@dataclass(frozen=True, eq=False, slots=True)
class Cluster:
    """One `kubernetes` directive: its settings and its `topology`'s, its feed, and who finds its clients."""

    kubernetes: KubernetesSettings
    topology: TopologySettings | None
    feed: Feed
    locator: Locator | None
    view: View | None = None  # of the server block, that answers only some questions for this cluster
    rosters: Rosters = field(default_factory=Rosters)

    @property
    def state(self) -> ClusterState:
        return self.feed.state

    @property
    def source(self) -> ManifestSource | ApiSource:
        return self.feed.source

    def is_instead_of(self, other: "Cluster") -> bool:
        """Whether both are read from the same place, or answer for the same names: of another place, or misspelt."""
        same_names = not set(self.kubernetes.origins).isdisjoint(other.kubernetes.origins)
        return same_names or self.feed.settings.place == other.feed.settings.place

    def waiting_for(self) -> Iterable[str]:
        """What is not known yet and, where it is denied or cannot be reached, why."""
        if isinstance(self.source, ApiSource):
            return self.source.waiting_for()
        return (f"{', '.join(self.state.unsynced)}: manifest files that cannot be read: {self.source.files_bad}",)

    def audit(self) -> Iterator[Finding]:
        """What is wrong with its Services' topology wishes now."""
        if self.topology is not None:
            yield from audit(self.state, self.topology.on_invalid is OnInvalid.IGNORE)


def load_manifests(clusters: Iterable[Cluster]) -> None:
    """Read all manifests at once: for whoever has nothing else to do meanwhile."""
    for cluster in clusters:
        if isinstance(cluster.source, ManifestSource):
            cluster.source.load()


class ClusterMaker:
    """Makes clusters. `requests` and `service_events` (by outcome) count for all of them together.

    This process runs on `own_node` ("" unknown), has `own_addresses` (packed), and holds Leases as `holder`.
    """

    def __init__(self, own_node: str, own_addresses: frozenset[bytes], holder: str, rng: Random) -> None:
        self._own_node = own_node
        self._own_addresses = own_addresses
        self._holder = holder
        self._rng = rng
        self.requests = RequestTally()
        self.service_events: Counter[str] = Counter()
        self._rosters = Rosters()

    def make(
        self,
        kubernetes: KubernetesSettings,
        topology: TopologySettings | None,
        view: View | None,
        spare: list[Feed],
    ) -> Cluster:
        """The cluster of these directives, on the first feed of `spare` that is as they ask, which leaves the list.

        Else on a feed of its own that knows nothing yet.
        """
        settings = feed_settings(kubernetes, topology)
        feed = _taken_over(settings, spare) or self._feed(settings)
        locator = None
        if topology is not None:
            locator = Locator(feed.state, topology.locate, topology.trust, self._own_node, self._own_addresses)
        return Cluster(kubernetes, topology, feed, locator, view, self._rosters)

    def _feed(self, settings: FeedSettings) -> Feed:
        if settings.api is None:
            return Feed(settings, self._rng)
        connecting = partial(connect, settings.api, tally=self.requests)
        event_writer = None
        if settings.writes_events:
            event_writer = EventWriter(connecting, OURS.namespace or NAMESPACE, self._holder, self.service_events)
        return Feed(settings, self._rng, connecting, event_writer)


def _taken_over(settings: FeedSettings, spare: list[Feed]) -> Feed | None:
    feed = next((feed for feed in spare if feed.settings == settings), None)
    if feed is not None:
        spare.remove(feed)
    return feed


def _taken_in(state: ClusterState, change: Change) -> Iterator[frozenset[Fact]]:
    """The facts that each step touched."""
    now = int(time.time())
    if not isinstance(change, Replaced):
        yield state.apply(change, now)
        return
    for step in state.replace(change, now):
        yield step.facts
