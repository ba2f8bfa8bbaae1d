"""node-cache's flags: those of NodeLocal DNSCache with CoreDNS's, and some of our own. Command line in, settings out.

A value is checked as a directive's is, so that both are refused in the same words.
"""

import os
import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Final

from topodns.config.corefile import Directive
from topodns.config.errors import ConfigError, shown
from topodns.config.node_cache.go_flags import SWITCH, Flag, Given, WrongUsage, read_flags, usage_text
from topodns.config.values import MAX_PORT, choice, duration, listen_address, whole
from topodns.settings.memory import MemoryLimits
from topodns.settings.node_cache import Action, Firewall, IPAddress, NodeCacheFlags
from topodns.settings.server import Address

PROGRAM: Final = "node-cache"
NODE_NAME: Final = "NODE_NAME"  # the environment variable that the DaemonSet fills from spec.nodeName

_ANY: Final = Address("", 0)
_LONGEST_INTERFACE: Final = 15  # octets: IFNAMSIZ less the final NUL
_LONGEST_NODE_NAME: Final = 253
# A Node's name is a DNS-1123 subdomain.
_NODE_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_SERVICE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_MIN_CACHE: Final = 1 << 20  # octets: less holds hardly two thousand names
_MAX_CACHE: Final = 1 << 30

_UNREAD: Final = 1 << 20  # octets; pods are near, and read at once
_UNREAD_EACH: Final = 64 << 10  # one message of the longest there are

_FIREWALLS: Final = {firewall.value: firewall for firewall in Firewall}

FLAGS: Final = (
    Flag("localip", "IP,...", "addresses to listen on, of one family or of both; required"),
    Flag("conf", "FILE", "where a copy of the Corefile made of the template is written"),
    Flag("corefile", "FILE", "without effect: -conf counts", "/etc/Corefile"),
    Flag("basecorefile", "FILE", "the template of the Corefile", "/etc/coredns/Corefile.base"),
    Flag("kubednscm", "DIRECTORY", "where the kube-dns ConfigMap is mounted", "/etc/kube-dns"),
    Flag("upstreamsvc", "SERVICE", "the Service whose address is the cluster DNS, by its environment", "kube-dns"),
    Flag("setupinterface", SWITCH, "make the link with the addresses of -localip", "true"),
    Flag("interfacename", "NAME", "the name of that link", "nodelocaldns"),
    Flag("setupiptables", SWITCH, "make the rules that keep conntrack away; false is -firewall none", "true"),
    Flag("firewall", "KIND", "what makes them: auto, nftables, iptables or none", "auto"),
    Flag("syncinterval", "DURATION", "time between two looks at link and rules; bare numbers are seconds", "60"),
    Flag("skipteardown", SWITCH, "leave link and rules behind at the end", "false"),
    Flag("health-port", "PORT", "port of the Corefile's `health`, for the rules", "8080"),
    Flag("metrics-listen-address", "HOST:PORT", "where node-cache's own metrics are", "0.0.0.0:9353"),
    Flag("prometheus-listen-address", "HOST:PORT", "what __PROMETHEUS__ENDPOINT__ stands for", ":9253"),
    Flag("reloadwithsignal", SWITCH, "a changed configuration counts at once; it always does", "false"),
    Flag("nodename", "NAME", "the Node it runs on, told to the cluster DNS", f"${NODE_NAME}"),
    Flag("cache-octets", "OCTETS", "memory for all answers that are kept, whatever the Corefile says", "6291456"),
    Flag("dns.port", "PORT", "port of the addresses of -localip, and of keys without one", "53"),
    Flag("p", "PORT", "the same", "53"),
    Flag("pidfile", "FILE", "write the process id here once it serves"),
    Flag("quiet", SWITCH, "print nothing at start", "false"),
    Flag("plugins", SWITCH, "list the directives and exit", "false"),
    Flag("version", SWITCH, "print the version and exit", "false"),
    Flag("help", SWITCH, "print this and exit", "false"),
)
_BY_NAME: Final = {flag.name: flag for flag in FLAGS}
_KNOWN: Final = _BY_NAME | {"h": _BY_NAME["help"], "p": _BY_NAME["dns.port"]}  # the last given counts, as in CoreDNS


def usage() -> str:
    """What -help prints."""
    return usage_text(PROGRAM, "A DNS cache for the pods of this node, in place of NodeLocal DNSCache.", FLAGS)


def parse_flags(arguments: Sequence[str], environment: Mapping[str, str]) -> NodeCacheFlags:
    """What this command line means; `environment` is where the Node's name is unless it is given.

    Raises WrongUsage where Go's package flag exits with status 2, ConfigError where node-cache exits with 1.
    """
    given = read_flags(arguments, _KNOWN)
    if given.rest:
        rest = shown(" ".join(given.rest))
        raise _complaint(f"found {rest} behind the flags, expected none; a switch is -NAME or -NAME=false")
    action = _action(given)
    local_ips, remarks = _local_ips(_text(given, "localip"), needed=action is Action.SERVE)
    if "corefile" in given.texts:
        remarks += ("-corefile has no effect, as in NodeLocal DNSCache; -conf has",)
    flags = NodeCacheFlags(
        local_ips=local_ips,
        port=_port(given, "dns.port"),
        conf=_text(given, "conf"),
        base_corefile=_text(given, "basecorefile"),
        kube_dns_directory=_text(given, "kubednscm") or _default("kubednscm"),
        upstream_service=_service(given),
        setup_interface=_switch(given, "setupinterface"),
        interface_name=_interface(given),
        firewall=_firewall(given),
        sync_interval=_interval(given),
        skip_teardown=_switch(given, "skipteardown"),
        health_port=_port(given, "health-port"),
        metrics_listen=_listen(given, "metrics-listen-address"),
        prometheus_listen=_prometheus(given),
        reload_with_signal=_switch(given, "reloadwithsignal"),
        pid_file=_text(given, "pidfile"),
        quiet=_switch(given, "quiet"),
        node_name=_node_name(given, environment),
        memory=_memory(given),
        action=action,
        remarks=remarks,
    )
    _check_files(flags)
    return flags


