"""Access from a kubeconfig by the configuration loader of the kubernetes package (`official_client`).

The loader gets a dictionary in which these parts are resolved, each by hand for a reason:

- the file's YAML: the package's reader has no limit on size and aliases, waits for a pipe, and names no line;
- context, cluster and user: the package takes a user that does not exist for an anonymous one;
- `tokenFile`: the package prefers `token` to it, unlike client-go, and keeps the line break;
- `exec`: see `exec_plugin`;
- empty values: the package prefers an empty `-data` to the file.
"""

import base64
import math
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from topodns.files.regular import read_regular
from topodns.kube.client.contract import DEADLINES, ApiError
from topodns.kube.client.credentials import (
    OURS,
    Access,
    Login,
    ServiceAccount,
    checked,
    file_states,
    is_plain,
    read_word,
)
from topodns.kube.client.exec_plugin import check_plugin, run_plugin
from topodns.kube.client.official_client import ConfigException, Configuration, KubeConfigLoader, OfficialClient
from topodns.kube.manifests.documents import MAX_BYTES, parse_documents
from topodns.kube.manifests.value import BadManifest

# Ignoring impersonation would use another identity. The package uses OpenID Connect without verifying the issuer.
_REFUSED: Final = ("as", "as-uid", "as-groups", "as-user-extra", "auth-provider")
_SENT: Final = ("exec", "tokenFile", "token", "username", "password")  # entries that give credentials to send
_TEXTS: Final = (  # entries of clusters and users that have to be strings; the package sends others as their `repr`
    *("server", "certificate-authority", "certificate-authority-data", "tls-server-name", "proxy-url"),
    *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
    *("tokenFile", "token", "username", "password"),
)
_SWITCHES: Final = ("insecure-skip-tls-verify", "disable-compression")  # a text in their place would count as true
_AUTHORITIES: Final = ("certificate-authority", "certificate-authority-data")
_FILES: Final = ("client-certificate", "client-key", "tokenFile")
HOME_KUBECONFIG: Final = "~/.kube/config"
_NO_CONTEXT: Final = "no current-context, expected one, or the name of a context beside that of the file"

Entry = dict[str, Any]


class Kubeconfig:
    """One kubeconfig and the context to use; "" for its current-context."""

    def __init__(self, file: str, context: str, plugin_deadline: float) -> None:
        self._file = os.path.abspath(file)
        self._context = context
        self._plugin_deadline = plugin_deadline  # seconds
        self._access: Access | None = None

    async def load(self, refused: bool) -> Access:
        """The access, cached until it expires, is `refused` or one of its files changes. Raises ApiError."""
        access = self._access
        if refused or access is None or time.time() >= access.expires or _changed(access):
            self._access = access = await self._read()
        return access

    async def check(self) -> Access:
        """The access without credentials of an `exec` plugin, which is not run. Raises ApiError."""
        return await self._read(run_plugins=False)

    async def _read(self, run_plugins: bool = True) -> Access:
        try:
            return await self._assembled(_read_config(self._file), run_plugins)
        except ApiError as problem:
            raise ApiError(0, f"{self._file}: {problem}") from None
        except OSError as problem:
            file = problem.filename or self._file
            raise ApiError(0, f"cannot read {file}: {problem.strerror or problem}") from None
        except ConfigException as problem:
            raise ApiError(0, f"{self._file}: {problem}") from None
        except (
            TypeError,
            ValueError,
            KeyError,
            AttributeError,
        ) as problem:  # from the package, for an invalid kubeconfig
            raise ApiError(0, f"{self._file}: no kubeconfig: {problem!r}") from None

    async def _assembled(self, config: Entry, run_plugins: bool) -> Access:
        context = _entry(config, "contexts", self._context or config.get("current-context") or "")["context"]
        cluster = _filled("cluster", _entry(config, "clusters", context["cluster"])["cluster"])
        user = _filled("user", _entry(config, "users", context["user"])["user"] if context.get("user") else {})
        if server := cluster.get("server"):
            cluster["server"] = _with_scheme(server, cluster, user)
            _refuse_in_the_clear(cluster["server"], user)
        _refuse_contradictions(cluster, user)
        directory = os.path.dirname(self._file)
        paths = [cluster.get("certificate-authority"), *(user.get(name) for name in _FILES)]
        files = file_states([self._file, *(os.path.join(directory, path) for path in paths if path)])
        user, expires = await self._logged_in(user, directory, run_plugins)
        found = Configuration(host="")
        await KubeConfigLoader(_alone(cluster, user), config_base_path=directory).load_and_set(found)
        return Access(
            server=found.host,
            authorization=found.api_key.get("BearerToken", ""),
            ca=found.ssl_ca_cert or "",
            certificate=found.cert_file or "",
            key=found.key_file or "",
            verified=found.verify_ssl,
            server_name=found.tls_server_name or "",
            proxy=found.proxy or "",
            expires=expires,
            files=files,
        )

    async def _logged_in(self, user: Entry, directory: str, run_plugins: bool) -> tuple[Entry, float]:
        """The user entry with the credentials of `tokenFile` or `exec` filled in, and when these expire.

        That is in seconds since the epoch, infinite for no expiry. Raises ApiError.
        """
        for name in _REFUSED:
            if name in user:
                raise ApiError(0, f"the user has {name!r}, which is not supported")
        if token_file := user.get("tokenFile"):  # takes precedence over `token`, as in client-go
            return {**user, "token": read_word(os.path.join(directory, token_file), "token")}, math.inf
        if "exec" not in user:
            return user, math.inf
        known = {name: value for name, value in user.items() if name != "exec"}
        if not run_plugins:
            check_plugin(user["exec"])
            return known, math.inf
        credential = await run_plugin(user["exec"], directory, self._plugin_deadline)
        given: Entry = {"token": credential.token} if credential.token else {}
        if credential.certificate:
            given["client-certificate-data"] = _encoded(credential.certificate)
            given["client-key-data"] = _encoded(credential.key)
        return {**known, **given}, credential.expires


