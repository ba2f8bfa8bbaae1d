"""The resolvers that are measured, and their configurations, in each of which they forward to one upstream."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, Protocol

from bench.proc import free_port
from bench.programs import find_coredns, find_debian

DEMO: Final = Path(__file__).parents[1] / "config" / "demo" / "cluster"

Command = tuple[str | Path, ...]


class Mode(Enum):
    """The configurations of a resolver. A resolver has those of its `modes`."""

    TCP = "forwarded over TCP"
    UDP = "forwarded over UDP"
    WHOLE = "with a cache, over TCP: kubeadm's Corefile without kubernetes"
    WHOLE_UDP = "with a cache, over UDP"
    NODE = "a node's cache: names of the cluster, over TCP, with the name of the node in each query"
    AUTOPATH = "autopath"


@dataclass(frozen=True)
class Place:
    """The folder and ports of one start of a resolver, all on 127.0.0.1: its own port, and that of its upstream."""

    folder: Path
    port: int
    upstream_port: int
    api_url: str  # of a stand-in for an API server with config/demo, for resolvers that cannot read manifests


class Resolver(Protocol):
    """A program that forwards queries."""

    @property
    def title(self) -> str: ...

    @property
    def modes(self) -> frozenset[Mode]:
        """The configurations that it has."""

    def command(self, mode: Mode, place: Place) -> Command:
        """Write the configuration of this mode into `place.folder`. Returns the command that starts the resolver."""


_COREFILES: Final = {
    Mode.TCP: """\
. {{
    bind 127.0.0.1
    errors
    prometheus 127.0.0.1:{metrics}
    forward . 127.0.0.1:{upstream} {{
        force_tcp
    }}
}}
""",
    Mode.UDP: """\
. {{
    bind 127.0.0.1
    errors
    prometheus 127.0.0.1:{metrics}
    forward . 127.0.0.1:{upstream}
}}
""",
    Mode.WHOLE: """\
. {{
    bind 127.0.0.1
    errors
    health 127.0.0.1:{health} {{
        lameduck 0s
    }}
    ready 127.0.0.1:{ready}
    prometheus 127.0.0.1:{metrics}
    forward . 127.0.0.1:{upstream} {{
        force_tcp
        max_concurrent 1000
    }}
    cache 30
    loop
    reload
    loadbalance
}}
""",
    # The blocks that matter of NodeLocal DNSCache's template, example.com in place of cluster.local.
    Mode.NODE: """\
example.com {{
    errors
    cache {{
        success 9984 30
        denial 9984 5
    }}
    reload
    loop
    bind 127.0.0.1
    forward . 127.0.0.1:{upstream} {{
        force_tcp
    }}
    prometheus 127.0.0.1:{metrics}
    health 127.0.0.1:{health}
}}
. {{
    errors
    cache 30
    reload
    loop
    bind 127.0.0.1
    forward . 127.0.0.1:{upstream}
    prometheus 127.0.0.1:{metrics}
}}
""",
    Mode.AUTOPATH: """\
