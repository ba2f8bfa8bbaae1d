"""The connection to an API server: who we are by service account, files or kubeconfig; bytes by aiohttp.

Objects never pass through the models of the kubernetes package. What costs memory is imported when it is needed and not
before: `connect` loads aiohttp (10 MiB resident), a kubeconfig loads kubernetes (19 MiB more). A server on manifests
pays for neither, one in a Pod for the former alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from topodns.edge.kube_api.contract import DEADLINES, ApiError, Deadlines, KubeApi
from topodns.edge.kube_api.service_account import OURS, ServiceAccount
from topodns.edge.kube_api.tally import RequestTally
from topodns.settings.kubernetes import ApiSettings

__all__ = [
    "DEADLINES",
    "OURS",
    "ApiError",
    "Deadlines",
    "KubeApi",
    "RequestTally",
    "ServiceAccount",
    "check_kubeconfig",
    "connect",
]


async def connect(
    settings: ApiSettings,
    account: ServiceAccount = OURS,
    deadlines: Deadlines = DEADLINES,
    tally: RequestTally | None = None,
) -> KubeApi:
    """The API server that these settings name. Raises ApiError where they cannot be used (no such file, context...).

    Nothing is sent yet: a server that cannot be reached shows with the first request. `tally` counts them all.
    """
    from topodns.edge.kube_api.connection import Connection
    from topodns.edge.kube_api.login import Login, source_of

    login = Login(source_of(settings, account, deadlines), deadlines.login_age)
    with _placed(settings):
        await login.access()
    return Connection(login, deadlines, tally or RequestTally())


async def check_kubeconfig(settings: ApiSettings) -> None:
    """Read the kubeconfig that these settings name, as `connect` does; an `exec` plugin is not run. Raises ApiError."""
    from topodns.edge.kube_api.access import checked
    from topodns.edge.kube_api.kubeconfig import Kubeconfig

    with _placed(settings):
        checked(await Kubeconfig(settings.kubeconfig, settings.context, DEADLINES.login).check())


@contextmanager
def _placed(settings: ApiSettings) -> Iterator[None]:
    """Have an ApiError begin with the line of the Corefile that asks for what cannot be done."""
    try:
        yield
    except ApiError as problem:
        if not settings.place:
            raise
        raise ApiError(problem.status, f"{settings.place}: {problem}") from None
