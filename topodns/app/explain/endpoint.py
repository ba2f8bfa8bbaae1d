"""The endpoints /explain and /who: they refuse all requests but those of programs on loopback, and answer in JSON.

A node-cache loads this module, but none that it imports after a request was accepted: those of clusters are 6 MB.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from topodns.net.http_server.messages import HttpReply, HttpRequest

if TYPE_CHECKING:
    from topodns.app.clusters import Cluster

_LOOPBACK: Final = re.compile(r"(?:::ffff:)?127\..+|::1")  # loopback addresses as the kernel writes them


def explain_route(clusters: "Collection[Cluster]") -> Callable[[HttpRequest], HttpReply]:
    """The handler of /explain for these clusters: replies with an `Explanation` in JSON."""
    return partial(_answer, partial(_explained, clusters))


def who_route(clusters: "Collection[Cluster]") -> Callable[[HttpRequest], HttpReply]:
    """The handler of /who for these clusters: replies with the location of an address in each, in JSON."""
    return partial(_answer, partial(_located, clusters))


def _answer(reply: Callable[[Mapping[str, str]], object], request: HttpRequest) -> HttpReply:
    """Status 200 with the object as JSON, 403 for a refused request, 400 where `Unexplained` is raised."""
    if refusal := _refusal(request):
        return HttpReply(403, f"{refusal}\n".encode())
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


def _refusal(request: HttpRequest) -> str:
    """Why a request is refused, "" if it is not. Only programs on loopback are served, as replies show where Pods run.

    `kubectl port-forward` and `kubectl exec` connect from loopback.
    """
    if not _LOOPBACK.fullmatch(request.peer):
        return "only from loopback: kubectl port-forward, or exec"
    page = _web_page(request.headers)
    return f"not to web pages: {page}" if page else ""


def _web_page(headers: Mapping[str, str]) -> str:
    """Why the request seems to come from a web page, maybe of a foreign site in a browser on loopback; or "".

    `Origin` and `Sec-Fetch-Site` (https://www.w3.org/TR/fetch-metadata/) reveal a page of another site, `Host` a page
    whose name resolves to 127.0.0.1 (DNS rebinding).
    """
    if "origin" in headers:
        return "the request has an Origin"
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return "the request is of another site"
    if not _is_loopback(headers.get("host", "localhost")):
        return "the Host is none of loopback"
    return ""


def _is_loopback(host: str) -> bool:
    """Whether a Host header (`NAME`, `IPV4` or `[IPV6]`, perhaps with `:PORT`) is localhost or a loopback address."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
