"""The clusters of `kubernetes` directives: state, feed and client locator of each, and the resources that they watch.
Nothing is started here.

A `Feed` may outlive its generation: if the next Corefile needs a feed with equal `FeedSettings`, this one keeps running
over the reload, with its state and watches. The reload then needs no list of that cluster, and its state is complete
all the time. All other clusters are read anew.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from topodns.cluster.findings.finding import Finding
from topodns.cluster.findings.objects import left_out_findings, policy_findings
from topodns.cluster.label_selector import Selector
from topodns.cluster.model import LOCATOR_GROUP, LOCATOR_VERSION, KeySource, Kind
from topodns.cluster.namespace_budget import UNLIMITED, NamespaceBudget
from topodns.cluster.publishing_state import PublishingState, Subscriber
from topodns.cluster.state import ClusterState
from topodns.dns.addresses import NetworkList
from topodns.files.watch import watch_files
from topodns.kube.client import connect
from topodns.kube.client.contract import ApiError, ApiSettings, KubeApi, RequestCounters
from topodns.kube.client.credentials import OURS
from topodns.kube.events import EventRecorder
from topodns.kube.informer.informer import ApiSource
from topodns.kube.informer.resources import Resource
from topodns.kube.lease import LEASE_NAMESPACE
from topodns.kube.manifests.source import ManifestSource
from topodns.net.loop_timers import LoopTimers
from topodns.plugins.kubernetes.contradictions import Contradictions, LocatorContradictions
from topodns.plugins.kubernetes.pod_wait import PodWait
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.topology.settings import TopologySettings
from topodns.plugins.view.settings import View
from topodns.query.label_limiter import LabelLimiters
from topodns.topology.client_locator import ClientLocator, Method, missing_locators
from topodns.topology.keys import key_reader
from topodns.topology.select import OnInvalid

_LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown"  # as CoreDNS
_MULTICLUSTER: Final = "multicluster.x-k8s.io"
_FORBIDDEN: Final = 403
_ARRIVING: Final = frozenset({Method.PODS, Method.NODELOCATOR, Method.PODLOCATOR})  # with the Pod that they locate
_OR_ELSE: Final[Mapping[Kind, str]] = {
    "Pod": ", or `locate` goes without pods",
    "NodeLocator": ", or `locate` goes without nodelocator",
    "PodLocator": ", or `locate` goes without podlocator",
}


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """All settings that a feed depends on. The other settings of a cluster may change without a new feed."""

    api: ApiSettings | None
    manifests: tuple[str, ...]
    labels: Selector | None
    needed: frozenset[Kind]
    resources: tuple[Resource, ...]  # to list and watch at an API server
    key_sources: tuple[KeySource, ...]
    terminating_fallback: bool
    pod_names: bool
    writes_events: bool

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for two feeds of the same source, even if they read different objects of it."""
        return self.api, self.manifests


def feed_settings(kubernetes: KubernetesSettings, topology: TopologySettings | None) -> FeedSettings:
    """The settings of the feed that these two directives need."""
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


def _locator(kind: Kind, plural: str) -> Resource:
    paths = (f"/apis/{LOCATOR_GROUP}/{LOCATOR_VERSION}/{plural}",)
    return Resource(kind, f"{plural}.{LOCATOR_GROUP}", paths, optional=True, custom=True)


_LOCATORS: Final = (_locator("NodeLocator", "nodelocators"), _locator("PodLocator", "podlocators"))


def needed_kinds(kubernetes: KubernetesSettings, topology: TopologySettings | None) -> frozenset[Kind]:
    """The kinds that answers depend on."""
    return frozenset(resource.kind for resource in resources(kubernetes, topology))


def resources(kubernetes: KubernetesSettings, topology: TopologySettings | None) -> tuple[Resource, ...]:
    """The resources that answers need, and no others. StatefulSets, needed only for warnings, are not watched."""
    labels = kubernetes.labels.text if kubernetes.labels is not None else ""
    labelled = {"labelSelector": labels} if labels else {}
    wanted = [
        Resource("Namespace", "namespaces", ("/api/v1/namespaces",)),
        Resource("Service", "services", ("/api/v1/services",), labelled),
        Resource(
            "EndpointSlice",
            "endpointslices.discovery.k8s.io",
            # v1beta1 is all that clusters up to 1.20 have, which are those with spec.topologyKeys.
            ("/apis/discovery.k8s.io/v1/endpointslices", "/apis/discovery.k8s.io/v1beta1/endpointslices"),
            labelled,
        ),
    ]
    placing = topology.placing_kinds if topology is not None else frozenset[Kind]()
    if "Node" in placing:
        wanted.append(Resource("Node", "nodes", ("/api/v1/nodes",), optional=True))
    wanted += [resource for resource in _LOCATORS if resource.kind in placing]
    if kubernetes.pods is PodMode.VERIFIED or "Pod" in placing:
        selectors = {**labelled, "fieldSelector": _LIVE_PODS}
        wanted.append(Resource("Pod", "pods", ("/api/v1/pods",), selectors, optional=True))
    if kubernetes.multicluster:
        path = f"/apis/{_MULTICLUSTER}/v1alpha1/serviceimports"
        wanted.append(Resource("ServiceImport", f"serviceimports.{_MULTICLUSTER}", (path,), optional=True, custom=True))
    return tuple(wanted)


