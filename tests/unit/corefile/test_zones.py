"""Keys of server blocks: schemes, zones, ports, address prefixes, and two blocks for one zone."""

import pytest

from tests.support.corefile_settings import problem, settings
from topodns.dns.name import name_text


def keys(text: str) -> list[str]:
    """Each zone with its port."""
    return [f"{name_text(key.origin)}:{key.port}" for block in settings(text).blocks for key in block.keys]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (".", [".:53"]),
        (".:5300", [".:5300"]),
        ("dns://.:5300", [".:5300"]),
        ("dns://example.org", ["example.org.:53"]),
        ("Example.ORG.", ["example.org.:53"]),
        ("example.org:0", ["example.org.:0"]),
        ("_tcp.a-b.org:65535", ["_tcp.a-b.org.:65535"]),
        ("0/26.2.0.192.in-addr.arpa", ["0/26.2.0.192.in-addr.arpa.:53"]),  # RFC 2317
        ("10.0.0.0/8", ["10.in-addr.arpa.:53"]),
        ("::ffff:10.0.0.0/104", ["10.in-addr.arpa.:53"]),
        ("10.0.0.0/16:54", ["0.10.in-addr.arpa.:54"]),
        ("10.1.2.0/24", ["2.1.10.in-addr.arpa.:53"]),
        ("10.1.2.3/32", ["3.2.1.10.in-addr.arpa.:53"]),
        ("0.0.0.0/0", ["in-addr.arpa.:53"]),
        ("10.1.2.3/24", ["2.1.10.in-addr.arpa.:53"]),  # host bits are dropped
        ("10.0.0.0/23", ["0.0.10.in-addr.arpa.:53", "1.0.10.in-addr.arpa.:53"]),
        ("10.0.0.0/20", [f"{third}.0.10.in-addr.arpa.:53" for third in range(16)]),
        ("10.2.0.0/15:54", ["2.10.in-addr.arpa.:54", "3.10.in-addr.arpa.:54"]),
        ("10.0.0.128/31", ["128.0.0.10.in-addr.arpa.:53", "129.0.0.10.in-addr.arpa.:53"]),
        ("2001:db8::/32", ["8.b.d.0.1.0.0.2.ip6.arpa.:53"]),
        ("2001:db8::/32:54", ["8.b.d.0.1.0.0.2.ip6.arpa.:54"]),
        ("2001:db8::/31", ["8.b.d.0.1.0.0.2.ip6.arpa.:53", "9.b.d.0.1.0.0.2.ip6.arpa.:53"]),
        ("fd00::/8", ["d.f.ip6.arpa.:53"]),
        ("::/0", ["ip6.arpa.:53"]),
        ("::/3", ["0.ip6.arpa.:53", "1.ip6.arpa.:53"]),
    ],
)
def test_a_key_names_zones_and_a_port(key: str, expected: list[str]) -> None:
    assert keys(f"{key} {{\n}}") == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("https://.", "CoreDNS has the transport 'https://', topodns does not"),
        ("https3://.", "CoreDNS has the transport 'https3://', topodns does not"),
        ("grpc://.:53", "CoreDNS has the transport 'grpc://', topodns does not"),
        ("quic://.", "CoreDNS has the transport 'quic://', topodns does not"),
        ("http://a.org", "unknown transport 'http://', expected dns:// or tls://"),
        (":53", "found ':53', expected a zone and perhaps a port, such as 'example.org:53' or '.:53'"),
        ("a.org:dns", "found 'a.org:dns', expected a zone and perhaps a port, such as 'example.org:53' or '.:53'"),
        ("a.org:", "found 'a.org:', expected a zone and perhaps a port, such as 'example.org:53' or '.:53'"),
        ("a.org:-1", "found 'a.org:-1', expected a zone and perhaps a port, such as 'example.org:53' or '.:53'"),
        ("::1", "found '::1', expected a zone and perhaps a port, such as 'example.org:53' or '.:53'"),
        ("a.org:65536", "found the port '65536', expected a number from 0 to 65535"),
        ("a.org:100000", "found the port '100000', expected a number from 0 to 65535"),
        ("10.0.0.0/33", "found '10.0.0.0/33', expected a prefix length from 0 to 32"),
        ("::ffff:10.0.0.0/129", "found '::ffff:10.0.0.0/129', expected a prefix length from 0 to 128"),
        ("10.0.0/24", "found '10.0.0/24', expected a whole address and a prefix length, such as 10.0.0.0/8"),
        ("fd00::/129", "found 'fd00::/129', expected a prefix length from 0 to 128"),
        ("a..org", "found no zone's name: empty label in 'a..org'"),
        ("bücher.example", "found the zone 'bücher.example', expected ASCII; write an IDN in its A-label (xn--) form"),
    ],
)
def test_a_wrong_key_is_refused(key: str, expected: str) -> None:
    assert problem(f"\n{key} {{\n}}") == f"Corefile:2: {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(". {\n}\n.:53 {\n}", "3: found .:53 again, first at Corefile:1", id="the default port"),
        pytest.param(
            "a.org {\n}\nb.org,\ndns://A.org. {\n}",
            "4: found a.org.:53 again, first at Corefile:1",
            id="another spelling",
        ),
        pytest.param("a.org a.org {\n}", "1: found a.org.:53 again, first at Corefile:1", id="in one block"),
        pytest.param(
            "10.0.0.0/23 {\n}\n1.0.10.in-addr.arpa {\n}",
            "3: found 1.0.10.in-addr.arpa.:53 again, first at Corefile:1",
            id="inside a prefix",
        ),
        pytest.param(
            ". {\n bind 127.0.0.1\n}\n. {\n bind 127.0.0.2 127.0.0.1\n}",
            "4: found .:53 again, first at Corefile:1",
            id="on one address",
        ),
        pytest.param(
            ". {\n bind 127.0.0.1\n}\n. {\n}",
            "4: found .:53 again, first at Corefile:1",
            id="without bind it is on every address",
        ),
        pytest.param(
            ". {\n}\n. {\n bind 127.0.0.1\n}", "3: found .:53 again, first at Corefile:1", id="without bind, first"
        ),
    ],
)
def test_one_zone_and_port_twice_is_refused(text: str, expected: str) -> None:
    assert problem(text) == f"Corefile:{expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(". {\n}\n.:54 {\n}", [".:53", ".:54"], id="other ports"),
        pytest.param("a.org {\n}\nb.a.org {\n}", ["a.org.:53", "b.a.org.:53"], id="a zone below"),
        pytest.param(
            ". {\n bind 127.0.0.1\n}\n. {\n bind 127.0.0.2\n}", [".:53", ".:53"], id="other addresses of one port"
        ),
    ],
)
def test_blocks_that_may_share_a_corefile(text: str, expected: list[str]) -> None:
    assert keys(text) == expected
