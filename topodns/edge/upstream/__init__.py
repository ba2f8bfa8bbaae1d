"""Servers that are asked over the network: UDP with a port and an id for each query alone, pipelined TCP, and TLS."""

import asyncio
import ssl
from collections import defaultdict

from topodns.edge.upstream.endpoint import resolve_endpoint
from topodns.edge.upstream.limits import Counts, UpstreamLimits
from topodns.edge.upstream.upstream import Carrier, DnsUpstream
from topodns.resolve.exchange import Transport

__all__ = ["Carrier", "Counts", "DnsUpstream", "UpstreamLimits", "open_upstream"]

_DEFAULTS = UpstreamLimits()


def open_upstream(
    loop: asyncio.AbstractEventLoop,
    address: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    server_name: str = "",
    source_address: str = "",
    limits: UpstreamLimits = _DEFAULTS,
    counts: defaultdict[Transport, Counts] | None = None,
) -> DnsUpstream:
    """The server at an address, with nothing opened yet.

    `address` and `source_address` are texts of IP addresses, link-local ones with their `%interface`; everything is
    sent from `source_address`, "" leaves that to the kernel. With `tls` the server is spoken to over TLS only, and its
    certificate must be for `server_name`, or for `address` where that is ""; unless the context checks less.

    `counts` are those to go on with, which may be other upstreams' as well.

    Raises ValueError where `address` is no IP address, OSError where its interface is not here. The upstream belongs to
    `loop`, and is used from it only.
    """
    endpoint = resolve_endpoint(address, port, tls, server_name, source_address)
    return DnsUpstream(loop, endpoint, limits, defaultdict(Counts) if counts is None else counts)
