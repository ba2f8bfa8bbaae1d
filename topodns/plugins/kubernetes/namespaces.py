"""The namespaces that a `kubernetes` directive exposes: its options `namespaces` and `namespace_labels`."""

from topodns.cluster.state import ClusterState
from topodns.plugins.kubernetes.settings import KubernetesSettings


def exposes(settings: KubernetesSettings, state: ClusterState, namespace: str) -> bool:
    """Whether names in this namespace exist: it is listed (if any are), its object exists and its labels match."""
    if settings.namespaces and namespace not in settings.namespaces:
        return False
    found = state.namespaces.get(("", namespace))
    if found is None:
        return False
    return settings.namespace_labels is None or settings.namespace_labels.matches(found.labels)


def exposes_reverse(settings: KubernetesSettings, state: ClusterState, namespace: str) -> bool:
    """Whether PTR records may point into this namespace: as `exposes`, but True without the option `namespaces`.

    CoreDNS ignores `namespace_labels` here.
    """
    return not settings.namespaces or exposes(settings, state, namespace)
