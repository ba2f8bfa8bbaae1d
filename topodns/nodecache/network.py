"""The node's network of a node-cache: sets up link and firewall rules, and renews the redirect after self-probes.

The order keeps DNS available on the node: first the server answers, then the rules redirect traffic to it, and the
redirect expires by itself when self-probes fail. At the end the rules are removed first.
"""

import asyncio
import logging
import secrets
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topodns.files.watch import watch_files
from topodns.hostnet.reconciler import HostNetworkReconciler
from topodns.hostnet.redirect import find_firewall
from topodns.hostnet.rules import RENEWAL_INTERVAL, HostNetwork
from topodns.hostnet.watchdog_launch import heartbeat_fd
from topodns.metrics.registry import Published
from topodns.net.reuseport import Instance
from topodns.nodecache.config_watch import NodeConfigWatch
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.self_probe import SelfCheck, SelfProbe
from topodns.nodecache.settings import NodeCacheFlags
from topodns.plugins.forward.single_flight import ForwardShared

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
        self._reconciler: HostNetworkReconciler
        self._self_check: SelfCheck

    def use_network(self, network: HostNetwork) -> None:
        """Set the host network; to be called before any other method."""
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
        from topodns.nodecache.metrics import node_readings

        return node_readings(self._reconciler, self.watch, shared.get(ForwardShared).counts)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_INTERVAL)
            await self.renew()

    async def renew(self) -> None:
        """Renew the redirect for REDIRECT_SECONDS and announce this instance to the others, if self-probes are answered
        or a trial is due. Logs when the redirect goes on or off.
        """
        if await self._self_check.answered():
            self._reconciler.renew()
            self._reconciler.instance_registry.announce()
        if self._logged_on is not (on := self._reconciler.is_redirecting()):
            self._logged_on = on
            if on:
                log.info("node-cache: self-probes are answered: DNS of this node is redirected to this node cache")
            else:
                log.warning("node-cache: no answers to self-probes: DNS of this node goes to the cluster DNS")

    def _config_changed(self, text: str) -> None:
        self._reload.set()
