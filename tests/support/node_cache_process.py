"""A node cache as a process, before a server: both at loopback addresses."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.node_cache_template import node_template
from tests.support.program_with_fake_api import IN_A
from tests.support.server_process import Server, launched, own_address, until

PORT = 5300


@contextmanager
def node_cache(directory: Path, upstream: Server, node: str = "n1") -> Iterator[Server]:
    """On this node, whose address its queries come from; its Corefile is that of the manifests."""
    address = own_address()
    template = (
        node_template()
        .replace("denial 9984 5", "denial 9984 5\n        push")
        .replace(":53 {", f":{PORT} {{")
        .replace("prometheus :9253", f"prometheus {address}:9153")
        .replace("force_tcp", f"force_tcp\n        source_address {IN_A}")
        .replace("forward . __PILLAR__CLUSTER__DNS__", f"forward . __PILLAR__CLUSTER__DNS__:{upstream.port}")
        .replace("forward . __PILLAR__UPSTREAM__SERVERS__", "forward . 127.0.0.1:1")
        .replace("    loop\n", "")
    )
    directory.mkdir(exist_ok=True)
    (directory / "Corefile.base").write_text(template)
    arguments = [
        "node-cache", f"-localip={address}", "-setupinterface=false", "-setupiptables=false", f"-dns.port={PORT}",
        f"-basecorefile={directory}/Corefile.base", f"-kubednscm={directory}/kube-dns", f"-nodename={node}",
        "-upstreamsvc=kube-dns-upstream",
        f"-metrics-listen-address={address}:9353",
    ]  # fmt: skip
    environment = {"KUBE_DNS_UPSTREAM_SERVICE_HOST": upstream.address}
    with launched(directory, *arguments, address=address, environment=environment) as server:
        until(server.started, f"the banner; there is\n{server.output()}{server.errors()}")
        yield server
        server.process.terminate()
        assert server.wait() == 0, server.output()
        assert "Traceback" not in server.output() + server.errors()
