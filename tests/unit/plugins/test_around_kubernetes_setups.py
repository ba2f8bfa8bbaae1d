"""`autopath`, `dns64` and `k8s_external`. A directive is written as in a Corefile; it starts on line 1."""

from ipaddress import IPv6Address
from pathlib import Path

import pytest

from topodns.corefile.errors import ConfigError
from topodns.corefile.lexer import tokenize
from topodns.corefile.parser import Directive, parse_blocks
from topodns.corefile.resolv_conf import load_search_list
from topodns.plugins.autopath.settings import Autopath
from topodns.plugins.autopath.setup import parse_autopath
from topodns.plugins.context import Context
from topodns.plugins.dns64 import WELL_KNOWN_PREFIX, Dns64, parse_dns64
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.k8s_external.setup import parse_k8s_external

ORG, NET = ("example", "org"), ("example", "net")


def directive(text: str) -> Directive:
    (found,) = parse_blocks(tokenize(f". {{ {text}\n}}", "Corefile"))[0].directives
    return found


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "resolv.conf").write_text("nameserver 10.0.0.1\ndomain a.org\nsearch example.org. Example.NET . a\n")
    (tmp_path / "empty").write_text("nameserver 10.0.0.1\n")
    (tmp_path / "broken").write_text("\nsearch a..b\n")
    return tmp_path


def autopath(text: str, directory: Path, host: str = "resolv.conf") -> Autopath:
    return parse_autopath(directive(text), Context((ORG,), str(directory)), str(directory / host))


def test_autopath_takes_the_search_list_of_a_file(directory: Path) -> None:
    found = (ORG, NET, ("a",))
    assert autopath("autopath resolv.conf", directory) == Autopath((ORG,), found)
    assert autopath(f"autopath example.net {directory}/resolv.conf", directory) == Autopath((NET,), found)


def test_autopath_of_kubernetes_goes_on_with_the_search_list_of_the_host(directory: Path) -> None:
    assert autopath("autopath @kubernetes", directory) == Autopath((ORG,), (ORG, NET, ("a",)), kubernetes=True)
    for host in ("empty", "broken", "missing"):
        assert autopath("autopath . @kubernetes", directory, host) == Autopath(((),), (), kubernetes=True)


def test_a_pod_s_search_list_has_32_domains_at_most_and_three_are_the_cluster_s(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("search " + " ".join(f"d{number}.example" for number in range(40)))
    search = autopath("autopath @kubernetes", tmp_path).search
    assert (len(search), search[-1]) == (29, ("d28", "example"))


AUTOPATH_REFUSED = {
    "autopath": "Corefile:1: 'autopath' has no argument, expected a file like /etc/resolv.conf or @kubernetes",
    "autopath @etcd": "Corefile:1: 'autopath' has '@etcd', expected a file or @kubernetes",
    "autopath empty": "Corefile:1: 'autopath' has 'empty', but that file has no 'search' line",
    "autopath @kubernetes {\n x\n}": "Corefile:2: found 'x', but 'autopath' has no options",
}


@pytest.mark.parametrize(("text", "problem"), AUTOPATH_REFUSED.items())
def test_autopath_refuses(text: str, problem: str, directory: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        autopath(text, directory)
    assert str(refused.value).startswith(problem)


def test_a_problem_of_a_search_list_is_reported_at_its_place(directory: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        autopath("autopath broken", directory)
    assert str(refused.value).startswith(f"{directory}/broken:2: found the search domain 'a..b', which is none")
    with pytest.raises(ConfigError, match="cannot read"):
        autopath("autopath missing", directory)


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("search a b\nsearch c", (("c",),)),
        ("search a\ndomain b", (("b",),)),
        ("search a a .", (("a",),)),
        ("#search a", ()),
    ],
)
def test_the_last_line_of_a_search_list_counts(tmp_path: Path, text: str, domains: tuple[tuple[str, ...], ...]) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(text)
    assert load_search_list(str(path)) == domains


def prefix(text: str, octets: int) -> bytes:
    return IPv6Address(text).packed[:octets]


DNS64 = {
    "dns64": Dns64(),
    "dns64 64:ff9b::/96": Dns64(WELL_KNOWN_PREFIX),
    "dns64 64:1337::/96": Dns64(prefix("64:1337::", 12)),
    "dns64 {\n prefix 64:1337::/96\n}": Dns64(prefix("64:1337::", 12)),
    "dns64 2001:db8::/32 {\n allow_ipv4\n}": Dns64(prefix("2001:db8::", 4), allow_ipv4=True),
    "dns64 {\n translate_all\n}": Dns64(translate_all=True),
}


@pytest.mark.parametrize(("text", "settings"), DNS64.items())
def test_dns64_is_read_as_coredns_reads_it(text: str, settings: Dns64) -> None:
    assert parse_dns64(directive(text), Context((ORG,))) == settings


DNS64_REFUSED = {
    "dns64 10.0.0.0/8": "Corefile:1: 'dns64' has the prefix '10.0.0.0/8', expected an IPv6 one",
    "dns64 64:ff9b::/33": "Corefile:1: 'dns64' has the prefix '64:ff9b::/33'",
    "dns64 64:ff9b::": "Corefile:1: 'dns64' has the prefix '64:ff9b::'",
    "dns64 a b": "Corefile:1: 'dns64' has the arguments 'a b', expected one IPv6 prefix",
    "dns64 {\n prefix\n}": "Corefile:2: 'prefix' has no argument, expected one IPv6 prefix",
    "dns64 {\n allow_ipv6\n}": "Corefile:2: unknown option 'allow_ipv6' of 'dns64', did you mean 'allow_ipv4'?",
}


@pytest.mark.parametrize(("text", "problem"), DNS64_REFUSED.items())
def test_dns64_refuses(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_dns64(directive(text), Context((ORG,)))
    assert str(refused.value).startswith(problem)


EXTERNAL = {
    "k8s_external": K8sExternal((ORG,)),
    "k8s_external Example.net example.org": K8sExternal((NET, ORG)),
    "k8s_external {\n apex NS\n ttl 30\n headless\n}": K8sExternal((ORG,), apex="ns", ttl=30, headless=True),
    "k8s_external {\n fallthrough\n}": K8sExternal((ORG,), fallthrough=((),)),
    "k8s_external {\n fallthrough example.net\n}": K8sExternal((ORG,), fallthrough=(NET,)),
}


@pytest.mark.parametrize(("text", "settings"), EXTERNAL.items())
def test_k8s_external_is_read_as_coredns_reads_it(text: str, settings: K8sExternal) -> None:
    assert parse_k8s_external(directive(text), Context((ORG,))) == settings


EXTERNAL_REFUSED = {
    "k8s_external {\n ttl 3601\n}": "Corefile:2: 'ttl' has '3601', expected a whole number from 0 to 3600",
    "k8s_external {\n apex a.b\n}": "Corefile:2: 'apex' has the arguments 'a.b', expected one label, without dots",
    "k8s_external {\n apex ..\n}": "Corefile:2: 'apex' has no label",
    "k8s_external {\n headless yes\n}": "Corefile:2: 'headless' has the arguments 'yes', expected none",
    "k8s_external {\n hedless\n}": "Corefile:2: unknown option 'hedless' of 'k8s_external', did you mean 'headless'?",
}


@pytest.mark.parametrize(("text", "problem"), EXTERNAL_REFUSED.items())
def test_k8s_external_refuses(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_k8s_external(directive(text), Context((ORG,)))
    assert str(refused.value).startswith(problem)