def _complaint(problem: str) -> ConfigError:
    return ConfigError(PROGRAM, 0, problem)


def _default(name: str) -> str:
    return _BY_NAME[name].default


def _text(given: Given, name: str) -> str:
    return given.texts.get(name, _default(name))


def _switch(given: Given, name: str) -> bool:
    return given.switches.get(name, _default(name) == "true")


def _line(given: Given, name: str) -> Directive:
    """The flag as if it were a directive with one argument."""
    return Directive(f"-{name}", (_text(given, name),), (), PROGRAM, 0)


def _action(given: Given) -> Action:
    """As CoreDNS: the version before the plugins."""
    for action in (Action.HELP, Action.VERSION, Action.PLUGINS):
        if given.switches.get(action.value):
            return action
    return Action.SERVE


def _local_ips(text: str, needed: bool) -> tuple[tuple[IPAddress, ...], tuple[str, ...]]:
    """The addresses, once each, and what is to be said of those that stand there twice."""
    if not text:
        if needed:
            raise _complaint("'-localip' is missing, expected addresses to listen on, such as 169.254.20.10,10.96.0.10")
        return (), ()
    found = [_local_ip(part) for part in text.split(",")]
    unique = tuple(dict.fromkeys(found))
    if len(unique) == len(found):
        return unique, ()
    return unique, (f"-localip has an address twice; it counts once: {','.join(map(str, unique))}",)


def _local_ip(text: str) -> IPAddress:
    try:
        address = ip_address(text)
    except ValueError:
        raise _no_local_ip(text, "expected IP addresses with commas between them") from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise _no_local_ip(text, "expected an address without %interface: it goes on a link of our own")
        address = address.ipv4_mapped or address
    if address.is_unspecified or address.is_multicast:
        raise _no_local_ip(text, "expected addresses of one machine: packets to them are taken from the network")
    return address


def _no_local_ip(text: str, expected: str) -> ConfigError:
    return _complaint(f"'-localip' has {shown(text)}, {expected}")


def _port(given: Given, name: str) -> int:
    return whole(_line(given, name), _text(given, name), 1, MAX_PORT)


def _listen(given: Given, name: str) -> Address:
    return listen_address(_line(given, name), _ANY)


def _prometheus(given: Given) -> str:
    _listen(given, "prometheus-listen-address")
    return _text(given, "prometheus-listen-address")


def _service(given: Given) -> str:
    name = _text(given, "upstreamsvc")
    if not _SERVICE.fullmatch(name):
        raise _complaint(f"'-upstreamsvc' has {shown(name)}, expected the name of a Service in the same namespace")
    return name


def _interface(given: Given) -> str:
    name = _text(given, "interfacename")
    fits = 0 < len(name.encode()) <= _LONGEST_INTERFACE and name not in (".", "..")
    if not fits or any(char in "/:%" or char.isspace() for char in name) or not name.isprintable():
        raise _complaint(f"'-interfacename' has {shown(name)}, expected 1 to {_LONGEST_INTERFACE} octets without / : %")
    return name


def _memory(given: Given) -> MemoryLimits:
    octets = whole(_line(given, "cache-octets"), _text(given, "cache-octets"), _MIN_CACHE, _MAX_CACHE)
    quarter = octets // 4
    return MemoryLimits(octets - 2 * quarter, quarter, quarter, _UNREAD, _UNREAD_EACH)


def _firewall(given: Given) -> Firewall:
    firewall = choice(_line(given, "firewall"), _text(given, "firewall"), _FIREWALLS)
    if _switch(given, "setupiptables"):
        return firewall
    if firewall in (Firewall.NFTABLES, Firewall.IPTABLES):
        raise _complaint(f"found -setupiptables=false and -firewall {firewall.value}, expected one of them at most")
    return Firewall.NONE


def _interval(given: Given) -> float:
    """Go reads a duration there and multiplies it by a second, so that only its default works (`60s` never comes)."""
    text = _text(given, "syncinterval")
    try:
        bare = text.isascii() and text.isdigit()
        seconds = duration(_line(given, "syncinterval"), f"{text}s" if bare else text)
    except ConfigError:
        seconds = 0.0
    if seconds < 1:
        raise WrongUsage(f"invalid value {shown(text)} for -syncinterval, expected 1s or more, such as 60, 60s or 1m")
    return seconds


def _node_name(given: Given, environment: Mapping[str, str]) -> str:
    is_given = "nodename" in given.texts
    name = given.texts["nodename"] if is_given else environment.get(NODE_NAME, "")
    if name and (len(name) > _LONGEST_NODE_NAME or not _NODE_NAME.fullmatch(name)):
        where = "'-nodename'" if is_given else f"the environment variable {NODE_NAME}"
        raise _complaint(f"{where} has {shown(name)}, expected the name of a Node, such as worker-1.example.org")
    return name


def _check_files(flags: NodeCacheFlags) -> None:
    if not flags.base_corefile:
        raise _complaint("'-basecorefile' is empty, expected the template of the Corefile")
    if flags.conf and os.path.abspath(flags.conf) == os.path.abspath(flags.base_corefile):
        raise _complaint(f"found {shown(flags.conf)} as -conf and as -basecorefile, expected two files: one is written")
