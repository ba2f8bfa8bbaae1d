"""From the files of node-cache to a Corefile that can be served."""

from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.support.node_cache_template import CLUSTER_DNS, ENVIRONMENT, node_flags, node_template
from topodns.app.load import settings_from_text
from topodns.corefile.arguments import Address
from topodns.corefile.errors import ConfigError
from topodns.nodecache.corefile import NODE_CACHE, NodeCorefile
from topodns.nodecache.settings import FileText, NodeConfigTexts
from topodns.plugins.block import ServerBlock
from topodns.plugins.cache.settings import Cache, Prefetch, ServeStale, Share
from topodns.plugins.forward.settings import UpstreamAddress
from topodns.plugins.health import Health
from topodns.plugins.prometheus import Prometheus
from topodns.plugins.reload import Reload

TEMPLATE = node_template()
LOCAL = "169.254.20.10,10.96.0.10"


class Files:
    """The files of a node-cache in a directory of the test, with a resolv.conf of its own."""

    def __init__(self, directory: Path, template: str = TEMPLATE, **kube_dns: str) -> None:
        self.directory = directory
        (directory / "resolv.conf").write_text("search example.org\nnameserver 192.0.2.53\n")
        self.base = directory / "Corefile.base"
        self.base.write_text(template)
        (directory / "kube-dns").mkdir()
        for key, text in kube_dns.items():
            (directory / "kube-dns" / key).write_text(text)

    def corefile(self, *arguments: str, local_ips: str = LOCAL) -> NodeCorefile:
        flags = node_flags(self.directory, *arguments, local_ips=local_ips)
        return NodeCorefile(flags, ENVIRONMENT, str(self.directory / "resolv.conf"))

    def blocks(self, *arguments: str, local_ips: str = LOCAL) -> list[ServerBlock]:
        corefile = self.corefile(*arguments, local_ips=local_ips)
        rendered = corefile.render(corefile.read())
        assert rendered.problems == ()
        return list(corefile.settings(rendered.text).blocks)

    def problems(self, *arguments: str) -> tuple[str, ...]:
        corefile = self.corefile(*arguments)
        return tuple(line.replace(f"{self.directory}/", "") for line in corefile.render(corefile.read()).problems)


