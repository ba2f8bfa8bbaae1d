"""The connection to an API server: who we are by service account, files or kubeconfig; bytes by aiohttp.

Objects never pass through the models of the kubernetes package. What costs memory is imported when it is needed and not
before: `connect` loads aiohttp (10 MiB resident), a kubeconfig loads kubernetes (19 MiB more). A server on manifests
pays for neither, one in a Pod for the former alone.
"""

from topodns.edge.kube_api.contract import DEADLINES, ApiError, Deadlines, KubeApi
from topodns.edge.kube_api.service_account import OURS, ServiceAccount
from topodns.edge.kube_api.tally import RequestTally
from topodns.settings.kubernetes import ApiSettings

__all__ = ["DEADLINES", "OURS", "ApiError", "Deadlines", "KubeApi", "RequestTally", "ServiceAccount", "connect"]


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
    await login.access()
    return Connection(login, deadlines, tally or RequestTally())
