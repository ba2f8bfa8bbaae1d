"""The servers that are compared, and how each is configured. All have one thread or one core.

CoreDNS and topodns read the same cluster from the same stand-in for an API server, and have the same Corefile, except
that topodns's has the line `topology`. NSD, BIND and unbound have the same names as a static zone; unbound and BIND
forward the others.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

from bench.compare.interpreters import find_interpreters, image_interpreter
from bench.compare.loads import Method, Row
from bench.proc import free_port
from bench.programs import Command, find_coredns, find_debian, node_cache_command, server_command

TOPODNS: Final = "topodns"
FLOOR: Final = "C echo"


class Mode(Enum):
    """The configurations of a server that forwards all names."""

    UDP = "over UDP"
    TCP = "over TCP"
    CACHE = "over TCP, with a cache: kubeadm's Corefile without kubernetes"
    CACHE_UDP = "over UDP, with a cache"


_COREFILE: Final = """\
. {{
    bind 127.0.0.1
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        endpoint {api}
        pods insecure
        ttl 30
    }}
{own}    prometheus 127.0.0.1:{metrics}
    forward . 127.0.0.1:{upstream}
    cache 30
    loadbalance
}}
"""

# The blocks of NodeLocal DNSCache's template for the cluster's names and for all others, without loop, reload, health.
_NODE_COREFILE: Final = """\
cluster.local {{
    errors
    cache {{
        success 9984 30
        denial 9984 5
    }}
    bind 127.0.0.1
    forward . 127.0.0.1:{server} {{
        force_tcp
    }}
    prometheus 127.0.0.1:{metrics}
}}
. {{
    errors
    cache 30
    bind 127.0.0.1
    forward . 127.0.0.1:{upstream}
    prometheus 127.0.0.1:{metrics}
}}
"""

_FORWARDING_COREFILES: Final = {
    Mode.UDP: """\
. {{
    bind 127.0.0.1
    errors
    prometheus 127.0.0.1:{metrics}
    forward . 127.0.0.1:{upstream}
}}
""",
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
    Mode.CACHE: """\
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
}

_NSD_CONF: Final = """\
server:
    ip-address: 127.0.0.1@{port}
    server-count: 1
    rrl-ratelimit: 0
    username: ""
    chroot: ""
    zonesdir: "{folder}"
    database: ""
    pidfile: "{folder}/nsd.pid"
    zonelistfile: "{folder}/zone.list"
    xfrdfile: "{folder}/xfrd.state"
    xfrdir: "{folder}"
    tcp-count: 100
    verbosity: 0
remote-control:
    control-enable: no
zone:
    name: cluster.local
    zonefile: "{zone}"
"""

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

_NAMED_ZONE: Final = """\
zone "cluster.local" {{ type master; file "{zone}"; max-records-per-type 0; }};
"""

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

_UNBOUND_ZONE: Final = """\
server:
    incoming-num-tcp: 100
    include: "{data}"
"""


@dataclass(frozen=True)
class StaticNames:
    """The names of the cluster as files: a zone, and unbound's local data."""

    zone: Path
    local_data: Path


@dataclass(frozen=True)
class Place:
    """The folder and ports of one start of a server, all on 127.0.0.1: its own port, and that of its upstream."""

    folder: Path
    port: int
    upstream_port: int
    api_url: str  # of a stand-in for an API server with the cluster

    def written(self, name: str, text: str) -> Path:
        """The path of a configuration file in the folder, with this text."""
        path = self.folder / name
        path.write_text(text)
        return path


@dataclass(frozen=True)
class Contender:
    """A server and its configurations, each made by a function that writes it and returns the command of the server.

    `cluster` makes the one that answers for the cluster; its rows are `rows`. `knows`: it knows names; the floor does
    not. `follows`: it watches the API server, so that it gets changes. `settling`: seconds between its first answer and
    its first measurement. `forwarding` makes one that forwards all names; `modes` has the mode of each row. `node`
    makes a node cache whose upstream is the server on a port.
    """

    title: str
    cluster: Callable[[Place], Command]
    rows: frozenset[Row]
    knows: bool = True
    follows: bool = False
    settling: float = 0.3
    forwarding: Callable[[Place, Mode], Command] | None = None
    modes: Mapping[Row, Mode] = field(default_factory=dict)
    node: Callable[[Place, int], Command] | None = None


_CLUSTER_ROWS: Final = frozenset(
    {
        *(Row.HOT, Row.MIX, Row.KEYS, Row.SIZED_100, Row.SIZED_1000, Row.WHOLE_1000),
        *(Row.ONE_BY_ONE, Row.PIPELINED, Row.DNSPERF, Row.SERVICES_ONCE, Row.NAMES_ONCE),
    }
)
_CUT_ROWS: Final = frozenset({Row.SIZED_100, Row.SIZED_1000})  # which servers truncate in different ways
_MODES: Final = {
    Row.FORWARDED_UDP: Mode.UDP,
    Row.FORWARDED_TCP: Mode.TCP,
    Row.FORWARDED_CACHE: Mode.CACHE,
    Row.CACHED: Mode.CACHE,
}


