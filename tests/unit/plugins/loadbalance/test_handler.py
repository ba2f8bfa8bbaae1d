from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from random import Random
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.query_builders import ask, client
from tests.support.weights import parse_weights
from topodns.dns.message import Query, Response, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.loadbalance.handler import LoadBalancer, RRsets, shuffle
from topodns.plugins.loadbalance.settings import Loadbalance, LoadbalancePolicy
from topodns.query.plugin import Resolution, Scope

CNAME = RRset(b"", RRType.CNAME, 5, (b"\1b\0",))
TXT = RRset(b"", RRType.TXT, 5, (b"\1x",))
SRV = RRset(b"", RRType.SRV, 5, (b"\0\0\0\x32\0\x50\1a\0", b"\0\0\0\x32\0\x50\1b\0"))
MX = RRset(b"", RRType.MX, 5, (b"\0\1\1m\0", b"\0\1\1n\0"))
WEIGHTED = Loadbalance(LoadbalancePolicy.WEIGHTED, "weights")
MANY = tuple(number.to_bytes(4, "big") for number in range(1, 201))


def addresses(*texts: str, owner: bytes = b"") -> RRset:
    rdatas = tuple(ip_address(text).packed for text in texts)
    return RRset(owner, RRType.A if len(rdatas[0]) == 4 else RRType.AAAA, 5, rdatas)


def texts_of(rrsets: RRsets) -> list[str]:
    return [str(ip_address(rdata)) for rrset in rrsets for rdata in rrset.rdatas]


def balanced(
    settings: Loadbalance, response: Response, query: Query | None = None, seed: int = 1, weights: str = ""
) -> Resolution:
    balancer = LoadBalancer(settings, Random(seed), lambda: parse_weights(weights))
    return balancer(query or ask("web.example."), client(), Resolution(response, "kubernetes"))


def first_addresses(rounds: int, rrsets: RRsets, weights: str, qname: str = "web.example.") -> Counter[str]:
    balancer = LoadBalancer(WEIGHTED, Random(1), lambda: parse_weights(weights))
    resolutions = (
        balancer(ask(qname), client(), Resolution(Response(answer=rrsets), "kubernetes")) for _ in range(rounds)
    )
    return Counter(texts_of(resolution.response.answer)[0] for resolution in resolutions)


def test_the_order_is_cnames_then_others_then_addresses_then_mx() -> None:
    rrsets = (MX, addresses("10.0.0.1"), TXT, CNAME, SRV)
    assert [rrset.rtype for rrset in shuffle(rrsets, Random(1))] == [
        RRType.CNAME,
        RRType.TXT,
        RRType.SRV,
        RRType.A,
        RRType.MX,
    ]


@settings(max_examples=50)
@given(st.lists(st.sampled_from([CNAME, TXT, SRV, MX, addresses("10.0.0.1", "10.0.0.2")]), max_size=5), st.integers())
def test_a_shuffle_neither_loses_nor_invents_a_record(rrsets: Sequence[RRset], seed: int) -> None:
    def records(some: Sequence[RRset]) -> Counter[tuple[int, bytes]]:
        return Counter((rrset.rtype, rdata) for rrset in some for rdata in rrset.rdatas)

    assert records(shuffle(tuple(rrsets), Random(seed))) == records(rrsets)


def test_every_order_of_three_addresses_is_about_as_likely() -> None:
    rng, answer = Random(1), (addresses("10.0.0.1", "10.0.0.2", "10.0.0.3"),)
    orders = Counter(shuffle(answer, rng)[0].rdatas for _ in range(6000))
    assert len(orders) == 6
    assert all(850 < count < 1150 for count in orders.values())


def test_every_one_of_many_addresses_can_be_first() -> None:
    rng, answer = Random(1), (RRset(b"", RRType.A, 5, MANY),)
    orders = [shuffle(answer, rng)[0].rdatas for _ in range(4000)]
    assert all(sorted(order) == list(MANY) for order in orders[:20])
    assert {order[0] for order in orders} == set(MANY)


@pytest.mark.parametrize("size", [2, 64, 65, 300])
@pytest.mark.parametrize("number", [0, 1, 40, 64, 80])
def test_the_first_addresses_in_order_are_those_of_a_shuffled_response(size: int, number: int) -> None:
    rdatas = tuple(pack("!I", each) for each in range(size))
    balancer = LoadBalancer(Loadbalance(), Random(1))
    assert balancer.round_robin
    (rrset,) = shuffle((RRset(b"", RRType.A, 5, rdatas),), Random(1))
    assert tuple(balancer.ordered(rdatas, number)) == rrset.rdatas[:number]


def test_addresses_of_different_owners_change_places_too() -> None:
    rng = Random(1)
    glue = (addresses("10.0.0.1", owner=b"\1a\0"), addresses("10.0.0.2", owner=b"\1b\0"))
    assert {tuple(texts_of(shuffle(glue, rng))) for _ in range(50)} == {
        ("10.0.0.1", "10.0.0.2"),
        ("10.0.0.2", "10.0.0.1"),
    }


@pytest.mark.parametrize("rrset", [SRV, TXT, addresses("10.0.0.1")], ids=["SRV", "TXT", "one address"])
def test_other_types_and_single_records_stay(rrset: RRset) -> None:
    assert all(shuffle((rrset,), Random(seed)) == (rrset,) for seed in range(20))


def test_all_three_sections_are_shuffled() -> None:
    section = (RRset(b"", RRType.A, 5, MANY[:30]),)
    response = balanced(Loadbalance(), Response(answer=section, authority=section, additional=section)).response
    assert all(found != section for found in (response.answer, response.authority, response.additional))


