"""node-cache's own metrics: the node's network, its configuration, and the reachability of upstreams."""

from collections.abc import Callable, Iterator
from typing import Final

from topodns.hostnet.reconciler import REPAIRABLE, HostNetworkCounts, HostNetworkReconciler
from topodns.metrics.registry import Published, Reading
from topodns.nodecache.config_watch import NodeConfigWatch
from topodns.plugins.forward.upstreams import ForwardCounts

# Label values that NodeLocal DNSCache has from the start; those of topodns alone appear at their first error.
_ERROR_TYPES: Final = ("configmap", "interface_add", "interface_check", "iptables", "iptables_lock")


def node_readings(
    reconciler: HostNetworkReconciler, watch: NodeConfigWatch, forward: ForwardCounts
) -> Iterator[Published]:
    """Metrics of the host network, of the configuration, and of the upstreams of all `forward` directives."""
    counts = reconciler.counts
    yield Reading(
        "coredns_nodecache_setup_errors",
        "Faults of the node's network and of the configuration.",
        "counter",
        ("errortype",),
        lambda: [((kind,), times) for kind, times in _errors(counts, watch).items()],
    )
    yield _gauge("link_present", "The link was there at the last look.", lambda: counts.link_present)
    yield _gauge("rules_present", "The rules were there at the last look.", lambda: counts.rules_present)
    yield _gauge("switched_on", "DNS of the node is redirected to this node cache.", reconciler.is_redirecting)
    yield Reading(
        "topodns_nodecache_port_sockets",
        "Sockets of others that take DNS at the listen addresses.",
        "gauge",
        ("holder",),
        lambda: [((holder,), float(number)) for holder, number in (reconciler.port_sockets() or {}).items()],
    )
    yield Reading(
        "topodns_nodecache_repairs",
        "Times that something was added back.",
        "counter",
        ("what",),
        lambda: [((what,), counts.repaired[what]) for what in REPAIRABLE],
    )
    yield Reading(
        "topodns_nodecache_last_repair_timestamp_seconds",
        "When something was added back; 0: never.",
        "gauge",
        ("what",),
        lambda: [((what,), when) for what, when in counts.last_repair.items()],
    )
    yield _gauge("config_timestamp_seconds", "When the configuration in force was read.", lambda: watch.accepted_at)
    yield _gauge("config_in_force", "What the files say is what is served.", lambda: watch.in_force)
    yield Reading(
        "topodns_nodecache_upstream_reachable",
        "The last reply or failed probe was a reply.",
        "gauge",
        ("to",),
        lambda: [
            ((to,), float(each.reachable)) for to, each in forward.upstreams.items() if each.reachable is not None
        ],
    )


def _errors(counts: HostNetworkCounts, watch: NodeConfigWatch) -> dict[str, float]:
    errors = dict.fromkeys(_ERROR_TYPES, 0.0) | counts.errors
    return errors | {"configmap": float(watch.setup_errors)}


def _gauge(name: str, documentation: str, read: Callable[[], float]) -> Reading:
    return Reading(f"topodns_nodecache_{name}", documentation, "gauge", (), lambda: [((), float(read()))])
