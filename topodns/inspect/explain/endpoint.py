"""The endpoints /explain and /who: they refuse all requests but those of programs on loopback, and answer in JSON.

A node-cache loads this module, but none that it imports after a request was accepted: those of clusters are 6 MB.
"""

import asyncio
import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from topodns.inspect.job_queue import JobQueue, Refused
from topodns.inspect.local_access import refusal
from topodns.net.http_server.messages import HttpReply, HttpRequest, Route
from topodns.time_slices import Job

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster


def explain_route(clusters: "Collection[Cluster]") -> Route:
    """The handler of /explain for these clusters: replies with an `Explanation` in JSON.

    The text of an answer of thousands of records is made in slices of time between queries, one answer at a time.
    Status 403 for a refused request, 400 for a question that makes no sense, 503 if too many wait.
    """
    queue = JobQueue("the explanation")

    def explain(request: HttpRequest) -> HttpReply | asyncio.Future[HttpReply]:
        if refused := _refused(request):
            return refused
        if queue.full:
            return HttpReply(503, b"too many explanations at once\n")
        return asyncio.create_task(_explained(clusters, request.arguments, queue), name="explain")

    return explain


def who_route(clusters: "Collection[Cluster]") -> Route:
    """The handler of /who for these clusters: replies with the location of an address in each, in JSON."""

    def who(request: HttpRequest) -> HttpReply:
        if refused := _refused(request):
            return refused
        from topodns.inspect.explain.client_location import who_reply
        from topodns.inspect.explain.question import Unexplained

        try:
            return _json(who_reply(clusters, request.arguments))
        except Unexplained as problem:
            return _bad_request(problem)

    return who


def _refused(request: HttpRequest) -> HttpReply | None:
    reason = refusal(request)
    return HttpReply(403, f"{reason}\n".encode()) if reason else None


async def _explained(clusters: "Collection[Cluster]", arguments: Mapping[str, str], queue: JobQueue) -> HttpReply:
    try:
        return _json(await queue.do(explanation_object(clusters, arguments)))
    except Refused as refused:
        return _bad_request(refused)


def explanation_object(clusters: "Collection[Cluster]", arguments: Mapping[str, str]) -> Job[Mapping[str, object]]:
    """The explanation for these arguments, as an object for JSON. Raises Refused for a question that makes no sense."""
    from topodns.inspect.explain.explainer import explanation_job
    from topodns.inspect.explain.question import Unexplained, parse_question

    try:
        explanation = yield from explanation_job(clusters, parse_question(arguments))
    except Unexplained as problem:
        raise Refused(400, str(problem)) from None
    return explanation.as_dict()


def _json(document: object) -> HttpReply:
    return HttpReply(200, json.dumps(document).encode(), "application/json")


def _bad_request(problem: Exception) -> HttpReply:
    return HttpReply(400, f"{problem}\n".encode())
