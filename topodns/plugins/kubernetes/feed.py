"""A feed: the state of one cluster, and the source that fills it. Nothing is started here.

A `Feed` may outlive its generation: if the next Corefile needs a feed with equal `FeedSettings`, this one keeps running
over the reload, with its state and watches. The reload then needs no list of that cluster, and its state is complete
all the time. All other clusters are read anew.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from topodns.cluster.label_selector import Selector
from topodns.cluster.model import KeySource, Kind
from topodns.cluster.namespace_budget import UNLIMITED, NamespaceBudget
from topodns.cluster.publishing_state import PublishingState, Subscriber
from topodns.cluster.state import ClusterState
from topodns.files.watch import watch_files
from topodns.kube.client.contract import ApiError, ApiSettings, KubeApi
from topodns.kube.events import EventRecorder
from topodns.kube.informer.informer import ApiSource
from topodns.kube.informer.resources import Resource
from topodns.kube.manifests.source import ManifestSource
from topodns.net.loop_timers import LoopTimers
from topodns.plugins.kubernetes.contradictions import Contradictions, LocatorContradictions
from topodns.plugins.kubernetes.pod_wait import PodWait
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.watched_kinds import needed_kinds, resources
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.metadata import CLIENT_LABEL
from topodns.topology.keys import DefaultKeys, key_reader


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """All settings that a feed depends on. The other settings of a cluster may change without a new feed."""

    api: ApiSettings | None
    manifests: tuple[str, ...]
    labels: Selector | None
    needed: frozenset[Kind]
    resources: tuple[Resource, ...]  # to list and watch at an API server
    key_sources: tuple[KeySource, ...]
    default_keys: tuple[DefaultKeys, ...]
    terminating_fallback: bool
    pod_names: bool
    pod_labels: frozenset[str]  # keys of the labels that Pods keep
    writes_events: bool
    cluster_id: str

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for two feeds of the same source, even if they read different objects of it."""
        return self.api, self.manifests

    @property
    def selections(self) -> Mapping[Kind, str]:
        """For each watched kind, as a text, which objects are read of it, and which labels of Pods."""
        texts = {each.kind: "&".join(map("=".join, sorted(each.selectors.items()))) for each in self.resources}
        if "Pod" in texts:
            texts["Pod"] += f" {','.join(sorted(self.pod_labels))}"
        return texts


def feed_settings(
    kubernetes: KubernetesSettings, topology: TopologySettings | None, client_labels: Collection[str] = ()
) -> FeedSettings:
    """The settings of the feed that these two directives need.

    `client_labels`: the labels of metadata that are read of clients' Pods.
    """
    return FeedSettings(
        api=kubernetes.api,
        manifests=kubernetes.manifests,
        labels=kubernetes.labels,
        needed=needed_kinds(kubernetes, topology, bool(client_labels)),
        resources=resources(kubernetes, topology, bool(client_labels)),
        key_sources=topology.keys if topology is not None else (),
        default_keys=topology.defaults if topology is not None else (),
        terminating_fallback=topology is not None and topology.terminating_fallback,
        pod_names=kubernetes.endpoint_pod_names,
        pod_labels=frozenset(
            label.removeprefix(CLIENT_LABEL) for label in client_labels if label.startswith(CLIENT_LABEL)
        ),
        writes_events=kubernetes.api is not None and topology is not None,
        cluster_id=kubernetes.cluster_id,
    )


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
            key_reader(settings.key_sources, settings.default_keys),
            settings.terminating_fallback,
            settings.pod_names,
            all_pods=settings.labels is None,
            of_files=settings.api is None,
            cluster_id=settings.cluster_id,
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
            self.source = ManifestSource(
                settings.manifests, self.published.take_steps, settings.labels, settings.pod_labels
            )
        else:
            self.source = ApiSource(settings.resources, self.published, connecting, rng, settings.pod_labels)

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
