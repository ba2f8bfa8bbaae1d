"""The interface of the API server client: settings, deadlines, requests, errors, counters. It loads no HTTP library."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, Protocol

from topodns.logs import one_line
from topodns.query.histogram import Histogram


class ApiError(Exception):
    """A request failed or cannot be made. `status` is the HTTP status of a refusal, also of one within a watch; else 0.

    0 means no response, an unusable one, and unusable settings or credentials.

    Its text is one short printable line even where `problem` comes from the server: it goes to the log and to /ready.
    """

    def __init__(self, status: int, problem: str, retry_after: float | None = None) -> None:
        super().__init__(one_line(f"{status}: {problem}" if status else problem))
        self.status = status
        self.retry_after = retry_after  # seconds, at least 0, from Retry-After or the Status; None if absent


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Address and credentials of the API server, from the directive `kubernetes`. All empty: a service account."""

    endpoint: str = ""  # URL of the server, https:// or http://, without a trailing slash
    tls: tuple[str, str, str] | None = None  # files: client certificate, its key, CA; each "" where not given
    kubeconfig: str = ""  # file
    context: str = ""  # of the kubeconfig; "" is its current one
    place: str = field(default="", compare=False)  # FILE:LINE of the Corefile, for messages


@dataclass(frozen=True, slots=True)
class RequestDeadlines:
    """Deadlines of the API client, in seconds."""

    connect: float = 5.0  # name lookup, TCP and TLS
    response: float = 30.0  # from the request, including the connect, to the head of the response
    login: float = 30.0  # for an exec plugin of a kubeconfig
    login_age: float = 60.0  # credentials older than this are read again; client-go's period


DEADLINES: Final = RequestDeadlines()


class KubeApi(Protocol):
    """A client of one API server, made by `connect`."""

    def stream(self, path: str, parameters: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """GET: the body of a 2xx response, piece by piece as it arrives.

        At most some hundred KiB are buffered for a slow caller; then TCP flow control stops the server. Silence in the
        body has no deadline here; the caller sets one. Raises ApiError, also while the body is read; the request after
        such a failure uses a new connection.
        """

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        """POST, PUT or PATCH; returns the body of a 2xx response. Raises ApiError."""

    async def close(self) -> None:
        """Close all connections."""


MAX_READ: Final = 4 << 20  # octets; etcd stores objects up to 1.5 MiB

_NO_PARAMETERS: Final[Mapping[str, str]] = {}


async def read_body(api: KubeApi, path: str, parameters: Mapping[str, str] = _NO_PARAMETERS) -> bytes:
    """GET: the complete body of a 2xx response. Raises ApiError, also for one longer than MAX_READ."""
    content = bytearray()
    async with api.stream(path, parameters) as pieces:
        async for piece in pieces:
            content += piece
            if len(content) > MAX_READ:
                raise ApiError(0, f"the response to GET {path} is longer than {MAX_READ} octets")
    return bytes(content)


BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds, CoreDNS's
NO_RESPONSE: Final = "<error>"  # label `code` where no response came, as in client-go


@dataclass(slots=True)
class RequestCounters:
    """Request counters of the process: `results` by (status, method, host:port), `durations` by (method, host:port)."""

    results: Counter[tuple[str, ...]] = field(default_factory=Counter)
    durations: dict[tuple[str, ...], Histogram] = field(default_factory=dict)

    def count(self, method: str, host: str, code: str, seconds: float) -> None:
        """Count one request. `code`: status or NO_RESPONSE; `seconds`: to the head of the response or the failure."""
        self.results[(code, method, host)] += 1
        self.durations.setdefault((method, host), Histogram(BUCKETS)).observe(seconds)


MAX_BODY: Final = 64 * 1024  # octets read of an error response

_MAX_PLAIN: Final = 2000  # octets of a message from a body that is not a Status object
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_MAX_SECONDS: Final = 10**9


def api_error(status: int, retry_after: str, body: bytes, now: float) -> ApiError:
    """The error for a response. `retry_after` is its header, "" for none; `now` in seconds since the epoch.

    An API server sends its reason in an object of kind Status; a proxy or load balancer in between sends plain text or
    HTML.
    """
    content = _status_object(body)
    message = content.get("message") or content.get("reason")
    text = message if isinstance(message, str) else _plain_text(status, body)
    return ApiError(status, text, _seconds(retry_after, now, content))


def _status_object(body: bytes) -> Mapping[str, object]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and content.get("kind") == "Status" else {}


def _plain_text(status: int, body: bytes) -> str:
    text = body[:_MAX_PLAIN].decode("utf-8", "replace").strip()
    if text and not text.startswith("<"):  # no HTML page in the log
        return text
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "refused without a reason"


def _seconds(header: str, now: float, content: Mapping[str, object]) -> float | None:
    """Seconds to wait, from Retry-After (RFC 9110 section 10.2.3), else from the Status; None if absent or invalid."""
    if _SECONDS.fullmatch(header.strip()):
        return float(header.strip())
    if header:
        try:
            return max(0.0, parsedate_to_datetime(header).timestamp() - now)
        except (ValueError, OverflowError):
            return None
    details = content.get("details")
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return float(seconds) if isinstance(seconds, int) and 0 < seconds <= _MAX_SECONDS else None
