"""The command `topodns node-cache`: parses the flags, renders the Corefile, and runs the server on a node."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from topodns.app.banner import plugins_text, print_banner, print_nothing, version_text
from topodns.app.self_forwarding import refuse_self_forwarding
from topodns.corefile.errors import ConfigError
from topodns.hostnet.commands import HostNetworkError
from topodns.hostnet.rules import Firewall, HostNetwork
from topodns.hostnet.watchdog_launch import heartbeat_fd, run_under_watchdog
from topodns.logs import start_logging
from topodns.netlink.route import own_addresses
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.flags import WrongUsage, parse_flags, usage
from topodns.nodecache.network import NodeNetwork, host_network
from topodns.nodecache.settings import NodeCacheAction, NodeCacheFlags

log = logging.getLogger(__name__)


def main(given: Sequence[str]) -> int:
    """Run the command with these arguments. Returns the exit status: 0 success, 1 failure, 2 wrong usage.

    Without -skipteardown, a failed start leaves nothing changed on the node, except that it may remove leftovers of an
    earlier instance. Signals are blocked (`app.signals`) until the server can act on them, so that a stop removes
    leftovers, too.
    """
    try:
        flags = parse_flags(given, os.environ)
    except WrongUsage as problem:
        print(f"{problem}\n{usage()}", file=sys.stderr)
        return 2
    except ConfigError as problem:
        print(problem, file=sys.stderr)
        return 1
    output = {
        NodeCacheAction.HELP: usage,
        NodeCacheAction.VERSION: version_text,
        NodeCacheAction.PLUGINS: plugins_text,
    }.get(flags.action)
    if output is not None:
        print(output())
        return 0
    return _serve(flags, given)


def _serve(flags: NodeCacheFlags, arguments: Sequence[str]) -> int:
    start_logging(time.monotonic)
    for remark in flags.remarks:
        log.warning("node-cache: %s", remark)
    # A forwarding loop is refused before its use: the previous configuration stays, and the refusal is counted
    # (docs/operate/reliability.md, "The node cache").
    own = own_addresses()
    corefile = NodeCorefile(flags, os.environ, refuse=lambda settings: refuse_self_forwarding(settings, own))
    node_network = NodeNetwork(flags, corefile)
    if problems := node_network.watch.load().problems:
        _remove_leftovers(flags, node_network)
        print("\n".join(problems), file=sys.stderr)
        return 1
    try:
        network = host_network(flags)
        if network.firewall is Firewall.IPTABLES and heartbeat_fd() is None:
            run_under_watchdog(network, (sys.executable, "-P", "-m", "topodns", "node-cache", *arguments))
    except HostNetworkError as problem:
        print(problem, file=sys.stderr)
        return 1
    return _run(flags, corefile, node_network, network)


def _remove_leftovers(flags: NodeCacheFlags, node_network: "NodeNetwork") -> None:
    """Remove what an earlier, killed instance left behind, for a start that has set up nothing.

    Nothing is removed with -skipteardown, or while another process serves or has the port.
    """
    with suppress(HostNetworkError):  # without a firewall there are no rules
        node_network.use_network(host_network(flags))
        asyncio.run(node_network.tear_down())


def _run(flags: NodeCacheFlags, corefile: NodeCorefile, node_network: "NodeNetwork", network: HostNetwork) -> int:
    # Imported here: the watchdog needs none of it.
    from topodns.app.hooks import Options
    from topodns.app.server import STOP_ERRORS, Announcement, run
    from topodns.inspect.routes import inspection
    from topodns.plugins.setup import Identity

    node_network.use_network(network)
    announcement = Announcement(print_nothing if flags.quiet else print_banner, flags.pid_file)
    options = Options(
        hooks=node_network,
        identity=Identity(flags.node_name, frozenset(filter(None, [corefile.cluster_dns]))),
        readings=node_network.readings,
        more_routes=inspection,
        metrics_listen=flags.metrics_listen,
        instance=node_network.instance,
        memory=flags.memory,
    )
    try:
        return run(lambda: corefile.settings(node_network.watch.text), announcement, options)
    except (HostNetworkError, *STOP_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return 1
