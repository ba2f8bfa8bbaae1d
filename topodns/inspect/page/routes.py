"""The routes of the page: /topology and paths below it. They refuse as /explain does; no reply may be cached."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.dns.name import name_text
from topodns.inspect.errors import Refused
from topodns.inspect.explain import explanation_json_steps
from topodns.inspect.http import Answer, JobQueue, guarded, json_reply
from topodns.inspect.model import parse_service
from topodns.inspect.page.html import HEADERS, HtmlPage
from topodns.inspect.page.live import LiveUpdates
from topodns.inspect.page.snapshot import ClusterNotes, Snapshot, SnapshotMaker
from topodns.inspect.page.what_if import what_if_steps
from topodns.net.http_server.messages import HttpReply, HttpRequest, HttpStream, Route
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.topology.settings import PageSettings
from topodns.query.query_sample import QuerySample
from topodns.time_slices import Job

MAX_STREAMS: Final = 16  # of one page: browsers that show it live
MAX_STREAMS_OF_ONE: Final = 8  # of one client's address; all that come through a port-forward or a proxy share one

_BUSY: Final = "other requests are still being worked on: try again"
_HTML: Final = "text/html; charset=utf-8"

NotesOf = Callable[[Cluster], ClusterNotes]


class PageRoutes:
    """The page of one address, over the clusters of one generation that have `topology`."""

    def __init__(
        self,
        clusters: Sequence[Cluster],
        settings: PageSettings,
        notes: NotesOf,
        html: HtmlPage,
        queue: JobQueue,
        rejects: Counter[str],
        sample: QuerySample,
    ) -> None:
        """`rejects` counts the requests answered with 503, by what was full: `queue` or `streams`."""
        self._settings = settings
        self._html = html
        self._queue = queue
        self._rejects = rejects
        self._makers = [SnapshotMaker(cluster, partial(notes, cluster), queue, sample=sample) for cluster in clusters]
        self._live = [LiveUpdates(maker) for maker in self._makers]
        self._state: tuple[Snapshot, bytes] | None = None  # the last state that was written

    @property
    def by_path(self) -> Mapping[str, Route]:
        answers: Mapping[str, Callable[[HttpRequest], Answer]] = {
            "/": self._page,
            "/topology": self._page,
            "/topology/state": self._whole_state,
            "/topology/events": self._events,
            "/topology/service": self._service,
            "/topology/what-if": self._what_if,
            "/topology/explain": self._explain,
        }
        return {path: guarded(answer, self._settings.public, HEADERS) for path, answer in answers.items()}

    def close(self) -> None:
        """End the event streams: browsers connect again."""
        for live in self._live:
            live.close()

    def _page(self, request: HttpRequest) -> HttpReply:
        headers = (*HEADERS, ("Content-Security-Policy", self._html.policy))
        return HttpReply(200, self._html.body, _HTML, headers)

    def _whole_state(self, request: HttpRequest) -> asyncio.Future[HttpReply]:
        maker = self._makers[self._number(request)]
        return asyncio.create_task(self._written(maker), name="topology page, state")

    async def _written(self, maker: SnapshotMaker) -> HttpReply:
        snapshot = await maker.latest()
        if self._state is None or self._state[0] is not snapshot:
            about = json.dumps({"queries": self._settings.queries, "clusters": self._names()})
            self._state = snapshot, "".join(snapshot.pieces(about)).encode()
        return json_reply(self._state[1], HEADERS)

    def _names(self) -> list[str]:
        return [name_text(maker.cluster.kubernetes.origins[0]) for maker in self._makers]

    def _events(self, request: HttpRequest) -> HttpStream:
        live = self._live[self._number(request)]
        if sum(each.streams for each in self._live) >= MAX_STREAMS:
            self._rejects["streams"] += 1
            raise Refused(f"{MAX_STREAMS} pages are live already: close one", 503)
        if sum(each.streams_of(request.peer) for each in self._live) >= MAX_STREAMS_OF_ONE:
            raise Refused(f"{MAX_STREAMS_OF_ONE} pages are live already from your address: close one", 429)
        return live.open(request.peer)

    def _service(self, request: HttpRequest) -> asyncio.Future[HttpReply]:
        maker, key = self._makers[self._number(request)], _service_key(request)
        return self._in_slices(maker.detail_steps(key, request.repeated.get("change", ())))

    def _what_if(self, request: HttpRequest) -> asyncio.Future[HttpReply]:
        maker = self._makers[self._number(request)]
        return self._in_slices(what_if_steps(maker, request.repeated.get("change", ())))

    def _in_slices(self, job: Job[bytes]) -> asyncio.Future[HttpReply]:
        """The reply with the JSON that the job returns, once it is done. Raises Refused if too many wait already."""
        if self._queue.full:
            self._rejects["queue"] += 1
        return self._queue.begin(job, "topology page, request", _BUSY, HEADERS)

    def _explain(self, request: HttpRequest) -> asyncio.Future[HttpReply]:
        """The explanation of an answer to a client on a Node for a Service; with `queries`, of any name and client."""
        cluster, arguments = self._makers[self._number(request)].cluster, dict(request.arguments)
        if "service" in arguments:
            key, origin = _service_key(request), cluster.kubernetes.origins[0]
            arguments["name"] = f"{key.name}.{key.namespace}.svc.{name_text(origin)}"
        elif not self._settings.queries:
            raise Refused("this page explains no names: it takes the word 'queries' behind 'page'", 403)
        if "client" in arguments and not self._settings.queries:
            raise Refused("this page takes no addresses of clients: it takes the word 'queries' behind 'page'", 403)
        return self._in_slices(explanation_json_steps([cluster], arguments, with_text=True))

    def _number(self, request: HttpRequest) -> int:
        """The number of the cluster asked about, from 0."""
        text = request.arguments.get("cluster", "0")
        if not text.isdecimal() or len(text) > 4 or int(text) >= len(self._makers):
            raise Refused(f"no cluster {text[:20]!r}, expected a number from 0 to {len(self._makers) - 1}", 404)
        return int(text)


def _service_key(request: HttpRequest) -> ObjectKey:
    text = request.arguments.get("service", "")
    key = parse_service(text)
    if key is None:
        raise Refused(f"found service {text[:100]!r}, expected NAMESPACE/NAME")
    return key
