"""node-cache's flags: those of NodeLocal DNSCache and CoreDNS, and some of topodns. Command line in, settings out.

The syntax is that of Go's package flag: `-name value`, `-name=value`, both also with two dashes; a switch is `-name` or
`-name=true`, never `-name true`. The last of several wins. `--`, or the first word without a dash, ends the flags.

Values are checked by the parsers of directives, so that error messages are the same. -conf without a template:
`nodecache.corefile`.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final

from topodns.cluster.api_names import is_subdomain
from topodns.corefile.arguments import MAX_PORT, Address, choice, duration, listen_address, whole
from topodns.corefile.errors import ConfigError, hint, listed, shown
from topodns.corefile.parser import Directive
from topodns.dns.addresses import unmapped
from topodns.hostnet.rules import Firewall
from topodns.memory.budget import MemoryLimits, node_limits
from topodns.netlink.route import IPAddress
from topodns.nodecache.settings import NodeCacheAction, NodeCacheFlags

BOOLEAN: Final = ""
"""The `value` of a boolean flag."""

_TRUE: Final = ("true", "True", "TRUE", "t", "T", "1")
_FALSE: Final = ("false", "False", "FALSE", "f", "F", "0")
_LONGEST_MARKER: Final = 2  # dashes


class WrongUsage(Exception):
    """A command line for which Go's package flag would print the usage and exit with status 2, or without -localip."""


@dataclass(frozen=True, slots=True)
class GoFlag:
    """A known flag. `value` names its argument in a word, BOOLEAN for a switch; `default` is as on the command line."""

    name: str
    value: str
    meaning: str
    default: str = ""


@dataclass(slots=True)
class ParsedFlags:
    """A parsed command line: texts and switches by the flag's name, and the words after all flags."""

    texts: dict[str, str] = field(default_factory=dict)
    booleans: dict[str, bool] = field(default_factory=dict)
    rest: tuple[str, ...] = ()


def read_flags(arguments: Sequence[str], known: Mapping[str, GoFlag]) -> ParsedFlags:
    """The flags at the beginning of the arguments, and the words after them. Raises WrongUsage."""
    given, at = ParsedFlags(), 0
    while at < len(arguments) and _is_flag(arguments[at]):
        word = arguments[at]
        at += 1
        if word == "--":
            break
        flag, value = _split(word, known)
        if flag.value == BOOLEAN:
            given.booleans[flag.name] = True if value is None else _read_boolean(flag.name, value)
            continue
        if value is None:
            if at == len(arguments):
                raise WrongUsage(f"flag needs an argument: -{flag.name}")
            value = arguments[at]
            at += 1
        given.texts[flag.name] = value
    given.rest = tuple(arguments[at:])
    return given


def usage_text(program: str, opening: str, flags: Iterable[GoFlag]) -> str:
    """The output of `-help`: every flag with its meaning and default."""
    lines = [f"Usage of {program}:", opening, ""]
    for flag in flags:
        default = f" (default {flag.default})" if flag.default else ""
        lines += [f"  -{flag.name} {flag.value}".rstrip(), f"    \t{flag.meaning}{default}"]
    return "\n".join(lines)


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")


def _split(word: str, known: Mapping[str, GoFlag]) -> tuple[GoFlag, str | None]:
    """The flag of a word, and the text after its `=`; None without `=`. Raises WrongUsage for an unknown flag."""
    bare = word.lstrip("-")
    name, separator, value = bare.partition("=")
    if len(word) - len(bare) > _LONGEST_MARKER or not name:
        raise WrongUsage(f"bad flag syntax: {shown(word)}, expected -NAME, -NAME VALUE or -NAME=VALUE")
    if name not in known:
        raise WrongUsage(f"flag provided but not defined: {shown(f'-{name}')}{_guess(name, known)}")
    return known[name], value if separator else None


def _guess(name: str, known: Mapping[str, GoFlag]) -> str:
    guess = hint(name, known)
    return guess if guess.endswith("?") else ", see -help"


