"""Coverage, audits and what-ifs, done at once."""

from collections.abc import Mapping, Sequence

from topodns.cluster.model import Node
from topodns.cluster.state import ClusterState
from topodns.inspect.audit import AuditReport, audit_steps
from topodns.inspect.coverage import coverage_steps
from topodns.inspect.model import Coverage, FamilyAnswer, NodeGroups, ServiceView
from topodns.inspect.what_if import WhatIf, scenario_of_steps
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import do_at_once
from topodns.topology.select import OnInvalid, UnknownClient


def coverage(
    service: ServiceView,
    nodes: NodeGroups | Mapping[str, Node],
    unknown_client: UnknownClient = UnknownClient.STRICT,
    on_invalid: OnInvalid = OnInvalid.IGNORE,
) -> Coverage:
    topology = TopologySettings(unknown_client=unknown_client, on_invalid=on_invalid)
    groups = nodes if isinstance(nodes, NodeGroups) else NodeGroups(nodes)
    return do_at_once(coverage_steps(service, groups, topology))


def answers_on(found: Coverage, name: str) -> tuple[FamilyAnswer, ...]:
    """What clients on the Node of this name get."""
    (answers,) = [group.answers for group in found.clients if any(node.name == name for node in group.nodes)]
    return answers


def run_audit(
    state: ClusterState, rules: TopologySettings, changes: tuple[WhatIf, ...] = ()
) -> tuple[AuditReport, AuditReport | None]:
    return do_at_once(audit_steps(state, rules, changes))


def apply(
    changes: Sequence[WhatIf], services: Sequence[ServiceView], nodes: Mapping[str, Node]
) -> tuple[list[ServiceView], Mapping[str, Node]]:
    """The views and Nodes with the changes."""
    scenario = do_at_once(scenario_of_steps(changes, nodes, {view.key for view in services}))
    return [do_at_once(scenario.view_steps(view)) for view in services], scenario.nodes
