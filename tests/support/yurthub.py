"""A proxy that plays YurtHub, the local API of an OpenYurt node, as far as a program that watches meets it.

It adds credentials to requests without any, and keeps the objects that pass. While the API server is away, it lists
those, and its watches are open and silent until the API server is back (openyurtio/openyurt, pkg/yurthub/proxy/local).
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import aiohttp

from tests.support.fake_api.exchange import Request, Response, encoded, refuse
from tests.support.fake_api.listener import HttpFront
from tests.support.fake_api.options import is_watch
from tests.support.fake_api.resources import Object, Target, find_target
from tests.support.fake_api.statuses import NO_SUCH_PATH

_HEALTH_CHECK: Final = 0.1  # seconds between two


class YurtHub:
    """`api`: the URL of the API server, before the first request; `token`: the proxy's own."""

    api: str

    def __init__(self, token: str) -> None:
        self.front = HttpFront(self._answer)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._kept: dict[str, dict[tuple[str, str], Object]] = {}  # by resource; then by namespace and name

    @property
    def url(self) -> str:
        return self.front.url

    async def _answer(self, request: Request, response: Response) -> None:
        target = find_target(request.path)
        try:
            async with aiohttp.request(
                request.method, self.api + request.path, params=request.query, headers=self._headers
            ) as reply:
                if target is not None and is_watch(request.query) and reply.status == 200:
                    await self._pass_watch(target, reply, response)
                else:
                    await self._pass(target, reply, response)
        except aiohttp.ClientConnectorError:
            await self._answer_locally(target, is_watch(request.query), response)
        except aiohttp.ClientError:
            response.abort()  # the API server was lost in the middle

    async def _pass(self, target: Target | None, reply: aiohttp.ClientResponse, response: Response) -> None:
        body = await reply.read()
        if target is not None and not target.name and reply.status == 200:
            for value in json.loads(body)["items"]:
                self._keep(target, "ADDED", value)
        await response.send(reply.status, body)

    async def _pass_watch(self, target: Target, reply: aiohttp.ClientResponse, response: Response) -> None:
        await response.begin()
        async for line in reply.content:
            event = json.loads(line)
            self._keep(target, event["type"], event["object"])
            await response.write(line)
        await response.end()

    def _keep(self, target: Target, event: str, value: Object) -> None:
        if event not in ("ADDED", "MODIFIED", "DELETED"):
            return
        objects, metadata = self._kept.setdefault(target.resource.name, {}), value["metadata"]
        objects.pop(key := (metadata.get("namespace", ""), metadata["name"]), None)
        if event != "DELETED":
            objects[key] = value

    async def _answer_locally(self, target: Target | None, watch: bool, response: Response) -> None:
        objects = {} if target is None else self._kept.get(target.resource.name, {})
        if watch:
            await self._stay_silent(response)
        elif target is not None and target.name and (target.namespace, target.name) in objects:
            await response.send(200, encoded(objects[target.namespace, target.name]))
        elif target is not None and not target.name and objects:
            latest = max(int(value["metadata"]["resourceVersion"]) for value in objects.values())
            about = {"kind": f"{target.resource.kind}List", "apiVersion": target.resource.api_version}
            listed = {**about, "metadata": {"resourceVersion": str(latest)}, "items": list(objects.values())}
            await response.send(200, encoded(listed))
        else:
            await refuse(response, NO_SUCH_PATH)

    async def _stay_silent(self, response: Response) -> None:
        hung_up = asyncio.Event()
        await response.begin()
        async with response.on_hangup(hung_up.set):
            while not hung_up.is_set() and not await self._is_healthy():
                with suppress(TimeoutError):
                    await asyncio.wait_for(hung_up.wait(), _HEALTH_CHECK)
        await response.end()

    async def _is_healthy(self) -> bool:
        try:
            async with aiohttp.request("GET", f"{self.api}/readyz") as reply:
                return reply.status == 200
        except aiohttp.ClientError:
            return False


@contextmanager
def yurthub(token: str) -> Iterator[YurtHub]:
    """In a thread of its own, on a free port of loopback."""
    hub, loop = YurtHub(token), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="yurthub")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(hub.front.open(), loop).result()
        yield hub
        asyncio.run_coroutine_threadsafe(hub.front.close(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
