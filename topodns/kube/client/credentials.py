"""Address and credentials for requests to an API server. Reads files; no network."""

import asyncio
import logging
import math
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from topodns.files.regular import FileState, file_state, read_regular
from topodns.kube.client.contract import ApiError
from topodns.net.loop_timers import boot_clock
from topodns.net.tls_client import client_context

log = logging.getLogger(__name__)


MAX_FILE: Final = 1 << 20  # octets of a token file


@dataclass(frozen=True, slots=True)
class Access:
    """Address and credentials of an API server as last read. Two are equal if nothing was rotated in between."""

    server: str  # URL without a trailing slash
    authorization: str = ""  # value of the Authorization header; "" for none
    ca: str = ""  # file; "" for the system's trust store
    certificate: str = ""  # file; "" for none
    key: str = ""  # file; "" where the certificate's file contains it
    verified: bool = True  # whether the server's certificate is verified
    server_name: str = ""  # expected in that certificate, if not the URL's host
    proxy: str = ""  # URL
    expires: float = math.inf  # seconds since the epoch
    files: tuple[tuple[str, FileState], ...] = ()  # path and state of the files that it was read from


def file_states(paths: Iterable[str]) -> tuple[tuple[str, FileState], ...]:
    """These paths and the present states of their files, without "" and without files that `stat` fails for."""
    states = []
    for path in filter(None, paths):
        with suppress(OSError):
            states.append((path, file_state(path)))
    return tuple(states)


def read_word(path: str, what: str) -> str:
    """The contents of a small text file, stripped; `what` names the file in errors. Raises ApiError, also if empty."""
    try:
        word = read_regular(path, MAX_FILE).decode("utf-8").strip()
    except (OSError, UnicodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8"
        raise ApiError(0, f"cannot read the {what} {path}: {reason}") from None
    if not word:
        raise ApiError(0, f"the {what} {path} is empty")
    return word


def checked(access: Access) -> Access:
    """Validate: returns `access` if requests can be made with it. Raises ApiError."""
    if not _is_url(access.server):
        raise ApiError(0, f"the API server is {access.server!r}, expected a URL such as https://10.96.0.1:443")
    if access.authorization and is_plain(access.server):
        raise ApiError(0, f"the API server is {access.server}, expected https:// where there are credentials to send")
    if not _is_host(access.server_name):
        raise ApiError(0, f"the TLS server name is {access.server_name!r}, which is no host name")
    if access.proxy and not _is_url(access.proxy, user=True):
        raise ApiError(0, "the proxy is no http:// or https:// URL")  # the URL is not shown: it may have a password
    if not (access.authorization.isascii() and access.authorization.isprintable()):
        raise ApiError(0, "the bearer token has characters that no HTTP header can carry")
    return access


def is_plain(server: str) -> bool:
    """Whether this URL is http://, so that requests to it are not encrypted."""
    return server.lower().startswith("http://")


def tls_context(access: Access) -> ssl.SSLContext:
    """A new TLS context from the present files; for http:// an empty one. Raises ApiError."""
    if is_plain(access.server):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context = client_context(access.ca, access.certificate, access.key)
    except OSError as problem:  # ssl.SSLError is one
        raise ApiError(0, f"cannot use the certificates in {_tls_files(access)}: {problem.strerror}") from None
    context.set_alpn_protocols(["http/1.1"])
    if not access.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_url(text: str, user: bool = False) -> bool:
    try:
        url = urlsplit(text)
        url.port  # noqa: B018 - raises for an invalid port
    except ValueError:
        return False
    if url.scheme not in ("http", "https") or not _is_host(url.hostname or ".") or url.query or url.fragment:
        return False
    return user or "@" not in url.netloc


def _is_host(name: str) -> bool:
    """Whether IDNA can encode a name: for empty and long labels resolver and TLS raise UnicodeError, no OSError."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def _tls_files(access: Access) -> str:
    return ", ".join(filter(None, (access.ca, access.certificate, access.key)))


DIRECTORY: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

_NO_PACKAGE: Final = "needs the Python package kubernetes, which is not installed here"
_WITH_PACKAGE: Final = "use the image topodns-tools, or topodns from its package"
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The service account of a Pod: mounted files and environment variables.

    By hand, since the kubernetes package's in-cluster loader takes 20 MiB more of a server, and 146 MB of its image.
    """

    directory: str = DIRECTORY
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def access(self) -> Access:
        """The access by the files as they are now: the kubelet rotates the token before it expires. Raises ApiError."""
        token, ca = (os.path.join(self.directory, name) for name in ("token", "ca.crt"))
        server, files = self._server(), file_states((token, ca))
        return Access(server, f"Bearer {read_word(token, 'service account token')}", ca, files=files)

    @property
    def is_in_pod(self) -> bool:
        """Whether the environment has the API server's address, as in a Pod."""
        return bool(self.environment.get(_HOST) and self.environment.get(_PORT))

    @property
    def namespace(self) -> str:
        """The Pod's namespace; "" outside of a Pod."""
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

Source = Callable[[bool], Awaitable[Access]]
"""Reads the access again; the argument is True if the server refused the last one (401). Raises ApiError."""


@contextmanager
def package_needed(what: str, instead: str = "") -> Iterator[None]:
    """For the import of a module that imports the kubernetes package: raises ApiError where it is not installed.

    `what` needs it, in the words of the user; `instead` is another remedy than to install it.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "kubernetes":
            raise
        raise ApiError(0, f"{what} {_NO_PACKAGE}: {instead}{_WITH_PACKAGE}") from None


class Login:
    """Caches the access to one API server, and renews it when it is old, expired or refused."""

    def __init__(self, source: Source, max_age: float) -> None:
        self._source = source
        self._max_age = max_age  # seconds
        self._access: Access | None = None
        self._read_at = 0.0
        self._one_at_a_time = asyncio.Lock()  # single-flight: an exec plugin is slow, and every reflector asks

    async def access(self) -> Access:
        """The access for the next request. Raises ApiError where none could be read yet."""
        if (access := self._current()) is not None:
            return access
        async with self._one_at_a_time:
            return self._current() or await self._read(refused=False)

    async def renew(self, refused: Access) -> Access:
        """The access for a retry after a 401 for `refused`, read again unless that has happened already.

        If it equals `refused`, there is no other, and a retry is useless.
        """
        async with self._one_at_a_time:
            if self._access is refused:
                return await self._read(refused=True)
            return self._access or refused

    def _current(self) -> Access | None:
        access = self._access
        if access is None or boot_clock() - self._read_at >= self._max_age or time.time() >= access.expires:
            return None
        return access

    async def _read(self, refused: bool) -> Access:
        """Read the access; on failure keep the present one, which may stay valid a while. Raises ApiError if none."""
        try:
            access = checked(await self._source(refused))
        except ApiError as problem:
            if self._access is None:
                raise
            log.warning("the credentials for the API server stay as they are: %s", problem)
            return self._access
        self._read_at = boot_clock()
        if self._access is None or access != self._access:  # else keep it: TLS and `renew` compare identity
            self._access = access
        return self._access
