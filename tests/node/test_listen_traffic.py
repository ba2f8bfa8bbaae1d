"""A query to a listen address is answered here and never tracked while the switch is on; and only then."""

import pytest

from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Protocol, Setup
from tests.support.reconciler_on_node import ADDRESSES, asked, becomes, kept, network, on_node, renewed
from topodns.hostnet.rules import Firewall

FIREWALLS = pytest.mark.parametrize("firewall", [Firewall.NFTABLES, Firewall.IPTABLES])
PROTOCOLS: tuple[Protocol, ...] = ("udp", "tcp")


@FIREWALLS
def test_dns_from_a_pod_is_answered_here_without_an_entry_of_conntrack(scene: Setup, firewall: Firewall) -> None:
    async def story() -> None:
        async with kept(network(firewall)) as reconciler, renewed(reconciler):
            await becomes("node", scene.pod, CLUSTER_DNS[4])
            await becomes("node", scene.pod, CLUSTER_DNS[6])
            scene.forget_tracked()
            for address in ADDRESSES:
                for protocol in PROTOCOLS:
                    assert (await asked(scene.pod, address, protocol), address, protocol) == ("node", address, protocol)
                assert not scene.is_tracked(address), address

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


@FIREWALLS
def test_dns_of_the_nodes_own_processes_is_not_tracked_either(scene: Setup, firewall: Firewall) -> None:
    async def story() -> None:
        async with kept(network(firewall)) as reconciler, renewed(reconciler):
            await becomes("node", scene.node, CLUSTER_DNS[4])
            await becomes("node", scene.node, CLUSTER_DNS[6])
            scene.forget_tracked()
            for address in ADDRESSES:
                for protocol in PROTOCOLS:
                    assert (await asked(scene.node, address, protocol), address, protocol) == (
                        "node",
                        address,
                        protocol,
                    )
                assert not scene.is_tracked(address), address

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


@FIREWALLS
def test_probes_of_the_kubelet_are_not_tracked(scene: Setup, firewall: Firewall) -> None:
    async def story() -> None:
        async with kept(network(firewall)) as reconciler, renewed(reconciler):
            await becomes("node", scene.pod, CLUSTER_DNS[4])
            scene.forget_tracked()
            for address in LINK_LOCAL.values():
                assert await asked(scene.node, address, "tcp", 8080) == "node"
                assert not scene.is_tracked(address), address

    scene.answer_on_node(*ADDRESSES)
    scene.answer_on_node(*ADDRESSES, port=8080)
    on_node(scene, story)


@FIREWALLS
def test_switched_off_the_cluster_dns_answers_and_conntrack_knows_of_it(scene: Setup, firewall: Firewall) -> None:
    async def story() -> None:
        async with kept(network(firewall)):
            for address in CLUSTER_DNS.values():
                for protocol in PROTOCOLS:
                    assert await asked(scene.pod, address, protocol) == "cluster"
                assert scene.is_tracked(address)
            for address in LINK_LOCAL.values():  # no other program has this one
                assert await asked(scene.pod, address) == "node"
                assert scene.is_tracked(address)

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


@FIREWALLS
def test_dns_passes_a_node_whose_policy_is_drop(scene: Setup, firewall: Firewall) -> None:
    async def story() -> None:
        async with kept(network(firewall)) as reconciler, renewed(reconciler):
            for address in CLUSTER_DNS.values():
                await becomes("node", scene.pod, address)
            assert await asked(scene.pod, LINK_LOCAL[4], "tcp") == "node"

    for program in ("iptables", "ip6tables"):
        for chain in ("INPUT", "OUTPUT"):
            scene.node.run(program, f"-A {chain} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT")
        if program == "ip6tables":  # neighbour discovery
            scene.node.run(program, "-A INPUT -p ipv6-icmp -j ACCEPT")
            scene.node.run(program, "-A OUTPUT -p ipv6-icmp -j ACCEPT")
        scene.node.run(program, "-P INPUT DROP")
        scene.node.run(program, "-P OUTPUT DROP")
    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)
