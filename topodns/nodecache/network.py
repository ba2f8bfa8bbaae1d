"""The node's network of a node-cache: sets up link and firewall rules, and switches the redirect by self-probes.

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
from topodns.hostnet.reconciler import HostNetworkKeeper
from topodns.hostnet.redirect import find_firewall
from topodns.hostnet.rules import RENEWAL_INTERVAL, HostNetwork
from topodns.hostnet.watchdog_launch import heartbeat_fd
from topodns.metrics.registry import Published
from topodns.net.reuseport import Instance
from topodns.nodecache.config_watch import NodeConfigWatch
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.self_probe import SelfCheck, SelfProbe
from topodns.nodecache.settings import NodeCacheFlags
from topodns.plugins.forward.counts import ForwardShared

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
    """The `ServerHooks` of a node-cache: link, rules and switch, and the files of its Corefile."""

    def __init__(self, flags: NodeCacheFlags, corefile: NodeCorefile) -> None:
        self.watch = NodeConfigWatch(corefile.read, corefile.render, self._config_changed, flags.conf)
        self._flags = flags
        self._paths = corefile.paths
        self._name = (secrets.token_hex(8),)
        self._reload = asyncio.Event()
        self._told_on = False  # the position of the switch that was logged last
        self._keeper: HostNetworkKeeper
        self._self_check: SelfCheck

    def keep(self, network: HostNetwork) -> None:
        """Set the host network; to be called before any other method."""
        self._keeper = HostNetworkKeeper(network, heartbeat_fd())
        self._self_check = SelfCheck(SelfProbe(self._name, self._flags.port), self._flags.local_ips, self._keeper)

    @property
    def instance(self) -> Instance:
        own = map(str, self._flags.local_ips) if self._flags.setup_interface else ()
        return Instance(self._name, self._keeper.instance_registry, frozenset(own))

    async def begin(self) -> None:
        """Set up the link and the rules, which redirect no traffic before a self-probe is answered."""
        await self._keeper.set_up_link()
        for notice in await self._keeper.set_up_rules():
            log.warning("node-cache: %s", notice)
        log.info("node-cache: firewall %s", self._keeper.firewall)
        await self.renew()

    def work(self) -> Iterator[tuple[Coroutine[Any, Any, None], str]]:
        yield self._keeper.run(), "host network"
        yield self._keep_renewing(), "switch"
        yield self.watch.run(watch_files(self._paths)), "node configuration"

    async def wants_reload(self) -> None:
        """Return when the Corefile has changed."""
        await self._reload.wait()
        self._reload.clear()

    def waits_for(self) -> Iterator[str]:
        """Conditions that are missing until Pods are answered here, a line each."""
        counts = self._keeper.counts
        if self._flags.setup_interface and not counts.link_present:
            yield "node-cache: waiting for the link"
        if not counts.rules_present:
            yield "node-cache: waiting for the rules"
        if not self._keeper.switched_on():
            yield "node-cache: waiting for the answers to its own questions"

    async def give_up(self) -> None:
        """Tear down without a server: no socket listens, and none will."""
        await self.before_drain()
        await self.after_close()

    async def before_drain(self) -> None:
        has_successor = self._keeper.has_begun and await self._self_check.has_successor()
        if self._flags.skip_teardown:
            self._keeper.leave(has_successor)
        else:
            await self._keeper.release(has_successor)

    async def after_close(self) -> None:
        if self._flags.skip_teardown:
            self._keeper.instance_registry.close()
        else:
            await self._keeper.remove()

    def readings(self, shared: "Shared") -> Iterator[Published]:
        """node-cache's own metrics."""
        from topodns.nodecache.metrics import node_readings

        return node_readings(self._keeper, self.watch, shared.get(ForwardShared).counts)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_INTERVAL)
            await self.renew()

    async def renew(self) -> None:
        """Keep traffic redirected here for SWITCH_SECONDS, if self-probes are answered; log a change of the switch."""
        if await self._self_check.answered():
            self._keeper.renew()
            self._keeper.instance_registry.announce()
        if self._told_on is not (on := self._keeper.switched_on()):
            self._told_on = on
            if on:
                log.info("node-cache: answers its own questions: DNS of this node is led here")
            else:
                log.warning("node-cache: no answers to its own questions: DNS of this node goes to the cluster DNS")

    def _config_changed(self, text: str) -> None:
        self._reload.set()
