"""node-cache's settings: the values of its command line and the contents of its files. No logic."""

from dataclasses import dataclass, replace
from enum import Enum

from topodns.corefile.arguments import Address
from topodns.hostnet.rules import Firewall
from topodns.memory.budget import MemoryLimits
from topodns.netlink.route import IPAddress


class NodeCacheAction(Enum):
    """The action that the command line selects."""

    SERVE = "serve"
    HELP = "help"
    VERSION = "version"
    PLUGINS = "plugins"


@dataclass(frozen=True, slots=True)
class NodeCacheFlags:
    """The command line. Unless `action` is SERVE, the other fields have no meaning."""

    local_ips: tuple[IPAddress, ...]  # listen addresses: at least one, distinct, of either family or both
    port: int  # 1..65535, of those addresses; for the rules, and for stub domains
    conf: str  # path of a copy of the rendered Corefile, or of the Corefile itself without a template; "" for none
    base_corefile: str  # the template
    kube_dns_directory: str  # mount point of the optional kube-dns ConfigMap
    upstream_service: str  # the Service whose address replaces __PILLAR__CLUSTER__DNS__
    setup_interface: bool
    interface_name: str
    firewall: Firewall
    sync_interval: float  # seconds, at least 1, between two comparisons of rules and link
    skip_teardown: bool
    health_port: int  # 1..65535, for the rules only
    metrics_listen: Address  # of node-cache's own metrics
    prometheus_listen: str  # HOST:PORT or :PORT, as __PROMETHEUS__ENDPOINT__ is written
    reload_with_signal: bool  # without effect: a change counts at once anyway
    pid_file: str  # "" none
    quiet: bool
    node_name: str  # of the Node that it runs on; "" unknown
    memory: MemoryLimits  # of all cached answers
    action: NodeCacheAction = NodeCacheAction.SERVE
    remarks: tuple[str, ...] = ()  # lines for the log


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it was read. Without `text` it is missing, or cannot be read because of `problem`."""

    path: str
    text: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NodeConfigTexts:
    """All files of node-cache's configuration, read at one time.

    `without_template`: there is no template, and the Corefile of -conf is served as it is.
    """

    template: FileText
    stub_domains: FileText
    upstream_nameservers: FileText
    without_template: bool = False

    def without_kube_dns(self) -> "NodeConfigTexts":
        """These texts without those of the kube-dns ConfigMap."""
        absent = FileText(self.stub_domains.path), FileText(self.upstream_nameservers.path)
        return replace(self, stub_domains=absent[0], upstream_nameservers=absent[1])


@dataclass(frozen=True, slots=True)
class RenderedCorefile:
    """The Corefile made of the files. With `problems`, a line each, it cannot be served."""

    text: str
    problems: tuple[str, ...] = ()
