"""A failed set-up is reported by its kind, and nothing is left half done."""

import os
import subprocess
import sys

import pytest

from tests.support.namespaced_node import Setup
from tests.support.reconciler_on_node import network, on_node
from tests.support.server_process import ROOT
from topodns.hostnet.commands import ErrorKind, HostNetworkError
from topodns.hostnet.reconciler import HostNetworkReconciler

ATTEMPT = """
import asyncio
from topodns.hostnet.commands import HostNetworkError
from topodns.hostnet.firewall import Firewall
from topodns.hostnet.reconciler import HostNetworkReconciler
from tests.support.host_network_builder import host_network

async def attempt():
    network = host_network("169.254.20.10", firewall=Firewall("{firewall}"))
    reconciler = HostNetworkReconciler(network)
    for step in (reconciler.set_up_link, reconciler.set_up_rules):
        try:
            await step()
        except HostNetworkError as problem:
            print(problem.kind)
    reconciler.leave(has_successor=True)

asyncio.run(attempt())
"""


@pytest.mark.parametrize("firewall", ["auto", "nftables", "iptables"])
def test_without_cap_net_admin_it_says_that_the_permission_is_missing(scene: Setup, firewall: str) -> None:
    command = ["setpriv", "--bounding-set=-net_admin", sys.executable, "-c", ATTEMPT.format(firewall=firewall)]
    with scene.node.entered():
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.split() == ["permission", "permission"]
    assert "nodelocaldns" not in scene.node.run("ip", "-br link")


def test_where_ipv6_is_switched_off_the_address_cannot_be_had_and_it_says_why(scene: Setup) -> None:
    async def story() -> None:
        reconciler = HostNetworkReconciler(network())
        with pytest.raises(HostNetworkError, match="IPv6 is switched off on this node") as refused:
            await reconciler.set_up_link()
        assert refused.value.kind is ErrorKind.INTERFACE_ADD
        assert await reconciler.release(has_successor=True)
        assert await reconciler.remove()
        assert "nodelocaldns" not in scene.node.run("ip", "-br link")

    scene.node.run("sysctl", "-q -w net.ipv6.conf.default.disable_ipv6=1")
    on_node(scene, story)
