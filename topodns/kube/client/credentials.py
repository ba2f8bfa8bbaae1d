"""What a request to an API server needs to know: where to, and who asks. Files, no network."""

import math
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from topodns.edge.kube_api.contract import ApiError

MAX_FILE: Final = 1 << 20  # octets of a token or a certificate


class FileState(NamedTuple):
    """Which contents a path had: another file, or the same written again, differs."""

    path: str
    inode: int
    size: int
    modified: int  # nanoseconds


@dataclass(frozen=True, slots=True)
class Access:
    """The way to an API server, as it was read. Two are equal when nothing has been rotated in between."""

    server: str  # URL without a slash at its end
    authorization: str = ""  # value of the header; "" for none
    ca: str = ""  # file; "" is what the system trusts
    certificate: str = ""  # file; "" for none
    key: str = ""  # file; "" where the certificate's file has it
    verified: bool = True  # whether the server's certificate is
    server_name: str = ""  # in that certificate, where it is not the URL's host
    proxy: str = ""  # URL
    expires: float = math.inf  # seconds since the epoch
    files: tuple[FileState, ...] = ()  # that it was read from


def file_states(paths: Iterable[str]) -> tuple[FileState, ...]:
    """What these files are now; "" is skipped, and so is what cannot be seen."""
    states = []
    for path in filter(None, paths):
        try:
            found = os.stat(path)
        except OSError:
            continue
        states.append(FileState(path, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(states)


def read_word(path: str, what: str) -> str:
    """The contents of a small text file without white space around them. Raises ApiError."""
    try:
        with open(path, encoding="utf-8") as file:
            word = file.read(MAX_FILE).strip()
    except (OSError, UnicodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8"
        raise ApiError(0, f"cannot read the {what} {path}: {reason}") from None
    if not word:
        raise ApiError(0, f"the {what} {path} is empty")
    return word


def checked(access: Access) -> Access:
    """The same, if requests can be made with it. Raises ApiError."""
    if not _is_url(access.server):
        raise ApiError(0, f"the API server is {access.server!r}, expected a URL such as https://10.96.0.1:443")
    if not _is_host(access.server_name):
        raise ApiError(0, f"the TLS server name is {access.server_name!r}, which is no host name")
    if access.proxy and not _is_url(access.proxy, user=True):
        raise ApiError(0, "the proxy is no http:// or https:// URL")  # which may hold a password
    if not (access.authorization.isascii() and access.authorization.isprintable()):
        raise ApiError(0, "the bearer token has characters that no HTTP header can carry")
    return access


def tls_context(access: Access) -> ssl.SSLContext:
    """A new context, from what the files have now; for http:// an empty one. Raises ApiError.

    As strict as Go, which CoreDNS and kubectl are: any certificate of the CA file may end a chain, and a CA
    certificate that lacks extensions which RFC 5280 asks for (Python refuses it from 3.13 on) is good.
    """
    if access.server.startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context = ssl.create_default_context(cafile=access.ca or None)
        if access.certificate:
            context.load_cert_chain(access.certificate, access.key or None, password="")  # never asks a terminal
    except OSError as problem:  # ssl.SSLError is one
        raise ApiError(0, f"cannot use the certificates in {_tls_files(access)}: {problem.strerror}") from None
    context.set_alpn_protocols(["http/1.1"])
    context.verify_flags = (context.verify_flags & ~ssl.VERIFY_X509_STRICT) | ssl.VERIFY_X509_PARTIAL_CHAIN
    if not access.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_url(text: str, user: bool = False) -> bool:
    try:
        url = urlsplit(text)
        url.port  # noqa: B018 - raises where it is no port
    except ValueError:
        return False
    if url.scheme not in ("http", "https") or not _is_host(url.hostname or ".") or url.query or url.fragment:
        return False
    return user or "@" not in url.netloc


def _is_host(name: str) -> bool:
    """Whether the resolver and TLS can be asked for it: they refuse empty and long labels (RFC 5890) as no OSError."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def _tls_files(access: Access) -> str:
    return ", ".join(filter(None, (access.ca, access.certificate, access.key)))
