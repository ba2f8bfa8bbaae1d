"""TLS of a server: contexts with the settings of CoreDNS's servers."""

import ssl
from contextlib import ExitStack
from enum import Enum

from topodns.files.regular import held_regular
from topodns.net.tls_client import add_anchors


class ClientAuth(Enum):
    """Whether clients need a certificate; the value is CoreDNS's word."""

    NONE = "nocert"
    IF_GIVEN = "verify_if_given"
    REQUIRED = "require_and_verify"


_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


def server_context(
    certificate: str, key: str, client_ca: str = "", client_auth: ClientAuth = ClientAuth.NONE
) -> ssl.SSLContext:
    """A new context from PEM files: TLS 1.2 or later, without renegotiation.

    The certificates of clients are verified by `client_ca`, "" for the system's authorities; any certificate of that
    file is a trust anchor, as in Go. Raises OSError, of which ssl.SSLError is one, for unusable files.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    with ExitStack() as held:
        paths = [held.enter_context(held_regular(path)) if path else "" for path in (certificate, key, client_ca)]
        context.load_cert_chain(paths[0], paths[1], password="")  # so that OpenSSL never prompts
        if client_auth is not ClientAuth.NONE:
            context.verify_mode = _VERIFY[client_auth]
            context.verify_flags = (context.verify_flags & ~ssl.VERIFY_X509_STRICT) | ssl.VERIFY_X509_PARTIAL_CHAIN
            if paths[2]:
                add_anchors(context, paths[2])
            else:
                context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    return context
