"""Client claims in EDNS options: read strictly, echoed exactly."""

from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import packed, packed_cidr
from topodns.dns.message import Edns, Option
from topodns.query.client_claim import NO_CLAIM, ecs_reply, read_claim
from topodns.query.plugin import BadOption
from topodns.topology.claims import Claim

ECS, NODE = Option.CLIENT_SUBNET, Option.NODE_IDENTITY


def edns(*options: tuple[int, bytes]) -> Edns:
    return Edns(udp_payload_size=1232, version=0, dnssec_ok=False, options=options)


# Node identity


@pytest.mark.parametrize(
    "node_name",
    ["n", "node-1", "ip-10-0-0-1.eu-west-1.compute.internal", "1.2.3", "a" * 253, "a-" * 126 + "a"],
)
def test_a_dns_1123_subdomain_is_a_node_name(node_name: str) -> None:
    assert read_claim(edns((NODE, node_name.encode()))) == Claim(node_name=node_name)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a" * 254,
        b"Node-1",
        b"-a",
        b"a-",
        b"a..b",
        b".a",
        b"a.",
        b"a-.b",
        b"a_b",
        b"a b",
        b"a\n",
        b"a\0",
        "knötchen".encode(),
        b"\xff\xfe",
        b"a/../b",
    ],
)
def test_anything_else_is_no_claim_and_no_error(data: bytes) -> None:
    assert read_claim(edns((NODE, data))) == NO_CLAIM


def test_a_node_name_said_twice_is_believed_and_two_different_ones_are_not() -> None:
    assert read_claim(edns((NODE, b"a"), (NODE, b"a"))).node_name == "a"
    assert read_claim(edns((NODE, b"a"), (NODE, b"b"))).node_name is None


def test_other_options_claim_nothing() -> None:
    assert read_claim(edns()) == NO_CLAIM
    assert read_claim(edns((Option.COOKIE, b"12345678"), (65519, b"node-1"))) == NO_CLAIM


# Client Subnet


@pytest.mark.parametrize(
    ("data", "subnet"),
    [
        ("0001 20 00 0a010203", "10.1.2.3/32"),
        ("0001 18 00 0a0102", "10.1.2.0/24"),
        ("0001 19 00 0a010280", "10.1.2.128/25"),
        ("0001 01 00 80", "128.0.0.0/1"),
        ("0002 80 00 fd000000000000000000000000000001", "fd00::1/128"),
        ("0002 38 00 fd000000000001", "fd00:0:0:100::/56"),
        ("0001 00 00", None),
        ("0002 00 00", None),
        ("0000 00 00", None),  # dig +subnet=0
    ],
)
def test_a_subnet_is_read_and_one_of_length_0_is_no_claim(data: str, subnet: str | None) -> None:
    expected = packed_cidr(subnet) if subnet else None
    assert read_claim(edns((ECS, bytes.fromhex(data)))) == Claim(subnet=expected)


MALFORMED = [
    pytest.param("", "ECS of 0 octets, at least 4", id="empty"),
    pytest.param("000118", "ECS of 3 octets, at least 4", id="cut in the header"),
    pytest.param("0001 18 18 0a0102", "scope prefix length 24 in a query", id="scope set"),
    pytest.param("0003 08 00 0a", "address family 3", id="unknown family"),
    pytest.param("0000 08 00 0a", "source prefix length 8, at most 0", id="family 0 with an address"),
    pytest.param("0000 00 00 0a", "1 address octets for a prefix of 0", id="family 0 with octets left over"),
    pytest.param("0001 21 00 0a01020300", "source prefix length 33, at most 32", id="IPv4 prefix too long"),
    pytest.param("0002 81 00" + "00" * 17, "source prefix length 129, at most 128", id="IPv6 prefix too long"),
    pytest.param("0001 18 00 0a01", "2 address octets for a prefix of 24, 3", id="too few octets"),
    pytest.param("0001 18 00 0a010200", "4 address octets for a prefix of 24, 3", id="too many octets"),
    pytest.param("0001 20 00", "0 address octets for a prefix of 32, 4", id="no octets"),
    pytest.param("0001 17 00 0a0103", "address bits behind its prefix of 23", id="bits behind the prefix"),
]


