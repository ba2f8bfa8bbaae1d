"""Replies to HTTP requests about the state of clusters: who may ask, and long work in slices of time between queries.

A node cache loads this module: it may import nothing of clusters.
"""

import asyncio
import gc
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Final, TypeVar
from urllib.parse import urlsplit

from topodns.inspect.errors import Refused
from topodns.net.http_server.messages import HttpReply, HttpRequest, HttpStream, Route
from topodns.time_slices import Job, do_in_slices

log = logging.getLogger(__name__)

MAX_WAITING: Final = 8  # jobs of a queue, the one that is done included; further requests are refused
SEPARATOR: Final = ";"  # of changes in the argument `what-if` of /audit; in no name or key

_LOOPBACK: Final = re.compile(r"(?:::ffff:)?127\..+|::1")  # loopback addresses as the kernel writes them

Headers = tuple[tuple[str, str], ...]
Answer = HttpReply | HttpStream | asyncio.Future[HttpReply]
T = TypeVar("T")


def guarded(answer: Callable[[HttpRequest], Answer], public: bool = False, headers: Headers = ()) -> Route:
    """The route of a function that may raise Refused, for requests without a `refusal`: the others get status 403.

    `public`: as of `refusal`. `headers`: of the replies that refuse.
    """

    def route(request: HttpRequest) -> Answer:
        try:
            if reason := refusal(request, public):
                raise Refused(reason, 403)
            return answer(request)
        except Refused as refused:
            return _refusing(refused, headers)

    return route


def json_reply(document: bytes, headers: Headers = ()) -> HttpReply:
    return HttpReply(200, document, "application/json", headers)


def _refusing(refused: Refused, headers: Headers) -> HttpReply:
    return HttpReply(refused.status, f"{refused}\n".encode(), headers=headers)


def refusal(request: HttpRequest, public: bool = False) -> str:
    """Why a request is refused, "" if it is not.

    Only programs on loopback are served, as replies show where Pods run: `kubectl port-forward` and `kubectl exec`
    connect from loopback. `public`: every client is served, under any address of this server.
    """
    if not public and not _LOOPBACK.fullmatch(request.peer):
        return "only from loopback: kubectl port-forward, or exec"
    page = _web_page(request.headers, public)
    return f"not to web pages: {page}" if page else ""


def _web_page(headers: Mapping[str, str], public: bool) -> str:
    """Why the request seems to come from a web page, maybe of a foreign site in a browser on loopback; or "".

    `Origin` and `Sec-Fetch-Site` (https://www.w3.org/TR/fetch-metadata/) reveal a page of another site, `Host` a page
    whose name resolves to an address of this server (DNS rebinding).
    """
    if "origin" in headers:
        return "the request has an Origin"
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return "the request is of another site"
    if not _is_own(headers.get("host", "localhost"), public):
        return "the Host is no IP address, nor localhost" if public else "the Host is no loopback address"
    return ""


def _is_own(host: str, public: bool) -> bool:
    """Whether a Host header (`NAME`, `IPV4` or `[IPV6]`, perhaps with `:PORT`) is localhost or a loopback address, or
    if `public` any address: DNS rebinding needs a name.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback or public
    except ValueError:
        return False


class JobQueue:
    """Does jobs one after another.

    `name`: for the log. `pause`: seconds after each slice, in which other tasks run.
    """

    def __init__(self, name: str, pause: float = 0.0) -> None:
        self._name = name
        self._pause = pause
        self._turn = asyncio.Lock()
        self._waiting = 0

    @property
    def full(self) -> bool:
        return self._waiting >= MAX_WAITING

    def begin(self, job: Job[bytes], task: str, busy: str, headers: Headers = ()) -> asyncio.Task[HttpReply]:
        """As `reply`, in a task of this name. Raises Refused with the sentence `busy` if too many jobs wait already."""
        if self.full:
            raise Refused(busy, 503)
        return asyncio.create_task(self.reply(job, headers), name=task)

    async def reply(self, job: Job[bytes], headers: Headers = ()) -> HttpReply:
        """The reply with the JSON that the job returns, or the one that refuses it. Raises as `do`, except Refused."""
        try:
            return json_reply(await self.do(job), headers)
        except Refused as refused:
            return _refusing(refused, headers)

    async def do(self, job: Job[T]) -> T:
        """The result of the job. Any exception of it but Refused is a bug, which is logged. Raises both."""
        self._waiting += 1
        try:
            async with self._turn:
                with _no_collection():
                    return await do_in_slices(job, self._pause)
        except Refused:
            raise
        except Exception:
            log.exception("bug: %s has no answer", self._name)
            raise
        finally:
            self._waiting -= 1


@contextmanager
def _no_collection() -> Iterator[None]:
    """Within the context, cyclic garbage is not collected.

    A job over a large cluster has 50,000 live objects, in none of which garbage hides; to go through them again and
    again would delay queries by 10 ms and more each time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
