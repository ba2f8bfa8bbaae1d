"""What `topodns check` finds in the files behind a Corefile's clusters, without serving them or asking a server."""

import asyncio
import logging
from random import Random

from topodns.assembly import Assembly, Machine
from topodns.clusters import load_manifests
from topodns.edge.kube_api import check_kubeconfig
from topodns.edge.manifests import ManifestSource
from topodns.resolve.chain import Host
from topodns.settings.server import Settings

log = logging.getLogger(__name__)


def check_kubeconfigs(settings: Settings) -> None:
    """Read them all as a start does. Raises ApiError."""
    for block in settings.blocks:
        api = block.kubernetes.api if block.kubernetes is not None else None
        if api is not None and api.kubeconfig:
            asyncio.run(check_kubeconfig(api))


def check_manifests(settings: Settings) -> bool:
    """Whether every file and object could be read; the log says what not, and what is wrong with topology keys.

    Raises what the other files raise: OSError, BadWeights.
    """
    machine = Machine(Host("", Random(0)), "", frozenset())
    whole = True
    clusters = Assembly(machine, lambda line: None).build(settings).clusters
    load_manifests(clusters)
    for cluster in clusters:
        if isinstance(cluster.source, ManifestSource):
            whole = whole and not cluster.source.files_bad and not cluster.source.objects_skipped
        for finding in cluster.audit():
            log.warning("plugin/topology: %s", finding)
    return whole
