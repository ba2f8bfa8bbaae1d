"""Destinations of `forward`: addresses, files of name servers, and names of TLS servers."""

from pathlib import Path

import pytest

from tests.unit.plugins.forward.scene import forward, problem
from topodns.plugins.forward.settings import UpstreamAddress, UpstreamTransport

TLS, HTTPS = UpstreamTransport.TLS, UpstreamTransport.HTTPS
NO_HOST = "expected HOST[:PORT], tls://HOST[:PORT], https://HOST[:PORT] or a file like /etc/resolv.conf"

ADDRESSES = {
    "192.0.2.1": UpstreamAddress("192.0.2.1", 53),
    "192.0.2.1:5353": UpstreamAddress("192.0.2.1", 5353),
    "dns://192.0.2.1": UpstreamAddress("192.0.2.1", 53),
    "2001:DB8::1": UpstreamAddress("2001:db8::1", 53),
    "[2001:db8::1]": UpstreamAddress("2001:db8::1", 53),
    "[2001:db8::1]:5353": UpstreamAddress("2001:db8::1", 5353),
    "::1": UpstreamAddress("::1", 53),
    "fe80::1%eth0": UpstreamAddress("fe80::1%eth0", 53),
    "[fe80::1%eth0]:5353": UpstreamAddress("fe80::1%eth0", 5353),
    "tls://192.0.2.1": UpstreamAddress("192.0.2.1", 853, TLS),
    "tls://192.0.2.1:10853": UpstreamAddress("192.0.2.1", 10853, TLS),
    "tls://192.0.2.1%dns.example": UpstreamAddress("192.0.2.1", 853, TLS, "dns.example"),
    "tls://192.0.2.1%dns.example:10853": UpstreamAddress("192.0.2.1", 10853, TLS, "dns.example"),
    "tls://192.0.2.1:10853%dns.example": UpstreamAddress("192.0.2.1", 10853, TLS, "dns.example"),
    "tls://192.0.2.1:10853%dns.example.": UpstreamAddress("192.0.2.1", 10853, TLS, "dns.example"),
    "tls://192.0.2.1:10853%203.0.113.1": UpstreamAddress("192.0.2.1", 10853, TLS, "203.0.113.1"),
    "tls://2001:db8::1": UpstreamAddress("2001:db8::1", 853, TLS),
    "tls://2001:db8::1%dns.example": UpstreamAddress("2001:db8::1", 853, TLS, "dns.example"),
    "tls://[2001:db8::1%dns.example]:10853": UpstreamAddress("2001:db8::1", 10853, TLS, "dns.example"),
    "tls://[2001:db8::1%dns.example]": UpstreamAddress("2001:db8::1", 853, TLS, "dns.example"),
    "tls://[2001:db8::1]:10853%dns.example": UpstreamAddress("2001:db8::1", 10853, TLS, "dns.example"),
    "tls://[2001:db8::1]%dns.example": UpstreamAddress("2001:db8::1", 853, TLS, "dns.example"),
    "tls://[fe80::1%eth0]:10853%dns.example": UpstreamAddress("fe80::1%eth0", 10853, TLS, "dns.example"),
    "tls://[fe80::1%eth0]%dns.example": UpstreamAddress("fe80::1%eth0", 853, TLS, "dns.example"),
    "tls://fe80::1%eth0%dns.example": UpstreamAddress("fe80::1%eth0", 853, TLS, "dns.example"),
    "https://192.0.2.1": UpstreamAddress("192.0.2.1", 443, HTTPS),
    "https://dns.example": UpstreamAddress("dns.example", 443, HTTPS, "dns.example", is_name=True),
    "https://[2001:db8::1]:8443%dns.example": UpstreamAddress("2001:db8::1", 8443, HTTPS, "dns.example"),
    "DNS.example.": UpstreamAddress("dns.example", 53, is_name=True),
    "dns://kube-dns.kube-system.svc.cluster.local:5353": UpstreamAddress(
        "kube-dns.kube-system.svc.cluster.local", 5353, is_name=True
    ),
    "tls://dns.example": UpstreamAddress("dns.example", 853, TLS, "dns.example", is_name=True),
    "tls://a.example%dns.example:10853": UpstreamAddress("a.example", 10853, TLS, "dns.example", is_name=True),
}


@pytest.mark.parametrize(("word", "expected"), ADDRESSES.items(), ids=ADDRESSES)
def test_a_destination_is_an_address(word: str, expected: UpstreamAddress) -> None:
    assert forward(f"forward . {word}").upstreams == (expected,)


def test_a_destination_is_a_file_of_name_servers(tmp_path: Path) -> None:
    (tmp_path / "upstream.conf").write_text("nameserver 192.0.2.1\nnameserver 192.0.2.2\n")
    found = forward(f"forward . upstream.conf 192.0.2.2 {tmp_path}/upstream.conf", str(tmp_path)).upstreams
    assert found == (UpstreamAddress("192.0.2.1", 53), UpstreamAddress("192.0.2.2", 53))


def test_a_file_without_name_servers_is_passed_over_where_others_remain(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert len(forward(f"forward . {tmp_path}/empty 192.0.2.1").upstreams) == 1
    assert "only files without a name server" in problem(f"forward . {tmp_path}/empty")


def test_the_server_name_is_that_of_all_tls_servers() -> None:
    found = forward("forward . tls://192.0.2.1 192.0.2.2 {\ntls_servername dns.example\n}").upstreams
    assert found == (UpstreamAddress("192.0.2.1", 853, TLS, "dns.example"), UpstreamAddress("192.0.2.2", 53))


def test_a_tls_server_has_one_name() -> None:
    found = problem("forward . tls://192.0.2.1%a.example {\ntls_servername b.example\n}")
    expected = "'tls_servername b.example' names the server too, expected one of the names"
    assert found == f"Corefile:1: 'forward' has 'tls://192.0.2.1%a.example', but {expected}"


NEITHER = "expected %NAME only after tls://, or %INTERFACE behind an IPv6 address"
ONE = "expected one %NAME, or %INTERFACE and %NAME with an IPv6 address"
PROBLEMS = {
    "192.0.2.1%eth0": NEITHER,
    "192.0.2.1:53%dns.example": NEITHER,
    "dns://192.0.2.1:53%dns.example": NEITHER,
    "[fe80::1]:53%eth0": NEITHER,
    "[fe80::1%eth0]:53%eth0": NEITHER,
    "tls://192.0.2.1%a.example:853%b.example": ONE,
    "tls://192.0.2.1:853%a..example": "with the server name 'a..example', expected a DNS name or an address",
    "tls://192.0.2.1:0%a.example": "expected a port from 1 to 65535",
    "tls://192.0.2.256:853%a.example": NO_HOST,
    "tls://192.0.2.1:853%": NO_HOST,
    "tls://192.0.2.1%:853": NO_HOST,
    "tls://192.0.2.1:%a.example": NO_HOST,
    "tls://[2001:db8::1:853%a.example": NO_HOST,
    "tls://192.0.2.1:853%a.example%b.example": NO_HOST,
}


@pytest.mark.parametrize(("word", "expected"), PROBLEMS.items(), ids=PROBLEMS)
def test_a_name_or_an_interface_in_a_wrong_place_is_refused(word: str, expected: str) -> None:
    assert problem(f"forward . {word}") == f"Corefile:1: 'forward' has '{word}', {expected}"
