"""The node's network of a node-cache: sets up link and firewall rules, and switches the redirect by self-probes.

The order keeps DNS available on the node: first the server answers, then the rules redirect traffic to it, and the
redirect expires by itself when self-probes fail. At the end the rules are removed first.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Final

from topodns.files.watch import watch_files
from topodns.hostnet.reconciler import HostNetworkKeeper
from topodns.hostnet.redirect import find_firewall
from topodns.hostnet.rules import RENEWAL_INTERVAL, HostNetwork
from topodns.hostnet.watchdog_launch import heartbeat_fd
from topodns.metrics.registry import Published
from topodns.net.reuseport import Instance
from topodns.nodecache.config_watch import NodeConfigWatch
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.self_probe import TRIES, Heard, SelfProbe
from topodns.nodecache.settings import NodeCacheFlags
from topodns.plugins.forward.counts import ForwardShared

if TYPE_CHECKING:
    from topodns.plugins.setup import Shared

log = logging.getLogger(__name__)


PATIENCE: Final = 0.4  # seconds until a self-probe times out: less than RENEWAL_INTERVAL
ROUNDS: Final = 4  # of probes to detect another instance: in 1 of 256 rounds all of them reach this one
TRIAL_PAUSE: Final = 30.0  # seconds between two trials of the switch


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
        self._probe = SelfProbe(self._name, flags.port)
        self._reload = asyncio.Event()
        self._told_on = False  # the position of the switch that was logged last
        self._is_reached = False  # a self-probe was answered while the switch was off, at some address
        self._tried = -inf  # monotonic seconds of the last trial of the switch
        self._keeper: HostNetworkKeeper

    def keep(self, network: HostNetwork) -> None:
        """Set the host network; to be called before any other method."""
        self._keeper = HostNetworkKeeper(network, heartbeat_fd())

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
        succeeded = self._keeper.has_begun and await self._is_succeeded()
        if self._flags.skip_teardown:
            self._keeper.leave(succeeded)
        else:
            await self._keeper.release(succeeded)

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
        if await self._answers():
            self._keeper.renew()
            self._keeper.instance_registry.announce()
        if self._told_on is not (on := self._keeper.switched_on()):
            self._told_on = on
            if on:
                log.info("node-cache: answers its own questions: DNS of this node is led here")
            else:
                log.warning("node-cache: no answers to its own questions: DNS of this node goes to the cluster DNS")

    async def _answers(self) -> bool:
        tries = TRIES if self._keeper.instance_registry.others() else 1
        heard = await self._probe.hear(self._flags.local_ips, PATIENCE, tries)
        if any(Heard.US in each for each in heard) and not self._keeper.switched_on():
            self._is_reached = True
        return any(Heard.US in each and Heard.NOTHING not in each for each in heard) or self._tries_anyway()

    def _tries_anyway(self) -> bool:
        """Whether to switch on for a trial: if all addresses are ClusterIPs, probes arrive only when switched on."""
        now = time.monotonic()
        if self._is_reached or now < self._tried + TRIAL_PAUSE:
            return False
        self._tried = now
        return True

    async def _is_succeeded(self) -> bool:
        """Whether another instance answers probes, too: any process on the node could claim to be one."""
        if self._keeper.instance_registry.successor() is None:
            return False
        addresses = self._flags.local_ips
        heard: list[frozenset[Heard]] = [frozenset()] * len(addresses)
        for _ in range(ROUNDS):
            now = await self._probe.hear(addresses, PATIENCE, TRIES)
            heard = [before | each for before, each in zip(heard, now, strict=True)]
            if any({Heard.US, Heard.ANOTHER} <= each for each in heard):
                return True
        return False

    def _config_changed(self, text: str) -> None:
        self._reload.set()
