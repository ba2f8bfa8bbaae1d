"""The kube-dns ConfigMap."""

import json
from ipaddress import ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topodns.corefile.errors import ConfigError
from topodns.corefile.lexer import expand_environment, tokenize
from topodns.nodecache.kube_dns import StubDomain, parse_stub_domains, parse_upstream_nameservers, stub_block
from topodns.nodecache.settings import FileText


def stubs(text: str | None) -> tuple[StubDomain, ...]:
    return parse_stub_domains(FileText("/etc/kube-dns/stubDomains", text))


def upstreams(text: str | None) -> tuple[str, ...]:
    return parse_upstream_nameservers(FileText("/etc/kube-dns/upstreamNameservers", text))


def test_stub_domains_are_known_by_name_with_their_servers() -> None:
    text = '{"widget.local": ["192.0.2.2", "192.0.2.1:5353"], "acme.local": ["2001:db8::1"]}'
    assert stubs(text) == (
        StubDomain("acme.local", ("2001:db8::1",)),
        StubDomain("widget.local", ("192.0.2.2", "192.0.2.1:5353")),
    )


@pytest.mark.parametrize("text", [None, "{}", "null"])
def test_there_may_be_no_stub_domains(text: str | None) -> None:
    assert stubs(text) == ()


@pytest.mark.parametrize("text", [None, "[]", "null"])
def test_there_may_be_no_upstreams(text: str | None) -> None:
    assert upstreams(text) == ()


@pytest.mark.parametrize(
    "server",
    [
        *("192.0.2.1", "192.0.2.1:53", "2001:db8::1", "[2001:db8::1]:10053", "[2001:db8::1]", "fe80::1%eth0"),
        *("dns://192.0.2.1", "dns://[2001:db8::1]:53", "tls://192.0.2.1", "tls://192.0.2.1%dns.example:853"),
        *("tls://192.0.2.1:853%dns.example", "tls://[fe80::1%eth0]:853%dns.example"),
    ],
)
def test_a_server_is_an_address_and_perhaps_a_port(server: str) -> None:
    assert upstreams(json.dumps([server])) == (server,)


@pytest.mark.parametrize(
    "server",
    [
        *("", "dns.example", "/etc/resolv.conf", "192.0.2", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "::1::"),
        *("[192.0.2.1", "2001:53", "https://192.0.2.1", "tls://dns://192.0.2.1", "192.0.2.1 192.0.2.2", "{$HOME}"),
        *("192.0.2.1\n}\n. {\n whoami", "192.0.2.1#", '"192.0.2.1"', "fe80::1%a b", "fe80::1%eth0:53", "\u0661.1.1.1"),
        *("192.0.2.1%eth0", "192.0.2.1:53%dns.example", "tls://192.0.2.1:853%a..example"),
    ],
)
def test_text_that_is_no_upstream_never_gets_into_a_corefile(server: str) -> None:
    with pytest.raises(ConfigError, match="expected ADDRESS or ADDRESS:PORT, perhaps behind dns:// or tls://"):
        upstreams(json.dumps([server]))


@pytest.mark.parametrize(
    "domain", ["", ".", "a..b", "a b", "a {", "a\n", "a:53", "10.0.0.0/8", "{$HOME}", "#", "ä.example", "a" * 64]
)
def test_a_stub_domain_is_a_name_and_nothing_more(domain: str) -> None:
    with pytest.raises(ConfigError, match=r"found the domain .*, expected a DNS name"):
        stubs(json.dumps({domain: ["192.0.2.1"]}))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'stubDomains:1: found no JSON at column 1, expected an object such as {"example.org": ["192.0.2.53"]}'),
        ('{\n"a": ["192.0.2.1",]}', "stubDomains:2: found no JSON at column 1"),
        ("[]", "stubDomains: found a list, expected an object of lists of servers, by domain"),
        ('{"a": "192.0.2.1"}', "stubDomains: found a text, expected a list of servers of 'a'"),
        ('{"a": null}', "stubDomains: found null, expected a list of servers of 'a'"),
        ('{"a": []}', "stubDomains: found no server of 'a', expected at least one"),
        ('{"a": [1]}', "stubDomains: found a number among the servers of 'a', expected texts"),
        ('{"a": [true]}', "stubDomains: found true or false among the servers of 'a', expected texts"),
        ('{"a": ["b"]}', "stubDomains: found the server 'b' of 'a', expected ADDRESS"),
        ("[" * 100_000, "stubDomains: found JSON that is no configuration"),
        ("9" * 10_000, "stubDomains: found JSON that is no configuration"),
    ],
)
def test_bad_stub_domains_are_reported_with_the_file_and_the_form_expected(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        stubs(text)
    assert str(caught.value).startswith(f"/etc/kube-dns/{problem}")


def test_three_upstreams_are_the_most() -> None:
    three = [f"192.0.2.{number}" for number in (1, 2, 3)]
    assert upstreams(json.dumps(three)) == tuple(three)
    with pytest.raises(ConfigError, match="upstreamNameservers: found 4 servers, expected at most 3"):
        upstreams(json.dumps([*three, "192.0.2.4"]))


def test_a_file_that_cannot_be_read_is_not_taken_for_none() -> None:
    with pytest.raises(ConfigError, match=r"^stubDomains: cannot be read: Permission denied$"):
        parse_stub_domains(FileText("stubDomains", problem="cannot be read: Permission denied"))


def test_a_stub_domain_is_the_block_that_node_cache_writes() -> None:
    block = stub_block(StubDomain("a.example", ("192.0.2.1", "2001:db8::1")), [ip_address("10.0.0.1"), "fd00::1"], 53)
    assert block.splitlines() == [
        *("", "a.example:53 {", "    errors", "    cache 30", "    bind 10.0.0.1 fd00::1"),
        *("    forward . 192.0.2.1 2001:db8::1", "}"),
    ]


WORDS = st.text('a1.:[]%{}$#"-_/ \n\\', max_size=6)
ADDRESSES = st.sampled_from(["192.0.2.1", "[2001:db8::1]", "2001:db8::1", "tls://192.0.2.1", ":53", "%a", ""])


@settings(max_examples=100)
@given(domain=WORDS, words=st.lists(ADDRESSES | WORDS, max_size=3))
def test_whatever_the_configmap_says_a_stub_domain_is_one_block_with_its_own_words(
    domain: str, words: list[str]
) -> None:
    domain, server = f"{domain}.example", "".join(words)
    try:
        (stub,) = stubs(json.dumps({domain: [server]}))
    except ConfigError:
        return
    text = expand_environment(stub_block(stub, ["10.0.0.1"], 53), {"a": "x"})
    assert [token.text for token in tokenize(text, "")] == [
        *(f"{domain}:53", "{", "errors", "cache", "30", "bind", "10.0.0.1", "forward", ".", server, "}")
    ]
