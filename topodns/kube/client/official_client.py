"""The client of the kubernetes package, for the writes of controllers; only this module imports the package.

Lists and watches use `kube.client.http` instead; a DNS server loads this module only to read a kubeconfig. Not in the
image for Pods, which lacks the package: an importer wraps the import in `kube.client.credentials.package_needed`.

Login, TLS and the text of errors are those of the server's own client, for a reason each:

- in-cluster credentials: the package sends the line break of a token file, and has no error for a missing file;
- TLS: the package asks the terminal for the password of a key, and Python from 3.13 on rejects CA certificates that
  kubectl takes (`credentials.tls_context`);
- proxies and ~/.netrc of the environment are ignored: a token is sent only to the configured server.

Requests go through the package's dynamic client, without its discovery, which keeps a file in the temporary directory.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final

from kubernetes.aio.client import ApiClient, ApiException, Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigLoader
from kubernetes.aio.dynamic import DynamicClient
from kubernetes.aio.leaderelection.electionconfig import Config as ElectionConfig
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord

from topodns import __version__
from topodns.files.regular import read_regular
from topodns.kube.client.contract import DEADLINES, MAX_BODY, ApiError, KubeApi, RequestCounters, api_error
from topodns.kube.client.credentials import (
    MAX_FILE,
    Access,
    Login,
    tls_context,
)
from topodns.kube.client.http import TRANSPORT_ERRORS, ApiConnection

# For the modules that need them, since only this one imports the package.
__all__ = [
    "ApiException",
    "ConfigException",
    "Configuration",
    "ElectionConfig",
    "KubeConfigLoader",
    "LeaderElection",
    "LeaderElectionRecord",
]

APPLY: Final = "application/apply-patch+yaml"

_UNAUTHORIZED: Final = 401

Json = dict[str, Any]


class OfficialClient:
    """A connection to one API server by the client of the kubernetes package; made by `connect`.

    `reader` lists and watches, with the same login.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self.reader: KubeApi = ApiConnection(login, DEADLINES, RequestCounters())
        self._access: Access | None = None
        self._peer: tuple[object, ...] = ()
        configuration = Configuration()
        configuration.client_session_kwargs = {"trust_env": False}
        self._api = ApiClient(configuration)
        self._api.user_agent = f"topodns/{__version__} ({sys.platform})"
        self._api.set_default_header("Accept-Encoding", "identity")
        self._dynamic = DynamicClient(self._api)

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = "application/json",
        deadline: float = DEADLINES.response,
    ) -> Json:
        """The object of a 2xx response; `deadline` in seconds includes its body.

        After a 401 the credentials are read again, and the request is repeated once if they are new. Raises ApiError.
        """
        for _ in range(2):
            access = await self._login.access()
            await self._use(access)
            try:
                with _translated():
                    response = await self._dynamic.request(
                        method,
                        path,
                        body=body,
                        content_type=content_type,
                        query_params=list((query or {}).items()),
                        serialize=False,
                        _request_timeout=deadline,
                    )
                    content = json.loads(await response.read())
            except ApiError as refused:
                if refused.status != _UNAUTHORIZED or await self._login.renew(access) == access:
                    raise
                continue
            if not isinstance(content, dict):
                raise ApiError(0, "the response is no JSON object")
            return content
        raise ApiError(_UNAUTHORIZED, "the API server refuses new credentials too")

    async def close(self) -> None:
        await self.reader.close()
        await self._api.close()

    async def _use(self, access: Access) -> None:
        """Set address and credentials of the following requests.

        Connections stay where only the token is new, as every hour in a Pod; else they are closed.
        """
        if access is self._access:
            return
        configuration, rest = self._api.configuration, self._api.rest_client
        context, peer = tls_context(access), _peer(access)
        self._access = access
        configuration.api_key = {"BearerToken": access.authorization} if access.authorization else {}
        if peer == self._peer:
            return
        configuration.host = access.server
        configuration.tls_server_name = access.server_name or None
        rest.ssl_context, rest.proxy = context, access.proxy or None
        self._peer, old, rest.pool_manager = peer, rest.pool_manager, None
        if old is not None:
            await old.close()


async def server_side_apply(
    client: OfficialClient, path: str, body: Json, field_manager: str, deadline: float = 10.0
) -> Json:
    """Apply an object by force (PATCH, server-side apply); returns it as stored. `path` is that of the object.

    It creates an object that does not exist. With a `metadata.resourceVersion` it is refused with 409 unless that is
    the stored one; with a `metadata.uid` also where there is none. Raises ApiError.
    """
    query = {"fieldManager": field_manager, "force": "true"}
    return await client.request("patch", path, query, body, APPLY, deadline)


async def create(
    client: OfficialClient, collection: str, body: Json, field_manager: str = "", deadline: float = 10.0
) -> Json:
    """Create an object (POST to its collection); returns it as stored. Raises ApiError, 409 where it exists.

    Without `field_manager` the API server takes the name from the User-Agent.
    """
    query = {"fieldManager": field_manager} if field_manager else None
    return await client.request("post", collection, query, body, deadline=deadline)


async def replace_object(client: OfficialClient, path: str, body: Json, deadline: float = 10.0) -> Json:
    """Replace an object (PUT); returns it as stored. Raises ApiError, 409 where `body` has an older version."""
    return await client.request("put", path, None, body, deadline=deadline)


async def delete(
    client: OfficialClient, path: str, uid: str = "", resource_version: str = "", deadline: float = 10.0
) -> None:
    """Delete an object; where `uid` or `resource_version` are given, only if the stored object has them (else 409).

    Raises ApiError, also with 404.
    """
    conditions = {"uid": uid, "resourceVersion": resource_version}
    body = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {name: value for name, value in conditions.items() if value},
    }
    await client.request("delete", path, None, body, deadline=deadline)


async def read_object(client: OfficialClient, path: str, deadline: float = DEADLINES.response) -> Json:
    """GET: the object of the response. Raises ApiError."""
    return await client.request("get", path, deadline=deadline)


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the errors of the package and of its connections into an ApiError."""
    try:
        yield
    except ApiException as problem:
        raise _refused(problem) from None
    except TRANSPORT_ERRORS as problem:
        raise ApiError(0, f"the API server: {problem or type(problem).__name__}") from problem
    except (ValueError, TypeError, KeyError, AttributeError) as problem:  # from the package, for what is no JSON object
        raise ApiError(0, f"an unreadable response: {problem!r}") from None


def _refused(problem: Any) -> ApiError:
    """The error of an ApiException."""
    status = problem.status if isinstance(problem.status, int) else 0
    body = (problem.body or "").encode() if isinstance(problem.body or "", str) else b""
    headers = problem.headers or {}
    return api_error(status, headers.get("Retry-After", ""), body[:MAX_BODY], time.time())


def _peer(access: Access) -> tuple[object, ...]:
    """What connections depend on: the server and the content of the TLS files, which a kubelet often writes anew."""
    files = (access.ca, access.certificate, access.key)
    digests = (sha256(read_regular(path, MAX_FILE)).digest() if path else b"" for path in files)
    return (access.server, access.server_name, access.proxy, access.verified, *digests)
