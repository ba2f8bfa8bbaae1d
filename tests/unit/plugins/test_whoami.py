from ipaddress import ip_address

import pytest

from tests.support.query_builders import ask, client
from topodns.dns.message import Query, Response, RRset
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.whoami import whoami
from topodns.query.plugin import Client, Resolution, Scope

SRV_40212 = b"\0\0\0\0\x9d\x14\0"  # priority 0, weight 0, port, and the root as target


def resolve(query: Query, asking: Client) -> Resolution:
    resolution = whoami(query, asking)
    assert resolution is not None
    return resolution


@pytest.mark.parametrize(
    ("address", "transport", "rtype", "srv_owner"),
    [
        ("10.240.0.1", "udp", RRType.A, b"\x04_udp\x07Example\0"),
        ("2001:db8::9", "tcp", RRType.AAAA, b"\x04_tcp\x07Example\0"),
    ],
)
def test_the_additional_section_has_address_port_and_transport(
    address: str, transport: str, rtype: int, srv_owner: bytes
) -> None:
    resolution = resolve(ask("Example."), client(address, transport=transport))
    additional = (
        RRset(b"", rtype, 0, (ip_address(address).packed,)),
        RRset(srv_owner, RRType.SRV, 0, (SRV_40212,)),
    )
    assert resolution == Resolution(Response(additional=additional), "whoami", Scope.CLIENT)


def test_the_question_may_be_of_any_type() -> None:
    assert resolve(ask("example.", RRType.TXT), client()).response.additional[0].rtype == RRType.A


def test_at_the_root_the_transport_is_the_whole_owner() -> None:
    assert resolve(ask("."), client()).response.additional[1].owner == b"\x04_udp\0"


@pytest.mark.parametrize(("last_label", "records"), [(56, 2), (57, 1)])
def test_a_name_that_the_transport_does_not_fit_before_goes_without_the_srv(last_label: int, records: int) -> None:
    # Of 255 octets three full labels take 192, the root 1, `_udp` 5, and the last label's length 1: 56 are left.
    name = ".".join(["a" * 63] * 3 + ["b" * last_label])
    assert len(resolve(ask(name), client()).response.additional) == records


def test_only_class_in_is_its_own() -> None:
    assert whoami(ask("example.", qclass=RRClass.CH), client()) is None
