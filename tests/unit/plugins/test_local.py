import struct
from ipaddress import ip_address

import pytest

from tests.support.corefile_settings import block_problem, only_block
from tests.support.query_builders import ask, client
from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.local import answer_local
from topodns.query.plugin import Scope

WEEK = 604800
LOCALHOST = name_wire(("localhost",))
SOA = LOCALHOST + name_wire(("root", "localhost")) + struct.pack(">5I", 1, 0, 0, 0, WEEK)
V4 = ip_address("127.0.0.1").packed
V6 = ip_address("::1").packed


def respond(query: Query) -> Response:
    resolution = answer_local(query, client())
    assert resolution is not None
    assert (resolution.plugin, resolution.scope) == ("local", Scope.EVERYONE)
    return resolution.response


@pytest.mark.parametrize(
    ("name", "rtype", "rdata"),
    [
        ("localhost.", RRType.A, V4),
        ("localhost.", RRType.AAAA, V6),
        ("LocalHost.", RRType.A, V4),
        ("localhost.", RRType.NS, LOCALHOST),
        ("localhost.", RRType.SOA, SOA),
        ("app.localhost.", RRType.A, V4),
        ("a.b.localhost.", RRType.AAAA, V6),
        ("localhost.default.svc.cluster.local.", RRType.A, V4),
        ("127.in-addr.arpa.", RRType.SOA, SOA),
        ("0.in-addr.arpa.", RRType.NS, LOCALHOST),
        ("255.in-addr.arpa.", RRType.NS, LOCALHOST),
        ("1.0.0.127.in-addr.arpa.", RRType.PTR, LOCALHOST),
    ],
)
def test_answers_with_a_record_that_lives_a_week(name: str, rtype: int, rdata: bytes) -> None:
    response = respond(ask(name, rtype))
    assert response == Response(answer=(RRset(b"", rtype, WEEK, (rdata,)),), flags=0)


@pytest.mark.parametrize(
    ("name", "qtype", "soa_owner"),
    [
        ("localhost.", RRType.MX, ""),
        ("app.localhost.", RRType.MX, ""),
        ("localhost.example.com.", RRType.TXT, ""),
        ("127.in-addr.arpa.", RRType.A, ""),
        ("255.in-addr.arpa.", RRType.PTR, ""),
        ("1.0.0.127.in-addr.arpa.", RRType.A, "127.in-addr.arpa."),
    ],
)
def test_a_name_without_that_type_is_nodata_under_the_origin_asked(name: str, qtype: int, soa_owner: str) -> None:
    owner = name_wire(parse_name(soa_owner)) if soa_owner else b""
    assert respond(ask(name, qtype)) == Response(authority=(RRset(owner, RRType.SOA, WEEK, (SOA,)),), flags=0)


@pytest.mark.parametrize("name", ["2.0.0.127.in-addr.arpa.", "1.127.in-addr.arpa.", "9.255.in-addr.arpa."])
def test_other_names_in_the_reverse_origins_do_not_exist(name: str) -> None:
    response = respond(ask(name, RRType.PTR))
    assert (response.rcode, response.answer, len(response.authority)) == (Rcode.NXDOMAIN, (), 1)


def test_the_origin_is_echoed_as_it_was_spelled() -> None:
    response = respond(ask("9.127.IN-Addr.ARPA.", RRType.PTR))
    assert response.authority[0].owner == b"\x03127\x07IN-Addr\x04ARPA\0"


@pytest.mark.parametrize("name", ["example.com.", "notlocalhost.", "128.in-addr.arpa.", "mylocalhost.example.", "."])
def test_other_names_are_not_its_own(name: str) -> None:
    assert answer_local(ask(name), client()) is None


def test_only_class_in_is_its_own() -> None:
    assert answer_local(ask("localhost.", qclass=RRClass.CH), client()) is None


def test_local_may_say_the_default_only() -> None:
    assert only_block("local {\n localhost_prefix on\n}").settings.get("local")
    assert block_problem("local {\n localhost_prefix off\n}") == (
        "Corefile:3: CoreDNS has 'localhost_prefix off', topodns does not"
    )
