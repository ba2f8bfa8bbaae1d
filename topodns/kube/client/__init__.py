"""API server client: credentials from a service account, TLS files or a kubeconfig; HTTP by aiohttp.

Responses are bytes: the models of the kubernetes package are not used. Large imports are deferred to save memory:
`connect` loads aiohttp (11 MiB resident), a kubeconfig loads kubernetes (20 MiB more). A server on manifests loads
neither, one in a Pod only the former: the image for Pods does not have the latter.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from topodns.kube.client.contract import DEADLINES, ApiError, ApiSettings, KubeApi, RequestDeadlines
from topodns.kube.client.counters import RequestCounters
from topodns.kube.client.credentials import OURS, Login, ServiceAccount, checked, kubeconfig_of, source_of


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
        login = Login(source_of(settings, account, deadlines), deadlines.login_age)
        await login.access()
    return ApiConnection(login, deadlines, socket_counters or RequestCounters())


async def check_kubeconfig(settings: ApiSettings) -> None:
    """Validate the kubeconfig of these settings like `connect`, but run no `exec` plugin. Raises ApiError."""
    with _placed(settings):
        checked(await kubeconfig_of(settings, DEADLINES).check())


@contextmanager
def _placed(settings: ApiSettings) -> Iterator[None]:
    """Prefix an ApiError with the FILE:LINE of the Corefile that has these settings, where known."""
    try:
        yield
    except ApiError as problem:
        if not settings.place:
            raise
        raise ApiError(problem.status, f"{settings.place}: {problem}") from None