class Feed:
    """A cluster's state and the source that keeps it current: manifests, or the API server of `connecting`."""

    def __init__(
        self,
        settings: FeedSettings,
        rng: Random,
        connecting: Callable[[], Awaitable[KubeApi]] | None = None,
        event_recorder: EventRecorder | None = None,
    ) -> None:
        self.settings = settings
        self.state = ClusterState(
            settings.needed,
            key_reader(settings.key_sources),
            settings.terminating_fallback,
            settings.pod_names,
            all_pods=settings.labels is None,
            of_files=settings.api is None,
        )
        self.budget = NamespaceBudget(UNLIMITED)
        self.published = PublishingState(self.state, time.time, budget=self.budget)
        self.contradictions = Contradictions(self.state)
        self.locator_contradictions = LocatorContradictions(self.state)
        self.pod_wait = PodWait(LoopTimers(), self._may_learn_of_pods)
        self.subscribe()
        self.event_recorder = event_recorder  # None without an API server
        self.source: ManifestSource | ApiSource
        if connecting is None:
            self.source = ManifestSource(settings.manifests, self.published.take_steps, settings.labels)
        else:
            self.source = ApiSource(settings.resources, self.published, connecting, rng)

    @property
    def arrives_late(self) -> bool:
        """Whether the first state arrives after `begin` returns, so that a start waits for it."""
        return isinstance(self.source, ApiSource)

    async def begin(self) -> str:
        """Read the manifests, or the connection settings of the API server.

        Returns the reason why these settings cannot be used; "" if they can.
        """
        if isinstance(self.source, ApiSource):
            try:
                await self.source.connect()
            except ApiError as problem:
                return str(problem)
        else:
            await self.source.load_gently()
        return ""

    def subscribe(self, *subscribers: Subscriber) -> None:
        """Replace the subscribers that an earlier call set; `pod_wait` stays subscribed beside them."""
        self.published.subscribers = (*subscribers, self.pod_wait.wake)

    def works(self) -> Iterator[tuple[str, Coroutine[None, None, None]]]:
        """The background work after `begin`: (name of the task, coroutine) pairs."""
        if isinstance(self.source, ApiSource):
            yield "api", self.source.run()
            if self.event_recorder is not None:
                yield "service events", self.event_recorder.run()
        else:
            yield "manifests", self.source.run(watch_files(self.source.paths))

    def idle_work(self) -> Iterator[None]:
        """The work to do between queries after a change, in small steps: indexes built ahead, slices and locators
        checked.
        """
        yield from self.state.warm_steps()
        yield from self.contradictions.check()
        yield from self.locator_contradictions.check()

    @property
    def checking(self) -> bool:
        """Whether slices or locators are still to be checked."""
        return self.contradictions.pending or self.locator_contradictions.pending

    async def close(self) -> None:
        """Close the connections; the tasks of `works` must have ended."""
        if isinstance(self.source, ApiSource):
            await self.source.close()

    def _may_learn_of_pods(self) -> bool:
        """Whether the watches report the node of each new Pod: by all Pods, or by locators, as far as there are any."""
        state = self.state
        locators = state.locators.node_locators or state.locators.pod_locators
        return state.synced and self.settings.api is not None and (state.knows_all_pods or bool(locators))


@dataclass(frozen=True, eq=False, slots=True)
class Cluster:
    """One `kubernetes` directive: its settings and those of its `topology`, its feed, and its client locator."""

    kubernetes: KubernetesSettings
    topology: TopologySettings | None
    feed: Feed
    locator: ClientLocator | None
    view: View | None = None  # of the server block, which answers only some queries from this cluster
    limiters: LabelLimiters = field(default_factory=LabelLimiters)  # the label limiter

    @property
    def state(self) -> ClusterState:
        return self.feed.state

    @property
    def source(self) -> ManifestSource | ApiSource:
        return self.feed.source

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

    def lacks(self) -> Iterator[str]:
        """A line for each kind that `topology` needs and that was denied (403, 404) from the start.

        Each line has the kind's last failure; if that is a 403, or there is none at present, also the RBAC rule to add.
        """
        if self.topology is None or not isinstance(self.source, ApiSource):
            return
        for progress in self.source.denied():
            resource = progress.resource
            if resource.kind in self.topology.placing_kinds:
                refused = progress.trouble is None or progress.trouble.status == _FORBIDDEN
                grant = f"; the ClusterRole needs {resource.rule}{_OR_ELSE.get(resource.kind, '')}" if refused else ""
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

    def findings(self) -> Iterator[Finding | None]:
        """The objects that are left out, and the present problems of the topology keys of this cluster's Services and
        of the objects that decide which endpoints a client gets, in steps; none of the latter without `topology`.
        """
        yield from left_out_findings(self.state)
        if self.topology is not None:
            yield from policy_findings(self.state, self.topology.on_invalid is OnInvalid.IGNORE)


def load_manifests(clusters: Iterable[Cluster]) -> None:
    """Read all manifests in one go, blocking: for commands that serve no queries."""
    for cluster in clusters:
        if isinstance(cluster.source, ManifestSource):
            cluster.source.load()


ChooseFeed = Callable[[FeedSettings, list[Feed]], Feed]
"""Returns the feed for these settings: one of the spare ones, which leaves their list, or another one."""


class ClusterMaker:
    """Creates clusters. `requests` and `service_events` (by outcome) are the counters of all of them together.

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
        self._limiters = LabelLimiters()

    def make(
        self,
        kubernetes: KubernetesSettings,
        topology: TopologySettings | None,
        view: View | None,
        spare: list[Feed],
    ) -> Cluster:
        """The cluster of these directives, with a feed of `choose_feed`: one of `spare`, or one with an empty state."""
        settings = feed_settings(kubernetes, topology)
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
            kubernetes=kubernetes, topology=topology, feed=feed, locator=locator, view=view, limiters=self._limiters
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
