"""A fake API server over real HTTP, and the faults that a test can give it.

It sends what kube-apiserver 1.33 to 1.36 sends: lists in pages, watches with bookmarks, WatchList, refusals as Status
objects. It validates requests, and records every one.
"""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from types import TracebackType
from typing import Concatenate, Final, ParamSpec, TypeVar

from tests.support.fake_api.exchange import encoded
from tests.support.fake_api.faults import ANY, Faults
from tests.support.fake_api.listener import Answer, Front, HttpFront
from tests.support.fake_api.request_log import RequestLog
from tests.support.fake_api.resources import RESOURCES, Object, resource_of
from tests.support.fake_api.responder import Responder
from tests.support.fake_api.selectors import matcher
from tests.support.fake_api.statuses import INTERNAL_ERROR, NO_SUCH_PATH, Refusal, too_many_requests, too_old
from tests.support.fake_api.store import Revisions, Selection, Store, Watcher, watch_line
from tests.support.fake_api.watching import bookmark
from tests.support.synthetic_clusters import Cluster

CONTROL_SECONDS: Final = 90.0  # a control call from another thread has to be through by then
_EVERYTHING: Final = Selection("", matcher(""), matcher(""))

P = ParamSpec("P")
T = TypeVar("T")


def on_loop(method: "Callable[Concatenate[FakeApi, P], T]") -> "Callable[Concatenate[FakeApi, P], T]":
    """The method, run in the thread that serves, whichever thread calls it; it has happened when the call returns."""

    @wraps(method)
    def run(self: "FakeApi", /, *args: P.args, **kwargs: P.kwargs) -> T:
        if threading.get_ident() == self.thread:
            return method(self, *args, **kwargs)

        async def there() -> T:
            return method(self, *args, **kwargs)

        return asyncio.run_coroutine_threadsafe(there(), self.loop).result(CONTROL_SECONDS)

    return run


