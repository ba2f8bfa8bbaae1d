"""The endpoint /audit: refuses all requests but those of programs on loopback, and answers in JSON.

An audit of a large cluster takes seconds. It is done in slices of time between queries, one at a time.

A node-cache loads this module, but none that it imports after a request was accepted: those of clusters are 6 MB.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from topodns.inspect.job_queue import MAX_WAITING, JobQueue, Refused
from topodns.inspect.local_access import refusal
from topodns.net.http_server.messages import HttpReply, HttpRequest
from topodns.time_slices import Job

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster

REUSED: Final = 1.0  # seconds for which the last audit answers further requests of the same what-if
SEPARATOR: Final = ";"  # of changes in the argument `what-if`; in no name or key

Changes = tuple[str, ...]


def audit_route(
    clusters: "Collection[Cluster]", clock: Callable[[], float] = time.monotonic
) -> Callable[[HttpRequest], HttpReply | asyncio.Future[HttpReply]]:
    """The handler of /audit for these clusters: replies with the document of an audit (`inspect.audit.document`).

    The argument `what-if` has changes, separated by `;`. Status 403 for a refused request, 400 for changes that make no
    sense, 503 if too many audits wait. `clock` is monotonic, in seconds.
    """
    audits = Audits(clusters, clock)

    def audit(request: HttpRequest) -> HttpReply | asyncio.Future[HttpReply]:
        if refused := refusal(request):
            return HttpReply(403, f"{refused}\n".encode())
        changes = tuple(filter(None, request.arguments.get("what-if", "").split(SEPARATOR)))
        return audits.reply(changes)

    return audit


class Audits:
    """Makes audits one after another; requests for the same one share it."""

    def __init__(self, clusters: "Collection[Cluster]", clock: Callable[[], float]) -> None:
        self._clusters = clusters
        self._clock = clock
        self._queue = JobQueue("the audit")
        self._begun: dict[Changes, asyncio.Task[HttpReply]] = {}
        self._last: tuple[Changes, HttpReply, float] | None = None  # and when it was done

    def reply(self, changes: Changes) -> HttpReply | asyncio.Future[HttpReply]:
        """The reply with these changes, or a future that is the caller's own."""
        if self._last is not None and self._last[0] == changes and self._clock() - self._last[2] < REUSED:
            return self._last[1]
        task = self._begun.get(changes)
        if task is None:
            if len(self._begun) > MAX_WAITING:  # one is made
                return HttpReply(503, b"too many audits at once\n")
            task = self._begun[changes] = asyncio.create_task(self._make(changes), name="audit")
        return asyncio.shield(task)

    async def _make(self, changes: Changes) -> HttpReply:
        try:
            reply = HttpReply(200, await self._queue.do(self._document(changes)), "application/json")
        except Refused as refused:
            reply = HttpReply(refused.status, f"{refused}\n".encode())
        finally:
            del self._begun[changes]
        self._last = changes, reply, self._clock()
        return reply

    def _document(self, changes: Changes) -> Job[bytes]:
        """The document. Raises Refused for changes that make no sense."""
        # Imported here: a node cache has no cluster.
        from topodns.inspect.audit.document import document_steps, subjects
        from topodns.inspect.what_if import BadWhatIf

        try:
            return (yield from document_steps(subjects(self._clusters), changes))
        except BadWhatIf as problem:
            raise Refused(400, str(problem)) from None
