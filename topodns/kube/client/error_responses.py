"""Error responses of an API server to ApiError: the message and the requested pause."""

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

from topodns.kube.client.contract import ApiError

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
