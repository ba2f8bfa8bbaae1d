"""The endpoints /explain and /who: they refuse all requests but those of programs on loopback, and answer in JSON.

A node-cache loads this module, but none that it imports after a request was accepted: those of clusters are 6 MB.
"""

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from topodns.app.local_access import refusal
from topodns.net.http_server.messages import HttpReply, HttpRequest

if TYPE_CHECKING:
    from topodns.app.clusters import Cluster


def explain_route(clusters: "Collection[Cluster]") -> Callable[[HttpRequest], HttpReply]:
    """The handler of /explain for these clusters: replies with an `Explanation` in JSON."""
    return partial(_answer, partial(_explained, clusters))


def who_route(clusters: "Collection[Cluster]") -> Callable[[HttpRequest], HttpReply]:
    """The handler of /who for these clusters: replies with the location of an address in each, in JSON."""
    return partial(_answer, partial(_located, clusters))


def _answer(reply: Callable[[Mapping[str, str]], object], request: HttpRequest) -> HttpReply:
    """Status 200 with the object as JSON, 403 for a refused request, 400 where `Unexplained` is raised."""
    if refused := refusal(request):
        return HttpReply(403, f"{refused}\n".encode())
    from topodns.app.explain.question import Unexplained

    try:
        body = json.dumps(reply(request.arguments)).encode()
    except Unexplained as problem:
        return HttpReply(400, f"{problem}\n".encode())
    return HttpReply(200, body, "application/json")


def _explained(clusters: "Collection[Cluster]", arguments: Mapping[str, str]) -> object:
    from topodns.app.explain.explainer import explain_reply
    from topodns.app.explain.question import parse_question

    return explain_reply(clusters, parse_question(arguments)).as_dict()


def _located(clusters: "Collection[Cluster]", arguments: Mapping[str, str]) -> object:
    from topodns.app.explain.client_location import who_reply

    return who_reply(clusters, arguments)
