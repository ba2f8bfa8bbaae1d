"""Options of the API server connection, from the `kubernetes` directive."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Address and credentials of the API server. All empty: the Pod's service account."""

    endpoint: str = ""  # URL of the server, https:// or http://, without a trailing slash
    tls: tuple[str, str, str] | None = None  # files: client certificate, its key, CA; each "" where not given
    kubeconfig: str = ""  # file
    context: str = ""  # of the kubeconfig; "" is its current one
    place: str = field(default="", compare=False)  # FILE:LINE of the Corefile, for messages
