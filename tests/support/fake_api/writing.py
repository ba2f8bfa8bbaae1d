"""Single objects: read, created, replaced, patched and deleted, with the conflicts that an API server sees."""

import json
from typing import Any

from tests.support.fake_api.exchange import Request
from tests.support.fake_api.resources import Object, Target
from tests.support.fake_api.statuses import Refusal
from tests.support.fake_api.store import Key, Store

Outcome = tuple[int, Object]
"""(HTTP status, body)"""


def respond_single(store: Store, target: Target, request: Request) -> Outcome | Refusal:
    """GET, POST, PUT, PATCH (merge and server-side apply) and DELETE, as far as one object goes."""
    if request.method == "POST":
        return _create(store, target, json.loads(request.body))
    key = (target.namespace, target.name)
    held = store.get(key)
    if request.method == "PATCH" and request.headers.get("content-type") == "application/apply-patch+yaml":
        return _apply(store, target, held, json.loads(request.body))
    if held is None:
        return Refusal(404, "NotFound", f'{target.resource.name} "{target.name}" not found')
    if request.method == "PUT":
        return _replace(store, target, held, json.loads(request.body))
    if request.method == "PATCH":
        return 200, store.put(_merged(held, json.loads(request.body)))
    if request.method == "DELETE":
        conditions = (json.loads(request.body) if request.body else {}).get("preconditions") or {}
        if any(held["metadata"].get(name) != value for name, value in conditions.items()):
            return _conflict(target)
        return 200, store.delete(key) or held
    return 200, held


def _apply(store: Store, target: Target, held: Object | None, value: Object) -> Outcome | Refusal:
    """Of one manager who has all fields: an object of these fields."""
    for name in ("uid", "resourceVersion"):
        if (asked := value["metadata"].get(name)) and held is not None and asked != held["metadata"][name]:
            return _conflict(target)
    if held is None and "uid" in value["metadata"]:
        return _conflict(target)
    if held is None:
        return 201, store.put(value)
    metadata = {name: held["metadata"][name] for name in ("uid", "creationTimestamp") if name in held["metadata"]}
    new = {
        **value,
        "metadata": {**metadata, **value["metadata"], "resourceVersion": held["metadata"]["resourceVersion"]},
    }
    return 200, held if new == held else store.put(new)


def _conflict(target: Target) -> Refusal:
    problem = "the object has been modified; please apply your changes to the latest version and try again"
    return Refusal(
        409, "Conflict", f'Operation cannot be fulfilled on {target.resource.name} "{target.name}": {problem}'
    )


def _create(store: Store, target: Target, value: Object) -> Outcome | Refusal:
    metadata = value["metadata"]
    if "name" not in metadata:
        metadata["name"] = f"{metadata['generateName']}{store.revision + 1:x}"
    if target.namespace:
        metadata["namespace"] = target.namespace
    key: Key = (target.namespace, metadata["name"])
    if store.get(key) is not None:
        return Refusal(409, "AlreadyExists", f'{target.resource.name} "{metadata["name"]}" already exists')
    return 201, store.put(value)


def _replace(store: Store, target: Target, held: Object, value: Object) -> Outcome | Refusal:
    """Against a resourceVersion that is no longer the object's: 409, as every writer of a Lease counts on."""
    asked = value["metadata"].get("resourceVersion")
    if asked and asked != held["metadata"]["resourceVersion"]:
        return _conflict(target)
    return 200, store.put(value)


def _merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    base = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            base.pop(key, None)
        else:
            base[key] = _merged(base.get(key), change)
    return base
