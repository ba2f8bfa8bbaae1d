"""topodns's own connection to an API server, for stories."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from tests.support.certificates import Certificates
from tests.support.scripted_http_server import Served
from topodns.kube.client import connect
from topodns.kube.client.contract import DEADLINES, ApiError, ApiSettings, KubeApi, RequestDeadlines
from topodns.kube.client.credentials import OURS, ServiceAccount

SERVICES: Final = "/api/v1/services"


@asynccontextmanager
async def connected(
    settings: ApiSettings, account: ServiceAccount = OURS, deadlines: RequestDeadlines = DEADLINES
) -> AsyncIterator[KubeApi]:
    api = await connect(settings, account, deadlines)
    try:
        yield api
    finally:
        await api.close()


async def read(api: KubeApi, path: str = SERVICES, **parameters: str) -> bytes:
    async with api.stream(path, parameters) as pieces:
        return b"".join([piece async for piece in pieces])


async def refused(api: KubeApi) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await read(api)
    return caught.value


def trusting(served: Served, certificates: Certificates) -> ApiSettings:
    """By `endpoint`, with TLS of this authority where the server has any; without credentials."""
    return ApiSettings(endpoint=served.url, tls=("", "", str(certificates.ca)))
