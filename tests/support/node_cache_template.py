"""A Corefile template with the blocks and variables of NodeLocal DNSCache's manifest, and the files around it."""

from pathlib import Path

from topodns.nodecache.flags import parse_flags
from topodns.nodecache.settings import NodeCacheFlags

CLUSTER_DNS = "10.96.0.99"
ENVIRONMENT = {"KUBE_DNS_UPSTREAM_SERVICE_HOST": CLUSTER_DNS}

_CLUSTER_CACHE = "cache {\n        success 9984 30\n        denial 9984 5\n    }"
_TO_CLUSTER = "forward . __PILLAR__CLUSTER__DNS__ {\n        force_tcp\n    }"
_OUTWARD = "forward . __PILLAR__UPSTREAM__SERVERS__"
_HEALTH = "\n    health __PILLAR__LOCAL__DNS__:8080"


def _block(origin: str, cache: str, forward: str, health: str = "") -> str:
    return f"""\
{origin}:53 {{
    errors
    {cache}
    reload
    loop
    bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__
    {forward}
    prometheus :9253{health}
}}
"""


def node_template(domain: str = "cluster.local") -> str:
    """The manifest's template once its installer has written the cluster's domain, and no address."""
    return (
        _block(domain, _CLUSTER_CACHE, _TO_CLUSTER, _HEALTH)
        + _block("in-addr.arpa", "cache 30", _TO_CLUSTER)
        + _block("ip6.arpa", "cache 30", _TO_CLUSTER)
        + _block(".", "cache 30", _OUTWARD)
    )


def node_flags(directory: Path, *arguments: str, local_ips: str = "169.254.20.10,10.96.0.10") -> NodeCacheFlags:
    """Flags whose files are all in `directory`: `Corefile.base`, `Corefile` and `kube-dns/`."""
    places = {"basecorefile": "Corefile.base", "conf": "Corefile", "kubednscm": "kube-dns"}
    files = [f"-{name}={directory / file}" for name, file in places.items()]
    return parse_flags([f"-localip={local_ips}", "-upstreamsvc=kube-dns-upstream", *files, *arguments], {})
