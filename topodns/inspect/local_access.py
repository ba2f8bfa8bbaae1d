"""Decides which HTTP requests may read the placement of Pods: those of programs on loopback, not of other web pages."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from topodns.net.http_server.messages import HttpRequest

_LOOPBACK: Final = re.compile(r"(?:::ffff:)?127\..+|::1")  # loopback addresses as the kernel writes them


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
