"""The response with which an API server refuses, as an ApiError: whose words, and how long it asks us to wait."""

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

from topodns.edge.kube_api.contract import ApiError

MAX_BODY: Final = 64 * 1024  # octets of a refusal that are read at all

_MAX_PLAIN: Final = 2000  # octets of a text that is no Status object
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_MAX_SECONDS: Final = 10**9


def refusal(status: int, retry_after: str, body: bytes, now: float) -> ApiError:
    """The error for a response. `retry_after` is its header, "" for none; `now` in seconds since the epoch.

    An API server says why in an object of kind Status; what stands between us and it (a proxy, a load balancer) says it
    in a text of its own.
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
    if text and not text.startswith("<"):  # nobody wants a page of HTML in a log
        return text
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "refused without a reason"


def _seconds(header: str, now: float, content: Mapping[str, object]) -> float | None:
    """Of the header (RFC 9110 section 10.2.3), else of the Status, which says the same."""
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
