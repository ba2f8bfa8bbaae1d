"""Longest-prefix match, against a scan of every CIDR with the standard library's arithmetic."""

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import packed, packed_cidr
from topodns.cluster.node_index import CidrTable

Network = IPv4Network | IPv6Network
Owned = tuple[str, Network]

BASES = {4: int(ip_address("10.1.0.0")), 6: int(ip_address("fd00::"))}


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """CIDRs of at most 64 addresses in the same 64: they nest and coincide all the time."""
    family = draw(st.sampled_from((4, 6)))
    host_bits = draw(st.integers(0, 6))
    start = BASES[family] + (draw(st.integers(0, 63)) >> host_bits << host_bits)
    network = IPv4Network if family == 4 else IPv6Network
    return network((start, (32 if family == 4 else 128) - host_bits))


owned_networks = st.lists(st.tuples(st.sampled_from("abc"), networks()), max_size=12)
addresses = st.tuples(st.sampled_from((4, 6)), st.integers(0, 70)).map(lambda at: ip_address(BASES[at[0]] + at[1]))


def table_of(owned: list[Owned]) -> CidrTable:
    table = CidrTable()
    for name, network in owned:
        table.add(network.network_address.packed, network.prefixlen, name)
    return table


def scanned_owner(owned: list[Owned], subnet: Network) -> str:
    around = [(net.prefixlen, name) for name, net in owned if net.version == subnet.version and contains(net, subnet)]
    longest = max((prefix_length for prefix_length, _ in around), default=0)
    owners = {name for prefix_length, name in around if prefix_length == longest}
    return owners.pop() if len(owners) == 1 else ""


def contains(outer: Network, inner: Network) -> bool:
    return outer.network_address <= inner.network_address and inner.broadcast_address <= outer.broadcast_address  # type: ignore[operator]  # the caller compares versions


@given(owned_networks, addresses)
def test_an_address_is_owned_as_a_scan_of_all_cidrs_says(owned: list[Owned], address: object) -> None:
    host = ip_network(str(address))
    assert table_of(owned).owner(host.network_address.packed) == scanned_owner(owned, host)


@given(owned_networks, networks())
def test_a_subnet_is_owned_by_the_owner_of_each_of_its_addresses(owned: list[Owned], subnet: Network) -> None:
    table = table_of(owned)
    owner = scanned_owner(owned, subnet)
    inner = {name for name, net in owned if net.version == subnet.version and contains(subnet, net)}
    expected = owner if inner <= {owner} else ""
    assert table.subnet_owner(subnet.network_address.packed, subnet.prefixlen) == expected
    if expected:
        assert {table.owner(address.packed) for address in subnet} == {expected}


@given(owned_networks, owned_networks, addresses)
def test_a_cidr_added_and_removed_leaves_no_trace(kept: list[Owned], gone: list[Owned], address: object) -> None:
    table = table_of(kept + gone)
    for name, network in gone:
        table.remove(network.network_address.packed, network.prefixlen, name)
    remaining = [owned for owned in kept if owned not in gone]
    host = ip_network(str(address))
    assert table.owner(host.network_address.packed) == scanned_owner(remaining, host)


def test_the_start_of_a_cidr_is_its_first_addresses() -> None:
    table = CidrTable()
    table.add(*packed_cidr("10.1.2.0/24"), "a")
    addresses = ("10.1.1.255", "10.1.2.0", "10.1.2.1", "10.1.2.2", "10.1.2.255", "10.1.3.0")
    assert [table.start_owner(packed(address), 2) for address in addresses] == ["", "a", "a", "", "", ""]


def test_host_bits_in_a_cidr_are_ignored() -> None:
    table = CidrTable()
    table.add(packed("10.1.2.77"), 24, "a")
    assert table.owner(packed("10.1.2.1")) == "a"
    table.remove(packed("10.1.2.0"), 24, "a")
    assert table.owner(packed("10.1.2.1")) == ""


def test_a_cidr_covers_itself_and_its_parts_and_nothing_around_it() -> None:
    table = CidrTable()
    table.add(*packed_cidr("10.1.2.0/24"), "a")
    covered = {text: table.covers(*packed_cidr(text)) for text in ("10.1.2.0/24", "10.1.2.64/26", "10.1.0.0/16")}
    assert covered == {"10.1.2.0/24": True, "10.1.2.64/26": True, "10.1.0.0/16": False}
    assert not table.covers(*packed_cidr("fd00::/64"))
