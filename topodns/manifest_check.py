"""What `topodns check` finds in the files behind a Corefile's clusters, without serving them or asking a server."""

import asyncio
import logging
from random import Random

from topodns.assembly import Assembly, Machine, load_manifests
from topodns.cluster.topology import OnInvalid
from topodns.edge.kube_api import check_kubeconfig
from topodns.edge.manifests import ManifestSource
from topodns.resolve.audit import audit
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
    for cluster in load_manifests(Assembly(machine, lambda line: None).build(settings)).clusters:
        if isinstance(cluster.source, ManifestSource):
            whole = whole and not cluster.source.files_bad and not cluster.source.objects_skipped
        if cluster.topology is not None:
            for finding in audit(cluster.state, cluster.topology.on_invalid is OnInvalid.IGNORE):
                log.warning("plugin/topology: %s", finding)
    return whole
