"""Everything that the page shows of one Service: its keys, its endpoints, and what clients on each Node get."""

import json
from collections.abc import Mapping
from heapq import nsmallest
from ipaddress import ip_address
from typing import Final

from topodns.cluster.model import ZONE_LABEL, Endpoint, Node, ObjectKey
from topodns.inspect.cluster_view import service_view
from topodns.inspect.coverage import ClientGroup, Coverage, free_steps, parts_of
from topodns.inspect.coverage_findings import coverage_findings
from topodns.inspect.job_queue import Refused
from topodns.inspect.page.rows import is_near, row_of, view_coverage, zone_cells
from topodns.inspect.page.snapshot import SnapshotMaker
from topodns.time_slices import Job

MAX_ENDPOINTS: Final = 500  # shown
MAX_GROUPS: Final = 500  # groups of Nodes shown
MAX_FINDINGS: Final = 20  # of an audit shown
MAX_NAMES: Final = 100  # of the Nodes of one group
STEP: Final = 100  # endpoints or groups written in one step

_Detail = Mapping[str, object]


def service_detail(maker: SnapshotMaker, key: ObjectKey) -> Job[str]:
    """The details as a JSON object. Raises Refused if there is no headless Service of this key.

    `clients`: groups of Nodes whose clients get the same answers, those without an endpoint first.
    """
    cluster, groups, columns = maker.cluster, maker.node_groups(), maker.columns
    state = cluster.state
    yield
    view = service_view(state, key, state.governing_services())
    if view is None:
        raise Refused(404, f"no headless Service {key.name!r} in namespace {key.namespace!r}")
    found = yield from view_coverage(view, groups, cluster.topology)
    cells = yield from zone_cells(found)
    clients = yield from _clients(found)
    findings: list[str] = []
    for finding in coverage_findings(view, found, groups):
        if finding is None:
            yield
        elif len(findings) < MAX_FINDINGS:
            findings.append(finding.text)
    endpoints = yield from _endpoints(found, groups.nodes)
    detail = {
        **row_of(found, cells, view, state.policy_notices().get(key, ""), columns, cluster.topology),
        "findings": findings,
        "clients_left_out": len(found.clients) - len(clients),
        "listed_of": len(found.load),
        "skew": round(found.skew, 2),
    }
    lists = f'"clients":[{",".join(clients)}],"listed":[{",".join(endpoints)}]'
    parts = parts_of(found)
    del found
    yield from free_steps(parts)
    return f"{json.dumps(detail)[:-1]},{lists}}}"


def _clients(found: Coverage) -> Job[list[str]]:
    """The groups of clients as JSON."""
    ordered = []
    for at, group in enumerate(found.clients, 1):
        ordered.append((group.covered, group.topology_zone, -group.size, at, group))
        if at % STEP == 0:
            yield
    clients = []
    for at, (*_, group) in enumerate(nsmallest(MAX_GROUPS, ordered), 1):
        clients.append(json.dumps(_group(group)))
        if at % STEP == 0:
            yield
    return clients


def _group(group: ClientGroup) -> _Detail:
    names = [node.name for node, _ in zip(group.nodes, range(MAX_NAMES), strict=False)]
    return {
        "zone": group.topology_zone,
        "nodes": names,
        "size": group.size,
        "covered": group.covered,
        "near": any(map(is_near, group.answers)),
        "answers": [
            {
                "family": answer.family,
                "reason": answer.reason.value,
                "key": answer.key,
                "endpoints": len(answer.group.endpoints),
            }
            for answer in group.answers
        ],
    }


def _endpoints(found: Coverage, nodes: Mapping[str, Node]) -> Job[list[str]]:
    """The first endpoints as JSON."""
    endpoints = []
    for at, (endpoint, clients) in enumerate(found.load[:MAX_ENDPOINTS], 1):
        one = {
            "address": str(ip_address(endpoint.address)),
            "hostname": endpoint.hostname,
            "node": endpoint.node_name,
            "zone": _zone_of(endpoint, nodes),
            "clients": round(clients, 2),
        }
        endpoints.append(json.dumps(one))
        if at % STEP == 0:
            yield
    return endpoints


def _zone_of(endpoint: Endpoint, nodes: Mapping[str, Node]) -> str:
    """The value of topology.kubernetes.io/zone that counts: the Node's, or without a Node the slice's."""
    node = nodes.get(endpoint.node_name)
    return node.labels.get(ZONE_LABEL, "") if node is not None else endpoint.topology_zone or ""