@pytest.mark.parametrize(("data", "problem"), MALFORMED)
def test_a_malformed_subnet_is_an_error_that_says_why(data: str, problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        read_claim(edns((ECS, bytes.fromhex(data))))


@pytest.mark.parametrize(("data", "problem"), MALFORMED)
def test_where_ecs_is_not_enabled_a_malformed_subnet_is_ignored(data: str, problem: str) -> None:
    options = edns((NODE, b"node-1"), (ECS, bytes.fromhex(data)))
    assert read_claim(options, subnet_enabled=False) == Claim(node_name="node-1")


def test_where_ecs_is_not_enabled_a_good_subnet_is_ignored_too() -> None:
    assert read_claim(edns((ECS, bytes.fromhex("0001 20 00 0a010203"))), subnet_enabled=False) == NO_CLAIM


def test_both_claims_are_read_from_one_query() -> None:
    claim = read_claim(edns((ECS, bytes.fromhex("0001 20 00 0a010203")), (NODE, b"node-1")))
    assert claim == Claim("node-1", (packed("10.1.2.3"), 32))


# The reply


@pytest.mark.parametrize(
    ("query", "scope_prefix", "reply"),
    [
        ("0001 20 00 0a010203", 32, "0001 20 20 0a010203"),
        ("0001 18 00 0a0102", 24, "0001 18 18 0a0102"),
        ("0001 20 00 0a010203", 0, "0001 20 00 0a010203"),
        ("0002 80 00 fd000000000000000000000000000001", 128, "0002 80 80 fd000000000000000000000000000001"),
        ("0000 00 00", 0, "0000 00 00"),
    ],
)
def test_the_reply_repeats_the_subnet_and_sets_the_scope(query: str, scope_prefix: int, reply: str) -> None:
    options = edns((NODE, b"node-1"), (ECS, bytes.fromhex(query)))
    assert ecs_reply(options, scope_prefix) == (ECS, bytes.fromhex(reply))


def test_a_query_without_a_subnet_gets_none_back() -> None:
    assert ecs_reply(edns((NODE, b"node-1")), 0) is None


# For any octets

networks = st.one_of(
    st.tuples(st.ip_addresses(v=4), st.integers(1, 32)), st.tuples(st.ip_addresses(v=6), st.integers(1, 128))
).map(lambda pair: ip_network(f"{pair[0]}/{pair[1]}", strict=False))


@given(networks)
def test_every_network_survives_the_wire(network: IPv4Network | IPv6Network) -> None:
    address = network.network_address.packed[: (network.prefixlen + 7) // 8]
    header = bytes((0, 1 if network.version == 4 else 2, network.prefixlen, 0))
    claim = read_claim(edns((ECS, header + address)))
    assert claim.subnet == (network.network_address.packed, network.prefixlen)


almost_subnets = st.builds(
    lambda family, prefix_length, scope, address: bytes((0, family, prefix_length, scope)) + address,
    st.integers(0, 3),
    st.integers(0, 40),
    st.sampled_from((0, 0, 0, 24)),
    st.binary(max_size=6),
)


@given(st.lists(st.tuples(st.sampled_from((ECS, NODE, 10)), st.binary(max_size=300) | almost_subnets), max_size=4))
def test_any_octets_are_a_claim_or_a_bad_option(options: list[tuple[int, bytes]]) -> None:
    query = edns(*options)
    try:
        claim = read_claim(query)
    except BadOption:
        return
    if claim.subnet is not None:
        address, prefix_length = claim.subnet
        ip_network((address, prefix_length))  # strict: raises on bits behind the prefix
    reply = ecs_reply(query, 0)
    assert reply is None or reply == (ECS, query.option(ECS))
