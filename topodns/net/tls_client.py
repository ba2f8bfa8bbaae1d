"""TLS of a client: contexts that verify servers as Go's programs do, so as CoreDNS and kubectl.

The name that is expected in the certificate of an upstream: `plugins.forward.destinations`.
"""

import re
import ssl
from contextlib import ExitStack
from typing import Final

from topodns.files.regular import held_regular, read_regular

MAX_ANCHORS: Final = 4 << 20  # octets of a CA file
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def client_context(ca: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """A new context from PEM files; without `ca`, the system's certificate authorities are trusted.

    A server is identified by its certificate's subjectAltName alone, never by its common name (RFC 9525 section 2). Any
    certificate of the CA file is a trust anchor, and a CA certificate without extensions that RFC 5280 requires is
    accepted (Python rejects it from 3.13 on). Raises OSError, of which ssl.SSLError is one, for unusable files.
    """
    with ExitStack() as held:
        files = [held.enter_context(held_regular(path)) if path else None for path in (ca, certificate, key)]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if files[0] is None:
            context.load_default_certs()
        else:
            add_anchors(context, files[0])
        if files[1] is not None:
            context.load_cert_chain(files[1], files[2], password="")  # so that OpenSSL never prompts
    context.hostname_checks_common_name = False
    context.verify_flags = (context.verify_flags & ~ssl.VERIFY_X509_STRICT) | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def add_anchors(context: ssl.SSLContext, path: str) -> None:
    """Trust each certificate of a PEM file; unreadable ones beside a readable one are left out, as in Go.

    Raises OSError, of which ssl.SSLError is one, for a file without any.
    """
    try:
        context.load_verify_locations(path)
    except ssl.SSLError:
        blocks = _CERTIFICATE.findall(read_regular(path, MAX_ANCHORS))
        if not sum(_is_added(context, block) for block in blocks):
            raise


def _is_added(context: ssl.SSLContext, block: bytes) -> bool:
    try:
        context.load_verify_locations(cadata=block.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError):
        return False
    return True


def why_unusable(problem: OSError, expected: str = "a PEM certificate and its key") -> str:
    """The reason for an error of a context that is made of files, for a message that names them."""
    if isinstance(problem, ssl.SSLError):
        return f"{str(problem.reason or 'no PEM').lower().replace('_', ' ')}: expected {expected}"
    return problem.strerror or str(problem)
