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
from tests.support.fake_api.resources import Target, find_target, group_versions
from tests.support.fake_api.statuses import NO_SUCH_PATH, Refusal
from tests.support.fake_api.store import Store
from tests.support.fake_api.watching import respond_watch
from tests.support.fake_api.writing import respond_single

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
