"""Damage by other programs is repaired: at the kernel's notification, else at the next tick (N6, N7, N18)."""

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.event_loops import eventually
from tests.support.host_network_builder import host_network
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Setup
from tests.support.reconciler_on_node import ADDRESSES, asked, becomes, kept, network, on_node, renewed
from topodns.hostnet import reconciler as reconciler_module
from topodns.hostnet.commands import ErrorKind, HostNetworkError
from topodns.hostnet.iptables_ruleset import parse_save
from topodns.hostnet.nftables import read_table
from topodns.hostnet.reconciler import HostNetworkReconciler
from topodns.hostnet.rules import SKIP_CONNTRACK, Firewall

XTABLES_LOCK = "/run/xtables.lock"


@pytest.mark.parametrize(
    "breakage",
    [
        "link del nodelocaldns",
        "link set nodelocaldns down",
        f"addr del {CLUSTER_DNS[4]}/32 dev nodelocaldns",
        f"addr del {CLUSTER_DNS[6]}/128 dev nodelocaldns",
        "addr flush dev nodelocaldns",
    ],
)
def test_n06_the_link_is_repaired_at_the_kernel_s_notification(
    scene: Setup, breakage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler_module, "MAX_SYNC_INTERVAL", 3600.0)  # only events

    async def story() -> None:
        async with kept(network()) as reconciler, renewed(reconciler):
            await becomes("node", scene.pod, CLUSTER_DNS[4])
            scene.node.run("ip", breakage)
            await eventually(lambda: reconciler.counts.repaired["link"] > 0)
            for address in ADDRESSES:
                await becomes("node", scene.pod, address)
            assert reconciler.counts.last_repair["link"] > 0

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


def test_n06_without_the_link_a_pod_is_served_by_the_cluster_at_once(scene: Setup) -> None:
    async def story() -> None:
        reconciler = HostNetworkReconciler(network(Firewall.NFTABLES))
        await reconciler.set_up_link()
        await reconciler.set_up_rules()
        assert reconciler.renew()
        scene.node.run("ip", "link del nodelocaldns")  # and nothing repairs it
        for address in CLUSTER_DNS.values():
            assert await asked(scene.pod, address) == "cluster"
        assert not reconciler.renew()
        assert await reconciler.release(has_successor=True)
        assert await reconciler.remove()

    on_node(scene, story)


@pytest.mark.parametrize("command", ["flush ruleset", "delete table inet topodns", "flush chain inet topodns output"])
def test_n07_rules_of_nftables_are_back_without_waiting_for_a_tick(
    scene: Setup, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler_module, "MAX_SYNC_INTERVAL", 3600.0)

    async def story() -> None:
        async with kept(network(Firewall.NFTABLES)) as reconciler, renewed(reconciler):
            scene.node.run("nft", command)
            await eventually(lambda: reconciler.counts.repaired["rules"] > 0)
            assert reconciler.renew()
            assert await asked(scene.pod, LINK_LOCAL[4]) == "node"
            assert reconciler.counts.errors == {}

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


def test_n18_three_rules_of_nftables_become_one(scene: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler_module, "MAX_SYNC_INTERVAL", 0.2)
    counted: list[int] = []

    def spoil() -> None:
        found = read_table()
        assert found is not None
        counted.append(len(found.rules))
        rule = f'ip daddr @listen4 udp dport 53 notrack comment "{found.rules[-1][1]}"'
        for _ in range(3):
            scene.node.run("nft", ["add", "rule", "inet", "topodns", "prerouting", *rule.split()])

    async def story() -> None:
        async with kept(network(Firewall.NFTABLES)) as reconciler:
            spoil()
            await eventually(lambda: reconciler.counts.repaired["rules"] > 0)
            found = read_table()
            assert found is not None
            assert [len(found.rules)] == counted

    on_node(scene, story)


def raw_rules(scene: Setup) -> list[str]:
    return list(parse_save(scene.node.run("iptables-save", "-t raw"))["raw"].rules)


def test_n18_three_rules_of_iptables_become_one(scene: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler_module, "MAX_SYNC_INTERVAL", 0.2)
    dns = ["-d", CLUSTER_DNS[4], "-p", "udp", "--dport", "53", "-m", "comment", "--comment", SKIP_CONNTRACK]
    before: list[str] = []

    def spoil() -> None:
        before.extend(raw_rules(scene))
        for _ in range(3):
            for chain in ("PREROUTING", "TOPODNS-PREROUTING"):
                scene.node.run("iptables", ["-t", "raw", "-I", chain, *dns, "-j", "NOTRACK"])
            scene.node.run("iptables", "-t raw -I OUTPUT -j TOPODNS-OUTPUT")

    async def story() -> None:
        async with kept(network(Firewall.IPTABLES)) as reconciler, renewed(reconciler):
            await becomes("node", scene.pod, CLUSTER_DNS[4])
            spoil()
            await eventually(lambda: reconciler.counts.repaired["rules"] > 0)
            assert sorted(raw_rules(scene)) == sorted(before)

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


@pytest.mark.parametrize("flushed", ["-F PREROUTING", "-F TOPODNS-OUTPUT", "-F", "-D TOPODNS-PREROUTING 1"])
def test_n07_a_flush_of_iptables_is_mended_without_waiting_for_a_tick(
    scene: Setup, monkeypatch: pytest.MonkeyPatch, flushed: str
) -> None:
    monkeypatch.setattr(reconciler_module, "MAX_SYNC_INTERVAL", 3600.0)

    async def story() -> None:
        async with kept(network(Firewall.IPTABLES)) as reconciler, renewed(reconciler):
            await becomes("node", scene.pod, CLUSTER_DNS[4])
            before = raw_rules(scene)
            scene.node.run("iptables", f"-t raw {flushed}")
            await eventually(lambda: reconciler.counts.repaired["rules"] > 0)
            assert sorted(raw_rules(scene)) == sorted(before)

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


