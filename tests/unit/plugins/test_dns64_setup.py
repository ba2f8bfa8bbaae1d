"""The prefix and the options of `dns64`."""

from ipaddress import IPv6Address

import pytest

from topodns.corefile.errors import ConfigError
from topodns.corefile.lexer import tokenize
from topodns.corefile.parser import Directive, parse_blocks
from topodns.plugins.context import Context
from topodns.plugins.dns64 import WELL_KNOWN_PREFIX, Dns64, parse_dns64

ORG, NET = ("example", "org"), ("example", "net")


def directive(text: str) -> Directive:
    (found,) = parse_blocks(tokenize(f". {{ {text}\n}}", "Corefile"))[0].directives
    return found


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