def test_only_a_noerror_response_is_touched() -> None:
    response = Response(Rcode.NXDOMAIN, answer=(addresses("10.0.0.1"), CNAME))
    assert balanced(Loadbalance(), response).response.answer == (addresses("10.0.0.1"), CNAME)


def test_an_order_of_mere_chance_can_be_shared() -> None:
    assert balanced(Loadbalance(), Response(answer=(addresses("10.0.0.1", "10.0.0.2"),))).scope == Scope.EVERYONE


@pytest.mark.parametrize(
    "settings", [WEIGHTED, Loadbalance(prefer=(ip_network("10.0.0.0/8"),))], ids=["weighted", "prefer"]
)
@pytest.mark.parametrize(
    ("count", "scope"), [(2, Scope.CLIENT), (1, Scope.EVERYONE)], ids=["several addresses", "one address"]
)
def test_an_order_with_a_meaning_is_made_anew_each_time(settings: Loadbalance, count: int, scope: Scope) -> None:
    assert balanced(settings, Response(answer=(RRset(b"", RRType.A, 5, MANY[:count]),))).scope == scope


def test_addresses_come_first_in_the_proportion_of_their_weights() -> None:
    weights = "web.example\n10.0.0.1 6\n10.0.0.2 3"
    firsts = first_addresses(2000, (addresses("10.0.0.1", "10.0.0.2", "10.0.0.3"),), weights)
    assert firsts["10.0.0.1"] == pytest.approx(1200, abs=100)
    assert firsts["10.0.0.2"] == pytest.approx(600, abs=100)
    assert firsts["10.0.0.3"] == pytest.approx(200, abs=60)  # not listed: weighs 1


def test_weights_count_for_their_own_name_in_any_case() -> None:
    weights = "Web.Example\n10.0.0.1 255"
    answer = (addresses("10.0.0.1", "10.0.0.2"),)
    assert first_addresses(300, answer, weights, "WEB.example.")["10.0.0.1"] > 280
    assert first_addresses(300, answer, weights, "other.example.")["10.0.0.1"] < 200


def test_weights_count_for_glue_by_its_owner() -> None:
    weights = "b\n10.0.0.2 255"
    glue = (addresses("10.0.0.1", owner=b"\1a\0"), addresses("10.0.0.2", "10.0.0.3", owner=b"\1B\0"))
    response = balanced(WEIGHTED, Response(answer=(SRV,), additional=glue), ask("x.", RRType.SRV), weights=weights)
    assert texts_of(response.response.additional) == ["10.0.0.2", "10.0.0.3", "10.0.0.1"]


def test_weighted_changes_only_which_address_is_first_behind_the_cname() -> None:
    rrsets = (addresses("10.0.0.1", "10.0.0.2", "10.0.0.3"), CNAME)
    answer = balanced(WEIGHTED, Response(answer=rrsets), weights="web.example\n10.0.0.3 255", seed=2).response.answer
    assert answer == (CNAME, addresses("10.0.0.3", "10.0.0.2", "10.0.0.1"))


@pytest.mark.parametrize(
    ("qtype", "answer"),
    [(RRType.MX, (addresses("10.0.0.1", "10.0.0.2"), CNAME)), (RRType.A, (MX, CNAME))],
    ids=["a question for another type", "no address"],
)
def test_weighted_leaves_alone(qtype: int, answer: RRsets) -> None:
    assert balanced(WEIGHTED, Response(answer=answer), ask("web.example.", qtype)).response.answer == answer


def test_a_file_read_again_counts_at_once() -> None:
    weights = parse_weights("web.example\n10.0.0.1 255")
    balancer = LoadBalancer(WEIGHTED, Random(1), lambda: weights)
    query, answer = ask("web.example."), (addresses("10.0.0.1", "10.0.0.2"),)

    def first_of_many() -> str:
        resolutions = [balancer(query, client(), Resolution(Response(answer=answer), "kubernetes")) for _ in range(99)]
        return Counter(texts_of(resolution.response.answer)[0] for resolution in resolutions).most_common(1)[0][0]

    assert first_of_many() == "10.0.0.1"
    weights = parse_weights("web.example\n10.0.0.2 255")
    assert first_of_many() == "10.0.0.2"


def test_preferred_networks_come_first_in_their_order() -> None:
    prefer = (ip_network("10.2.0.0/16"), ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"))
    answer = (addresses("192.0.2.1", "10.1.0.1", "10.2.0.1"),)
    additional = (addresses("192.0.2.9", owner=b"\1a\0"), addresses("2001:db8::9", owner=b"\1a\0"), CNAME)
    for seed in range(10):
        response = balanced(Loadbalance(prefer=prefer), Response(answer=answer, additional=additional), seed=seed)
        assert texts_of(response.response.answer) == ["10.2.0.1", "10.1.0.1", "192.0.2.1"]
        assert texts_of(response.response.additional[1:]) == ["2001:db8::9", "192.0.2.9"]


def test_equally_preferred_addresses_keep_their_order_of_chance() -> None:
    settings = Loadbalance(prefer=(ip_network("10.0.0.0/8"),))
    answer = (addresses("192.0.2.1", "10.0.0.1", "10.0.0.2"),)
    firsts = {texts_of(balanced(settings, Response(answer=answer), seed=seed).response.answer)[0] for seed in range(30)}
    assert firsts == {"10.0.0.1", "10.0.0.2"}
