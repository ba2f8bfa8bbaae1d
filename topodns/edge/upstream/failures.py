"""Why there is no reply, in words that fit a log line."""

import os
import ssl
from typing import Final

from topodns.resolve.exchange import Failure

TIMED_OUT: Final = Failure("i/o timeout", timed_out=True)
LOST: Final = Failure("connection closed by the upstream", timed_out=False)
BUSY: Final = Failure("too many queries in flight", timed_out=False)
CLOSED: Final = Failure("no longer in use", timed_out=False)


def failure_of(reason: Exception | None) -> Failure:
    """The failure that an error of a socket or of TLS amounts to; None is an orderly end."""
    if reason is None:
        return LOST
    if isinstance(reason, TimeoutError):
        return TIMED_OUT
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Failure(f"certificate not accepted: {reason.verify_message}", timed_out=False)
    if isinstance(reason, ssl.SSLError):
        why = getattr(reason, "reason", None) or "protocol error"  # those that OpenSSL did not raise have none
        return Failure(f"TLS: {why.lower().replace('_', ' ')}", timed_out=False)
    if isinstance(reason, OSError) and reason.errno:
        return Failure(os.strerror(reason.errno).lower(), timed_out=False)
    return Failure(str(reason) or type(reason).__name__, timed_out=False)
