"""The template of node-cache's Corefile: its variables and their values. Text to text; reads no files.

Line numbers do not change, so that an error in the Corefile has the same line in the template.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from topodns.corefile.errors import hint, shown
from topodns.netlink.route import IPAddress

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
# Before a port, only the first address is written. NodeLocal DNSCache writes all, which `health` refuses.
_LOCAL_AND_PORT: Final = re.compile(rf"\[?{LOCAL_DNS}\]?:(?=[0-9])")
# The exact text of older manifests of NodeLocal DNSCache, the only text that it changes from TCP to UDP.
_FORCED_TCP: Final = f"\n    forward . {UPSTREAM_SERVERS} {{\n            force_tcp\n    }}\n"
_LEFT_TO_KERNEL: Final = f"\n    forward . {UPSTREAM_SERVERS}\n\n\n"  # the same number of lines


@dataclass(frozen=True, slots=True)
class ClusterDns:
    """The address of the cluster DNS; if it is "", `problem` has the reason."""

    address: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TemplateValues:
    """The values of the variables."""

    local_ips: tuple[IPAddress, ...]  # at least one
    cluster_dns: ClusterDns
    upstreams: tuple[str, ...]  # from the kube-dns ConfigMap; if empty, those of `resolv_conf`
    prometheus: str
    resolv_conf: str = RESOLV_CONF


def find_cluster_dns(service: str, environment: Mapping[str, str]) -> ClusterDns:
    """The address of a Service of the Pod's namespace, from the environment variables set by the kubelet."""
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


def fill(template: str, file: str, values: TemplateValues) -> tuple[str, tuple[str, ...]]:
    """The template with its variables filled in, and its problems, a line each; `file` is its name in them.

    With problems the text is no valid Corefile: variables without a value stay in it. With `values.upstreams`, the
    `forward` of older templates loses its `force_tcp`, as in NodeLocal DNSCache.
    """
    text = template.replace(_FORCED_TCP, _LEFT_TO_KERNEL) if values.upstreams else template
    text = _LOCAL_AND_PORT.sub(f"{_before_port(values.local_ips[0])}:", text)
    replacements = {
        LOCAL_DNS: " ".join(map(str, values.local_ips)),
        DNS_SERVER: "",  # its address is among those of -localip, so LOCAL_DNS has it
        CLUSTER_DNS: values.cluster_dns.address or CLUSTER_DNS,
        UPSTREAM_SERVERS: " ".join(values.upstreams) or values.resolv_conf,
        PROMETHEUS_ENDPOINT: values.prometheus,
    }
    text = _VARIABLE.sub(lambda match: replacements.get(match[0], match[0]), text)
    return text, tuple(_unfilled(text, file, values))


def _before_port(address: IPAddress) -> str:
    return f"[{address}]" if isinstance(address, IPv6Address) else str(address)


def _unfilled(text: str, file: str, values: TemplateValues) -> Iterator[str]:
    """A line for each place outside of comments where a variable is left."""
    for number, line in enumerate(text.split("\n"), 1):
        for match in _VARIABLE.finditer(_COMMENT.sub("", line)):
            yield f"{file}:{number}: found {match[0]}{_why(match[0], values)}"


def _why(variable: str, values: TemplateValues) -> str:
    if variable == CLUSTER_DNS:
        return f", but {values.cluster_dns.problem}"
    if variable == DNS_DOMAIN:
        return ", expected the cluster's domain, such as cluster.local; the installer of the template writes it there"
    return f", which is no variable of the template{hint(variable, VARIABLES)}"
