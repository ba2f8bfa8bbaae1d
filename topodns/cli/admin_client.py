"""Client of a server's admin endpoints, for `topodns explain`, `who` and `audit`, and the kubectl plugin.

What a server sends is foreign text: it is bounded in size and time, checked, and printed without control characters.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Final

TIMEOUT: Final = 5.0  # seconds until the reply begins, and from then on until it ends
MAX_BODY: Final = 16 << 20  # octets of a reply
_PIECE: Final = 1 << 16  # octets read at once


class AdminError(Exception):
    """No reply, a refusal, or a reply that makes no sense; the text gives the reason."""


def fetch(server: str, path: str, arguments: Mapping[str, str], timeout: float = TIMEOUT) -> bytes:
    """The body of a reply with status 200 of an admin endpoint of `server` (host:port). Raises AdminError."""
    import http.client  # here, as the command that serves imports this module, too
    import urllib.error
    import urllib.request
    from urllib.parse import urlencode

    from topodns.logs import one_line

    url = f"http://{server}{path}?{urlencode(arguments)}"
    # No proxy, and no redirect: a foreign server could have other addresses of the operator's network asked.
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPErrorProcessor())
    opener.add_handler(urllib.request.HTTPDefaultErrorHandler())
    try:
        try:
            with opener.open(url, timeout=timeout) as reply:
                return _body(reply.read1, time.monotonic() + timeout)
        except urllib.error.HTTPError as refused:
            with refused:
                text = _body(refused.read1, time.monotonic() + timeout).decode("utf-8", "replace").strip()
                raise AdminError(one_line(text or str(refused))) from None
    except (OSError, ValueError, http.client.HTTPException) as failed:
        reason = failed.reason if isinstance(failed, urllib.error.URLError) else failed
        problem = one_line(str(reason))
        raise AdminError(f"no answer from {server}: {problem}; is it the `ready` address of a topodns?") from None


def _body(read1: Callable[[int], bytes], end: float) -> bytes:
    """The whole body. Raises TimeoutError at `end` (monotonic), and ValueError if it is larger than MAX_BODY."""
    body = bytearray()
    while piece := read1(_PIECE):
        body += piece
        if len(body) > MAX_BODY:
            raise ValueError(f"the reply is larger than {MAX_BODY >> 20} MB")
        if time.monotonic() > end:
            raise TimeoutError("timed out")
    return bytes(body)


def fetch_object(
    server: str, path: str, arguments: Mapping[str, str], key: str, timeout: float = TIMEOUT
) -> dict[str, object]:
    """The JSON object that the endpoint replies with, which has this key. Raises AdminError."""
    body = fetch(server, path, arguments, timeout)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or key not in found:
        raise AdminError(f"{server} does not answer {path}: is it the `ready` address of a topodns?")
    return found


def object_text(found: Mapping[str, object], as_json: bool, text_of: Callable[[Mapping[str, object]], str]) -> str:
    """The object as JSON, or by `text_of` in printable lines. Raises AdminError where `text_of` cannot read it."""
    from topodns.logs import printable

    if as_json:
        return json.dumps(found, indent=2)
    try:
        return "\n".join(map(printable, text_of(found).split("\n")))
    except (KeyError, TypeError) as problem:
        raise AdminError(f"the server is of another version: its reply has no {problem}") from None