def floor(echo: tuple[str | Path, ...], echo_tcp: Path) -> Mapping[Method, Contender]:
    """The floor of each method: a program that sends back each message. None does so for dnsperf."""

    def sends_back(*command: str | Path) -> Contender:
        return Contender(FLOOR, lambda place: (*command, str(place.port)), frozenset(), knows=False)

    over_tcp = sends_back(echo_tcp)
    return {Method.UDP: sends_back(*echo), Method.ONE_BY_ONE: over_tcp, Method.PIPELINED: over_tcp}


def server_corefile(api_url: str, upstream: int, metrics: int, ours: bool) -> str:
    """The Corefile of topodns (`ours`) or CoreDNS; the numbers are ports on 127.0.0.1."""
    own = "    topology\n" if ours else ""
    return _COREFILE.format(api=api_url, upstream=upstream, metrics=metrics, own=own)


def find_contenders(names: StaticNames, say: Callable[[str], None]) -> list[Contender]:
    """topodns, CoreDNS, and those of Debian's servers that are installed; `say` gets a line for each that is not."""
    found = [_of_corefile(TOPODNS, (*image_interpreter().command, "-m", "topodns"), ours=True)]
    if coredns := find_coredns(say):
        found.append(_of_corefile(coredns.title, ("env", "GOMAXPROCS=1", coredns.path), ours=False))
    return [*found, *_static(names, say)]


def find_by_interpreter(say: Callable[[str], None]) -> list[Contender]:
    """topodns alone, by each installed interpreter; `say` gets a line for each that is not."""
    return [_of_corefile(each.title, (*each.command, "-m", "topodns"), ours=True) for each in find_interpreters(say)]


def _of_corefile(title: str, program: Command, ours: bool) -> Contender:
    def command(place: Place, text: str) -> Command:
        return server_command(place.written("Corefile", text), place.port, program)

    def cluster(place: Place) -> Command:
        return command(place, server_corefile(place.api_url, place.upstream_port, free_port(), ours))

    def forwarding(place: Place, mode: Mode) -> Command:
        health, ready, metrics = free_port(), free_port(), free_port()
        text = _FORWARDING_COREFILES[mode]
        return command(place, text.format(upstream=place.upstream_port, health=health, ready=ready, metrics=metrics))

    def node(place: Place, server: int) -> Command:
        text = _NODE_COREFILE.format(server=server, metrics=free_port(), upstream=place.upstream_port)
        if ours:
            return node_cache_command(place.written("template", text), place.port, "-nodename=node1", program=program)
        return command(place, text)

    return Contender(
        title, cluster, _CLUSTER_ROWS, follows=True, settling=2.0, forwarding=forwarding, modes=_MODES, node=node
    )


def _static(names: StaticNames, say: Callable[[str], None]) -> Iterator[Contender]:
    rows = _CLUSTER_ROWS - _CUT_ROWS
    if unbound := find_debian("unbound", say):
        modes = {row: _MODES[row] for row in (Row.FORWARDED_UDP, Row.FORWARDED_CACHE, Row.CACHED)}
        local = partial(_unbound, unbound.path, mode=Mode.UDP, more=_UNBOUND_ZONE.format(data=names.local_data))
        yield Contender(unbound.title, local, rows, forwarding=partial(_unbound, unbound.path), modes=modes)
    if named := find_debian("named", say):
        modes = dict.fromkeys((Row.FORWARDED_UDP, Row.CACHED), Mode.CACHE_UDP)
        master = partial(_named, named.path, more=_NAMED_ZONE.format(zone=names.zone))
        yield Contender(
            named.title, master, rows, forwarding=lambda place, _mode: _named(named.path, place), modes=modes
        )
    if nsd := find_debian("nsd", say):
        yield Contender(nsd.title, lambda place: _nsd(nsd.path, names.zone, place), rows - {Row.MIX})


def _unbound(program: Path, place: Place, mode: Mode, more: str = "") -> Command:
    tcp = "no" if mode is Mode.UDP else "yes"
    text = _UNBOUND_CONF.format(port=place.port, upstream=place.upstream_port, folder=place.folder, tcp=tcp)
    return program, "-d", "-c", place.written("unbound.conf", text + more)


def _named(program: Path, place: Place, more: str = "") -> Command:
    text = _NAMED_CONF.format(port=place.port, upstream=place.upstream_port, folder=place.folder)
    return program, "-f", "-n", "1", "-c", place.written("named.conf", text + more)


def _nsd(program: Path, zone_file: Path, place: Place) -> Command:
    text = _NSD_CONF.format(port=place.port, folder=place.folder, zone=zone_file)
    return program, "-d", "-c", place.written("nsd.conf", text)
