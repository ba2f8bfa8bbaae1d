"""The `tls` directive: the certificate of the `tls://` keys of its server block."""

import ssl
from dataclasses import dataclass, field, replace
from hashlib import sha512
from typing import Final

from topodns.corefile.arguments import fold_options, once_each, only_choice, wrong
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.files.regular import read_regular
from topodns.net.tls_client import why_unusable
from topodns.net.tls_server import ClientAuth, server_context
from topodns.plugins.compatibility import Effect, differs, unsupported
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files; `ca` "" for the system's authorities. `context`: made of them when the Corefile was read."""

    certificate: str
    key: str
    ca: str = ""
    client_auth: ClientAuth = ClientAuth.NONE
    context: ssl.SSLContext | None = field(default=None, compare=False)
    digest: str = field(default="", compare=False)  # of the files


MAX_FILE: Final = 1 << 20  # octets
# With `request` CoreDNS asks for a certificate and makes nothing of it.
_CLIENT_AUTHS: Final = {"request": ClientAuth.NONE, **{each.value: each for each in ClientAuth}}


def parse_tls(directive: Directive, context: Context) -> Tls:
    """`tls CERT KEY [CA]`, perhaps with `client_auth`. The files are read now. Raises ConfigError."""
    once_each(directive)
    if not 2 <= len(directive.args) <= 3:
        raise wrong(directive, "the files of a certificate and its key, and perhaps of the CA of clients")
    certificate, key, *ca = (context.readable_file(directive, path) for path in directive.args)
    tls = fold_options(directive, Tls(certificate, key, "".join(ca)), {"client_auth": _client_auth}, dropped=_DROPPED)
    return loaded(directive, tls)


def loaded(directive: Directive, tls: Tls) -> Tls:
    """These settings with the context and the digest of their files. Raises ConfigError for unusable files."""
    files = list(filter(None, (tls.certificate, tls.key, tls.ca)))
    try:
        digest = sha512(b"".join(read_regular(path, MAX_FILE) for path in files)).hexdigest()
        context = server_context(tls.certificate, tls.key, tls.ca, tls.client_auth)
    except OSError as problem:
        raise directive.error(f"cannot use {', '.join(map(shown, files))}: {why_unusable(problem)}") from None
    return replace(tls, context=context, digest=digest)


def _client_auth(option: Directive, tls: Tls) -> Tls:
    if option.args == ("require",):
        raise option.error("'client_auth' has require, which accepts any certificate, expected require_and_verify")
    return replace(tls, client_auth=only_choice(option, _CLIENT_AUTHS))


_DROPPED: Final = {"keylog": "it would write the keys of all connections to a file"}

PLUGIN: Final = Plugin(
    name="tls",
    coredns=differs(
        Effect.NOTHING,
        "`client_auth request` asks for no certificate, and `require` is refused",
        keylog=unsupported("take it out: it gives away the keys of all connections"),
    ),
    parse=parse_tls,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
