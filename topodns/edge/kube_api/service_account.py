"""Who we are inside a Pod: the service account that the kubelet mounts, and the environment that names the API server.

Read here and not by the kubernetes package: it would be the package's whole weight for two variables and two files.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from topodns.edge.kube_api.access import Access, file_states, read_word
from topodns.edge.kube_api.contract import ApiError

DIRECTORY: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """Where a Pod finds its account."""

    directory: str = DIRECTORY
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def access(self) -> Access:
        """Read anew: the kubelet writes another token long before the old one ends. Raises ApiError."""
        token, ca = (os.path.join(self.directory, name) for name in ("token", "ca.crt"))
        server, files = self._server(), file_states((token, ca))
        return Access(server, f"Bearer {read_word(token, 'service account token')}", ca, files=files)

    @property
    def namespace(self) -> str:
        """The Pod's; "" outside of one."""
        try:
            return read_word(os.path.join(self.directory, "namespace"), "namespace")
        except ApiError:
            return ""

    def _server(self) -> str:
        host, port = self.environment.get(_HOST, ""), self.environment.get(_PORT, "")
        if not host or not port:
            raise ApiError(0, f"not in a Pod ({_HOST} and {_PORT} are not set): 'kubeconfig' or 'endpoint' is needed")
        return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


OURS: Final = ServiceAccount()