. {{
    bind 127.0.0.1
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        {cluster}
        pods verified
    }}
    autopath @kubernetes
    prometheus 127.0.0.1:{metrics}
    forward . 127.0.0.1:{upstream}
    cache 30
}}
""",
}


@dataclass(frozen=True)
class OfCorefile:
    """A program with CoreDNS's flags and Corefile. `ours`: topodns, which reads manifests and has a node cache.

    With `chain` each server block has `whoami`, too: behind `forward` it answers no query, but topodns has no fast path
    for blocks with it, so that queries go through the chain of plugins.
    """

    title: str
    program: Command
    ours: bool
    chain: bool = False

    modes = frozenset(_COREFILES)

    def command(self, mode: Mode, place: Place) -> Command:
        text = _COREFILES[mode].format(
            upstream=place.upstream_port,
            metrics=free_port(),
            health=free_port(),
            ready=free_port(),
            cluster=f"manifests {DEMO}" if self.ours else f"endpoint {place.api_url}",
        )
        if self.chain:
            text = text.replace("\n}", "\n    whoami\n}")
        corefile = place.folder / "Corefile"
        corefile.write_text(text)
        if mode is Mode.NODE and self.ours:
            return node_cache_command(self.program, corefile, place.port)
        return (*self.program, "-conf", corefile, "-dns.port", str(place.port))


_IN_A_NODE: Final = ("env", "KUBE_DNS_SERVICE_HOST=127.0.0.1", "NODE_NAME=node-a")


def node_cache_command(program: Command, template: Path, port: int) -> Command:
    """The command of topodns's node cache with this template, on 127.0.0.1:`port`, without a link and rules."""
    return (
        *(*_IN_A_NODE, *program, "node-cache"),
        *("-localip", "127.0.0.1", "-p", str(port), "-basecorefile", template, "-conf", template.with_name("copy")),
        *("-setupinterface=false", "-setupiptables=false", "-metrics-listen-address", f"127.0.0.1:{free_port()}"),
    )


_UNBOUND_CONF: Final = """\
server:
    interface: 127.0.0.1@{port}
    access-control: 127.0.0.0/8 allow
    num-threads: 1
    module-config: "iterator"
    do-not-query-localhost: no
    tcp-upstream: {tcp}
    chroot: ""
    username: ""
    pidfile: ""
    directory: "{folder}"
    use-syslog: no
remote-control:
    control-enable: no
forward-zone:
    name: "."
    forward-addr: 127.0.0.1@{upstream}
"""


@dataclass(frozen=True)
class Unbound:
    title: str
    program: Path

    modes = frozenset((Mode.UDP, Mode.WHOLE))

    def command(self, mode: Mode, place: Place) -> Command:
        conf = place.folder / "unbound.conf"
        tcp = "no" if mode is Mode.UDP else "yes"
        conf.write_text(
            _UNBOUND_CONF.format(port=place.port, upstream=place.upstream_port, folder=place.folder, tcp=tcp)
        )
        return self.program, "-d", "-c", conf


# Over TCP BIND opens a connection for each query, which takes most of a millisecond.
_NAMED_CONF: Final = """\
options {{
    directory "{folder}";
    listen-on port {port} {{ 127.0.0.1; }};
    listen-on-v6 {{ none; }};
    allow-query {{ 127.0.0.0/8; }};
    allow-recursion {{ 127.0.0.0/8; }};
    forward only;
    forwarders port {upstream} {{ 127.0.0.1; }};
    dnssec-validation no;
    pid-file none;
    lock-file none;
    session-keyfile none;
}};
controls {{ }};
logging {{ category default {{ null; }}; }};
"""


@dataclass(frozen=True)
class Bind:
    title: str
    program: Path

    modes = frozenset((Mode.WHOLE_UDP,))

    def command(self, mode: Mode, place: Place) -> Command:
        conf = place.folder / "named.conf"
        conf.write_text(_NAMED_CONF.format(port=place.port, upstream=place.upstream_port, folder=place.folder))
        return self.program, "-f", "-n", "1", "-c", conf


def find_resolvers(say: Callable[[str], None]) -> list[Resolver]:
    """topodns, with and without its fast path to `forward`, then CoreDNS, unbound and BIND, if they are installed.

    `say` gets a line for each that is not.
    """
    program = (sys.executable, "-m", "topodns")
    return [
        OfCorefile("topodns", program, True),
        OfCorefile("without fast path", program, True, chain=True),
        *_others(say),
    ]


def _others(say: Callable[[str], None]) -> Iterator[Resolver]:
    if coredns := find_coredns(say):
        yield OfCorefile(coredns.title, ("env", "GOMAXPROCS=1", coredns.path), False)
    if unbound := find_debian("unbound", say):
        yield Unbound(unbound.title, unbound.path)
    if named := find_debian("named", say):
        yield Bind(named.title, named.path)
