"""The node's network of a node-cache: sets up link and firewall rules, and renews the redirect after self-probes.

The order keeps DNS available on the node: first the server answers, then the rules redirect traffic to it, and the
redirect expires by itself when self-probes fail. At the end the rules are removed first. `node_readings` has
node-cache's own metrics.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from topodns.files.watch import watch_files
from topodns.hostnet.reconciler import REPAIRABLE, HostNetworkCounts, HostNetworkReconciler
from topodns.hostnet.redirect import find_firewall
from topodns.hostnet.rules import RENEWAL_INTERVAL, Firewall, HostNetwork
from topodns.hostnet.watchdog_launch import heartbeat_fd
from topodns.metrics.registry import Published, Reading
from topodns.net.reuseport import Instance
from topodns.nodecache.config_watch import NodeConfigWatch
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.self_probe import SelfCheck, SelfProbe
from topodns.nodecache.settings import NodeCacheFlags
from topodns.plugins.forward.single_flight import ForwardShared
from topodns.plugins.forward.upstreams import ForwardCounts

if TYPE_CHECKING:
    from topodns.plugins.setup import Shared

log = logging.getLogger(__name__)


def host_network(flags: NodeCacheFlags) -> HostNetwork:
    """The desired host network, with an available firewall chosen. Raises HostNetworkError."""
    network = HostNetwork(
        flags.local_ips,
        port=flags.port,
        health_port=flags.health_port,
        interface=flags.interface_name,
        setup_interface=flags.setup_interface,
        firewall=flags.firewall,
        sync_interval=flags.sync_interval,
    )
    return replace(network, firewall=find_firewall(network))


class NodeNetwork:
    """The `ServerHooks` of a node-cache: link, rules and redirect, and the files of its Corefile."""

    def __init__(self, flags: NodeCacheFlags, corefile: NodeCorefile) -> None:
        self.watch = NodeConfigWatch(corefile.read, corefile.render, self._config_changed, flags.conf)
        self._flags = flags
        self._paths = corefile.paths
        self._name = (secrets.token_hex(8),)
        self._reload = asyncio.Event()
        self._logged_on = False  # whether the redirect was on when it was logged last
        # Whether a link or rules of this instance lead queries to it. Else self-probes need not arrive: behind a
        # CiliumLocalRedirectPolicy its Pod has none of the addresses.
        self._redirects = True
        self._reconciler: HostNetworkReconciler
        self._self_check: SelfCheck

    def use_network(self, network: HostNetwork) -> None:
        """Set the host network; to be called before any other method."""
        self._redirects = network.setup_interface or network.firewall is not Firewall.NONE
        self._reconciler = HostNetworkReconciler(network, heartbeat_fd())
        self._self_check = SelfCheck(SelfProbe(self._name, self._flags.port), self._flags.local_ips, self._reconciler)

    @property
    def instance(self) -> Instance:
        own = map(str, self._flags.local_ips) if self._flags.setup_interface else ()
        return Instance(self._name, self._reconciler.instance_registry, frozenset(own))

    async def begin(self) -> None:
        """Set up the link and the rules, then `renew` for the first time, which redirects if self-probes are answered.

        Raises HostNetworkError.
        """
        await self._reconciler.set_up_link()
        for notice in await self._reconciler.set_up_rules():
            log.warning("node-cache: %s", notice)
        log.info("node-cache: firewall %s", self._reconciler.firewall)
        await self.renew()

    def work(self) -> Iterator[tuple[Coroutine[Any, Any, None], str]]:
        yield self._reconciler.run(), "host network"
        yield self._keep_renewing(), "switch"
        yield self.watch.run(watch_files(self._paths)), "node configuration"

    async def wants_reload(self) -> None:
        """Wait until the Corefile has changed."""
        await self._reload.wait()
        self._reload.clear()

    def waits_for(self) -> Iterator[str]:
        """Reasons why queries of the node's Pods do not arrive here yet, a line each."""
        counts = self._reconciler.counts
        if self._flags.setup_interface and not counts.link_present:
            yield "node-cache: waiting for the link"
        if not counts.rules_present:
            yield "node-cache: waiting for the rules"
        if not self._reconciler.is_redirecting():
            yield "node-cache: waiting for the answers to its self-probes"

    async def tear_down(self) -> None:
        """Remove what an earlier instance left behind, for a start that ends without a server.

        With -skipteardown, or while another process serves or has the port, link and rules stay.
        """
        await self.before_drain()
        await self.after_close()

    async def before_drain(self) -> None:
        has_successor = self._reconciler.has_begun and await self._self_check.has_successor()
        if self._flags.skip_teardown:
            self._reconciler.leave(has_successor)
        else:
            await self._reconciler.release(has_successor)

    async def after_close(self) -> None:
        if self._flags.skip_teardown:
            self._reconciler.instance_registry.close()
        else:
            await self._reconciler.remove()

    def readings(self, shared: "Shared") -> Iterator[Published]:
        """node-cache's own metrics."""
        return node_readings(self._reconciler, self.watch, shared.get(ForwardShared).counts)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_INTERVAL)
            await self.renew()

    async def renew(self) -> None:
        """Renew the redirect for REDIRECT_SECONDS and announce this instance to the others, if self-probes are answered
        or a trial is due, or another program redirects. Logs when the redirect goes on or off.
        """
        if not self._redirects or await self._self_check.answered():
            self._reconciler.renew()
            self._reconciler.instance_registry.announce()
        if self._logged_on is not (on := self._reconciler.is_redirecting()):
            self._logged_on = on
            if not self._redirects:
                log.info("node-cache: this instance makes no link and no rules: another program redirects DNS to it")
            elif on:
                log.info("node-cache: self-probes are answered: DNS of this node is redirected to this node cache")
            else:
                log.warning("node-cache: no answers to self-probes: DNS of this node goes to the cluster DNS")

    def _config_changed(self, text: str) -> None:
        self._reload.set()


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
