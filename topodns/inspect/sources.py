"""Clusters for commands that ask no server: of manifests, or by a list of each kind at the API server."""

import logging
from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from topodns.app.generation import Assembly, Machine
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.dns.name import parse_name
from topodns.inspect.errors import Refused
from topodns.inspect.text import counted
from topodns.kube.client.contract import ApiError
from topodns.kube.client.credentials import package_needed
from topodns.kube.informer.decode_turns import DecodeTurns
from topodns.kube.informer.lister import Lister, SharedState
from topodns.kube.informer.progress import Progress, Reports
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.retry import Backoff, RetryGate
from topodns.kube.informer.state_writer import StateWriter
from topodns.kube.informer.sync_state import SyncState
from topodns.kube.manifests.source import ManifestSource
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import Cluster, load_manifests
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.setup import PLUGIN as KUBERNETES
from topodns.plugins.kubernetes.watched_kinds import needed_kinds, resources
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import key_reader

log = logging.getLogger(__name__)

_STATEFUL_SETS: Final = Resource("StatefulSet", "statefulsets.apps", ("/apis/apps/v1/statefulsets",), optional=True)
_CLUSTER_SET: Final = (parse_name("clusterset.local."),)  # KEP-1645
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_EXPIRED: Final = 410
AGAIN: Final = 2  # times that a list of a kind which expired is begun anew
_REFUSED: Final = (_FORBIDDEN, _NOT_FOUND)


def manifest_clusters(settings: Settings) -> list[Cluster]:
    """The clusters of a Corefile, read from its manifests without a server.

    Raises Refused if one has an API server as its source; otherwise as `Assembly.build`.
    """
    sources = (KUBERNETES.settings_of(block) for block in settings.blocks)
    if any(kubernetes is not None and kubernetes.api is not None for kubernetes in sources):
        raise Refused("the Corefile has an API server for a source, not manifests: ask a running server (--server)")
    machine = Machine("", "", frozenset(), Random(0))
    generation = Assembly(machine, lambda line: None).build(settings)
    load_manifests(generation.clusters)
    return generation.clusters


def manifest_state(paths: Sequence[str], topology: TopologySettings) -> tuple[ClusterState, tuple[str, ...]]:
    """The cluster of the manifests in these files and directories, for an audit with the options of `topology`.

    With a line for each object that cannot be decoded, wholly or in part, which is also logged. Raises Refused if a
    file cannot be read.
    """
    needed = needed_kinds(KubernetesSettings(()), topology)
    state = ClusterState(
        needed,
        key_reader(topology.keys, topology.defaults),
        topology.terminating_fallback,
        all_pods=True,
        of_files=True,
    )
    source = ManifestSource(paths, lambda change: [state.apply(change, 0)])
    source.load()
    check_whole([source])
    return state, source.skipped


def check_whole(sources: Iterable[object]) -> None:
    """Raises Refused if one of these sources is manifests of which a file cannot be read."""
    bad = sum(source.files_bad for source in sources if isinstance(source, ManifestSource))
    if bad:
        raise Refused(f"nothing to audit: {counted(bad, 'manifest file')} cannot be read")


async def listed_state(
    kubeconfig: str, context: str, topology: TopologySettings
) -> tuple[ClusterState, tuple[str, ...]]:
    """The cluster of this kubeconfig and context (see `kubeconfig.connect`), complete.

    With a line for each object that cannot be read, wholly or in part, which is also logged, as is one for each kind
    that the caller may not list and an audit can do without: Nodes, Pods, StatefulSets and ServiceImports. Raises
    ApiError for all other failures.
    """
    with package_needed("`audit --kubeconfig`"):
        from topodns.kube.client.kubeconfig import connect

    skipped: list[str] = []
    kinds = [*resources(KubernetesSettings((), multicluster=_CLUSTER_SET), topology), _STATEFUL_SETS]
    state = ClusterState(
        frozenset(resource.kind for resource in kinds),
        key_reader(topology.keys, topology.defaults),
        topology.terminating_fallback,
        all_pods=True,
    )
    writer = StateWriter(PublishingState(state, lambda: 0.0))
    async with connect(kubeconfig, context) as client:
        shared = SharedState(client.reader, writer, RetryGate(), DecodeTurns(), Random(), Reports("audit"))
        for resource in kinds:
            try:
                skipped += await _list(resource, shared)
            except ApiError as problem:
                if not resource.optional or problem.status not in _REFUSED:
                    raise ApiError(problem.status, f"list {resource.name}: {problem}") from None
                if problem.status == _NOT_FOUND and resource.custom:  # it is not installed
                    state.complete(resource.kind)
                    continue
                log.warning("list %s: %s; the role needs %s", resource.name, problem, resource.rule)
                state.do_without(resource.kind)
    return state, tuple(skipped)


async def _list(resource: Resource, shared: SharedState) -> Iterable[str]:
    """List one kind, once; a list that expires between two pages begins anew. Raises ApiError.

    Returns a line for each object that cannot be read.
    """
    progress = Progress(resource, 0.0, shared.reports)
    sync = SyncState(progress, shared.store)
    lister = Lister(resource.paths[0], progress, sync, Backoff(shared.rng), shared)
    others, again = list(resource.paths[1:]), AGAIN
    while True:
        try:
            await lister.list()
            return sync.undecodable.problems.values()
        except ApiError as problem:
            if problem.status == _NOT_FOUND and others:
                lister.path = others.pop(0)
            elif problem.status == _EXPIRED and again:
                again -= 1
            else:
                raise
