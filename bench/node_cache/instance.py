"""The programs that are measured, topodns with either firewall and NodeLocal DNSCache, and their started instances."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.proc import NoAnswer
from bench.programs import TOPODNS
from tests.support.namespaced_cluster import SERVERS
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace
from tests.support.node_cache_template import node_template

LINK: Final = "nodelocaldns"
STOP_PATIENCE: Final = 20.0  # seconds

_LOOK: Final = 0.002  # seconds between two evaluations of a condition
_LAST: Final = 5  # lines of a log that an error message quotes


def wait_for(condition: Callable[[], object], patience: float) -> float | None:
    """Wait until the condition is true. Returns the seconds that it took; None if it was not true within `patience`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + patience:
            return None
        time.sleep(_LOOK)
    return time.monotonic() - began


@dataclass(frozen=True)
class InstanceFiles:
    """The files of one instance."""

    folder: Path

    @property
    def template(self) -> Path:
        return self.folder / "Corefile.base"

    @property
    def pid_file(self) -> Path:
        return self.folder / "pid"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def write_template(self, text: str) -> None:
        self.folder.mkdir()
        self.template.write_text(text)


class Instance:
    """An instance. `pid`: the process that answers. `supervisor`: its parent, the watchdog; None without one."""

    def __init__(self, process: subprocess.Popen[bytes], files: InstanceFiles) -> None:
        self._process, self._files = process, files

    @property
    def pid(self) -> int:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[0]) if children else self._process.pid

    @property
    def supervisor(self) -> int | None:
        return self._process.pid if self.pid != self._process.pid else None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def has_pid_file(self) -> bool:
        """Whether it has written its pid file, which it does once it serves. Raises NoAnswer if it has ended."""
        if self._process.poll() is not None:
            raise NoAnswer(f"ended with {self._process.returncode}: {self.log_tail()}")
        return self._files.pid_file.exists()

    def stop(self) -> float:
        """Send SIGTERM, as the kubelet does, and wait. Returns the seconds until the end.

        Raises NoAnswer if it does not end within STOP_PATIENCE.
        """
        began = time.monotonic()
        self._process.terminate()
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"does not stop: {self.log_tail()}") from None
        return time.monotonic() - began

    def kill(self) -> None:
        """Send SIGKILL to its process group, and wait for the process; nothing if it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def log_tail(self) -> str:
        """The last lines of its log."""
        return "\n".join(self._files.log.read_text().splitlines()[-_LAST:])


@dataclass(frozen=True)
class Subject:
    """A program with node-cache's flags. `firewall`: the tool with which it makes rules, nftables or iptables."""

    title: str
    program: Sequence[str | Path]
    firewall: str
    is_original: bool = False

    def command(self, files: InstanceFiles) -> list[str | Path]:
        """The manifest's flags, and a pid file, without which NodeLocal DNSCache makes its rules a minute late."""
        flags = [
            f"-localip={LINK_LOCAL[4]},{CLUSTER_DNS[4]}", f"-conf={files.folder}/Corefile",
            "-upstreamsvc=kube-dns-upstream", f"-basecorefile={files.template}", f"-pidfile={files.pid_file}",
        ]  # fmt: skip
        own = [] if self.is_original else [f"-firewall={self.firewall}", "-nodename=node-b2"]
        return [*self.program, *flags, *own]

    def rules(self, node: Namespace) -> list[str]:
        """The rules on the node that redirect the pods' queries to this program, a line each."""
        if self.firewall == "nftables":
            lines = node.run("nft", "-a list ruleset").splitlines()
            return [line.strip() for line in _table(lines, "table inet topodns") if "notrack" in line]
        return [line for line in node.run("iptables-save", "-t raw").splitlines() if line.startswith("-A")]

    def flush_rules(self, node: Namespace) -> None:
        """Delete all of its rules, as `iptables -F` or `nft flush ruleset` does, but not those of kube-proxy."""
        if self.firewall == "nftables":
            node.run("nft", "delete table inet topodns")
        else:
            for line in node.run("iptables-save", "-t raw").splitlines():
                if line.startswith(":"):
                    node.run("iptables", f"-t raw -F {line[1:].split()[0]}")

    def delete_a_rule(self, node: Namespace) -> None:
        """Delete one of its rules."""
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
    """topodns with nftables and with iptables, and NodeLocal DNSCache if the path of its program is given."""
    ours = (*TOPODNS, "node-cache")
    found = [Subject(f"topodns, {firewall}", ours, firewall) for firewall in ("nftables", "iptables")]
    return found + ([Subject("NodeLocal DNSCache", (original,), "iptables", True)] if original else [])


def template(outward: str = "") -> str:
    """NodeLocal DNSCache's template, as its installer fills it in.

    `outward`: the upstreams of names outside of the cluster, with blanks between; "" for the cluster DNS's servers.
    """
    own = " ".join(server[4] for server in SERVERS)
    return (
        node_template()
        .replace("health __PILLAR__LOCAL__DNS__", f"health {LINK_LOCAL[4]}")
        .replace("__PILLAR__UPSTREAM__SERVERS__", outward or own)
    )
