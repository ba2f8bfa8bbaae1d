"""`forward FROM TO... { options }`. A directive is written as in a Corefile; it starts on line 1."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.plugins.forward.scene import forward, problem
from topodns.dns.rrtype import Rcode
from topodns.plugins.forward.settings import (
    Forward,
    ForwardTls,
    HealthCheck,
    UpstreamAddress,
    UpstreamPolicy,
    UpstreamTransport,
)

TLS = UpstreamTransport.TLS


def with_options(*lines: str, directory: str = "") -> Forward:
    body = "\n".join(lines)
    return forward(f"forward . 192.0.2.1 {{\n{body}\n}}", directory)


def test_without_options_the_defaults_are_those_of_coredns() -> None:
    settings = forward("forward . 192.0.2.1")
    assert settings == Forward(((),), (UpstreamAddress("192.0.2.1", 53),))
    assert (settings.expire, settings.read_timeout, settings.max_fails) == (10.0, 2.0, 2)
    assert (settings.policy, settings.health_check) == (UpstreamPolicy.RANDOM, HealthCheck(0.5, True, ()))


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (".", [()]),
        ("Example.org", [("example", "org")]),
        ("dns://example.org:53", [("example", "org")]),
        ("10.0.0.0/8", [("10", "in-addr", "arpa")]),
        ("192.0.2.0/25", [(str(n), "2", "0", "192", "in-addr", "arpa") for n in range(128)]),
    ],
)
def test_from_is_a_name_or_a_prefix(origin: str, expected: list[tuple[str, ...]]) -> None:
    assert list(forward(f"forward {origin} 192.0.2.1").origins) == expected


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (UpstreamAddress("192.0.2.1", 53), "192.0.2.1:53"),
        (UpstreamAddress("2001:db8::1", 853, TLS), "[2001:db8::1]:853"),
    ],
)
def test_metrics_show_an_upstream_as_coredns_does(address: UpstreamAddress, name: str) -> None:
    assert address.name == name


OPTIONS: dict[str, dict[str, Any]] = {
    "except a.example b.example.": {"excepted": (("a", "example"), ("b", "example"))},
    "force_tcp": {"force_tcp": True},
    "prefer_udp": {"prefer_udp": True},
    "expire 20s": {"expire": 20.0},
    "max_age 1m": {"max_age": 60.0},
    "max_age 0": {"max_age": 0.0},
    "max_idle_conns 4": {"max_idle_conns": 4},
    "read_timeout 500ms": {"read_timeout": 0.5},
    "max_fails 0": {"max_fails": 0},
    "max_connect_attempts 0": {"max_connect_attempts": 0},
    "policy sequential": {"policy": UpstreamPolicy.SEQUENTIAL},
    "policy round_robin": {"policy": UpstreamPolicy.ROUND_ROBIN},
    "health_check 5s": {"health_check": HealthCheck(5.0)},
    "health_check 1s no_rec domain example.org": {"health_check": HealthCheck(1.0, False, ("example", "org"))},
    "health_check 1s domain . no_rec": {"health_check": HealthCheck(1.0, False)},
    "max_concurrent 1000": {"max_concurrent": 1000},
    "next NXDOMAIN servfail": {"next_rcodes": frozenset({Rcode.NXDOMAIN, Rcode.SERVFAIL})},
    "next_on_nodata": {"next_on_nodata": True},
    "failfast_all_unhealthy_upstreams": {"failfast": True},
    "failover SERVFAIL REFUSED": {"failover": frozenset({Rcode.SERVFAIL, Rcode.REFUSED})},
    "source_address 2001:DB8::2": {"source_address": "2001:db8::2"},
    "tls": {"tls": ForwardTls()},
}


@pytest.mark.parametrize(("line", "expected"), OPTIONS.items(), ids=OPTIONS)
def test_each_option_sets_its_own(line: str, expected: dict[str, Any]) -> None:
    assert with_options(line) == Forward(((),), (UpstreamAddress("192.0.2.1", 53),), **expected)


def test_lists_add_up() -> None:
    found = with_options(
        "except a.example", "except b.example", "failover SERVFAIL", "failover REFUSED", "next NXDOMAIN"
    )
    assert found.excepted == (("a", "example"), ("b", "example"))
    assert found.failover == {Rcode.SERVFAIL, Rcode.REFUSED}


def test_tls_takes_a_certificate_its_key_and_a_ca(tmp_path: Path) -> None:
    names = ("crt", "key", "ca")
    for name in names:
        (tmp_path / name).touch()
    crt, key, ca = (str(tmp_path / name) for name in names)
    found = [with_options(f"tls {words}", directory=str(tmp_path)).tls for words in ("ca", "crt key", "crt key ca")]
    assert found == [ForwardTls(ca=ca), ForwardTls(crt, key), ForwardTls(crt, key, ca)]


ADDRESS = "HOST[:PORT], tls://HOST[:PORT], https://HOST[:PORT] or a file like /etc/resolv.conf"

NO_HOST = f"expected {ADDRESS}"

PROBLEMS = {
    "nothing": ("forward", f"'forward' has no argument, expected a zone and where to forward to: {ADDRESS}"),
    "no destination": (
        "forward .",
        f"'forward' has the arguments '.', expected a zone and where to forward to: {ADDRESS}",
    ),
    "no host name": ("forward . dns..example", f"'forward' has 'dns..example', {NO_HOST}"),
    "no host name for TLS": ("forward . tls://dns..example", f"'forward' has 'tls://dns..example', {NO_HOST}"),
    "no address": ("forward . 192.0.2.256", f"'forward' has '192.0.2.256', {NO_HOST}"),
    "a port that is none": ("forward . 192.0.2.1:0", "'forward' has '192.0.2.1:0', expected a port from 1 to 65535"),
    "a file that is not there": (
        "forward . /nowhere/resolv.conf",
        "cannot read '/nowhere/resolv.conf': No such file or directory",
    ),
    "a path of DNS over HTTPS": (
        "forward . https://192.0.2.1/dns-query",
        f"'forward' has 'https://192.0.2.1/dns-query', {NO_HOST}",
    ),
    "DNS over QUIC": (
        "forward . quic://192.0.2.1",
        "'forward' has 'quic://192.0.2.1', but topodns does not speak DNS over QUIC; "
        "most such servers answer tls://ADDRESS as well",
    ),
    "a scheme of nobody": ("forward . udp://192.0.2.1", f"'forward' has 'udp://192.0.2.1', expected {ADDRESS}"),
    "an interface for IPv4": (
        "forward . 192.0.2.1%eth0",
        "'forward' has '192.0.2.1%eth0', expected %NAME only after tls://, or %INTERFACE behind an IPv6 address",
    ),
    "too many destinations": (
        "forward . " + " ".join(f"192.0.2.{n}" for n in range(16)),
        "'forward' has 16 destinations, expected at most 15",
    ),
}


@pytest.mark.parametrize(("text", "expected"), PROBLEMS.values(), ids=PROBLEMS)
def test_values_without_a_meaning_are_refused(text: str, expected: str) -> None:
    assert problem(text) == f"Corefile:1: {expected}"


OPTION_PROBLEMS = {
    "an unknown option": (
        "max_fail 1",
        "unknown option 'max_fail' of 'forward', did you mean 'max_fails'?",
    ),
    "an option twice": ("max_fails 1\nmax_fails 2", "found 'max_fails' again, first at Corefile:2"),
    "except what": ("except", "'except' has no argument, expected the zones that are not forwarded"),
    "a flag with an argument": ("force_tcp on", "'force_tcp' has the arguments 'on', expected none"),
    "no number": ("max_concurrent -1", "'max_concurrent' has '-1', expected a whole number from 0 to 4294967295"),
    "no duration": ("expire 10", "'expire' has '10', expected a duration such as 5s, 1m30s or 500ms"),
    "no time to read": ("read_timeout 0s", "'read_timeout' has the arguments '0s', expected a duration of more than 0"),
    "no policy": ("policy randm", "'policy' has 'randm', did you mean 'random'?"),
    "no response code": ("next NXDOMAN", "'next' has 'NXDOMAN', did you mean 'NXDOMAIN'?"),
    "no response code at all": ("next 3", "'next' has '3', expected a response code such as SERVFAIL"),
    "failover after success": (
        "failover NOERROR",
        "'failover' has NOERROR, expected response codes of answers that are not good enough",
    ),
    "a health check without a duration": (
        "health_check",
        "'health_check' has no argument, expected a duration, and perhaps no_rec, and domain and a name",
    ),
    "a health check of nothing": (
        "health_check 1s domain",
        "'health_check' has 'domain', expected no_rec, or domain and a name",
    ),
    "a health check of no name": (
        "health_check 1s domain a..b",
        "'health_check' has no name after domain: empty label in 'a..b'",
    ),
    "no source address": (
        "source_address eth0",
        "'source_address' has the arguments 'eth0', expected an IP address of this machine",
    ),
    "a server name that is none": (
        "tls_servername a..b",
        "found the server name 'a..b', expected a DNS name or an address",
    ),
    "DNS over HTTPS": (
        "doh_method PUT",
        "'doh_method' has 'PUT', expected POST or GET",
    ),
    "looking up host names": (
        "resolver dns.example",
        "'resolver' has the arguments 'dns.example', expected addresses of name servers, ADDRESS[:PORT]",
    ),
}


@pytest.mark.parametrize(("lines", "expected"), OPTION_PROBLEMS.values(), ids=OPTION_PROBLEMS)
def test_option_values_without_a_meaning_are_refused(lines: str, expected: str) -> None:
    line = 2 + lines.count("\n")
    assert problem(f"forward . 192.0.2.1 {{\n{lines}\n}}") == f"Corefile:{line}: {expected}"


def test_max_age_is_at_least_expire_as_in_coredns() -> None:
    found = problem("forward . 192.0.2.1 {\nmax_age 5s\n}")
    assert found == "Corefile:1: 'forward' has max_age 5s and expire 10s, expected a max_age of at least expire"


def test_tls_takes_at_most_three_files(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = problem("forward . 192.0.2.1 {\ntls file file file file\n}", str(tmp_path))
    assert found.endswith("expected the files of a certificate and its key, or of a CA, or of all three, or none")
