"""The last minutes' queries by client, Pod, namespace, node or name, from the sample of queries."""

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from heapq import nsmallest
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, get_args

from topodns.corefile.errors import listed, shown
from topodns.dns.addresses import unmapped
from topodns.dns.message import Query
from topodns.dns.name import name_text
from topodns.dns.rrtype import Rcode
from topodns.inspect.documents import VERSION, Aspect, TopDocument
from topodns.inspect.errors import Refused
from topodns.query.client_claim import read_claim
from topodns.query.plugin import BadOption
from topodns.query.query_sample import MINUTES, QuerySample, query_of
from topodns.time_slices import Job

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster

ASPECTS: Final[tuple[Aspect, ...]] = get_args(Aspect)
MAX_ROWS: Final = 200  # in one document; the other queries are summed
UNREADABLE: Final = "(not known)"
_STEP: Final = 4  # queries read in one step


def node_name_of(cluster: "Cluster", query: Query | None, address: bytes) -> str:
    """The name of the Node on which this cluster locates the client of a query; "" if it does not."""
    locator, edns = cluster.locator, query.edns if query is not None else None
    if locator is None:
        return ""
    if edns is None or not edns.options:
        return locator.locate(address).node_name
    try:
        return locator.locate(address, read_claim(edns, locator.claims.trusts(address))).node_name
    except BadOption:
        return ""


def top_steps(
    clusters: "Collection[Cluster]",
    sample: QuerySample,
    arguments: Mapping[str, str],
    clock: Callable[[], float] = time.perf_counter,
) -> Job[bytes]:
    """The TopDocument for the argument `by`, one of ASPECTS, as JSON. `clock`: the one of the sample.

    Raises Refused for any other `by`.
    """
    by = _aspect(arguments.get("by", "client"))
    rows, queries, sampled = Counter[str](), 0, 0
    for at, each in enumerate(sample.recent(clock()), 1):
        if by != "nxdomain" or each.rcode == Rcode.NXDOMAIN:
            rows[_value(clusters, by, query_of(each.message), unmapped(each.address))] += each.queries
            queries += each.queries
            sampled += 1
        if at % _STEP == 0:
            yield
    yield
    return json.dumps(_document(by, queries, sampled, rows)).encode()


def _aspect(text: str) -> Aspect:
    for known in ASPECTS:
        if text == known:
            return known
    raise Refused(f"found by={shown(text)}, expected {listed(ASPECTS)}")


def _document(by: Aspect, queries: int, sampled: int, rows: Mapping[str, int]) -> TopDocument:
    most = nsmallest(MAX_ROWS, rows.items(), key=lambda row: (-row[1], row[0]))
    return {
        "version": VERSION,
        "by": by,
        "minutes": MINUTES,
        "queries": queries,
        "sampled": sampled,
        "rows": [{"value": value, "queries": times} for value, times in most],
        "others": queries - sum(times for _, times in most),
    }


def _value(clusters: "Collection[Cluster]", by: Aspect, query: Query | None, address: bytes) -> str:
    """The text of a query in this respect; where the Pod, its namespace or the Node is not known, the address.

    `query` None: a message that is no query, or was too long to keep. `address` b"": of a flood that has ended.
    """
    if by in ("name", "nxdomain"):
        return name_text(query.qname) if query is not None else UNREADABLE
    if not address:
        return UNREADABLE
    text = str(ip_address(address))
    for cluster in clusters if by != "client" else ():
        if by != "node":
            pods = [pod for pod in cluster.state.pods_with_address(address) if not pod.host_network]
            if len(pods) == 1:
                return f"{pods[0].namespace}/{pods[0].name}" if by == "pod" else pods[0].namespace
        if node_name := node_name_of(cluster, query, address):
            return node_name if by == "node" else f"node {node_name}"
    return text
