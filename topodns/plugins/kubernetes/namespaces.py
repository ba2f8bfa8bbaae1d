"""Which namespaces a `kubernetes` directive shows: its options `namespaces` and `namespace_labels`."""

from topodns.cluster.state import ClusterState
from topodns.settings.kubernetes import KubernetesSettings


class Exposure:
    def __init__(self, settings: KubernetesSettings, state: ClusterState) -> None:
        self._listed = settings.namespaces
        self._selector = settings.namespace_labels
        self._state = state

    def exposes(self, namespace: str) -> bool:
        """Whether names in this namespace exist: it is listed (if any is), its object exists and its labels match."""
        if self._listed and namespace not in self._listed:
            return False
        found = self._state.namespace(namespace)
        if found is None:
            return False
        return self._selector is None or self._selector.matches(found.labels)

    def exposes_reverse(self, namespace: str) -> bool:
        """The same for PTR records, where CoreDNS lets `namespaces` decide alone and ignores `namespace_labels`."""
        return not self._listed or self.exposes(namespace)
