"""The namespaces that a `kubernetes` directive exposes: its options `namespaces` and `namespace_labels`."""

from topodns.cluster.state import ClusterState
from topodns.plugins.kubernetes.settings import KubernetesSettings


class Exposure:
    def __init__(self, settings: KubernetesSettings, state: ClusterState) -> None:
        self._listed = settings.namespaces
        self._selector = settings.namespace_labels
        self._state = state

    def exposes(self, namespace: str) -> bool:
        """Whether names in this namespace exist: it is listed (if any are), its object exists and its labels match."""
        if self._listed and namespace not in self._listed:
            return False
        found = self._state.namespace(namespace)
        if found is None:
            return False
        return self._selector is None or self._selector.matches(found.labels)

    def exposes_reverse(self, namespace: str) -> bool:
        """The same for PTR records, where CoreDNS checks only `namespaces` and ignores `namespace_labels`."""
        return not self._listed or self.exposes(namespace)
