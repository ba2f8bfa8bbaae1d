"""HTTP client for the admin endpoints of a running server (see `http_server`)."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlencode

TIMEOUT = 5.0  # seconds


class AdminError(Exception):
    """The server could not be reached, or refused the request; the text gives the reason."""


def fetch(server: str, path: str, arguments: Mapping[str, str]) -> bytes:
    """The body of a reply with status 200 from `server` (host:port). Raises AdminError."""
    url = f"http://{server}{path}?{urlencode(arguments)}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT) as reply:
            body: bytes = reply.read()
            return body
    except urllib.error.HTTPError as refused:
        raise AdminError(refused.read().decode("utf-8", "replace").strip() or str(refused)) from None
    except (OSError, ValueError, http.client.HTTPException) as failed:
        reason = failed.reason if isinstance(failed, urllib.error.URLError) else failed
        raise AdminError(
            f"no answer from {server}: {reason}; --server takes the HOST:PORT of a running server's `ready`"
        ) from None
