"""The servers that are compared, and how each is configured. All have one thread or one core.

CoreDNS and topodns read the same cluster from the same stand-in for an API server, and have the same Corefile, except
that topodns's has the line `topology`. NSD, BIND and unbound have the same names as a static zone; unbound and BIND
forward the others.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.compare.interpreters import find_interpreters, image_interpreter
from bench.compare.loads import Method, Row
from bench.proc import free_port
from bench.programs import find_coredns, find_debian
from bench.resolvers import Bind, Command, Mode, OfCorefile, Place, Resolver, Unbound, node_cache_command

TOPODNS: Final = "topodns"
FLOOR: Final = "C echo"

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

_NAMED_ZONE: Final = """\
zone "cluster.local" {{ type master; file "{zone}"; max-records-per-type 0; }};
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
class Contender:
    """A server and its configurations. `cluster` makes the command that answers for the cluster; its rows are `rows`.

    `knows`: it knows names; the floor does not. `follows`: it watches the API server, so that it gets changes.
    `settling`: seconds between its first answer and its first measurement. `node`: makes the command of a node cache
    whose upstream is the server on a port. `modes`: the configuration of `resolver` for each row.
    """

    title: str
    cluster: Callable[[Place], Command]
    rows: frozenset[Row]
    knows: bool = True
    follows: bool = False
    settling: float = 0.3
    resolver: Resolver | None = None
    node: Callable[[Place, int], Command] | None = None
    modes: Mapping[Row, Mode] = field(default_factory=dict)


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
    Row.FORWARDED_CACHE: Mode.WHOLE,
    Row.CACHED: Mode.WHOLE,
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
    def cluster(place: Place) -> Command:
        text = server_corefile(place.api_url, place.upstream_port, free_port(), ours)
        return (*program, "-conf", _written(place, "Corefile", text), "-dns.port", str(place.port))

    def node(place: Place, server: int) -> Command:
        text = _NODE_COREFILE.format(server=server, metrics=free_port(), upstream=place.upstream_port)
        corefile = _written(place, "Corefile.node", text)
        if ours:
            return node_cache_command(program, corefile, place.port)
        return (*program, "-conf", corefile, "-dns.port", str(place.port))

    resolver = OfCorefile(title, program, ours)
    return Contender(
        title, cluster, _CLUSTER_ROWS, follows=True, settling=2.0, resolver=resolver, node=node, modes=_MODES
    )


def _static(names: StaticNames, say: Callable[[str], None]) -> Iterator[Contender]:
    rows = _CLUSTER_ROWS - _CUT_ROWS
    if unbound := find_debian("unbound", say):
        cached = Unbound(unbound.title, unbound.path)

        def local(place: Place) -> Command:
            *command, conf = cached.command(Mode.UDP, place)
            path = Path(conf)
            path.write_text(path.read_text() + _UNBOUND_ZONE.format(data=names.local_data))
            return (*command, path)

        modes = {row: _MODES[row] for row in (Row.FORWARDED_UDP, Row.FORWARDED_CACHE, Row.CACHED)}
        yield Contender(unbound.title, local, rows, resolver=cached, modes=modes)
    if named := find_debian("named", say):
        bind = Bind(named.title, named.path)

        def master(place: Place) -> Command:
            *command, conf = bind.command(Mode.WHOLE_UDP, place)
            path = Path(conf)
            path.write_text(path.read_text() + _NAMED_ZONE.format(zone=names.zone))
            return (*command, path)

        modes = dict.fromkeys((Row.FORWARDED_UDP, Row.CACHED), Mode.WHOLE_UDP)
        yield Contender(named.title, master, rows, resolver=bind, modes=modes)
    if nsd := find_debian("nsd", say):
        yield Contender(nsd.title, lambda place: _nsd(nsd.path, names.zone, place), rows - {Row.MIX})


def _nsd(program: Path, zone_file: Path, place: Place) -> Command:
    text = _NSD_CONF.format(port=place.port, folder=place.folder, zone=zone_file)
    return program, "-d", "-c", _written(place, "nsd.conf", text)


def _written(place: Place, name: str, text: str) -> Path:
    path = place.folder / name
    path.write_text(text)
    return path
