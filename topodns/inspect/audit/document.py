"""An audit as a JSON document. docs/operate/audit.md describes its members; they are only added to, never changed."""

import json
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from topodns.cluster.state import ClusterState
from topodns.dns.name import name_text
from topodns.inspect.audit.report import (
    AuditReport,
    AuditRules,
    ServiceDifference,
    ServiceReport,
    audit_steps,
    difference,
)
from topodns.inspect.coverage import free_steps
from topodns.inspect.what_if import BadWhatIf, WhatIf, parse_changes
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.findings import CLUSTER, Finding, Severity

VERSION: Final = 1
MAX_ROWS: Final = 5000  # Services, and findings about none of them, each; the others are counted
MAX_OCTETS: Final = 8 << 20  # of the members of lists, in JSON
MAX_ZONES: Final = 100  # of one Service

Steps = Generator[None, None, bytes]


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """One cluster to audit. `waiting`: why its state is not complete, a line each."""

    state: ClusterState
    rules: AuditRules
    origins: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


def subjects(clusters: Iterable[Cluster]) -> list[AuditSubject]:
    """The clusters that have the directive `topology`."""
    return [
        AuditSubject(
            cluster.state,
            rules_of(cluster.topology),
            tuple(map(name_text, cluster.kubernetes.origins)),
            () if cluster.state.synced else tuple(cluster.waiting_for()) or cluster.state.unsynced,
        )
        for cluster in clusters
        if cluster.topology is not None
    ]


def rules_of(topology: TopologySettings) -> AuditRules:
    """The rules by which an audit judges, of the options of `topology`."""
    return AuditRules(topology.unknown_client, topology.on_invalid, topology.locate)


def document_steps(clusters: Sequence[AuditSubject], changes: Sequence[str]) -> Steps:
    """The document in UTF-8, in steps of about 1 ms; `changes` are the texts of a what-if.

    Of several clusters, a what-if is of those that have all its names. Raises BadWhatIf.
    """
    parsed = parse_changes(changes)
    room = _Room(MAX_OCTETS)
    documents: list[bytes] = []
    refused: BadWhatIf | None = None
    supposed = False
    for cluster in clusters:
        try:
            document = yield from _cluster_steps(cluster, parsed, changes, room)
            supposed = True
        except BadWhatIf as problem:
            refused = refused or problem
            document = yield from _cluster_steps(cluster, (), (), room)
        documents.append(document)
    if refused is not None and not supposed:
        raise refused
    return b'{"version":%d,"clusters":[%b]}' % (VERSION, b",".join(documents))


class _Room:
    """The octets that are left for the members of lists."""

    def __init__(self, octets: int) -> None:
        self._left = octets

    def take(self, size: int) -> bool:
        self._left -= size
        return self._left >= 0


def _cluster_steps(cluster: AuditSubject, parsed: tuple[WhatIf, ...], changes: Sequence[str], room: _Room) -> Steps:
    before, after = yield from audit_steps(cluster.state, cluster.rules, parsed)
    members: dict[str, bytes] = {
        "origins": _json(cluster.origins),
        "waiting": _json(cluster.waiting),
        "nodes": _json(before.nodes),
        "counts": _json(_counts(before)),
    }
    members["others"], members["others_left_out"] = yield from _list_steps(map(finding_object, before.others), room)
    services = map(service_object, before.services)
    members["services"], members["services_left_out"] = yield from _list_steps(services, room)
    members["what_if"] = b"null"
    if after is not None:
        changed = (difference_object(each) if each is not None else None for each in difference(before, after))
        listed, left_out = yield from _list_steps(changed, room)
        members["what_if"] = _object(
            {
                "changes": _json(changes),
                "counts": _json(_counts(after)),
                "services": listed,
                "services_left_out": left_out,
            }
        )
        yield
    parts: list[object] = [*before.services, *before.others, *(after.services if after is not None else ())]
    del before, after
    yield from free_steps(parts)
    return _object(members)


def _list_steps(
    members: Iterable[Mapping[str, object] | None], room: _Room
) -> Generator[None, None, tuple[bytes, bytes]]:
    """The first MAX_ROWS of these objects as a list, as far as there is room, and the number of the others.

    None is a step without an object.
    """
    listed: list[bytes] = []
    left_out = 0
    for member in members:
        if member is None:
            yield
            continue
        text = _json(member) if len(listed) < MAX_ROWS and not left_out else b""
        if text and room.take(len(text)):
            listed.append(text)
        else:
            left_out += 1
        yield
    return b"[%b]" % b",".join(listed), _json(left_out)


def service_object(report: ServiceReport) -> Mapping[str, object]:
    """One Service of an audit."""
    return {
        "service": str(report.service),
        "keys": report.keys,
        "source": report.source or None,
        "endpoints": report.endpoints,
        "nodes": report.nodes,
        "covered": report.covered,
        "zones": [
            {"zone": each.topology_zone, "nodes": each.nodes, "covered": each.covered, "endpoints": each.endpoints}
            for each in report.zones[:MAX_ZONES]
        ],
        "skew": report.skew,
        "findings": [finding_object(each) for each in report.findings],
    }


def difference_object(change: ServiceDifference) -> Mapping[str, object]:
    """One Service that a what-if changes."""

    def numbers(report: ServiceReport) -> Mapping[str, object]:
        return {name: value for name, value in service_object(report).items() if name not in ("service", "findings")}

    return {
        "service": str(change.before.service),
        "before": numbers(change.before),
        "after": numbers(change.after),
        "gone": [finding_object(each) for each in change.gone],
        "new": [finding_object(each) for each in change.new],
    }


def finding_object(found: Finding) -> Mapping[str, object]:
    """One finding as a JSON object, without members that have no value."""
    details: Mapping[str, object] = {
        "nodes": found.nodes,
        "node_names": found.node_names,
        "zones": found.zones,
        "keys": found.keys,
        "endpoints": found.endpoints,
        "family": found.family,
        "ratio": found.ratio,
    }
    return {
        "service": str(found.service) if found.service != CLUSTER else None,
        "severity": found.severity.value,
        "kind": found.kind,
        "text": found.text,
        **{name: value for name, value in details.items() if value},
    }


def _counts(report: AuditReport) -> Mapping[str, int]:
    counts = Counter(found.severity for found in report.findings)
    return {severity.value: counts[severity] for severity in Severity}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _object(members: Mapping[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), value) for name, value in members.items())