def _changed(access: Access) -> bool:
    return file_states(path for path, _ in access.files) != access.files


def _read_config(path: str) -> Entry:
    """The one object of a kubeconfig. Raises ApiError, OSError."""
    data = read_regular(path, MAX_BYTES + 1)  # `parse_documents` rejects a longer file
    try:
        objects = [document.object for document in parse_documents(data, path) if document is not None]
    except BadManifest as problem:
        raise ApiError(0, f"line {problem.line}: {problem.problem}") from None
    if len(objects) != 1:
        raise ApiError(0, f"{len(objects)} objects, expected one of kind Config")
    return objects[0]


def _entry(config: Mapping[str, Any], kind: str, name: str) -> Entry:
    found = dict[str, Entry]()
    for entry in config.get(kind) or []:
        if found.setdefault(entry["name"], entry) is not entry:
            raise ApiError(0, f"found {entry['name']!r} twice among its {kind}")
    if name not in found:
        raise ApiError(0, f"no {name!r} among its {kind}" if name else _NO_CONTEXT)
    return found[name]


def _with_scheme(server: str, cluster: Entry, user: Entry) -> str:
    """The server's URL. `HOST:PORT` is of https where an entry has certificates or waives them, as in client-go."""
    if "://" in server:
        return server
    secure = any(name in cluster for name in _AUTHORITIES) or cluster.get("insecure-skip-tls-verify")
    has_certificate = any(name in user for name in ("client-certificate", "client-certificate-data"))
    return f"{'https' if secure or has_certificate else 'http'}://{server}"


def _refuse_in_the_clear(server: str, user: Entry) -> None:
    """Reject credentials for http://: they are sent over TLS only. client-go ignores them silently. Raises ApiError."""
    if is_plain(server) and (names := [name for name in _SENT if name in user]):
        raise ApiError(0, f"the cluster's server is {server}, expected https:// since the user has {names[0]!r}")


def _refuse_contradictions(cluster: Entry, user: Entry) -> None:
    """Reject what client-go rejects: of two entries that exclude each other the package takes one. Raises ApiError."""
    authority = next((name for name in _AUTHORITIES if name in cluster), "")
    if authority and cluster.get("insecure-skip-tls-verify"):
        raise ApiError(0, f"the cluster has 'insecure-skip-tls-verify' and {authority!r}, expected one of them")
    token = next((name for name in ("tokenFile", "token") if name in user), "")
    if token and "username" in user:
        raise ApiError(0, f"the user has 'username' and {token!r}, expected one of them")
    has_certificate, has_key = (
        any(name in user for name in (entry, f"{entry}-data")) for entry in ("client-certificate", "client-key")
    )
    if has_certificate != has_key:
        one, other = ("client-certificate", "client-key")[:: 1 if has_certificate else -1]
        raise ApiError(0, f"the user has a {one!r} without a {other!r}")


def _filled(what: str, entry: Entry | None) -> Entry:
    """The entry without empty values. Raises ApiError, without the value, for one of another type than it has."""
    filled = {name: value for name, value in (entry or {}).items() if value not in (None, "")}
    for name in _TEXTS:
        if not isinstance(value := filled.get(name, ""), str):
            raise ApiError(0, f"the {what}'s {name!r} is of type {type(value).__name__}, expected a string")
    for name in _SWITCHES:
        if not isinstance(value := filled.get(name, False), bool):
            raise ApiError(0, f"the {what}'s {name!r} is of type {type(value).__name__}, expected true or false")
    if not isinstance(filled.get("exec", {}), dict):
        raise ApiError(0, f"the {what}'s 'exec' is of type {type(filled['exec']).__name__}, expected a mapping")
    return filled


def _alone(cluster: Entry, user: Entry) -> Entry:
    """A kubeconfig with only this cluster and user."""
    name = "chosen"
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@asynccontextmanager
async def connect(
    kubeconfig: str = "", context: str = "", account: ServiceAccount = OURS
) -> AsyncIterator[OfficialClient]:
    """A client of the API server of this kubeconfig and context.

    "" as kubeconfig is the service account in a Pod, else $KUBECONFIG, else ~/.kube/config; "" as context is the
    kubeconfig's current one. Sends no request. Raises ApiError, which names the file and what is wrong with it.
    """
    file = _chosen(kubeconfig, context, account)

    async def of_account(_: bool) -> Access:
        return account.access()

    login = Login(Kubeconfig(file, context, DEADLINES.login).load if file else of_account, DEADLINES.login_age)
    checked(await login.access())
    client = OfficialClient(login)
    try:
        yield client
    finally:
        await client.close()


def _chosen(kubeconfig: str, context: str, account: ServiceAccount) -> str:
    """The path of the kubeconfig; "" for the service account. Raises ApiError where $KUBECONFIG names several."""
    if kubeconfig or (account.is_in_pod and not context):
        return kubeconfig
    named = os.environ.get("KUBECONFIG", "")
    files = [path for path in named.split(os.pathsep) if path and os.path.exists(path)]
    if len(files) > 1:
        raise ApiError(0, f"KUBECONFIG names {len(files)} files, expected one: choose it by --kubeconfig")
    return next(iter(files), named) or os.path.expanduser(HOME_KUBECONFIG)
