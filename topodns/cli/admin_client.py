"""Client of a server's admin endpoints, for `topodns explain`, `who` and `audit`, and the kubectl plugin.

What a server sends is foreign text: it is bounded in size and time, checked, and printed without control characters.
The plugin asks a server only, so that nothing of clusters is imported here.
"""

import argparse
import http.client
import json
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from topodns.cli.colour import show
from topodns.corefile.errors import listed
from topodns.inspect.errors import Refused
from topodns.inspect.http import SEPARATOR
from topodns.inspect.text import audit_text, items, mapping, wide_audit_text
from topodns.logs import one_line, printable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TIMEOUT: Final = 5.0  # seconds until the whole reply is there
AUDIT_TIMEOUT: Final = 60.0  # likewise, of an audit: that of a large cluster takes seconds
MAX_BODY: Final = 16 << 20  # octets of a reply
EXPECTED: Final = "expected the `ready` address of a topodns, which has port 8181 unless its Corefile names another"
_MAX_PORT: Final = 65_535
_NO_ROUTE: Final = "not found"  # what a topodns replies at its other addresses, such as that of `health`
_DEFAULT_PORT: Final = 8181
_LOOPBACK: Final = "127.0.0.1"
_PORT: Final = re.compile(r":[0-9]*$")
_PIECE: Final = 1 << 16  # octets read at once

FAIL_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "error": ("error",),
    "warning": ("error", "warning"),
    "info": ("error", "warning", "info"),
    "never": (),
}
NO_ANSWER: Final = 2  # exit status, as for wrong usage: there is no answer and no audit


class AdminError(Exception):
    """No reply, a refusal, or a reply that makes no sense; the text gives the reason."""


def fetch(server: str, path: str, arguments: Mapping[str, str], timeout: float = TIMEOUT) -> bytes:
    """The body of a reply with status 200 of an admin endpoint of `server` (host:port), within `timeout` seconds.

    Asks no proxy and follows no redirect: a foreign server could have other addresses of the operator's network asked.
    Raises AdminError.
    """
    try:
        connection = http.client.HTTPConnection(_address(server))
        try:
            if not 1 <= connection.port <= _MAX_PORT:
                raise ValueError(f"{connection.port} is no port, expected 1 to {_MAX_PORT}")
            connection.sock = _connected(connection.host, connection.port, time.monotonic() + timeout)
            connection.request("GET", f"{path}?{urlencode(arguments)}")
            reply = connection.getresponse()
            body = _body(reply.read1)
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as failed:
        reason = failed.strerror if isinstance(failed, OSError) else None
        problem = one_line(reason or str(failed) or type(failed).__name__)
        raise AdminError(f"no answer from {server}: {problem}; {EXPECTED}") from None
    if reply.status != http.client.OK:
        text = body.decode("utf-8", "replace").strip()
        if reply.status == http.client.NOT_FOUND and text == _NO_ROUTE:
            text = f"not found: {server} has no {path}; {EXPECTED}, and it may not be an older one"
        if not text or not (reply.getheader("Content-Type") or "").startswith("text/plain"):
            text = f"{server} does not answer {path}, but {reply.status} {reply.reason}; {EXPECTED}"
        raise AdminError(one_line(text))
    return body


def _address(server: str) -> str:
    """HOST:PORT of a server, whose host may be left out (loopback) and so may the port. Raises ValueError."""
    if server.isdecimal():
        raise ValueError(f"found {server!r}, expected HOST:PORT")
    if server.startswith(":") and server[1:].isdecimal():
        return f"{_LOOPBACK}{server}"
    return server if _PORT.search(server) else f"{server}:{_DEFAULT_PORT}"


def _connected(host: str, port: int, end: float) -> socket.socket:
    """A connection that ends at `end` (monotonic). Each address of the host has the whole time to connect."""
    plain = socket.create_connection((host, port), max(0.0, end - time.monotonic()))
    return _EndingSocket(end, plain.detach())


class _EndingSocket(socket.socket):
    """A connected socket that is read until `end` (monotonic), however many octets arrive one by one."""

    def __init__(self, end: float, descriptor: int) -> None:
        super().__init__(fileno=descriptor)
        self._end = end

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int = 0, flags: int = 0) -> int:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.settimeout(left)
        return super().recv_into(buffer, nbytes, flags)


def _body(read1: Callable[[int], bytes]) -> bytes:
    """The whole body. Raises ValueError if it is larger than MAX_BODY."""
    body = bytearray()
    while piece := read1(_PIECE):
        body += piece
        if len(body) > MAX_BODY:
            raise ValueError(f"the reply is larger than {MAX_BODY >> 20} MB")
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
        raise AdminError(f"{server} does not answer {path}; {EXPECTED}")
    return found


def object_text(found: Mapping[str, object], as_json: bool, text_of: Callable[[Mapping[str, object]], str]) -> str:
    """The object as JSON, or by `text_of` in printable lines. Raises AdminError where `text_of` cannot read it."""
    if as_json:
        return json.dumps(found, indent=2)
    try:
        return "\n".join(map(printable, text_of(found).split("\n")))
    except (KeyError, TypeError) as problem:
        raise AdminError(f"the server is of another version: its reply has no {problem}") from None


def add_report_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that choose the contents of an audit, its form and its exit status."""
    parser.add_argument(
        "--what-if",
        action="append",
        metavar="CHANGE",
        help="print what would change; node=NAME:down, zone=NAME:down, scale=NS/NAME:-N, keys=NS/NAME:KEY,KEY, "
        "default=KEY,KEY",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="error",
        metavar="SEVERITY",
        help=f"exit with 1 from this severity on: {listed(FAIL_ON)} (error)",
    )
    parser.add_argument("--wide", action="store_true", help="cut no cell of the table, and wrap no line")


def fetch_audit(server: str, changes: Sequence[str]) -> dict[str, object]:
    """The document of an audit by a running server (host:port), with these changes. Raises AdminError."""
    question = {"what-if": SEPARATOR.join(changes)} if changes else {}
    return fetch_object(server, "/audit", question, "clusters", AUDIT_TIMEOUT)


def print_report(document: Mapping[str, object], flags: argparse.Namespace) -> int:
    """Print the document of an audit as the flags say (--json, --wide). Returns the exit status for their --fail-on.

    Raises Refused if it has no cluster, and AdminError if it cannot be read.
    """
    try:
        clusters = list(map(mapping, items(document["clusters"])))
        incomplete = any(cluster["waiting"] or cluster.get("skipped") for cluster in clusters)
        # With a what-if, the findings that count are those that there would be.
        judged = (mapping(cluster["what_if"]) if cluster["what_if"] is not None else cluster for cluster in clusters)
        found = any(mapping(each["counts"])[severity] for each in judged for severity in FAIL_ON[flags.fail_on])
    except (KeyError, TypeError) as problem:
        raise AdminError(f"the server is of another version: its reply has no {problem}") from None
    if not clusters:
        raise Refused("nothing to audit: no server block has the directive `topology`")
    show(object_text(document, flags.json, wide_audit_text if flags.wide else audit_text))
    return NO_ANSWER if incomplete else int(found)
