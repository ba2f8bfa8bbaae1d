"""`node-cache`: a server of the Corefile that a template stands for, and the node's network around it.

The order is what keeps a node's DNS alive: first everything answers, then the rules lead the traffic here, and they
lead it back by themselves when our own questions are not answered any more. At the end the rules go first.
"""

import asyncio
import logging
import os
import secrets
import sys
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Final

from topodns.circles import refuse_circles
from topodns.config.errors import ConfigError
from topodns.config.interfaces import own_addresses
from topodns.config.node_cache.corefile import NodeCorefile
from topodns.config.node_cache.flags import parse_flags, usage
from topodns.config.node_cache.go_flags import WrongUsage
from topodns.edge.file_watch import watch_files
from topodns.edge.host_network.errors import HostNetworkError
from topodns.edge.host_network.keeper import HostNetworkKeeper
from topodns.edge.host_network.plan import RENEWAL_INTERVAL, HostNetwork
from topodns.edge.host_network.supervised import heartbeat_fd, run_supervised
from topodns.edge.host_network.switch import choose_firewall
from topodns.edge.log_lines import start_logging
from topodns.edge.metrics import Published
from topodns.edge.node_config_watch import NodeConfigWatch
from topodns.edge.port_sharing import Instance
from topodns.edge.self_probe import TRIES, Heard, SelfProbe
from topodns.settings.node_cache import Action, Firewall, NodeCacheFlags
from topodns.starting import mind_signals, plugins_text, print_banner, print_nothing, version_text

if TYPE_CHECKING:
    from topodns.counted import Counted

log = logging.getLogger(__name__)

PATIENCE: Final = 0.4  # seconds that an answer to our own question may take: less than between two of them
ROUNDS: Final = 4  # of questions until another instance is heard: in each, 1 in 256 times all of them come to us
TRIAL_PAUSE: Final = 30.0  # seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status. Nothing is touched where it is not 0 from the start."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        flags = parse_flags(given, os.environ)
    except WrongUsage as problem:
        print(f"{problem}\n{usage()}", file=sys.stderr)
        return 2
    except ConfigError as problem:
        print(problem, file=sys.stderr)
        return 1
    said = {Action.HELP: usage, Action.VERSION: version_text, Action.PLUGINS: plugins_text}.get(flags.action)
    if said is not None:
        print(said())
        return 0
    return _serve(flags, given)


def _serve(flags: NodeCacheFlags, arguments: Sequence[str]) -> int:
    mind_signals()
    start_logging(sys.stdout, time.monotonic)
    for remark in flags.remarks:
        log.warning("node-cache: %s", remark)
    # Known at once, so that the configuration before it stays and it is counted (N16).
    own = own_addresses()
    corefile = NodeCorefile(flags, os.environ, refuse=lambda settings: refuse_circles(settings, own))
    around = NodeNetwork(flags, corefile)
    if problems := around.watch.load().problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    try:
        network = _network(flags)
        if network.firewall is Firewall.IPTABLES and heartbeat_fd() is None:
            run_supervised(network, (sys.executable, "-P", "-m", "topodns", "node-cache", *arguments))
    except HostNetworkError as problem:
        print(problem, file=sys.stderr)
        return 1
    return _run(flags, corefile, around, network)


