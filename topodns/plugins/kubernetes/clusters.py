"""The clusters of `kubernetes` directives: state, feed and client locator of each. Nothing is started here."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final, NamedTuple

from topodns.cluster.findings.finding import Finding, visible
from topodns.cluster.findings.objects import left_out_findings, policy_findings
from topodns.cluster.model import Kind
from topodns.cluster.state import ClusterState
from topodns.dns.addresses import NetworkList
from topodns.dns.name import ROOT
from topodns.kube.client import connect
from topodns.kube.client.contract import RequestCounters
from topodns.kube.client.credentials import OURS
from topodns.kube.events import EventRecorder
from topodns.kube.informer.informer import ApiSource
from topodns.kube.lease import LEASE_NAMESPACE
from topodns.kube.manifests.source import ManifestSource
from topodns.kube.snapshot.restorer import SnapshotRestorer
from topodns.kube.snapshot.writer import SnapshotCounts, SnapshotFile, SnapshotWriter
from topodns.plugins.kubernetes.client_pods import ClientPods, KubernetesLabels
from topodns.plugins.kubernetes.feed import Feed, FeedSettings, feed_settings
from topodns.plugins.kubernetes.findings import corefile_findings
from topodns.plugins.kubernetes.pod_wait import PodWait
from topodns.plugins.kubernetes.settings import KubernetesSettings, SnapshotSettings
from topodns.plugins.kubernetes.zone import excludes
from topodns.plugins.topology.findings import with_origin
from topodns.plugins.topology.settings import TopologySettings
from topodns.plugins.view.handler import ViewFilter
from topodns.plugins.view.settings import View
from topodns.plugins.view.setup import labels
from topodns.query.label_limiter import LabelLimiters
from topodns.query.metadata import Metadata, MetadataSource, client_labels, scope_of
from topodns.topology.client_locator import ClientLocator, Method, missing_locators
from topodns.topology.select import OnInvalid

_FORBIDDEN: Final = 403
_ARRIVING: Final = frozenset({Method.PODS, Method.NODELOCATOR, Method.PODLOCATOR})  # with the Pod that they locate
_OR_ELSE: Final[Mapping[Kind, str]] = {
    "Pod": ", or `locate` goes without pods",
    "NodeLocator": ", or `locate` goes without nodelocator",
    "PodLocator": ", or `locate` goes without podlocator",
}


class ClusterSnapshot(NamedTuple):
    """The snapshot of a cluster at an API server, in the file of the option `snapshot`."""

    restorer: SnapshotRestorer
    writer: SnapshotWriter

    async def run(self) -> None:
        """Drop objects of a snapshot of another cluster once the API server answers, then write the state."""
        await self.restorer.compare()
        await self.writer.run()


@dataclass(frozen=True, eq=False, slots=True)
class Cluster:
    """One `kubernetes` directive: its settings and those of its `topology`, its feed, and its client locator."""

    kubernetes: KubernetesSettings
    topology: TopologySettings | None
    feed: Feed
    locator: ClientLocator | None
    view: View | None = None  # of the server block, which answers only some queries from this cluster
    client_pods: ClientPods | None = None  # None: no directive of the block reads something of its clients' Pods
    limiters: LabelLimiters = field(default_factory=LabelLimiters)  # the label limiter
    snapshot: ClusterSnapshot | None = None

    @property
    def state(self) -> ClusterState:
        return self.feed.state

    @property
    def source(self) -> ManifestSource | ApiSource:
        return self.feed.source

    @property
    def metadata(self) -> MetadataSource:
        """The labels `kubernetes/...` of the server block."""
        return MetadataSource(KubernetesLabels(self.kubernetes, self.client_pods, self.topology is not None).find)

    def view_filter(self) -> ViewFilter | None:
        """The filter of the server block by its view, whichever address a query came to; None without a view."""
        if self.view is None:
            return None
        reader = Metadata((ROOT,), [self.metadata]).reader
        return ViewFilter(self.view, "", reader, scope_of(labels(self.view)))

    @property
    def pod_wait(self) -> PodWait | None:
        """The wait of unlocated clients for their Pod or its locator to become known; None if `locate` has neither."""
        return self.feed.pod_wait if self.locates_new_pods else None

    @property
    def locates_new_pods(self) -> bool:
        """Whether `locate` has a method that needs no other Pods and no podCIDR to locate a Pod."""
        return self.topology is not None and not _ARRIVING.isdisjoint(self.topology.locate)

    def is_instead_of(self, other: "Cluster") -> bool:
        """Whether this cluster of a new Corefile replaces `other`: they have the same source, or a common origin.

        An origin is enough, as the source may have moved, or be misspelt.
        """
        same_names = not set(self.kubernetes.origins).isdisjoint(other.kubernetes.origins)
        return same_names or self.feed.settings.place == other.feed.settings.place

    def waiting_for(self) -> Iterable[str]:
        """The kinds that are not synced yet, with the reason where a request was denied or failed.

        A line for each such kind of an API server; for manifests one line, to be used only while a kind is not synced.
        """
        if isinstance(self.source, ApiSource):
            return self.source.waiting_for()
        return (f"{', '.join(self.state.unsynced)}: manifest files that cannot be read: {self.source.files_bad}",)

    def from_snapshot(self) -> str:
        """That answers are from a snapshot, of when, and why, as a clause; "" if they are not."""
        restored = self.state.restored
        if restored is None:
            return ""
        return f"answers are from the snapshot of {restored.since}: waiting for {', '.join(self.waiting_for())}"

    def incomplete(self) -> tuple[str, ...]:
        """Why the state is not complete, a line each; empty if it is."""
        if self.state.synced:
            return ()
        line = self.from_snapshot()
        return (line,) if line else tuple(self.waiting_for()) or self.state.unsynced

    def lacks(self) -> Iterator[str]:
        """A line for each kind that `topology` or metadata of clients needs and that was denied (403, 404) from the
        start.

        Each line has the kind's last failure; if that is a 403, or there is none at present, also the RBAC rule to add.
        """
        if not isinstance(self.source, ApiSource):
            return
        placing = self.topology.placing_kinds if self.topology is not None else frozenset[Kind]()
        read = {"Pod"} if self.client_pods is not None else set[Kind]()
        for progress in self.source.denied():
            resource = progress.resource
            if resource.kind in placing or resource.kind in read:
                refused = progress.trouble is None or progress.trouble.status == _FORBIDDEN
                instead = "" if resource.kind in read else _OR_ELSE.get(resource.kind, "")
                grant = f"; the ClusterRole needs {resource.rule}{instead}" if refused else ""
                yield f"{progress.describe()}{grant}"

    def missing_locators(self) -> str:
        """The locators that clients need and that do not exist yet, as a clause; "" for none, and for manifests."""
        if self.topology is None or not isinstance(self.source, ApiSource):
            return ""
        return missing_locators(self.state, self.topology.locate)

    def notices(self) -> Iterator[str]:
        """A log line for each EndpointSlice known to have a wrong Node for a Pod, and each address of a locator that
        is contradicted or refused; at most 1,000 of each. They may change between two lines.
        """
        for key, problem in tuple(self.feed.contradictions.found().items()):
            yield f"EndpointSlice {key.namespace}/{key.name} {problem}; it locates no client"
        yield from self.feed.locator_contradictions.lines()

    def hides(self, namespace: str) -> bool:
        """Whether names in this namespace are denied by `namespaces` or `namespace_labels`."""
        return excludes(self.kubernetes, self.state, namespace)

    def findings(self) -> Iterator[Finding | None]:
        """The objects that are left out, lines of the Corefile that select nothing, and the present problems of the
        topology keys of this cluster's Services and of the objects that decide which endpoints a client gets, in steps;
        none of the latter without `topology`, and none about namespaces that are hidden.
        """
        yield from visible(left_out_findings(self.state), self.hides)
        yield from corefile_findings(self.state, self.kubernetes, self.topology, self.hides)
        if self.topology is not None:
            policies = self.state.policies
            for found in policy_findings(self.state, self.topology.on_invalid is OnInvalid.IGNORE, self.hides):
                yield found and with_origin(found, policies.get(found.service), self.topology)

    def place_of(self, finding: Finding) -> str:
        """`FILE:LINE: ` of the Service, ServiceImport or EndpointSlice that a finding is about; "" for none of a
        manifest.
        """
        kind, key = "Service" if finding.imported is None else "ServiceImport", finding.subject
        if finding.of_slice is not None:
            kind, key = "EndpointSlice", finding.of_slice
        place = self.source.place(kind, key) if isinstance(self.source, ManifestSource) else ""
        return place and f"{place}: "


def load_manifests(clusters: Iterable[Cluster]) -> None:
    """Read all manifests in one go, blocking: for commands that serve no queries."""
    for cluster in clusters:
        if isinstance(cluster.source, ManifestSource):
            cluster.source.load()


ChooseFeed = Callable[[FeedSettings, list[Feed]], Feed]
"""Returns the feed for these settings: one of the spare ones, which leaves their list, or another one."""


class ClusterMaker:
    """Creates clusters. `requests`, `service_events` (by outcome) and `snapshots` are the counters of all of them.

    This process runs on the Node `own_node` ("" unknown), has `own_addresses` (packed), and holds Leases as `holder`.
    """

    def __init__(
        self,
        own_node: str,
        own_addresses: frozenset[bytes],
        holder: str,
        rng: Random,
        choose_feed: ChooseFeed | None = None,
    ) -> None:
        """`choose_feed`: by default the first spare feed with equal settings, else a new one."""
        self._choose_feed = choose_feed or self._spare_or_new
        self._own_node = own_node
        self._own_addresses = own_addresses
        self._holder = holder
        self._rng = rng
        self.requests = RequestCounters()
        self.service_events: Counter[str] = Counter()
        self.snapshots = SnapshotCounts()
        self._limiters = LabelLimiters()

    def make(
        self,
        kubernetes: KubernetesSettings,
        topology: TopologySettings | None,
        view: View | None,
        spare: list[Feed],
        labels: Collection[str] = (),
    ) -> Cluster:
        """The cluster of these directives, with a feed of `choose_feed`: one of `spare`, or one with an empty state.

        `labels`: of metadata, that directives of the block read.
        """
        read = client_labels(labels)
        settings = feed_settings(kubernetes, topology, read)
        feed = self._choose_feed(settings, spare)
        locator = None
        if topology is not None:
            locator = ClientLocator(
                state=feed.state,
                methods=topology.locate,
                trust=NetworkList(topology.trust),
                own_node=self._own_node,
                own_addresses=self._own_addresses,
            )
        return Cluster(
            kubernetes=kubernetes,
            topology=topology,
            feed=feed,
            locator=locator,
            view=view,
            client_pods=ClientPods(feed.state, feed.pod_wait, locator.claims if locator else None) if read else None,
            limiters=self._limiters,
            snapshot=self._snapshot(kubernetes.snapshot, feed),
        )

    def _snapshot(self, settings: SnapshotSettings | None, feed: Feed) -> ClusterSnapshot | None:
        """None also in a worker of `multisocket`: the first process alone reads and writes the file."""
        if settings is None or not isinstance(feed.source, ApiSource):
            return None
        file = SnapshotFile(settings.path, settings.max_age, feed.settings.selections, self.snapshots)
        return ClusterSnapshot(
            restorer=SnapshotRestorer(file, feed.published, feed.source),
            writer=SnapshotWriter(file, settings.interval, feed.published, feed.source),
        )

    def _spare_or_new(self, settings: FeedSettings, spare: list[Feed]) -> Feed:
        kept = next((feed for feed in spare if feed.settings == settings), None)
        if kept is not None:
            spare.remove(kept)
            return kept
        if settings.api is None:
            return Feed(settings, self._rng)
        connecting = partial(connect, settings.api, socket_counters=self.requests)
        event_recorder = None
        if settings.writes_events:
            event_recorder = EventRecorder(
                connecting, OURS.namespace or LEASE_NAMESPACE, self._holder, self.service_events
            )
        return Feed(settings, self._rng, connecting, event_recorder)
