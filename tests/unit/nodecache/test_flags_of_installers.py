"""The arguments of public installers of NodeLocal DNSCache, with example addresses, and Corefiles as they have them."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.node_cache_template import node_template
from topodns.app.self_forwarding import refuse_self_forwarding
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.flags import parse_flags

LOCAL, SERVICE, UPSTREAM, OUTSIDE = "169.254.20.10", "10.96.0.10", "10.96.0.99", "192.0.2.53"
OF_KUBESPRAY = "169.254.25.10"
MANIFEST = f"-localip {LOCAL},{SERVICE} -conf /etc/Corefile -upstreamsvc kube-dns-upstream"
CILIUM = "-skipteardown=true -setupinterface=false -setupiptables=false"


def finished(bind: str, health: str, outward: str = OUTSIDE, metrics: str = ":9253") -> str:
    """A Corefile whose installer has written the values: four blocks, as in the manifest of Kubernetes."""
    zones = {"cluster.local": UPSTREAM, "in-addr.arpa": UPSTREAM, "ip6.arpa": UPSTREAM, ".": outward}
    return "".join(
        f"{zone}:53 {{\n errors\n cache 30\n reload\n loop\n bind {bind}\n forward . {upstream} {{\n  force_tcp\n }}\n"
        f" prometheus {metrics}\n {f'health {health}' if zone == 'cluster.local' else ''}\n}}\n"
        for zone, upstream in zones.items()
    )


@dataclass(frozen=True)
class Installer:
    arguments: str
    corefile: str = node_template()
    mounted: str = "/etc/coredns/Corefile.base"
    service: str = "KUBE_DNS_UPSTREAM"  # the prefix of the kubelet's variable
    bind: tuple[str, ...] = (LOCAL, SERVICE)


INSTALLERS = {
    "kubernetes, cluster/addons/dns/nodelocaldns": Installer(MANIFEST),
    "kubernetes, kube-proxy in IPVS mode": Installer(MANIFEST.replace(f",{SERVICE}", ""), bind=(LOCAL,)),
    "kubespray": Installer(
        f"-localip {OF_KUBESPRAY} -conf /etc/Corefile -upstreamsvc coredns",
        finished(OF_KUBESPRAY, f"{OF_KUBESPRAY}:9254", metrics="{$MY_HOST_IP}:9253"),
        service="COREDNS",
        bind=(OF_KUBESPRAY,),
    ),
    "kubespray, the secondary of two": Installer(
        f"-localip {OF_KUBESPRAY} -conf /etc/Corefile -upstreamsvc coredns -skipteardown",
        finished(OF_KUBESPRAY, f"{OF_KUBESPRAY}:9256"),
        service="COREDNS",
        bind=(OF_KUBESPRAY,),
    ),
    "kubespray before 2.13, KubeKey": Installer(
        f"-localip {OF_KUBESPRAY} -conf /etc/coredns/Corefile -upstreamsvc coredns",
        finished(OF_KUBESPRAY, f"{OF_KUBESPRAY}:9254"),
        mounted="/etc/coredns/Corefile",
        service="COREDNS",
        bind=(OF_KUBESPRAY,),
    ),
    "kOps": Installer(
        f"-localip={LOCAL} -conf=/etc/Corefile -upstreamsvc=kube-dns-upstream -setupiptables=false",
        finished(LOCAL, f"{LOCAL}:8080", "__PILLAR__UPSTREAM__SERVERS__"),
        bind=(LOCAL,),
    ),
    "Gardener": Installer(f"{MANIFEST} -health-port 8099", finished(f"{LOCAL} {SERVICE}", f"{LOCAL}:8099")),
    "Cilium's local redirect policy": Installer(
        f"{MANIFEST} {CILIUM}",
        node_template()
        .replace("bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__", "bind 0.0.0.0")
        .replace("health __PILLAR__LOCAL__DNS__:8080", "health"),
        bind=("0.0.0.0",),
    ),
    "rancher's chart with Cilium": Installer(f"{MANIFEST} {CILIUM}"),
    "deliveryhero/node-local-dns": Installer(
        f"-localip {LOCAL},{SERVICE} -conf /etc/Corefile -upstreamsvc node-local-dns-upstream "
        "-skipteardown=false -setupinterface=true -setupiptables=true",
        service="NODE_LOCAL_DNS_UPSTREAM",
    ),
    "lablabs/node-local-dns": Installer(
        f"-localip {LOCAL} -skipteardown=true -setupinterface=true -setupiptables=false -quiet -health-port 8080 "
        "-upstreamsvc kube-dns -conf /etc/Corefile -syncinterval 1ns -interfacename nodelocaldns "
        "-metrics-listen-address 0.0.0.0:9353",
        service="KUBE_DNS",
        bind=(LOCAL,),
    ),
    "node-cache before 1.17": Installer(f"{MANIFEST} -setupebtables=false -initialdelay 10ns"),
}


@pytest.mark.parametrize("installer", INSTALLERS.values(), ids=INSTALLERS)
def test_what_a_public_installer_passes_and_mounts_is_served(installer: Installer, tmp_path: Path) -> None:
    variables = {f"{installer.service}_SERVICE_HOST": UPSTREAM, "MY_HOST_IP": "192.0.2.8"}
    (tmp_path / "etc/coredns").mkdir(parents=True)
    (tmp_path / installer.mounted[1:]).write_text(installer.corefile)
    (tmp_path / "resolv.conf").write_text(f"nameserver {OUTSIDE}\n")
    given = parse_flags(installer.arguments.split(), variables)
    flags = replace(
        given,
        conf=f"{tmp_path}{given.conf}",
        base_corefile=f"{tmp_path}{given.base_corefile}",
        kube_dns_directory=f"{tmp_path}{given.kube_dns_directory}",
    )
    corefile = NodeCorefile(flags, variables, str(tmp_path / "resolv.conf"))
    rendered = corefile.render(corefile.read())
    assert rendered.problems == ()
    settings = corefile.settings(rendered.text)
    assert refuse_self_forwarding(settings, ()) == ()
    assert {block.bound_hosts for block in settings.blocks} == {installer.bind}
    assert {
        block.keys[0].origin: [upstream.name for upstream in block.settings["forward"][0].upstreams]
        for block in settings.blocks
    } == {
        ("cluster", "local"): [f"{UPSTREAM}:53"],
        ("in-addr", "arpa"): [f"{UPSTREAM}:53"],
        ("ip6", "arpa"): [f"{UPSTREAM}:53"],
        (): [f"{OUTSIDE}:53"],
    }