def _read_boolean(name: str, text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise WrongUsage(f"'-{name}' has {shown(text)}, expected {listed((_TRUE[0], _FALSE[0]))}")


PROGRAM: Final = "node-cache"
NODE_NAME: Final = "NODE_NAME"  # the environment variable that the DaemonSet fills from spec.nodeName

_ANY: Final = Address("", 0)
_LONGEST_INTERFACE: Final = 15  # octets: IFNAMSIZ less the final NUL
_SERVICE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_MIN_CACHE: Final = 1 << 20  # octets: fewer hold less than about two thousand names
_MAX_CACHE: Final = 1 << 30


_FIREWALLS: Final = {firewall.value: firewall for firewall in Firewall}

FLAGS: Final = (
    GoFlag("localip", "IP,...", "addresses to listen on, of one family or of both; required"),
    GoFlag("conf", "FILE", "where a copy of the Corefile made of the template is written; without one, the Corefile"),
    GoFlag("corefile", "FILE", "without effect: -conf counts", "/etc/Corefile"),
    GoFlag("basecorefile", "FILE", "the template of the Corefile", "/etc/coredns/Corefile.base"),
    GoFlag("kubednscm", "DIRECTORY", "where the kube-dns ConfigMap is mounted", "/etc/kube-dns"),
    GoFlag("upstreamsvc", "SERVICE", "the Service whose address is the cluster DNS, by its environment", "kube-dns"),
    GoFlag("setupinterface", BOOLEAN, "make the link with the addresses of -localip", "true"),
    GoFlag("interfacename", "NAME", "the name of that link", "nodelocaldns"),
    GoFlag("setupebtables", BOOLEAN, "without effect; NodeLocal DNSCache had it before 1.17", "false"),
    GoFlag("initialdelay", "DURATION", "without effect; NodeLocal DNSCache had it before 1.17", "10"),
    GoFlag("setupiptables", BOOLEAN, "make the rules that keep conntrack away; false is -firewall none", "true"),
    GoFlag("firewall", "KIND", "what makes them: auto, nftables, iptables or none", "auto"),
    GoFlag("syncinterval", "DURATION", "time between two looks at link and rules; bare numbers are seconds", "60"),
    GoFlag("skipteardown", BOOLEAN, "leave link and rules behind at the end", "false"),
    GoFlag("health-port", "PORT", "port of the Corefile's `health`, for the rules", "8080"),
    GoFlag("metrics-listen-address", "HOST:PORT", "where node-cache's own metrics are", "0.0.0.0:9353"),
    GoFlag("prometheus-listen-address", "HOST:PORT", "what __PROMETHEUS__ENDPOINT__ stands for", ":9253"),
    GoFlag("reloadwithsignal", BOOLEAN, "a changed configuration counts at once; it always does", "false"),
    GoFlag("nodename", "NAME", "the Node it runs on, sent to the cluster DNS", f"${NODE_NAME}"),
    GoFlag("cache-octets", "OCTETS", "memory for all answers that are kept, whatever the Corefile says", "6291456"),
    GoFlag("dns.port", "PORT", "port of the addresses of -localip, and of keys without one", "53"),
    GoFlag("p", "PORT", "the same", "53"),
    GoFlag("pidfile", "FILE", "write the process id here once it serves"),
    GoFlag("quiet", BOOLEAN, "print nothing at start", "false"),
    GoFlag("plugins", BOOLEAN, "list the directives and exit", "false"),
    GoFlag("version", BOOLEAN, "print the version and exit", "false"),
    GoFlag("help", BOOLEAN, "print this and exit", "false"),
)
_BY_NAME: Final = {flag.name: flag for flag in FLAGS}
_KNOWN: Final = _BY_NAME | {"h": _BY_NAME["help"], "p": _BY_NAME["dns.port"]}  # the last one wins, as in CoreDNS


def usage() -> str:
    """The output of -help."""
    return usage_text(PROGRAM, "A DNS cache for the pods of this node, in place of NodeLocal DNSCache.", FLAGS)


def parse_flags(arguments: Sequence[str], environment: Mapping[str, str]) -> NodeCacheFlags:
    """The settings of this command line; `environment` has the Node's name unless a flag gives it.

    Raises WrongUsage where Go's package flag exits with status 2, and without -localip; ConfigError where node-cache
    exits with 1.
    """
    given = read_flags(arguments, _KNOWN)
    if given.rest:
        rest = shown(" ".join(given.rest))
        raise _error(f"found {rest} behind the flags, expected none; a switch is -NAME or -NAME=false")
    action = _action(given)
    local_ips, remarks = _local_ips(_text(given, "localip"), needed=action is NodeCacheAction.SERVE)
    if "corefile" in given.texts:
        remarks += ("-corefile has no effect, as in NodeLocal DNSCache; -conf has",)
    flags = NodeCacheFlags(
        local_ips=local_ips,
        port=_port(given, "dns.port"),
        conf=_text(given, "conf"),
        base_corefile=_text(given, "basecorefile"),
        kube_dns_directory=_text(given, "kubednscm") or _default("kubednscm"),
        upstream_service=_service(given),
        setup_interface=_boolean(given, "setupinterface"),
        interface_name=_interface(given),
        firewall=_firewall(given),
        sync_interval=_interval(given),
        skip_teardown=_boolean(given, "skipteardown"),
        health_port=_port(given, "health-port"),
        metrics_listen=_listen(given, "metrics-listen-address"),
        prometheus_listen=_prometheus(given),
        reload_with_signal=_boolean(given, "reloadwithsignal"),
        pid_file=_text(given, "pidfile"),
        quiet=_boolean(given, "quiet"),
        node_name=_node_name(given, environment),
        memory=_memory(given),
        action=action,
        remarks=remarks,
    )
    _check_files(flags)
    return flags


def _error(problem: str) -> ConfigError:
    return ConfigError(PROGRAM, 0, problem)


def _default(name: str) -> str:
    return _BY_NAME[name].default


def _text(given: ParsedFlags, name: str) -> str:
    return given.texts.get(name, _default(name))


def _boolean(given: ParsedFlags, name: str) -> bool:
    return given.booleans.get(name, _default(name) == "true")


def _line(given: ParsedFlags, name: str) -> Directive:
    """The flag as a directive with one argument, for the parsers of directives."""
    return Directive(f"-{name}", (_text(given, name),), (), PROGRAM, 0)


def _action(given: ParsedFlags) -> NodeCacheAction:
    """The action: of several, -help goes before -version, that before -plugins, as in CoreDNS; without any, SERVE."""
    for action in (NodeCacheAction.HELP, NodeCacheAction.VERSION, NodeCacheAction.PLUGINS):
        if given.booleans.get(action.value):
            return action
    return NodeCacheAction.SERVE


def _local_ips(text: str, needed: bool) -> tuple[tuple[IPAddress, ...], tuple[str, ...]]:
    """The distinct addresses of -localip, and remarks for the log: one if there are duplicates.

    Raises ConfigError for an address that cannot be listened on, and WrongUsage if there is none but one is `needed`.
    """
    if not text:
        if needed:
            raise WrongUsage("'-localip' is missing, expected addresses to listen on, such as 169.254.20.10,10.96.0.10")
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
        address = ip_address(unmapped(address.packed))
    if address.is_unspecified or address.is_multicast:
        raise _no_local_ip(text, "expected addresses of one machine: packets to them are taken from the network")
    return address


def _no_local_ip(text: str, expected: str) -> ConfigError:
    return _error(f"'-localip' has {shown(text)}, {expected}")


def _port(given: ParsedFlags, name: str) -> int:
    return whole(_line(given, name), _text(given, name), 1, MAX_PORT)


def _listen(given: ParsedFlags, name: str) -> Address:
    return listen_address(_line(given, name), _ANY)


def _prometheus(given: ParsedFlags) -> str:
    _listen(given, "prometheus-listen-address")
    return _text(given, "prometheus-listen-address")


def _service(given: ParsedFlags) -> str:
    name = _text(given, "upstreamsvc")
    if not _SERVICE.fullmatch(name):
        raise _error(f"'-upstreamsvc' has {shown(name)}, expected the name of a Service in the same namespace")
    return name


def _interface(given: ParsedFlags) -> str:
    name = _text(given, "interfacename")
    fits = 0 < len(name.encode()) <= _LONGEST_INTERFACE and name not in (".", "..")
    if not fits or any(char in "/:%" or char.isspace() for char in name) or not name.isprintable():
        raise _error(f"'-interfacename' has {shown(name)}, expected 1 to {_LONGEST_INTERFACE} octets without / : %")
    return name


def _memory(given: ParsedFlags) -> MemoryLimits:
    octets = whole(_line(given, "cache-octets"), _text(given, "cache-octets"), _MIN_CACHE, _MAX_CACHE)
    return node_limits(octets)


def _firewall(given: ParsedFlags) -> Firewall:
    firewall = choice(_line(given, "firewall"), _text(given, "firewall"), _FIREWALLS)
    if _boolean(given, "setupiptables"):
        return firewall
    if firewall in (Firewall.NFTABLES, Firewall.IPTABLES):
        raise _error(f"found -setupiptables=false and -firewall {firewall.value}, expected one of them at most")
    return Firewall.NONE


def _interval(given: ParsedFlags) -> float:
    """The interval in seconds, at least 1; a bare number is seconds. Raises WrongUsage.

    NodeLocal DNSCache multiplies its duration by a second: `1ns`, in a public chart, is a second there, and here too.
    Difference: `60s` never elapses there.
    """
    text = _text(given, "syncinterval")
    try:
        number = text.removesuffix("ns")
        bare = number.isascii() and number.isdigit()
        seconds = duration(_line(given, "syncinterval"), f"{number}s" if bare else text)
    except ConfigError:
        seconds = 0.0
    if seconds < 1:
        raise WrongUsage(f"'-syncinterval' has {shown(text)}, expected 1s or more, such as 60, 60s or 1m")
    return seconds


def _node_name(given: ParsedFlags, environment: Mapping[str, str]) -> str:
    is_given = "nodename" in given.texts
    name = given.texts["nodename"] if is_given else environment.get(NODE_NAME, "")
    if name and not is_subdomain(name):
        where = "'-nodename'" if is_given else f"the environment variable {NODE_NAME}"
        raise _error(f"{where} has {shown(name)}, expected the name of a Node, such as worker-1.example.org")
    return name


def _check_files(flags: NodeCacheFlags) -> None:
    if not flags.base_corefile:
        raise _error("'-basecorefile' is empty, expected the template of the Corefile")
    if flags.conf and os.path.abspath(flags.conf) == os.path.abspath(flags.base_corefile):
        raise _error(f"found {shown(flags.conf)} as -conf and as -basecorefile, expected two files: one is written")
