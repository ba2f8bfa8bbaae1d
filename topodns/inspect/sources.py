"""Clusters for commands that ask no server: of manifests, or by a list of each kind at the API server."""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final

from topodns.app.generation import Assembly, Machine
from topodns.cluster.decode.objects import DecodeError, decode_whole
from topodns.cluster.model import ClusterObject, Kind, Replaced
from topodns.cluster.state import ClusterState
from topodns.inspect.errors import Refused
from topodns.inspect.text import counted
from topodns.kube.client.contract import ApiError
from topodns.kube.client.credentials import package_needed
from topodns.kube.informer.resources import Resource
from topodns.kube.manifests.source import ManifestSource
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import Cluster, load_manifests
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.setup import PLUGIN as KUBERNETES
from topodns.plugins.kubernetes.watched_kinds import needed_kinds, resources
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import key_reader

_STATEFUL_SETS: Final = Resource("StatefulSet", "statefulsets.apps", ("/apis/apps/v1/statefulsets",), optional=True)
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
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


def manifest_state(paths: Sequence[str], topology: TopologySettings) -> ClusterState:
    """The cluster of the manifests in these files and directories, for an audit with the options of `topology`.

    An object that cannot be decoded is left out and logged. Raises Refused if a file cannot be read.
    """
    needed = needed_kinds(KubernetesSettings(()), topology)
    state = ClusterState(needed, key_reader(topology.keys), topology.terminating_fallback)
    source = ManifestSource(paths, lambda change: [state.apply(change, 0)])
    source.load()
    check_whole([source])
    return state


def check_whole(sources: Iterable[object]) -> None:
    """Raises Refused if one of these sources is manifests of which a file cannot be read."""
    bad = sum(source.files_bad for source in sources if isinstance(source, ManifestSource))
    if bad:
        raise Refused(f"nothing to audit: {counted(bad, 'manifest file')} cannot be read")


async def listed_state(
    kubeconfig: str, context: str, topology: TopologySettings, warn: Callable[[str], None]
) -> ClusterState:
    """The cluster of this kubeconfig and context (see `kubeconfig.connect`), complete.

    `warn` is called with a line for each object that cannot be read, wholly or in part, and for each kind that the
    caller may not list and an audit can do without: Nodes, Pods and StatefulSets. Raises ApiError for all other
    failures.
    """
    with package_needed("`audit --kubeconfig`"):
        from topodns.kube.client.kubeconfig import connect
        from topodns.kube.client.official_client import OfficialClient, list_all

    def objects(kind: Kind) -> Callable[[dict[str, object]], tuple[ClusterObject, ...]]:
        def decoded(item: dict[str, object]) -> tuple[ClusterObject, ...]:
            try:
                found = decode_whole(kind, item)
            except DecodeError as problem:
                warn(str(problem))
                return ()
            if found is not None and found.left_out:
                warn(found.summary(kind))
            return found.objects if found is not None else ()

        return decoded

    async def listed(client: OfficialClient, resource: Resource) -> tuple[ClusterObject, ...]:
        missing: ApiError | None = None
        for path in resource.paths:
            try:
                found, _ = await list_all(client, path, resource.selectors, objects(resource.kind))
            except ApiError as problem:
                if problem.status != _NOT_FOUND:
                    raise
                missing = problem
                continue
            return tuple(each for some in found for each in some)
        assert missing is not None
        raise missing

    kinds = [*resources(KubernetesSettings(()), topology), _STATEFUL_SETS]
    state = ClusterState(
        frozenset(resource.kind for resource in kinds),
        key_reader(topology.keys),
        topology.terminating_fallback,
        all_pods=True,
    )
    async with connect(kubeconfig, context) as client:
        for resource in kinds:
            try:
                state.apply(Replaced(resource.kind, await listed(client, resource)), 0)
            except ApiError as problem:
                if not resource.optional or problem.status not in _REFUSED:
                    raise ApiError(problem.status, f"list {resource.name}: {problem}") from None
                warn(f"list {resource.name}: {problem}; the role needs {resource.rule}")
                state.do_without(resource.kind)
    return state
