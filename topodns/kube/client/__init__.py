"""API server client: credentials from a service account, TLS files or a kubeconfig; HTTP by aiohttp.

Responses are bytes: the models of the kubernetes package are not used. Large imports are deferred to save memory:
`connect` loads aiohttp (11 MiB resident), a kubeconfig loads kubernetes (20 MiB more). A server on manifests loads
neither, one in a Pod only the former: the image for Pods does not have the latter.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from topodns.kube.client.contract import DEADLINES, ApiError, ApiSettings, KubeApi, RequestCounters, RequestDeadlines
from topodns.kube.client.credentials import (
    OURS,
    Access,
    Login,
    ServiceAccount,
    Source,
    checked,
    file_states,
    package_needed,
)

if TYPE_CHECKING:
    from topodns.kube.client.kubeconfig import Kubeconfig


async def connect(
    settings: ApiSettings,
    account: ServiceAccount = OURS,
    deadlines: RequestDeadlines = DEADLINES,
    socket_counters: RequestCounters | None = None,
) -> KubeApi:
    """A client of the API server of these settings. Raises ApiError where they are unusable (no such file, context...).

    Sends no request: an unreachable server shows at the first one. `socket_counters` counts all requests.
    """
    from topodns.kube.client.http import ApiConnection

    with _placed(settings):
        login = Login(_source_of(settings, account, deadlines), deadlines.login_age)
        await login.access()
    return ApiConnection(login, deadlines, socket_counters or RequestCounters())


async def check_kubeconfig(settings: ApiSettings) -> None:
    """Validate the kubeconfig of these settings like `connect`, but run no `exec` plugin. Raises ApiError."""
    with _placed(settings):
        checked(await _kubeconfig_of(settings, DEADLINES).check())


@contextmanager
def _placed(settings: ApiSettings) -> Iterator[None]:
    """Prefix an ApiError with the FILE:LINE of the Corefile that has these settings, where known."""
    try:
        yield
    except ApiError as problem:
        if not settings.place:
            raise
        raise ApiError(problem.status, f"{settings.place}: {problem}") from None


def _source_of(settings: ApiSettings, account: ServiceAccount, deadlines: RequestDeadlines) -> Source:
    """The source of credentials for these settings: kubeconfig, else endpoint, else service account.

    Raises ApiError for a kubeconfig where the kubernetes package is not installed.
    """
    if settings.kubeconfig:
        return _kubeconfig_of(settings, deadlines).load

    async def from_files(_: bool) -> Access:
        return _endpoint(settings) if settings.endpoint else account.access()

    return from_files


def _kubeconfig_of(settings: ApiSettings, deadlines: RequestDeadlines) -> "Kubeconfig":
    """The kubeconfig of these settings, not read yet. Raises ApiError where the kubernetes package is not installed."""
    instead = "in a Pod leave 'kubeconfig' out, since the service account is used; elsewhere "
    with package_needed("'kubeconfig'", instead):
        from topodns.kube.client.kubeconfig import Kubeconfig  # deferred: imports the kubernetes package
    return Kubeconfig(settings.kubeconfig, settings.context, deadlines.login)


def _endpoint(settings: ApiSettings) -> Access:
    certificate, key, ca = settings.tls or ("", "", "")
    files = file_states((certificate, key, ca))
    return Access(settings.endpoint, "", ca, certificate, key, files=files)
