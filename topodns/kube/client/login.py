"""The source of credentials for an API server: endpoint and TLS options, kubeconfig, or service account."""

from topodns.kube.client.contract import RequestDeadlines
from topodns.kube.client.credentials import Access, ServiceAccount, Source, file_states
from topodns.kube.client.settings import ApiSettings


def source_of(settings: ApiSettings, account: ServiceAccount, deadlines: RequestDeadlines) -> Source:
    """The source of credentials for these settings: kubeconfig, else endpoint, else service account."""
    if settings.kubeconfig:
        from topodns.kube.client.kubeconfig import Kubeconfig  # deferred: imports the kubernetes package

        return Kubeconfig(settings.kubeconfig, settings.context, deadlines.login).load

    async def from_files(_: bool) -> Access:
        return _endpoint(settings) if settings.endpoint else account.access()

    return from_files


def _endpoint(settings: ApiSettings) -> Access:
    certificate, key, ca = settings.tls or ("", "", "")
    files = file_states((certificate, key, ca))
    return Access(settings.endpoint, "", ca, certificate, key, files=files)
