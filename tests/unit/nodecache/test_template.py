"""The variables of the template."""

from ipaddress import ip_address

import pytest

from tests.support.node_cache_template import node_template
from topodns.nodecache.template import ClusterDns, TemplateValues, fill, find_cluster_dns


def filling(
    local_ips: str = "169.254.20.10 10.96.0.10", cluster_dns: str = "10.96.0.99", upstreams: tuple[str, ...] = ()
) -> TemplateValues:
    addresses = tuple(map(ip_address, local_ips.split()))
    return TemplateValues(addresses, ClusterDns(cluster_dns, "it is not known"), upstreams, ":9253", "/etc/resolv.conf")


def filled(template: str, values: TemplateValues | None = None) -> str:
    text, problems = fill(template, "base", values or filling())
    assert problems == ()
    return text


def unfilled(template: str, values: TemplateValues | None = None) -> tuple[str, ...]:
    return fill(template, "base", values or filling())[1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bind __PILLAR__LOCAL__DNS__", "bind 169.254.20.10 10.96.0.10"),
        ("bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__", "bind 169.254.20.10 10.96.0.10 "),
        ("forward . __PILLAR__CLUSTER__DNS__", "forward . 10.96.0.99"),
        ("forward . __PILLAR__UPSTREAM__SERVERS__", "forward . /etc/resolv.conf"),
        ("prometheus __PROMETHEUS__ENDPOINT__", "prometheus :9253"),
        ("health __PILLAR__LOCAL__DNS__:8080", "health 169.254.20.10:8080"),
        ("health [__PILLAR__LOCAL__DNS__]:8080", "health 169.254.20.10:8080"),
        ("whoami # __PILLAR__DNS__DOMAIN__", "whoami # __PILLAR__DNS__DOMAIN__"),
        ("chaos __VERSION__ _x__Y__Z_", "chaos __VERSION__ _x__Y__Z_"),
    ],
)
def test_each_variable_is_replaced_by_its_value(line: str, expected: str) -> None:
    assert filled(line) == expected


@pytest.mark.parametrize("line", ["health __PILLAR__LOCAL__DNS__:8080", "health [__PILLAR__LOCAL__DNS__]:8080"])
def test_before_a_port_the_first_address_is_filled_in_with_brackets_for_ipv6(line: str) -> None:
    assert filled(line, filling("fd00::10 169.254.20.10")) == "health [fd00::10]:8080"


def test_upstreams_of_the_configmap_take_the_place_of_resolv_conf() -> None:
    two = filling(upstreams=("192.0.2.1", "192.0.2.2:5353"))
    assert filled("forward . __PILLAR__UPSTREAM__SERVERS__", two) == "forward . 192.0.2.1 192.0.2.2:5353"


FORCED = ".:53 {\n    forward . __PILLAR__UPSTREAM__SERVERS__ {\n            force_tcp\n    }\n    loop\n}\n"


def test_upstreams_of_the_configmap_are_not_forced_to_tcp_in_the_block_that_node_cache_knows() -> None:
    text = filled(FORCED, filling(upstreams=("192.0.2.1",)))
    assert text.split() == [".:53", "{", "forward", ".", "192.0.2.1", "loop", "}"]
    assert text.splitlines().index("    loop") == FORCED.splitlines().index("    loop")


def test_tcp_stays_forced_for_resolv_conf_and_in_other_spellings_of_the_block() -> None:
    assert "force_tcp" in filled(FORCED)
    assert "force_tcp" in filled(FORCED.replace(" " * 12, "\t"), filling(upstreams=("192.0.2.1",)))


def test_each_line_stays_where_it_was() -> None:
    template = node_template()
    for values in (filling(), filling("fd00::1", upstreams=("192.0.2.1",))):
        lines = filled(template, values).split("\n")
        assert [line.split()[:1] for line in lines] == [line.split()[:1] for line in template.split("\n")]


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (
            "\n__PILLAR__DNS__DOMAIN__:53 {\n}",
            "base:2: found __PILLAR__DNS__DOMAIN__, expected the cluster's domain, such as cluster.local; the "
            "installer of the template writes it there",
        ),
        (
            "bind __PILLAR__LOCALE__DNS__",
            "base:1: found __PILLAR__LOCALE__DNS__, which is no variable of the template, expected "
            "__PILLAR__LOCAL__DNS__, __PILLAR__DNS__SERVER__, __PILLAR__DNS__DOMAIN__, __PILLAR__CLUSTER__DNS__, "
            "__PILLAR__UPSTREAM__SERVERS__ or __PROMETHEUS__ENDPOINT__",
        ),
    ],
)
def test_a_variable_left_unfilled_is_named_with_its_place(template: str, problem: str) -> None:
    assert unfilled(template) == (problem,)


def test_every_place_that_stays_unfilled_is_named() -> None:
    problems = unfilled(node_template("__PILLAR__DNS__DOMAIN__"), filling(cluster_dns=""))
    places = [problem.partition(", ")[0] for problem in problems]
    assert places == [
        "base:1: found __PILLAR__DNS__DOMAIN__",
        *(f"base:{line}: found __PILLAR__CLUSTER__DNS__" for line in (10, 22, 33)),
    ]
    assert problems[1].endswith(", but it is not known")


@pytest.mark.parametrize(
    ("service", "variable", "address"),
    [
        ("kube-dns", "KUBE_DNS_SERVICE_HOST", "10.96.0.10"),
        ("kube-dns-upstream", "KUBE_DNS_UPSTREAM_SERVICE_HOST", "10.96.0.99"),
        ("coredns", "COREDNS_SERVICE_HOST", "fd00:10:96::a"),
    ],
)
def test_the_cluster_dns_is_where_the_environment_has_its_service(service: str, variable: str, address: str) -> None:
    assert find_cluster_dns(service, {variable: address}) == ClusterDns(address)


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, "the environment variable KUBE_DNS_SERVICE_HOST is not set, expected the address of the Service"),
        ({"KUBE_DNS_SERVICE_HOST": "None"}, "the environment variable KUBE_DNS_SERVICE_HOST has 'None', expected"),
    ],
)
def test_a_service_without_an_address_is_said_and_never_written(environment: dict[str, str], problem: str) -> None:
    found = find_cluster_dns("kube-dns", environment)
    assert found.address == ""
    assert found.problem.startswith(problem)
