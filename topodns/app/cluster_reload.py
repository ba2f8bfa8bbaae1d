"""Decides which clusters a reload keeps: a feed with its state and watches, if the new Corefile needs the same one.

The reload then needs no list of that cluster, and its state is complete all the time. All other clusters are read anew.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topodns.cluster.label_selector import Selector
from topodns.cluster.model import KeySource, Kind
from topodns.kube.client.contract import ApiSettings
from topodns.kube.informer.resources import Resource
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.watched_kinds import needed_kinds, resources
from topodns.plugins.topology.settings import TopologySettings

if TYPE_CHECKING:
    from topodns.app.clusters import Feed


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


def kept_feed(settings: FeedSettings, spare: "list[Feed]") -> "Feed | None":
    """The first feed of `spare` with equal settings, which leaves the list; None if a new one is needed."""
    feed = next((feed for feed in spare if feed.settings == settings), None)
    if feed is not None:
        spare.remove(feed)
    return feed
