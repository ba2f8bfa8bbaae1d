"""Who is measured: topodns with either firewall and NodeLocal DNSCache, all with the same template."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.node_cache.life import Place
from tests.support.namespaced_cluster import SERVERS
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace
from tests.support.node_cache_template import node_template

LINK: Final = "nodelocaldns"


@dataclass(frozen=True)
class Subject:
    """A program that takes node-cache's flags. `firewall` is whose rules it makes: nftables or iptables."""

    title: str
    program: Sequence[str | Path]
    firewall: str
    is_original: bool = False

    def command(self, place: Place) -> list[str | Path]:
        """The manifest's flags, and a pid file: NodeLocal DNSCache makes its rules a minute after its start else."""
        flags = [
            f"-localip={LINK_LOCAL[4]},{CLUSTER_DNS[4]}", f"-conf={place.folder}/Corefile",
            "-upstreamsvc=kube-dns-upstream", f"-basecorefile={place.template}", f"-pidfile={place.pid_file}",
        ]  # fmt: skip
        own = [] if self.is_original else [f"-firewall={self.firewall}", "-nodename=node-b2"]
        return [*self.program, *flags, *own]

    def rules(self, node: Namespace) -> list[str]:
        """Those that lead the pods' questions here, as they are on the node now."""
        if self.firewall == "nftables":
            lines = node.run("nft", "-a list ruleset").splitlines()
            return [line.strip() for line in _table(lines, "table inet topodns") if "notrack" in line]
        return [line for line in node.run("iptables-save", "-t raw").splitlines() if line.startswith("-A")]

    def flush_rules(self, node: Namespace) -> None:
        """What an administrator's `iptables -F` or `nft flush ruleset` does, kube-proxy's rules spared."""
        if self.firewall == "nftables":
            node.run("nft", "delete table inet topodns")
        else:
            for line in node.run("iptables-save", "-t raw").splitlines():
                if line.startswith(":"):
                    node.run("iptables", f"-t raw -F {line[1:].split()[0]}")

    def delete_a_rule(self, node: Namespace) -> None:
        """One of them."""
        rule = next(line for line in self.rules(node) if "skip conntrack" in line)
        if self.firewall == "nftables":
            node.run("nft", f"delete rule inet topodns prerouting handle {rule.split()[-1]}")
        else:
            node.run("iptables-restore", "--noflush -w 5", f"*raw\n{rule.replace('-A', '-D', 1)}\nCOMMIT\n")


def _table(lines: Sequence[str], head: str) -> list[str]:
    """The lines of one table."""
    begin = next((number for number, line in enumerate(lines) if line.startswith(head)), len(lines))
    end = next((number for number, line in enumerate(lines) if number > begin and line.startswith("}")), len(lines))
    return list(lines[begin:end])


def subjects(original: Path | None) -> list[Subject]:
    """Ours, and the original where there is one."""
    ours = (sys.executable, "-m", "topodns", "node-cache")
    found = [Subject(f"topodns, {firewall}", ours, firewall) for firewall in ("nftables", "iptables")]
    return found + ([Subject("NodeLocal DNSCache", (original,), "iptables", True)] if original else [])


def template(outward: str = "") -> str:
    """NodeLocal DNSCache's own, as its installer fills it in; `outward` serve names outside (default: ours)."""
    own = " ".join(server[4] for server in SERVERS)
    return (
        node_template()
        .replace("health __PILLAR__LOCAL__DNS__", f"health {LINK_LOCAL[4]}")
        .replace("__PILLAR__UPSTREAM__SERVERS__", outward or own)
    )