FAMILIES = {
    "IPv4": ("169.254.20.10,10.96.0.10", "169.254.20.10"),
    "IPv6": ("fd00:169:254::10,fd00:10:96::a", "fd00:169:254::10"),
    "dual stack": ("169.254.20.10,fd00:169:254::10,10.96.0.10,fd00:10:96::a", "169.254.20.10"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_template_of_nodelocal_dnscache_can_be_served_in_each_family(tmp_path: Path, family: str) -> None:
    local_ips, first = FAMILIES[family]
    blocks = Files(tmp_path).blocks(local_ips=local_ips)
    origins = [key.origin for block in blocks for key in block.keys]
    assert origins == [("cluster", "local"), ("in-addr", "arpa"), ("ip6", "arpa"), ()]
    for block in blocks:
        assert block.settings.get("bind") == tuple(str(ip_address(text)) for text in local_ips.split(","))
        assert block.settings.get("prometheus") == Prometheus(Address("", 9253))
        assert (block.settings.get("reload"), block.settings.get("loop"), block.settings.get("errors") is not None) == (
            Reload(),
            True,
            True,
        )
    assert [block.settings.get("health") for block in blocks] == [Health(Address(first, 8080)), None, None, None]


def test_bind_may_name_the_link_that_the_node_cache_is_to_make(tmp_path: Path) -> None:
    """NodeLocal DNSCache makes it before it reads the Corefile."""
    files = Files(tmp_path, ".:53 {\n    bind dns0 ::1\n    whoami\n}\n")
    (block,) = files.blocks("-interfacename=dns0")
    assert block.bound_hosts == ("169.254.20.10", "10.96.0.10", "::1")
    expected = "Corefile.base:2: 'bind' has 'dns0', expected an IP address or an interface of this machine"
    assert files.problems("-interfacename=dns0", "-setupinterface=false") == files.problems() == (expected,)


def test_only_names_of_the_cluster_go_to_the_cluster_dns(tmp_path: Path) -> None:
    *inside, outside = Files(tmp_path).blocks()
    for block in inside:
        assert [(forward.upstreams, forward.force_tcp) for forward in block.settings["forward"]] == [
            ((UpstreamAddress(CLUSTER_DNS, 53),), True)
        ]
    assert [(forward.upstreams, forward.force_tcp) for forward in outside.settings["forward"]] == [
        ((UpstreamAddress("192.0.2.53", 53),), False)
    ]


def test_stub_domains_get_a_block_each_behind_those_of_the_template(tmp_path: Path) -> None:
    stubs = '{"b.example": ["192.0.2.2:5353"], "a.example": ["2001:db8::1", "192.0.2.1"]}'
    blocks = Files(tmp_path, stubDomains=stubs).blocks("-dns.port=5300")
    assert [(block.keys[0].origin, block.keys[0].port) for block in blocks[4:]] == [
        (("a", "example"), 5300),
        (("b", "example"), 5300),
    ]
    assert blocks[4].settings["forward"][0].upstreams == (
        UpstreamAddress("2001:db8::1", 53),
        UpstreamAddress("192.0.2.1", 53),
    )
    assert blocks[4].settings.get("bind") == ("169.254.20.10", "10.96.0.10")
    assert blocks[4].directives == ("bind", "errors", "cache", "forward")


def test_upstream_nameservers_take_the_place_of_the_machine_s(tmp_path: Path) -> None:
    blocks = Files(tmp_path, upstreamNameservers='["192.0.2.1", "[2001:db8::1]:5353"]').blocks()
    assert blocks[3].settings["forward"][0].upstreams == (
        UpstreamAddress("192.0.2.1", 53),
        UpstreamAddress("2001:db8::1", 5353),
    )


def test_other_keys_of_the_configmap_mean_nothing(tmp_path: Path) -> None:
    files = Files(tmp_path, federations="west=example.org", README="stubDomains")
    assert len(files.blocks()) == 4


def test_a_configmap_that_is_not_there_is_an_empty_one(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with_directory = files.blocks()
    (tmp_path / "kube-dns").rmdir()
    assert files.blocks() == with_directory


def test_the_same_files_make_the_same_text(tmp_path: Path) -> None:
    files = Files(tmp_path, stubDomains='{"a.example": ["192.0.2.1"]}')
    one, other = files.corefile(), files.corefile()
    assert one.read() == other.read()
    assert one.render(one.read()) == other.render(other.read())


@pytest.mark.parametrize(
    ("template", "kube_dns", "problem"),
    [
        (" \n", {}, "Corefile.base: is empty, expected the template of the Corefile"),
        (". {\n  forwart . 192.0.2.1\n}", {}, "Corefile.base:2: unknown directive 'forwart', did you mean 'forward'?"),
        (
            "__PILLAR__DNS__DOMAIN__ {\n}",
            {},
            "Corefile.base:1: found __PILLAR__DNS__DOMAIN__, expected the cluster's domain, such as cluster.local; the "
            "installer of the template writes it there",
        ),
        (
            ". {\n}",
            {"stubDomains": '{"a": ["b"]}'},
            "kube-dns/stubDomains: found the server 'b' of 'a', expected ADDRESS or ADDRESS:PORT, perhaps behind "
            "dns:// or tls://; names are not looked up",
        ),
        (
            ". {\n}",
            {"upstreamNameservers": "192.0.2.1"},
            'kube-dns/upstreamNameservers:1: found no JSON at column 6, expected a list such as ["192.0.2.53"]',
        ),
        (
            "a.example:53 {\n}",
            {"stubDomains": '{"a.example": ["192.0.2.1"]}'},
            "kube-dns/stubDomains: found a.example.:53 again, first at Corefile.base:1",
        ),
    ],
)
def test_a_problem_is_reported_at_the_place_of_its_cause(
    tmp_path: Path, template: str, kube_dns: dict[str, str], problem: str
) -> None:
    assert Files(tmp_path, template, **kube_dns).problems() == (problem,)


def test_a_template_that_is_not_there_is_said(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.base.unlink()
    assert files.problems() == (
        "Corefile.base: cannot be read: No such file or directory, nor is there the file of -conf, Corefile",
    )
    (tmp_path / "Corefile").write_bytes(b"\xff\xfe")
    assert files.problems() == ("Corefile: cannot be read: found UTF-16 or UTF-32, expected UTF-8",)
    assert files.problems("-conf=") == ("Corefile.base: cannot be read: No such file or directory",)


def test_without_a_template_the_corefile_of_conf_is_served_as_it_is(tmp_path: Path) -> None:
    files = Files(tmp_path, stubDomains="{")
    files.base.unlink()
    finished = "cluster.local:53 {\n    bind 169.254.25.10\n    forward . 10.96.0.3 {\n        force_tcp\n    }\n}\n"
    (tmp_path / "Corefile").write_text(finished)
    corefile = files.corefile()
    rendered = corefile.render(corefile.read())
    assert (rendered.text, rendered.problems) == (finished, ())
    assert corefile.paths == (str(files.base), str(tmp_path / "kube-dns"), str(tmp_path / "Corefile"))
    (tmp_path / "Corefile").write_text(". {\n forward\n}\n")
    assert [line.partition(",")[0] for line in files.problems()] == ["Corefile:2: 'forward' has no argument"]
    (tmp_path / "Corefile").write_text("")
    assert files.problems() == ("Corefile: is empty, expected a Corefile",)


def test_a_template_that_is_there_goes_before_the_corefile_of_conf(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text(". {\n whoami\n}\n")
    assert len(Files(tmp_path).blocks()) == 4


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "kube-dns" / "stubDomains").write_bytes(b"\n\xff")
    assert files.problems() == ("kube-dns/stubDomains:2: found the octet 0xff, which is no UTF-8",)
    (tmp_path / "kube-dns" / "stubDomains").write_text("{}", encoding="utf-16")
    assert files.problems() == ("kube-dns/stubDomains: cannot be read: found UTF-16 or UTF-32, expected UTF-8",)


def test_a_fault_in_an_imported_file_is_said_with_that_file(tmp_path: Path) -> None:
    (tmp_path / "part").write_text("whoami x\n")
    files = Files(tmp_path, ". {\n import part\n}\n")
    assert files.problems() == ("part:1: 'whoami' has the arguments 'x', expected none",)


def test_an_unset_upstream_service_is_said_where_the_template_needs_it(tmp_path: Path) -> None:
    files = Files(tmp_path)
    problems = files.problems("-upstreamsvc=other")
    assert [problem.partition(":")[2].partition(":")[0] for problem in problems] == ["10", "22", "33"]
    assert "the environment variable OTHER_SERVICE_HOST is not set" in problems[0]
    files.base.write_text(". {\n forward . 192.0.2.1\n}\n")
    assert files.problems("-upstreamsvc=other") == ()


def test_the_watched_paths_are_the_template_and_the_configmap_s_directory(tmp_path: Path) -> None:
    assert Files(tmp_path).corefile().paths == (str(tmp_path / "Corefile.base"), str(tmp_path / "kube-dns"))


def test_texts_without_the_configmap_are_those_of_a_node_that_has_none(tmp_path: Path) -> None:
    corefile = Files(tmp_path, stubDomains="{").corefile()
    texts = corefile.read()
    assert texts.without_kube_dns() == NodeConfigTexts(
        FileText(str(tmp_path / "Corefile.base"), node_template()),
        FileText(str(tmp_path / "kube-dns/stubDomains")),
        FileText(str(tmp_path / "kube-dns/upstreamNameservers")),
    )


# The defaults of `cache` on a node, and CoreDNS's defaults elsewhere.

BLOCK = "example.org {{\n cache {}\n forward . 192.0.2.1\n}}"
ORIGINS = (("example", "org"),)
FOR_A_DAY = ServeStale(86_400.0, verify=True, verify_timeout=1.8, ttl=30, recheck=30.0)


def blocks(directory: Path, text: str) -> tuple[ServerBlock, ...]:
    return NodeCorefile(node_flags(directory), ENVIRONMENT).settings(text).blocks


def cache(directory: Path, words: str) -> Cache:
    (block,) = blocks(directory, BLOCK.format(words))
    cache: Cache = block.settings["cache"]
    return cache


def test_it_is_rfc_8767_for_a_day_and_raises_no_ttl(tmp_path: Path) -> None:
    assert cache(tmp_path, "") == Cache(ORIGINS, Share(3600, 0), Share(1800, 0), serve_stale=FOR_A_DAY)


def test_a_server_keeps_to_coredns() -> None:
    (block,) = settings_from_text(BLOCK.format(""), "Corefile", 53, {}).blocks
    assert block.settings.get("cache") == Cache(ORIGINS, Share(3600, 5), Share(1800, 5), serve_stale=None)


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("30", {"success": Share(30, 0), "denial": Share(30, 0)}),
        ("{\n success 9984 30\n denial 9984 5\n }", {"success": Share(30, 0), "denial": Share(5, 0)}),
        ("{\n success 9984 30 10\n }", {"success": Share(30, 10)}),  # who writes a MINTTL wants it
        ("{\n serve_stale off\n }", {"serve_stale": None}),
        ("{\n serve_stale 0\n }", {"serve_stale": None}),
        ("{\n serve_stale\n }", {"serve_stale": ServeStale()}),
        ("{\n serve_stale 1h verify 500ms\n }", {"serve_stale": ServeStale(verify=True, verify_timeout=0.5)}),
        (
            "{\n serve_stale_policy prefer_positive\n }",
            {"serve_stale": replace(FOR_A_DAY, prefer_positive=True)},
        ),
        ("{\n prefetch 5\n }", {"prefetch": Prefetch(5)}),
    ],
)
def test_written_options_count_and_the_others_are_the_node_s_defaults(
    tmp_path: Path, words: str, changed: dict[str, object]
) -> None:
    assert cache(tmp_path, words) == replace(NODE_CACHE, origins=ORIGINS, **changed)  # type: ignore[arg-type]


def test_without_the_directive_nothing_is_kept(tmp_path: Path) -> None:
    (block,) = blocks(tmp_path, "example.org {\n forward . 192.0.2.1\n}")
    assert block.settings.get("cache") is None


def test_a_policy_for_disabled_serve_stale_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'serve_stale_policy' without 'serve_stale'"):
        cache(tmp_path, "{\n serve_stale off\n serve_stale_policy prefer_positive\n }")


def test_a_stub_domain_s_cache_is_a_node_s_too(tmp_path: Path) -> None:
    corefile = NodeCorefile(node_flags(tmp_path), ENVIRONMENT, str(tmp_path / "resolv.conf"))
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    (tmp_path / "kube-dns").mkdir(exist_ok=True)
    (tmp_path / "kube-dns" / "stubDomains").write_text('{"acme.local": ["192.0.2.1"]}')
    (tmp_path / "Corefile.base").write_text(".:53 {\n forward . 192.0.2.2\n}\n")
    rendered = corefile.render(corefile.read())
    assert rendered.problems == ()
    stub = corefile.settings(rendered.text).blocks[-1]
    assert stub.settings.get("cache") is not None
    assert stub.settings["cache"].serve_stale == FOR_A_DAY