def test_n07_a_rule_of_nftables_is_back_without_waiting_for_a_tick(
    scene: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler_module, "MAX_SYNC_INTERVAL", 3600.0)

    async def story() -> None:
        async with kept(network(Firewall.NFTABLES)) as reconciler, renewed(reconciler):
            await becomes("node", scene.pod, CLUSTER_DNS[4])
            handle = re.findall(r"notrack .*# handle (\d+)", scene.node.run("nft", "-a list table inet topodns"))[0]
            scene.node.run("nft", f"delete rule inet topodns prerouting handle {handle}")
            await eventually(lambda: reconciler.counts.repaired["rules"] > 0)
            assert "notrack" in scene.node.run("nft", "list chain inet topodns prerouting")

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


@pytest.mark.parametrize("firewall", [Firewall.NFTABLES, Firewall.IPTABLES])
def test_rules_that_a_nodelocal_dnscache_left_behind_go(scene: Setup, firewall: Firewall) -> None:
    for address, chain in ((CLUSTER_DNS[4], "PREROUTING"), ("192.0.2.1", "PREROUTING")):
        rule = ["-d", address, "-p", "udp", "--dport", "53", "-m", "comment", "--comment", SKIP_CONNTRACK]
        scene.node.run("iptables", ["-t", "raw", "-I", chain, *rule, "-j", "NOTRACK"])

    async def story() -> None:
        async with kept(network(firewall)):
            assert await asked(scene.pod, CLUSTER_DNS[4]) == "cluster"
        assert [rule for rule in raw_rules(scene) if "192.0.2.1" not in rule] == []
        assert [rule for rule in raw_rules(scene) if "192.0.2.1" in rule] != []  # somebody else's

    on_node(scene, story)


def test_a_link_of_another_program_keeps_addresses_that_are_not_ours(scene: Setup) -> None:
    scene.node.run("ip", "link add nodelocaldns type bridge")
    scene.node.run("ip", "addr add 192.0.2.1/24 dev nodelocaldns")

    async def story() -> None:
        async with kept(network()):
            assert f"inet {CLUSTER_DNS[4]}/32" in scene.node.run("ip", "addr show dev nodelocaldns")
        left = scene.node.run("ip", "addr show dev nodelocaldns")
        assert "192.0.2.1/24" in left
        assert not any(address in left for address in ADDRESSES)

    on_node(scene, story)


@contextmanager
def legacy_locked() -> Iterator[None]:
    """The older iptables is the one that Kubernetes uses here, and another process holds its lock."""
    with open(XTABLES_LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def use_legacy(scene: Setup) -> None:
    for program in ("iptables-legacy", "ip6tables-legacy"):
        scene.node.run(program, "-t mangle -N KUBE-KUBELET-CANARY")


def test_n08_a_teardown_does_not_wait_for_the_lock_of_iptables(scene: Setup) -> None:
    async def story() -> None:
        async with kept(network(Firewall.IPTABLES), removed=False) as reconciler, renewed(reconciler):
            await becomes("node", scene.pod, CLUSTER_DNS[4])
            assert "TOPODNS-OUTPUT" in scene.node.run("iptables-legacy-save", "-t raw")
        reconciler = HostNetworkReconciler(network(Firewall.IPTABLES))
        await reconciler.set_up_link()
        await reconciler.set_up_rules()
        with legacy_locked():
            assert await reconciler.release(has_successor=True)
            assert await reconciler.remove()

    use_legacy(scene)
    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)
    for program in ("iptables-legacy-save", "ip6tables-legacy-save"):
        assert "TOPODNS" not in scene.node.run(program, "")


def test_n08_a_held_lock_is_reported_as_such(scene: Setup) -> None:
    async def story() -> None:
        reconciler = HostNetworkReconciler(network(Firewall.IPTABLES))
        with legacy_locked(), pytest.raises(HostNetworkError, match="lock of iptables") as refused:
            await reconciler.set_up_rules()
        assert refused.value.kind is ErrorKind.IPTABLES_LOCK
        assert reconciler.counts.errors == {"iptables_lock": 1}
        reconciler.leave(has_successor=True)

    use_legacy(scene)
    on_node(scene, story)


def test_without_rules_only_the_link_is_made(scene: Setup) -> None:
    async def story() -> None:
        async with kept(network(Firewall.NONE)) as reconciler:
            assert reconciler.renew()
            assert scene.node.run("nft", "list tables").count("nat") == 2  # kube-proxy's
            await becomes("node", scene.pod, LINK_LOCAL[6])

    scene.answer_on_node(*ADDRESSES)
    on_node(scene, story)


def test_one_family_is_enough(scene: Setup) -> None:
    async def story() -> None:
        async with kept(host_network(LINK_LOCAL[6])) as reconciler:
            assert reconciler.renew()

    on_node(scene, story)


def test_a_change_without_a_notification_is_repaired_at_the_sync_interval(
    scene: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler_module, "MAX_SYNC_INTERVAL", 3600.0)

    async def story() -> None:
        wished = replace(network(Firewall.NFTABLES), sync_interval=0.2)
        async with kept(wished) as reconciler:
            scene.node.run("ip", "link set nodelocaldns name somebodys")
            await eventually(lambda: reconciler.counts.repaired["link"] > 0)
            assert "nodelocaldns" in scene.node.run("ip", "-br link")

    on_node(scene, story)
    scene.node.run("ip", "link del somebodys")
