"""From a request to its response: which resource and verb, which fault, then list, watch or one object."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.support.fake_api.exchange import Request, Response, encoded, refuse
from tests.support.fake_api.faults import Faults
from tests.support.fake_api.listing import respond_list
from tests.support.fake_api.options import is_watch, read_options
from tests.support.fake_api.request_log import Asked, RequestLog
from tests.support.fake_api.resources import Object, Target, find_target, group_versions
from tests.support.fake_api.statuses import NO_SUCH_PATH, Refusal
from tests.support.fake_api.store import Key, Store
from tests.support.fake_api.watching import respond_watch

# Single objects: read, created, replaced, patched and deleted, with the conflicts that an API server sees.

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


_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERSION: Final = {"major": "1", "minor": "36", "gitVersion": "v1.36.0", "platform": "linux/amd64"}


class Responder:
    """`control` takes the body of a POST to /control/NAME, as keyword arguments; its result is sent back."""

    def __init__(
        self, stores: Mapping[str, Store], faults: Faults, log: RequestLog, control: Callable[[str, Any], object]
    ) -> None:
        self._stores = stores
        self._faults = faults
        self._log = log
        self._control = control

    async def __call__(self, request: Request, response: Response) -> None:
        target = find_target(request.path)
        if target is None:
            await self._respond_beside(request, response)
            return
        verb = _verb(request, target)
        self._write_down(request, target, verb)
        if self._faults.hole:
            await _swallow(response)
            return
        if self._faults.delay:
            await asyncio.sleep(self._faults.delay)
        refusal = self._faults.met_by(target, verb, request.headers)
        if refusal is not None:
            await refuse(response, refusal)
        elif verb in ("list", "watch"):
            await self._respond_reading(request, target, response)
        else:
            await _respond_single(self._stores[target.resource.name], target, request, response)

    async def _respond_reading(self, request: Request, target: Target, response: Response) -> None:
        store = self._stores[target.resource.name]
        options = read_options(request.query, target, self._faults.watch_list)
        if isinstance(options, Refusal):
            await refuse(response, options)
        elif is_watch(request.query):
            await respond_watch(store, options, self._faults, response)
        else:
            torn = self._faults.tear_lists > 0
            self._faults.tear_lists -= torn
            await respond_list(store, options, response, torn)

    async def _respond_beside(self, request: Request, response: Response) -> None:
        if request.path == "/version":
            await response.send(200, encoded(_VERSION))
        elif request.path in ("/healthz", "/livez", "/readyz"):
            await response.send(200, b"ok")
        elif versions := self._versions(request.path):
            await response.send(
                200, encoded({"kind": "APIGroup", "versions": [{"version": each} for each in versions]})
            )
        elif request.method == "POST" and request.path.startswith("/control/"):
            done = self._control(request.path.removeprefix("/control/"), json.loads(request.body or b"{}"))
            await response.send(200, json.dumps(done).encode())
        else:
            await refuse(response, NO_SUCH_PATH)

    def _versions(self, path: str) -> Sequence[str]:
        """The versions of the API group at `/apis/GROUP`, () at another path."""
        group = path.removeprefix("/apis/") if path.startswith("/apis/") else ""
        return self._faults.versions.get(group, group_versions(group))

    def _write_down(self, request: Request, target: Target, verb: str) -> None:
        at, resource = asyncio.get_running_loop().time(), target.resource.name
        self._log.add(Asked(at, verb, resource, target.namespace, target.name, request.query, request.headers))


def _verb(request: Request, target: Target) -> str:
    if request.method == "GET" and not target.name:
        return "watch" if is_watch(request.query) else "list"
    return _VERBS[request.method]


async def _swallow(response: Response) -> None:
    """Never answer, not even after the fault is healed; until the client gives up."""
    gone = asyncio.Event()
    async with response.on_hangup(gone.set):
        await gone.wait()
    response.abort()


async def _respond_single(store: Store, target: Target, request: Request, response: Response) -> None:
    outcome = respond_single(store, target, request)
    if isinstance(outcome, Refusal):
        await refuse(response, outcome)
    else:
        status, body = outcome
        await response.send(status, encoded(body))
