"""The parameters of SVCB and HTTPS records (RFC 9460): every form of a value, and what is refused."""

import pytest

from topodns.dns.record_text import parse_record
from topodns.dns.text_fields import BadRecord


def parameters(text: str) -> str:
    """The wire form of parameters, in hexadecimal digits."""
    return parse_record(f". SVCB 1 . {text}").rdatas[0].hex()[6:]


READ = {
    "a value in quotes": ('alpn="h2,h3"', "00010006 026832 026833"),
    "a value without": ("alpn=h2,h3", "00010006 026832 026833"),
    "keys in ascending order": ('port="53" alpn=dot', "00010004 03646f74 00030002 0035"),
    "over lines": ("( alpn=dot ; over TLS\n port=53 )", "00010004 03646f74 00030002 0035"),
    "ech": ('ech="AEX+DQ=="', "00050004 0045fe0d"),
    "ech without quotes": ("ech=AEX+DQ==", "00050004 0045fe0d"),
    "the draft's name of ech, as dnslib prints it": ("echconfig=YQ==", "00050001 61"),
    "a URI template": ("dohpath=/q{?dns}", "00070008 2f717b3f646e737d"),
    "addresses": (
        'ipv6hint="2001:db8::1" ipv4hint=192.0.2.1,192.0.2.2',
        "00040008 c0000201 c0000202 00060010 20010db8000000000000000000000001",
    ),
    "keys without a value": ("alpn=h2 no-default-alpn ohttp=", "00010003 026832 00020000 00080000"),
    "mandatory keys, sorted": (
        "mandatory=port,alpn,key667 key667 alpn=h2 port=1",
        "00000006 00010003029b 00010003 026832 00030002 0001 029b0000",
    ),
    "groups": ("tls-supported-groups=29,23", "00090004 001d0017"),
    "a path": ("docpath=dns,q", "000a0006 03646e73 0171"),
    "the root's path": ("docpath", "000a0000"),
    "a key by number": (r'key667="hello\210 \"q"', "029b0009 68656c6c6fd2202271"),
    "a known key by number, with its wire form": (
        r"key1=\002h2 key4=\192\000\002\001",
        "00010003 026832 00040004 c0000201",
    ),
    # RFC 9460, appendix D.2.
    "a comma and a backslash in quotes": (r'alpn="f\\\\oo\\,bar,h2"', "0001000c 08665c6f6f2c626172 026832"),
    "and without": (r"alpn=f\\\092oo\092,bar,h2", "0001000c 08665c6f6f2c626172 026832"),
}


@pytest.mark.parametrize(("text", "wire"), READ.values(), ids=READ)
def test_reads(text: str, wire: str) -> None:
    assert parameters(text) == wire.replace(" ", "")


REFUSED = {
    # RFC 9460, appendix D.3.
    "a key twice": ("key123=abc key123=def", "found the parameter 'key123' twice"),
    "a key twice, by name and number": ("alpn=h2 key1=h2", "found the parameter 'key1' twice"),
    "no value of mandatory": ("mandatory", "in the parameter 'mandatory': found no value"),
    "no value of alpn": ("alpn", "in the parameter 'alpn': found no value"),
    "no value of port": ("port", "in the parameter 'port': found '', expected a number of 16 bits"),
    "no value of ipv4hint": ("ipv4hint=", "in the parameter 'ipv4hint': found no value"),
    "no value of ipv6hint": ('ipv6hint=""', "in the parameter 'ipv6hint': found no value"),
    "no value of ech": ("ech", "in the parameter 'ech': found no value"),
    "no value of dohpath": ("dohpath", "in the parameter 'dohpath': found no value"),
    "a value of no-default-alpn": ("no-default-alpn=abc", "found a value, expected none"),
    "a value of ohttp": ("ohttp=1", "found a value, expected none"),
    "a mandatory key that is not there": ("mandatory=key123", "found no parameter 123, which is mandatory"),
    "mandatory that is mandatory": ("mandatory=mandatory", "found itself or a key twice"),
    "a mandatory key twice": ("mandatory=key123,key123 key123=abc", "found itself or a key twice"),
    # Forms.
    "an unknown key": ("foo=bar", "found 'foo', expected keyNUMBER or one of mandatory, alpn"),
    "the reserved key": ("key65535=a", "found 'key65535', expected keyNUMBER"),
    "a number with a zero before it": ("key01=a", "found 'key01', expected keyNUMBER"),
    "capitals": ("ALPN=h2", "found 'ALPN', expected keyNUMBER"),
    "a key in quotes": ('"alpn=h2"', "found 'alpn=h2', expected key, key=value or key=\"value\""),
    "no key": ("=h2", "found '=h2', expected key"),
    "no blank after a value": ('alpn="h2"port=1', "found 'port=1', expected key"),
    "quotes within a value": ('alpn=h"2"', "found 'alpn=h', expected key"),
    "nothing between commas": ("alpn=h2,,h3", "found no value, or nothing between commas"),
    "a backslash alone": (r"alpn=a\\b", "found a backslash before neither a comma nor a backslash"),
    "a long protocol": ("alpn=" + "a" * 256, "found an item of more than 255 octets"),
    "a port beyond 16 bits": ("port=65536", "found '65536', expected a number of 16 bits"),
    "an address of the other family": ("ipv4hint=::1", "found '::1', expected an IPv4 address"),
    "Base64 that is none": ("ech=A", "found 'A', expected Base64"),
    "a group twice": ("tls-supported-groups=29,29", "found a group twice"),
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_refuses_and_says_what_it_found(text: str, problem: str) -> None:
    with pytest.raises(BadRecord) as refused:
        parameters(text)
    assert problem in str(refused.value)
