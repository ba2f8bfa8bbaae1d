"""A node cache as a process, before a server or a faulty upstream: all at loopback addresses."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.faulty_upstream import BadUpstream
from tests.support.node_cache_template import node_template
from tests.support.program_with_fake_api import IN_A
from tests.support.server_process import Server, launched, own_address, until

PORT = 5300


@contextmanager
def node_cache(directory: Path, upstream: Server, node: str = "n1") -> Iterator[Server]:
    """On this node, whose address its queries come from; its Corefile is that of the manifests."""
    template = (
        node_template()
        .replace("denial 9984 5", "denial 9984 5\n        push")
        .replace("force_tcp", f"force_tcp\n        source_address {IN_A}")
        .replace("forward . __PILLAR__CLUSTER__DNS__", f"forward . __PILLAR__CLUSTER__DNS__:{upstream.port}")
        .replace("forward . __PILLAR__UPSTREAM__SERVERS__", "forward . 127.0.0.1:1")
    )
    flags = (f"-nodename={node}", "-upstreamsvc=kube-dns-upstream")
    environment = {"KUBE_DNS_UPSTREAM_SERVICE_HOST": upstream.address}
    with _started(directory, template, *flags, environment=environment) as server:
        yield server


@contextmanager
def node_cache_alone(
    directory: Path, upstream: BadUpstream, *flags: str, ttl: int = 30, options: str = ""
) -> Iterator[Server]:
    """In front of an upstream that is its cluster DNS, of example.org, and all.

    `ttl`: the longest one of answers of the cluster DNS; `options`: lines of their `cache`.
    """
    template = (
        node_template("example.org")
        .replace("success 9984 30", f"success 9984 {ttl}\n{options}")
        .replace("forward . __PILLAR__CLUSTER__DNS__", f"forward . {upstream.host}:{upstream.port}")
        .replace("forward . __PILLAR__UPSTREAM__SERVERS__", f"forward . {upstream.host}:{upstream.port}")
    )
    with _started(directory, template, *flags) as server:
        yield server


@contextmanager
def _started(
    directory: Path, template: str, *flags: str, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """The command without anything of the host's network; ended well, unless it has ended before."""
    address = own_address()
    template = (
        template.replace(":53 {", f":{PORT} {{")
        .replace("prometheus :9253", f"prometheus {address}:9153")
        .replace("    loop\n", "")
    )
    directory.mkdir(exist_ok=True)
    (directory / "Corefile.base").write_text(template)
    arguments = [
        "node-cache", f"-localip={address}", "-setupinterface=false", "-setupiptables=false", f"-dns.port={PORT}",
        f"-basecorefile={directory}/Corefile.base", f"-kubednscm={directory}/kube-dns",
        f"-metrics-listen-address={address}:9353", *flags,
    ]  # fmt: skip
    with launched(directory, *arguments, address=address, environment=environment) as server:
        until(server.started, f"the banner; there is\n{server.output()}{server.errors()}")
        yield server
        if server.process.poll() is None:
            server.process.terminate()
            assert server.wait() == 0, server.output()
        assert "Traceback" not in server.output() + server.errors()
