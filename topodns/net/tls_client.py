"""TLS of a client: contexts that verify servers as Go's programs do, so as CoreDNS and kubectl.

The name that is expected in the certificate of an upstream: `plugins.forward.destinations`.
"""

import ssl
from contextlib import ExitStack

from topodns.files.regular import held_regular


def client_context(ca: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """A new context from PEM files; without `ca`, the system's certificate authorities are trusted.

    A server is identified by its certificate's subjectAltName alone, never by its common name (RFC 9525 section 2). Any
    certificate of the CA file is a trust anchor, and a CA certificate without extensions that RFC 5280 requires is
    accepted (Python rejects it from 3.13 on). Raises OSError, of which ssl.SSLError is one, for unusable files.
    """
    with ExitStack() as held:
        files = [held.enter_context(held_regular(path)) if path else None for path in (ca, certificate, key)]
        context = ssl.create_default_context(cafile=files[0])
        if files[1] is not None:
            context.load_cert_chain(files[1], files[2], password="")  # so that OpenSSL never prompts
    context.hostname_checks_common_name = False
    context.verify_flags = (context.verify_flags & ~ssl.VERIFY_X509_STRICT) | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