class FakeApi:
    """An async context manager; `running` is the same in a thread of its own. `resource` of a fault may be ANY."""

    loop: asyncio.AbstractEventLoop
    thread: int

    def __init__(self, objects: Iterable[Object] = (), front: Callable[[Answer], Front] = HttpFront) -> None:
        self.revisions = Revisions()
        self.stores = {name: Store(resource, self.revisions) for name, resource in RESOURCES.items()}
        self.faults = Faults()
        self.requests = RequestLog()
        self._front = front(Responder(self.stores, self.faults, self.requests, self._controlled))
        for value in objects:
            self.stores[resource_of(value)].put(value)

    async def __aenter__(self) -> "FakeApi":
        self.loop, self.thread = asyncio.get_running_loop(), threading.get_ident()
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        await self.close()

    @property
    def url(self) -> str:
        return self._front.url

    # What there is.

    def generate(self, cluster: Cluster) -> None:
        """Have all of a synthetic cluster, as since long ago. Before the first request only."""
        for resource, made in cluster.objects():
            fields = made.fields
            self.stores[resource].load((fields["metadata.namespace"], fields["metadata.name"]), made)

    @on_loop
    def put(self, *values: Object) -> None:
        """Create or replace objects, one event each, all before anything of it is sent."""
        for value in values:
            self.stores[resource_of(value)].put(value)

    @on_loop
    def delete(self, *values: Object) -> None:
        for value in values:
            metadata = value["metadata"]
            deleted = self.stores[resource_of(value)].delete((metadata.get("namespace", ""), metadata["name"]))
            assert deleted is not None, f"there is no {metadata}"

    @on_loop
    def objects(self) -> list[Object]:
        """All there are."""
        return [value for store in self.stores.values() for value in store.objects()]

    @on_loop
    def touch(self, resource: str, count: int) -> None:
        """That many modifications that say nothing new, one object after the other."""
        store = self.stores[resource]
        keys = store.keys()
        for number in range(count):
            value = store.get(keys[number % len(keys)])
            assert value is not None
            store.put(value)

    @on_loop
    def watches(self, resource: str) -> int:
        """How many watches of it are open."""
        return len(self.stores[resource].watchers)

    # Faults of all requests that come from now on.

    @on_loop
    def slow(self, seconds: float) -> None:
        """Each response begins this much later."""
        self.faults.delay = seconds

    @on_loop
    def hole(self) -> None:
        """Requests are never answered; those of this time not even after `heal`."""
        self.faults.hole = True

    @on_loop
    def require_token(self, token: str) -> None:
        """401 for a client with another one."""
        self.faults.token = token

    @on_loop
    def deny(self, resource: str, verb: str = ANY) -> None:
        """403, as RBAC without this verb."""
        self.faults.denied.add((resource, verb))

    @on_loop
    def busy(self, retry_after: int, resource: str = ANY, verb: str = ANY) -> None:
        """429 of API priority and fairness."""
        self.faults.refusals[resource, verb] = too_many_requests(retry_after)

    @on_loop
    def error(self, resource: str = ANY, verb: str = ANY) -> None:
        """500."""
        self.faults.refusals[resource, verb] = INTERNAL_ERROR

    @on_loop
    def absent(self, resource: str, *versions: str) -> None:
        """404: the CustomResourceDefinition is not installed, or only in these versions."""
        self.faults.refusals[resource, ANY] = NO_SUCH_PATH
        self.faults.versions[RESOURCES[resource].group] = versions

    @on_loop
    def refuse_watch_list(self) -> None:
        """422 for sendInitialEvents, as a server with that feature gate off."""
        self.faults.watch_list = "refuse"

    @on_loop
    def ignore_watch_list(self) -> None:
        """sendInitialEvents means nothing, as to a server older than it."""
        self.faults.watch_list = "ignore"

    @on_loop
    def no_bookmarks(self) -> None:
        self.faults.bookmarks = False

    @on_loop
    def empty(self, resource: str) -> None:
        """Lists of it have no objects."""
        self.stores[resource].listed_empty = True

    @on_loop
    def freeze(self, resource: str, restored: bool = False, deaf: bool = False) -> None:
        """Lists of it are those of a server that sees nothing after this moment, unless the newest is asked for.

        `restored`: there is nothing newer, as after etcd was restored from a backup. `deaf`: a watch from the future is
        not refused, but has no events.
        """
        store = self.stores[resource]
        store.older, store.restored = store.snapshot(_EVERYTHING, newest=True), restored
        store.deaf = deaf

    @on_loop
    def lose_next(self, resource: str, count: int = 1) -> None:
        """No watch gets the next changes of it, now or later; only a list shows them."""
        self.stores[resource].lose = count

    @on_loop
    def tear_lists(self, count: int) -> None:
        """The next lists end in the middle of an object, with the connection."""
        self.faults.tear_lists = count

    @on_loop
    def heal(self) -> None:
        """Serve new requests without any fault."""
        self.faults.heal()
        for store in self.stores.values():
            store.listed_empty, store.older, store.lose, store.deaf = False, None, 0, False

    # Faults of what is open now.

    @on_loop
    def gone(self, resource: str = ANY, as_status: bool = False) -> None:
        """Compact: open watches end with 410, and none can go on from before this moment."""
        self.faults.gone_as_status = as_status
        for store in self._stores(resource):
            before = self.revisions.last
            store.compact()
            for watcher in store.watchers:
                watcher.send(watch_line("ERROR", encoded(too_old(before, store.oldest).status())))
                watcher.end()

    @on_loop
    def stall(self, resource: str = ANY) -> None:
        """The open watches fall silent and do not end; new ones are served."""
        for watcher in self._watchers(resource):
            watcher.silent = True
            watcher.wake.set()

    @on_loop
    def break_framing(self, resource: str = ANY) -> None:
        """A broken chunk in the open watches, which fall silent then and do not end."""
        for watcher in self._watchers(resource):
            watcher.garbled = True
            watcher.wake.set()

    @on_loop
    def end_watches(self, resource: str = ANY) -> None:
        """As when their time is over."""
        for watcher in self._watchers(resource):
            watcher.end()

    @on_loop
    def send_raw(self, resource: str, line: bytes) -> None:
        """These octets in every open watch."""
        for watcher in self._watchers(resource):
            watcher.send(line)

    @on_loop
    def send_event(self, kind: str, value: Object) -> None:
        """An event of this type (ADDED, ...) that is none: nothing is stored, and the object is sent as it is."""
        self.send_raw(resource_of(value), watch_line(kind, encoded(value)))

    @on_loop
    def send_refusal(self, resource: str, refusal: Refusal) -> None:
        """An ERROR event in every open watch, which ends with it."""
        self.send_raw(resource, watch_line("ERROR", encoded(refusal.status())))
        self.end_watches(resource)

    @on_loop
    def send_bookmark(self, resource: str) -> None:
        store = self.stores[resource]
        self.send_raw(resource, bookmark(store.resource, store.last_revision))

    @on_loop
    def cut(self) -> None:
        """Reset all connections."""
        self._front.cut()

    async def close(self) -> None:
        """Nothing listens any more, and all connections are cut."""
        await self._front.close()

    async def open(self) -> None:
        """Listen again, on the same port."""
        await self._front.open()

    def down(self) -> None:
        """`close`, from another thread."""
        asyncio.run_coroutine_threadsafe(self.close(), self.loop).result(CONTROL_SECONDS)

    def up(self) -> None:
        """`open`, from another thread."""
        asyncio.run_coroutine_threadsafe(self.open(), self.loop).result(CONTROL_SECONDS)

    def _stores(self, resource: str) -> list[Store]:
        return list(self.stores.values()) if resource == ANY else [self.stores[resource]]

    def _watchers(self, resource: str) -> list[Watcher]:
        return [watcher for store in self._stores(resource) for watcher in store.watchers]

    def _controlled(self, name: str, arguments: dict[str, object]) -> object:
        method = getattr(FakeApi, name, None)
        if name.startswith("_") or not callable(method):
            raise ValueError(f"there is no control {name!r}")
        return method(self, **arguments)


@contextmanager
def running(
    objects: Iterable[Object] = (),
    host: str = "127.0.0.1",
    port: int = 0,
    up: bool = True,
    tls: ssl.SSLContext | None = None,
) -> Iterator[FakeApi]:
    """A fake API server in a thread of its own, for tests that wait for a program. Without `up` it does not listen."""
    front = partial(HttpFront, host=host, port=port, tls=tls)
    api, ready, stop = FakeApi(objects, front), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with api:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="fake-api")
    thread.start()
    try:
        assert ready.wait(CONTROL_SECONDS)
        if not up:
            api.down()
        yield api
    finally:
        api.loop.call_soon_threadsafe(stop.set)
        thread.join()
