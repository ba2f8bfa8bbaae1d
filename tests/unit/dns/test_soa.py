"""SOA records: that of an origin with CoreDNS's names and numbers, and the negative TTL."""

import pytest

from tests.support.rrset_text import lines
from topodns.dns.name import name_wire, parse_name
from topodns.dns.soa import negative_ttl, soa_rrset

ORIGIN = name_wire(parse_name("cluster.local."))


def test_names_and_numbers_are_those_of_coredns() -> None:
    assert lines([soa_rrset(ORIGIN, 1499347823, 5)], "") == [
        "cluster.local. 5 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 1499347823 7200 1800 86400 5"
    ]


@pytest.mark.parametrize(("minimum", "ttl"), [(0, 0), (300, 300), (3600, 300)])
def test_the_ttl_is_capped_and_the_minimum_is_not(minimum: int, ttl: int) -> None:
    rrset = soa_rrset(ORIGIN, 0, minimum)
    assert (rrset.ttl, int.from_bytes(rrset.rdatas[0][-4:], "big")) == (ttl, minimum)


def test_the_serial_has_32_bits() -> None:
    assert soa_rrset(ORIGIN, 2**32 + 7, 5) == soa_rrset(ORIGIN, 7, 5)


@pytest.mark.parametrize(("ttl", "negative"), [(60, 60), (3600, 600)])
def test_a_denial_lasts_for_the_soa_s_ttl_but_no_longer_than_its_minimum(ttl: int, negative: int) -> None:
    assert negative_ttl(soa_rrset(ORIGIN, 1, 600)._replace(ttl=ttl)) == negative
