"""What node-cache is told by its command line and its files. Plain values: nothing here reads or decides."""

from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from ipaddress import IPv4Address, IPv6Address

from topodns.settings.memory import MemoryLimits
from topodns.settings.server import Address

IPAddress = IPv4Address | IPv6Address


class Firewall(StrEnum):
    """How packets are kept out of conntrack; the value is what `-firewall` is given."""

    AUTO = "auto"  # nftables where `nft` works, else iptables
    NFTABLES = "nftables"
    IPTABLES = "iptables"
    NONE = "none"  # also what -setupiptables=false means


class Action(Enum):
    """What the command line asks for."""

    SERVE = "serve"
    HELP = "help"
    VERSION = "version"
    PLUGINS = "plugins"


@dataclass(frozen=True, slots=True)
class NodeCacheFlags:
    """The command line. Nothing of it but `action` means anything where that is not SERVE."""

    local_ips: tuple[IPAddress, ...]  # where it listens: at least one, none twice, of either family or both
    port: int  # 1..65535, of those addresses; for the rules, and for stub domains
    conf: str  # where a copy of the rendered Corefile is written, and relative paths in it start; "" nowhere
    base_corefile: str  # the template
    kube_dns_directory: str  # where the kube-dns ConfigMap is mounted, if there is one
    upstream_service: str  # whose address __PILLAR__CLUSTER__DNS__ stands for
    setup_interface: bool
    interface_name: str
    firewall: Firewall
    sync_interval: float  # seconds, at least 1, between two looks at rules and link
    skip_teardown: bool
    health_port: int  # 1..65535, for the rules only
    metrics_listen: Address  # of node-cache's own metrics
    prometheus_listen: str  # HOST:PORT or :PORT, as __PROMETHEUS__ENDPOINT__ is written
    reload_with_signal: bool  # without effect: a change counts at once anyway
    pid_file: str  # "" none
    quiet: bool
    node_name: str  # of the Node that it runs on; "" unknown
    memory: MemoryLimits  # for all answers that are kept
    action: Action = Action.SERVE
    remarks: tuple[str, ...] = ()  # worth a line in the log each


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it was read. Without `text` it is not there, or cannot be read, and then `problem` says why."""

    path: str
    text: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NodeConfigTexts:
    """All files that node-cache's configuration is made of, as they were at one time."""

    template: FileText
    stub_domains: FileText
    upstream_nameservers: FileText

    def without_kube_dns(self) -> "NodeConfigTexts":
        """The same without the kube-dns ConfigMap."""
        absent = FileText(self.stub_domains.path), FileText(self.upstream_nameservers.path)
        return replace(self, stub_domains=absent[0], upstream_nameservers=absent[1])


@dataclass(frozen=True, slots=True)
class RenderedCorefile:
    """The Corefile that the files stand for. With `problems`, a line each, it cannot be served."""

    text: str
    problems: tuple[str, ...] = ()
