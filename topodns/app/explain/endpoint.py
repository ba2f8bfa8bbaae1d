"""The endpoints /explain and /who: they refuse all requests but those of programs on loopback, and answer in JSON.

A node-cache loads this module, but none that it imports after a request was accepted: those of clusters are 6 MB.
"""

import asyncio
import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from topodns.app.local_access import refusal
from topodns.files.time_slices import do_in_slices
from topodns.net.http_server.messages import HttpReply, HttpRequest, Route

if TYPE_CHECKING:
    from topodns.app.clusters import Cluster


def explain_route(clusters: "Collection[Cluster]") -> Route:
    """The handler of /explain for these clusters: replies with an `Explanation` in JSON.

    The text of an answer of thousands of records is made in slices of time between queries, one answer at a time.
    """
    turn = asyncio.Lock()

    def explain(request: HttpRequest) -> HttpReply | asyncio.Future[HttpReply]:
        if refused := _refused(request):
            return refused
        return asyncio.create_task(_explained(clusters, request.arguments, turn), name="explain")

    return explain


def who_route(clusters: "Collection[Cluster]") -> Route:
    """The handler of /who for these clusters: replies with the location of an address in each, in JSON."""

    def who(request: HttpRequest) -> HttpReply:
        if refused := _refused(request):
            return refused
        from topodns.app.explain.client_location import who_reply
        from topodns.app.explain.question import Unexplained

        try:
            return _json(who_reply(clusters, request.arguments))
        except Unexplained as problem:
            return _bad_request(problem)

    return who


def _refused(request: HttpRequest) -> HttpReply | None:
    reason = refusal(request)
    return HttpReply(403, f"{reason}\n".encode()) if reason else None


async def _explained(clusters: "Collection[Cluster]", arguments: Mapping[str, str], turn: asyncio.Lock) -> HttpReply:
    from topodns.app.explain.explainer import explanation_job
    from topodns.app.explain.question import Unexplained, parse_question

    try:
        question = parse_question(arguments)
        async with turn:
            explanation = await do_in_slices(explanation_job(clusters, question))
    except Unexplained as problem:
        return _bad_request(problem)
    return _json(explanation.as_dict())


def _json(document: object) -> HttpReply:
    return HttpReply(200, json.dumps(document).encode(), "application/json")


def _bad_request(problem: Exception) -> HttpReply:
    return HttpReply(400, f"{problem}\n".encode())
