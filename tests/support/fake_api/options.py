"""The options of list and watch requests, refused where Kubernetes refuses them (its validation of ListOptions)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.support.fake_api.resources import Target
from tests.support.fake_api.selectors import matcher
from tests.support.fake_api.statuses import Refusal, invalid_options
from tests.support.fake_api.store import Selection

WATCH_SECONDS: Final = 1800.0  # of a watch that does not say how long
NOT_OLDER: Final = "NotOlderThan"
_MATCHES: Final = ("", NOT_OLDER, "Exact")
_TRUE: Final = ("true", "1")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """A list or watch request that makes sense. `revision` is None where it names none."""

    selection: Selection
    revision: int | None
    limit: int
    token: str  # `continue`
    bookmarks: bool
    initial_events: bool
    seconds: float


def is_watch(query: Mapping[str, str]) -> bool:
    return query.get("watch", "") in _TRUE


def read_options(asked: Mapping[str, str], target: Target, watch_list: str) -> ReadOptions | Refusal:
    """`watch_list`: `serve` it, `refuse` it as with the feature gate off, or `ignore` it as before there was one."""
    query = dict(asked)
    if watch_list == "ignore" and query.pop("sendInitialEvents", None) is not None:
        query.pop("resourceVersionMatch", None)
    problem = _watch_problem(query, watch_list) if is_watch(query) else _list_problem(query)
    if problem:
        return invalid_options(problem)
    try:
        return ReadOptions(
            Selection(
                target.namespace, matcher(query.get("labelSelector", "")), matcher(query.get("fieldSelector", ""))
            ),
            int(query["resourceVersion"]) if query.get("resourceVersion") else None,
            int(query.get("limit") or 0),
            query.get("continue", ""),
            query.get("allowWatchBookmarks", "") in _TRUE,
            query.get("sendInitialEvents", "") in _TRUE,
            float(query.get("timeoutSeconds") or WATCH_SECONDS),
        )
    except ValueError as error:
        return Refusal(400, "BadRequest", str(error))


def _list_problem(query: Mapping[str, str]) -> str:
    match, revision = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if "sendInitialEvents" in query:
        return "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
    if match and not revision:
        return "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    if match and query.get("continue"):
        return "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"
    if query.get("continue") and revision not in ("", "0"):
        return "specifying resource version is not allowed when using continue"
    if match == "Exact" and revision == "0":
        return 'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    return "" if match in _MATCHES else f'resourceVersionMatch: Unsupported value: "{match}"'


def _watch_problem(query: Mapping[str, str], watch_list: str) -> str:
    match, initial = query.get("resourceVersionMatch", ""), "sendInitialEvents" in query
    if initial and match != NOT_OLDER:
        return (
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if initial and watch_list == "refuse":
        return (
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate "
            "is enabled"
        )
    if match and not initial:
        return (
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents "
            "is provided"
        )
    return ""
