"""The template of node-cache's Corefile: its variables, and what they stand for. Text to text; reads nothing.

Each line stays the line that it was, so that what is wrong with the Corefile is found at its place in the template.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from topodns.config.errors import hint, shown
from topodns.settings.node_cache import IPAddress

LOCAL_DNS: Final = "__PILLAR__LOCAL__DNS__"
DNS_SERVER: Final = "__PILLAR__DNS__SERVER__"
DNS_DOMAIN: Final = "__PILLAR__DNS__DOMAIN__"
CLUSTER_DNS: Final = "__PILLAR__CLUSTER__DNS__"
UPSTREAM_SERVERS: Final = "__PILLAR__UPSTREAM__SERVERS__"
PROMETHEUS_ENDPOINT: Final = "__PROMETHEUS__ENDPOINT__"
VARIABLES: Final = (LOCAL_DNS, DNS_SERVER, DNS_DOMAIN, CLUSTER_DNS, UPSTREAM_SERVERS, PROMETHEUS_ENDPOINT)

RESOLV_CONF: Final = "/etc/resolv.conf"

_VARIABLE: Final = re.compile(r"__[A-Z0-9]+(?:__[A-Z0-9]+)+__")
_COMMENT: Final = re.compile(r"#.*")
# One address fits before a port. NodeLocal DNSCache writes all of them there, which `health` refuses.
_LOCAL_AND_PORT: Final = re.compile(rf"\[?{LOCAL_DNS}\]?:(?=[0-9])")
# As the manifests of NodeLocal DNSCache once had it, to the blank: only this text is made UDP by node-cache.
_FORCED_TCP: Final = f"\n    forward . {UPSTREAM_SERVERS} {{\n            force_tcp\n    }}\n"
_LEFT_TO_KERNEL: Final = f"\n    forward . {UPSTREAM_SERVERS}\n\n\n"  # as many lines


@dataclass(frozen=True, slots=True)
class ClusterDns:
    """The address of the cluster DNS; where it is "", `problem` says why it is not known."""

    address: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Filling:
    """What the variables stand for."""

    local_ips: tuple[IPAddress, ...]  # at least one
    cluster_dns: ClusterDns
    upstreams: tuple[str, ...]  # from the kube-dns ConfigMap; none: those of `resolv_conf`
    prometheus: str
    resolv_conf: str = RESOLV_CONF


def find_cluster_dns(service: str, environment: Mapping[str, str]) -> ClusterDns:
    """The address that the kubelet's environment has for a Service of the Pod's namespace."""
    variable = f"{service.replace('-', '_').upper()}_SERVICE_HOST"
    text = environment.get(variable, "")
    expected = f"expected the address of the Service {shown(service)} of -upstreamsvc"
    if not text:
        why = "one that is younger than this Pod, or in another namespace, has none"
        return ClusterDns(problem=f"the environment variable {variable} is not set, {expected}; {why}")
    try:
        return ClusterDns(str(ip_address(text)))
    except ValueError:
        return ClusterDns(problem=f"the environment variable {variable} has {shown(text)}, {expected}")


def fill(template: str, file: str, filling: Filling) -> tuple[str, tuple[str, ...]]:
    """The template with its variables filled in, and what is wrong with it; `file` is its name in these lines.

    The text is no Corefile where anything is wrong: what cannot be filled in stays.
    """
    text = template.replace(_FORCED_TCP, _LEFT_TO_KERNEL) if filling.upstreams else template
    text = _LOCAL_AND_PORT.sub(f"{_before_port(filling.local_ips[0])}:", text)
    values = {
        LOCAL_DNS: " ".join(map(str, filling.local_ips)),
        DNS_SERVER: "",  # its address is among those of -localip, so LOCAL_DNS has it
        CLUSTER_DNS: filling.cluster_dns.address or CLUSTER_DNS,
        UPSTREAM_SERVERS: " ".join(filling.upstreams) or filling.resolv_conf,
        PROMETHEUS_ENDPOINT: filling.prometheus,
    }
    text = _VARIABLE.sub(lambda match: values.get(match[0], match[0]), text)
    return text, tuple(_unfilled(text, file, filling))


def _before_port(address: IPAddress) -> str:
    return f"[{address}]" if isinstance(address, IPv6Address) else str(address)


def _unfilled(text: str, file: str, filling: Filling) -> Iterator[str]:
    """A line for each place where a variable is left; comments may say what they like."""
    for number, line in enumerate(text.split("\n"), 1):
        for match in _VARIABLE.finditer(_COMMENT.sub("", line)):
            yield f"{file}:{number}: found {match[0]}{_why(match[0], filling)}"


def _why(variable: str, filling: Filling) -> str:
    if variable == CLUSTER_DNS:
        return f", but {filling.cluster_dns.problem}"
    if variable == DNS_DOMAIN:
        return ", expected the cluster's domain, such as cluster.local; whoever installs the template writes it there"
    return f", which is no variable of the template{hint(variable, VARIABLES)}"