def _run(flags: NodeCacheFlags, corefile: NodeCorefile, around: "NodeNetwork", network: HostNetwork) -> int:
    # Imported here: a supervisor needs none of it.
    from topodns.app import STOP_ERRORS, Announcement, run
    from topodns.surroundings import Options
    from topodns.workings import Identity

    around.keep(network)
    announcement = Announcement(print_nothing if flags.quiet else print_banner, flags.pid_file)
    options = Options(
        around,
        Identity(flags.node_name, frozenset(filter(None, [corefile.cluster_dns]))),
        around.readings,
        flags.metrics_listen,
        around.instance,
        flags.memory,
    )
    try:
        return run(lambda: corefile.settings(around.watch.text), announcement, options)
    except (HostNetworkError, *STOP_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return 1


def _network(flags: NodeCacheFlags) -> HostNetwork:
    """What is asked of the host's network, with the firewall that there is. Raises HostNetworkError."""
    network = HostNetwork(
        flags.local_ips,
        port=flags.port,
        health_port=flags.health_port,
        interface=flags.interface_name,
        setup_interface=flags.setup_interface,
        firewall=flags.firewall,
        sync_interval=flags.sync_interval,
    )
    return replace(network, firewall=choose_firewall(network))


class NodeNetwork:
    """The `Surroundings` of a node cache: link, rules and switch, and the files that its Corefile is made of."""

    def __init__(self, flags: NodeCacheFlags, corefile: NodeCorefile) -> None:
        self.watch = NodeConfigWatch(corefile.read, corefile.render, self._config_changed, flags.conf)
        self._flags = flags
        self._paths = corefile.paths
        self._name = (secrets.token_hex(8),)
        self._probe = SelfProbe(self._name, flags.port)
        self._reload = asyncio.Event()
        self._told_on = False  # the switch's position, as it was logged last
        self._is_reached = False  # also while the switch is off, at some address
        self._tried = -inf  # when the switch was last turned on without an answer
        self._keeper: HostNetworkKeeper

    def keep(self, network: HostNetwork) -> None:
        """Before anything else is asked of this."""
        self._keeper = HostNetworkKeeper(network, heartbeat_fd())

    @property
    def instance(self) -> Instance:
        own = map(str, self._flags.local_ips) if self._flags.setup_interface else ()
        return Instance(self._name, self._keeper.presence, frozenset(own))

    async def begin(self) -> None:
        """The link and the rules, which lead nobody here before we have answered ourselves."""
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
        """Return when there is another Corefile."""
        await self._reload.wait()
        self._reload.clear()

    def waits_for(self) -> Iterator[str]:
        """What is missing until pods are answered here."""
        counts = self._keeper.counts
        if self._flags.setup_interface and not counts.link_present:
            yield "node-cache: waiting for the link"
        if not counts.rules_present:
            yield "node-cache: waiting for the rules"
        if not self._keeper.switched_on():
            yield "node-cache: waiting for the answers to its own questions"

    async def before_drain(self) -> None:
        succeeded = await self._is_succeeded()
        if self._flags.skip_teardown:
            self._keeper.leave(succeeded)
        else:
            await self._keeper.release(succeeded)

    async def after_close(self) -> None:
        if not self._flags.skip_teardown:
            await self._keeper.remove()

    def readings(self, counted: "Counted") -> Iterator[Published]:
        """node-cache's own metrics."""
        from topodns.published_node import node_readings

        return node_readings(self._keeper, self.watch, counted.forward)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_INTERVAL)
            await self.renew()

    async def renew(self) -> None:
        """Lead the traffic here for another while, if we answer ourselves."""
        if await self._answers():
            self._keeper.renew()
            self._keeper.presence.announce()
        if self._told_on is not (on := self._keeper.switched_on()):
            self._told_on = on
            if on:
                log.info("node-cache: answers its own questions: DNS of this node is led here")
            else:
                log.warning("node-cache: no answers to its own questions: DNS of this node goes to the cluster DNS")

    async def _answers(self) -> bool:
        tries = TRIES if self._keeper.presence.others() else 1
        heard = await self._probe.hear(self._flags.local_ips, PATIENCE, tries)
        if any(Heard.US in each for each in heard) and not self._keeper.switched_on():
            self._is_reached = True
        return any(Heard.US in each and Heard.NOBODY not in each for each in heard) or self._tries_anyway()

    def _tries_anyway(self) -> bool:
        """Whether to be switched on to find out: where all addresses are Services', only then a question comes here."""
        now = time.monotonic()
        if self._is_reached or now < self._tried + TRIAL_PAUSE:
            return False
        self._tried = now
        return True

    async def _is_succeeded(self) -> bool:
        """Whether another instance answers beside us: what it says of itself anybody on this node could say."""
        if self._keeper.presence.successor() is None:
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
