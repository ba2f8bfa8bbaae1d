"""node-cache's command line."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.support.node_cache_template import node_template
from topodns.app.self_forwarding import refuse_self_forwarding
from topodns.corefile.arguments import Address
from topodns.corefile.errors import ConfigError
from topodns.hostnet.rules import Firewall
from topodns.memory.budget import MemoryLimits
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.flags import (
    BOOLEAN,
    FLAGS,
    GoFlag,
    ParsedFlags,
    WrongUsage,
    parse_flags,
    read_flags,
    usage,
    usage_text,
)
from topodns.nodecache.settings import NodeCacheAction, NodeCacheFlags

LOCAL = "-localip=169.254.20.10"
DEFAULTS = NodeCacheFlags(
    local_ips=(ip_address("169.254.20.10"),),
    port=53,
    conf="",
    base_corefile="/etc/coredns/Corefile.base",
    kube_dns_directory="/etc/kube-dns",
    upstream_service="kube-dns",
    setup_interface=True,
    interface_name="nodelocaldns",
    firewall=Firewall.AUTO,
    sync_interval=60.0,
    skip_teardown=False,
    health_port=8080,
    metrics_listen=Address("0.0.0.0", 9353),
    prometheus_listen=":9253",
    reload_with_signal=False,
    pid_file="",
    quiet=False,
    node_name="",
    memory=MemoryLimits(3 << 20, 1536 << 10, 1536 << 10, 1 << 20, 64 << 10),
)


def flags(line: str, environment: Mapping[str, str] | None = None) -> NodeCacheFlags:
    return parse_flags([LOCAL, *line.split()], environment or {})


def local_ips(text: str) -> list[str]:
    return [str(address) for address in parse_flags(["-localip", text], {}).local_ips]


def test_only_the_addresses_have_to_be_given() -> None:
    assert flags("") == DEFAULTS


def test_the_arguments_of_the_manifest_of_nodelocal_dnscache_are_taken() -> None:
    line = "-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream -pidfile /tmp/n.pid"
    found = parse_flags(line.split(), {})
    assert [str(address) for address in found.local_ips] == ["169.254.20.10", "10.96.0.10"]
    assert (found.conf, found.upstream_service, found.pid_file) == ("/etc/Corefile", "kube-dns-upstream", "/tmp/n.pid")


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        ("-conf /etc/Corefile", "conf", "/etc/Corefile"),
        ("-cache-octets 1048578", "memory", MemoryLimits(524_290, 262_144, 262_144, 1 << 20, 64 << 10)),
        ("-basecorefile /a", "base_corefile", "/a"),
        ("-kubednscm /a", "kube_dns_directory", "/a"),
        ("-kubednscm=", "kube_dns_directory", "/etc/kube-dns"),
        ("-upstreamsvc dns", "upstream_service", "dns"),
        ("-setupinterface=false", "setup_interface", False),
        ("-interfacename dns0", "interface_name", "dns0"),
        ("-interfacename nodelocaldns-v6", "interface_name", "nodelocaldns-v6"),
        ("-setupiptables=true", "firewall", Firewall.AUTO),
        ("-setupiptables=false", "firewall", Firewall.NONE),
        ("-firewall nftables", "firewall", Firewall.NFTABLES),
        ("-firewall iptables", "firewall", Firewall.IPTABLES),
        ("-firewall none -setupiptables=0", "firewall", Firewall.NONE),
        ("-skipteardown", "skip_teardown", True),
        ("-health-port 9000", "health_port", 9000),
        ("-metrics-listen-address :9", "metrics_listen", Address("", 9)),
        ("-metrics-listen-address [::1]:9", "metrics_listen", Address("::1", 9)),
        ("-prometheus-listen-address 127.0.0.1:9", "prometheus_listen", "127.0.0.1:9"),
        ("-reloadwithsignal", "reload_with_signal", True),
        ("-dns.port 5353", "port", 5353),
        ("-p 5353", "port", 5353),
        ("-dns.port 1 -p 2", "port", 2),
        ("-pidfile /run/pid", "pid_file", "/run/pid"),
        ("-quiet", "quiet", True),
        ("-nodename worker-1.example.org", "node_name", "worker-1.example.org"),
        ("-h", "action", NodeCacheAction.HELP),
        ("-version", "action", NodeCacheAction.VERSION),
        ("-plugins", "action", NodeCacheAction.PLUGINS),
        ("-plugins=false", "action", NodeCacheAction.SERVE),
    ],
)
def test_each_flag_has_its_meaning(line: str, field: str, expected: object) -> None:
    assert getattr(flags(line), field) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60),
        ("60s", 60),
        ("1ns", 1),
        ("30ns", 30),
        ("1", 1),
        ("1m30s", 90),
        ("1500ms", 1.5),
        ("1h", 3600),
        ("86400", 86400),
    ],
)
def test_n17_the_sync_interval_is_in_bare_seconds_or_a_duration(text: str, seconds: float) -> None:
    assert flags(f"-syncinterval {text}").sync_interval == seconds


@pytest.mark.parametrize("text", ["0", "0s", "-30s", "999ms", "", "60x", "six", "1e3", "³", "9" * 30])
def test_n17_an_interval_that_would_never_or_always_pass_is_wrong_usage(text: str) -> None:
    with pytest.raises(WrongUsage, match=r"'-syncinterval' has .*, expected 1s or more, such as 60, 60s or 1m"):
        parse_flags([LOCAL, f"-syncinterval={text}"], {})


@pytest.mark.parametrize("line", [[], ["-localip="]])
def test_without_an_address_the_usage_is_wrong(line: list[str]) -> None:
    with pytest.raises(WrongUsage, match="'-localip' is missing, expected addresses to listen on, such as 169"):
        parse_flags(line, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("169.254.20.10", ["169.254.20.10"]),
        ("169.254.20.10,10.96.0.10", ["169.254.20.10", "10.96.0.10"]),
        ("fd00:10:96::a", ["fd00:10:96::a"]),
        ("169.254.20.10,fd00::10,10.96.0.10", ["169.254.20.10", "fd00::10", "10.96.0.10"]),
        ("::ffff:169.254.20.10", ["169.254.20.10"]),
        ("FD00:0:0::0010", ["fd00::10"]),
    ],
)
def test_local_addresses_are_of_either_family_or_of_both(text: str, expected: list[str]) -> None:
    assert local_ips(text) == expected


def test_a_repeated_address_counts_once_and_is_logged() -> None:
    found = parse_flags(["-localip=fd00::1,10.0.0.1,fd00:0::1"], {})
    assert [str(address) for address in found.local_ips] == ["fd00::1", "10.0.0.1"]
    assert found.remarks == ("-localip has an address twice; it counts once: fd00::1,10.0.0.1",)


def test_a_corefile_flag_is_said_to_be_without_effect() -> None:
    assert flags("-corefile /etc/Corefile").remarks == ("-corefile has no effect, as in NodeLocal DNSCache; -conf has",)


@pytest.mark.parametrize("option", ["-version", "-plugins", "-h", "-help"])
def test_an_option_that_only_prints_needs_no_address(option: str) -> None:
    assert parse_flags([option], {}).action is not NodeCacheAction.SERVE


def test_the_node_s_name_is_in_the_environment_unless_it_is_given() -> None:
    environment = {"NODE_NAME": "from-environment"}
    assert flags("", environment).node_name == "from-environment"
    assert flags("-nodename given", environment).node_name == "given"
    assert flags("-nodename=", environment).node_name == ""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-localip=kube-dns", "'-localip' has 'kube-dns', expected IP addresses with commas between them"),
        ("-localip=10.0.0.1,", "'-localip' has an empty word, expected IP addresses with commas between them"),
        ("-localip=10.0.0.1/32", "'-localip' has '10.0.0.1/32', expected IP addresses with commas between them"),
        ("-localip=010.0.0.1", "'-localip' has '010.0.0.1', expected IP addresses with commas between them"),
        ("-localip=0.0.0.0", "'-localip' has '0.0.0.0', expected addresses of one machine"),
        ("-localip=10.0.0.1,ff02::fb", "'-localip' has 'ff02::fb', expected addresses of one machine"),
        ("-localip=169.254.20.300", "'-localip' has '169.254.20.300', expected IP addresses with commas between them"),
        ("-localip=224.0.0.251", "'-localip' has '224.0.0.251', expected addresses of one machine"),
        ("-localip=fe80::1%eth0", "'-localip' has 'fe80::1%eth0', expected an address without %interface"),
        ("-dns.port 0", "'-dns.port' has '0', expected a whole number from 1 to 65535"),
        ("-p x", "'-dns.port' has 'x', expected a whole number from 1 to 65535"),
        ("-cache-octets 8Mi", "'-cache-octets' has '8Mi', expected a whole number from 1048576 to 1073741824"),
        ("-cache-octets 0", "'-cache-octets' has '0', expected a whole number from 1048576 to 1073741824"),
        ("-health-port 65536", "'-health-port' has '65536', expected a whole number from 1 to 65535"),
        ("-metrics-listen-address 9353", "has the arguments '9353', expected one address HOST:PORT or :PORT"),
        ("-prometheus-listen-address x:y", "has the arguments 'x:y', expected one address HOST:PORT or :PORT"),
        ("-firewall ufw", "'-firewall' has 'ufw', expected auto, nftables, iptables or none"),
        ("-firewall nftable", "'-firewall' has 'nftable', did you mean 'nftables'?"),
        ("-firewall nftables -setupiptables=false", "found -setupiptables=false and -firewall nftables"),
        ("-interfacename nodelocaldns-dummy", "'-interfacename' has 'nodelocaldns-dummy', expected 1 to 15 octets"),
        ("-interfacename a/b", "'-interfacename' has 'a/b', expected 1 to 15 octets without / : %"),
        ("-interfacename .", "'-interfacename' has '.', expected 1 to 15 octets"),
        ("-interfacename=", "'-interfacename' has an empty word, expected 1 to 15 octets"),
        ("-upstreamsvc kube-dns.kube-system", "'-upstreamsvc' has 'kube-dns.kube-system', expected the name of a"),
        ("-nodename Node_1", "'-nodename' has 'Node_1', expected the name of a Node"),
        ("-basecorefile=", "'-basecorefile' is empty, expected the template of the Corefile"),
        ("-conf /a/../b -basecorefile /b", "found '/a/../b' as -conf and as -basecorefile, expected two files"),
        ("-skipteardown true", "found 'true' behind the flags, expected none; a switch is -NAME or -NAME=false"),
        ("serve", "found 'serve' behind the flags, expected none"),
    ],
)
def test_nonsense_is_refused_with_the_text_found_and_the_form_expected(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        flags(line)
    assert str(caught.value).startswith("node-cache: ")
    assert problem in str(caught.value)


def test_a_bad_name_in_the_environment_is_said_to_be_from_there() -> None:
    with pytest.raises(ConfigError, match=r"the environment variable NODE_NAME has '\$\(NODE\)', expected the name"):
        flags("", {"NODE_NAME": "$(NODE)"})


def test_the_usage_has_every_flag() -> None:
    text = usage()
    assert [flag.name for flag in FLAGS if f"  -{flag.name}" not in text] == []


# The arguments of public installers of NodeLocal DNSCache, with example addresses, and Corefiles as they have them.

LOCAL_IP, SERVICE, UPSTREAM, OUTSIDE = "169.254.20.10", "10.96.0.10", "10.96.0.99", "192.0.2.53"
OF_KUBESPRAY = "169.254.25.10"
MANIFEST = f"-localip {LOCAL_IP},{SERVICE} -conf /etc/Corefile -upstreamsvc kube-dns-upstream"
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
    bind: tuple[str, ...] = (LOCAL_IP, SERVICE)


INSTALLERS = {
    "kubernetes, cluster/addons/dns/nodelocaldns": Installer(MANIFEST),
    "kubernetes, kube-proxy in IPVS mode": Installer(MANIFEST.replace(f",{SERVICE}", ""), bind=(LOCAL_IP,)),
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
        f"-localip={LOCAL_IP} -conf=/etc/Corefile -upstreamsvc=kube-dns-upstream -setupiptables=false",
        finished(LOCAL_IP, f"{LOCAL_IP}:8080", "__PILLAR__UPSTREAM__SERVERS__"),
        bind=(LOCAL_IP,),
    ),
    "Gardener": Installer(f"{MANIFEST} -health-port 8099", finished(f"{LOCAL_IP} {SERVICE}", f"{LOCAL_IP}:8099")),
    "Cilium's local redirect policy": Installer(
        f"{MANIFEST} {CILIUM}",
        node_template()
        .replace("bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__", "bind 0.0.0.0")
        .replace("health __PILLAR__LOCAL__DNS__:8080", "health"),
        bind=("0.0.0.0",),
    ),
    "rancher's chart with Cilium": Installer(f"{MANIFEST} {CILIUM}"),
    "deliveryhero/node-local-dns": Installer(
        f"-localip {LOCAL_IP},{SERVICE} -conf /etc/Corefile -upstreamsvc node-local-dns-upstream "
        "-skipteardown=false -setupinterface=true -setupiptables=true",
        service="NODE_LOCAL_DNS_UPSTREAM",
    ),
    "lablabs/node-local-dns": Installer(
        f"-localip {LOCAL_IP} -skipteardown=true -setupinterface=true -setupiptables=false -quiet -health-port 8080 "
        "-upstreamsvc kube-dns -conf /etc/Corefile -syncinterval 1ns -interfacename nodelocaldns "
        "-metrics-listen-address 0.0.0.0:9353",
        service="KUBE_DNS",
        bind=(LOCAL_IP,),
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


KNOWN = {
    flag.name: flag
    for flag in (GoFlag("conf", "FILE", "a file", "/etc/x"), GoFlag("quiet", BOOLEAN, "say less", "false"))
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ParsedFlags()),
        ("-conf a", ParsedFlags({"conf": "a"})),
        ("--conf a", ParsedFlags({"conf": "a"})),
        ("-conf=a", ParsedFlags({"conf": "a"})),
        ("--conf=a=b", ParsedFlags({"conf": "a=b"})),
        ("-conf=", ParsedFlags({"conf": ""})),
        ("-conf -quiet", ParsedFlags({"conf": "-quiet"})),
        ("-conf a -conf b", ParsedFlags({"conf": "b"})),
        ("-quiet", ParsedFlags(booleans={"quiet": True})),
        ("-quiet=F -conf a", ParsedFlags({"conf": "a"}, {"quiet": False})),
        ("-quiet -quiet=false", ParsedFlags(booleans={"quiet": False})),
        ("-quiet true -conf a", ParsedFlags(booleans={"quiet": True}, rest=("true", "-conf", "a"))),
        ("-quiet -- -conf a", ParsedFlags(booleans={"quiet": True}, rest=("-conf", "a"))),
        ("- -quiet", ParsedFlags(rest=("-", "-quiet"))),
    ],
)
def test_a_command_line_is_read_as_go_reads_it(line: str, expected: ParsedFlags) -> None:
    assert read_flags(line.split(), KNOWN) == expected


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "True", "TRUE"])
def test_all_of_go_s_ways_to_write_true(text: str) -> None:
    assert read_flags([f"-quiet={text}"], KNOWN).booleans == {"quiet": True}


@pytest.mark.parametrize("text", ["0", "f", "F", "false", "False", "FALSE"])
def test_all_of_go_s_ways_to_write_false(text: str) -> None:
    assert read_flags([f"-quiet={text}"], KNOWN).booleans == {"quiet": False}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-konf a", "flag provided but not defined: '-konf', did you mean 'conf'?"),
        ("-x", "flag provided but not defined: '-x', see -help"),
        ("-conf", "flag needs an argument: -conf"),
        ("---conf a", "bad flag syntax: '---conf', expected -NAME, -NAME VALUE or -NAME=VALUE"),
        ("-=a", "bad flag syntax: '-=a', expected -NAME, -NAME VALUE or -NAME=VALUE"),
        ("-quiet=yes", "'-quiet' has 'yes', expected true or false"),
        ("-quiet=", "'-quiet' has an empty word, expected true or false"),
        ("-\x1b[2J", "flag provided but not defined: '-\\x1b[2J', see -help"),
    ],
)
def test_a_flag_that_go_refuses_with_status_2_is_wrong_usage(line: str, problem: str) -> None:
    with pytest.raises(WrongUsage) as caught:
        read_flags(line.split(), KNOWN)
    assert str(caught.value) == problem


def test_the_usage_shows_each_flag_with_its_meaning_and_default() -> None:
    assert usage_text("program", "Does it.", KNOWN.values()).splitlines() == [
        *("Usage of program:", "Does it.", ""),
        *("  -conf FILE", "    \ta file (default /etc/x)"),
        *("  -quiet", "    \tsay less (default false)"),
    ]
