"""Records of endpoints: their number, weight and priority, as CoreDNS makes them, and cut where a reply is full."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import pack, unpack_from

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.endpoints import Group, Pool, Segment, endpoint_label, group_of
from topodns.cluster.model import Endpoint
from topodns.dns.message import RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.records import GroupOffer, Sections, endpoint_srv_records, ranked_srv_records
from topodns.query.plugin import ANY_SIZE

NS = "testns"


def test_a_weight_is_never_less_than_one() -> None:
    endpoints = [endpoint(f"172.1.{i // 200}.{i % 200}") for i in range(300)]
    dig = ClusterDig(
        [namespace(NS), service("big", NS), endpoint_slice("big", *endpoints, namespace=NS, ports=["80"])], settings()
    )
    assert " SRV 0 1 80 172-1-0-0.big." in dig("big.testns.svc.cluster.local. SRV")


def test_an_endpoint_of_two_slices_is_one_record() -> None:
    dig = ClusterDig(
        [
            namespace(NS),
            service("moving", NS),
            endpoint_slice("moving", endpoint("172.0.0.1"), namespace=NS, ports=["http:80"]),
            endpoint_slice("moving", endpoint("172.0.0.1"), name="moving-2", namespace=NS, ports=["http:80"]),
        ],
        settings(),
    )
    assert dig("moving.testns.svc.cluster.local. A") == "moving.testns.svc.cluster.local. 5 IN A 172.0.0.1"
    assert dig("moving.testns.svc.cluster.local. SRV").count(" SRV 0 100 80 ") == 1


SHORT, LONG = b"\x02db\0", b"".join(label_wire(letter * 60) for letter in "abcd") + b"\x05local\0"
SHAPES = st.lists(st.sampled_from(("", "", "w0", "w1", "a-long-one")), max_size=40)


@hypothesis_settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(SHAPES, st.sampled_from((80, 81, None)), st.sampled_from((SHORT, LONG))), max_size=3),
    st.sampled_from((512, ANY_SIZE)),
)
def test_what_has_no_record_still_counts_in_the_weight(
    shapes: Sequence[tuple[Sequence[str], int | None, bytes]], limit: int
) -> None:
    """As CoreDNS's plugin.SRV counts endpoints of ports without a number, for which it makes no record."""
    offers = [
        GroupOffer(group_of(endpoint(f"10.0.0.{at}", hostname=name) for at, name in enumerate(names)), port, suffix)
        for names, port, suffix in shapes
    ]
    weight = max(1, 100 // max(1, sum(len(names) for names, _, _ in shapes)))
    targets = [
        (port, label_wire(endpoint_label(each, False)) + suffix, each.address)
        for group, port, suffix in offers
        for each in group.endpoints
        if port is not None
    ]
    fitting = [target for target in targets if len(target[1]) <= 255]
    made = list(dict.fromkeys(pack("!HHH", 0, weight, port) + name for port, name, _ in fitting))
    answer, additional = endpoint_srv_records(offers, KeptLabels(pod_names=False), 5, limit)
    found = [rdata for rrset in answer for rdata in rrset.rdatas]
    assert all(rrset.rdatas for rrset in answer)
    if sum(12 + len(rdata) for rdata in made) <= limit:
        assert found == made
        assert {(rrset.owner, rdata) for rrset in additional for rdata in rrset.rdatas} == {
            each[1:] for each in fitting
        }
    else:
        assert found == made[: len(found)]
        assert sum(12 + len(rdata) for rdata in found) > limit or found == made


SUFFIX = b"".join(map(label_wire, ("db", "default", "svc", "cluster", "local"))) + b"\0"
LONG_SUFFIX = b"".join(label_wire(label) for label in ("a" * 60, "b" * 60, "c" * 60, "d" * 57, "local")) + b"\0"
"""`web-0` fits before it, no address does."""
TTL = 5


@dataclass(frozen=True)
class Case:
    """Pools, each a list of endpoints, at these ports; the groups of each pool by priority, the last of all endpoints.

    `taken` has the priorities that were looked up.
    """

    groups: Sequence[Sequence[Group]]
    ports: Sequence[int | None] = (80,)
    suffix: bytes = SUFFIX
    taken: list[int] = field(default_factory=list)

    def sections(self, limit: int) -> Sections:
        pools = {Pool([Segment(groups[-1].endpoints)], lambda _name: None): groups for groups in self.groups}
        priorities = len(self.groups[0])

        def ranked(pool: Pool, priority: int) -> Group:
            self.taken.append(priority)
            return pools[pool][priority]

        offers = [(pool, port) for port in self.ports for pool in pools]
        return ranked_srv_records(offers, priorities, ranked, self.suffix, KeptLabels(pod_names=False), TTL, limit)


def records(case: Case, limit: int = ANY_SIZE) -> tuple[list[bytes], dict[bytes, set[bytes]]]:
    """The RDATA of the SRV records, and the addresses of each target."""
    answer, additional = case.sections(limit)
    targets = [rdata[6:] for rrset in answer for rdata in rrset.rdatas]
    assert [rrset.owner for rrset in additional] == sorted((rrset.owner for rrset in additional), key=targets.index), (
        "addresses are in the order of the records"
    )
    addresses: dict[bytes, set[bytes]] = {}
    for rrset in additional:
        assert rrset.rtype == (RRType.A if len(rrset.rdatas[0]) == 4 else RRType.AAAA)
        assert len(set(rrset.rdatas)) == len(rrset.rdatas)
        addresses.setdefault(rrset.owner, set()).update(rrset.rdatas)
    assert all((rrset.owner, rrset.rtype, rrset.ttl) == (b"", RRType.SRV, TTL) for rrset in answer)
    return [rdata for rrset in answer for rdata in rrset.rdatas], addresses


def target_of(one: Endpoint, suffix: bytes = SUFFIX) -> bytes:
    return label_wire(endpoint_label(one, False)) + suffix


def as_coredns(case: Case) -> tuple[list[bytes], dict[bytes, set[bytes]]]:
    """CoreDNS's loop over services (plugin.SRV), each of which has the priority of the first rank it is in.

    Its sum of weights is per priority and counts every service, also those whose record is a repetition, and those
    without a record: of a port without a number, or with a name of more than 255 octets.
    """
    priorities = range(len(case.groups[0]))
    nearest: dict[int, int] = {}
    for priority in priorities:
        for groups in case.groups:
            for one in groups[priority].endpoints:
                nearest.setdefault(id(one), priority)
    services = [
        (priority, port, one)
        for priority in priorities
        for port in case.ports
        for groups in case.groups
        for one in groups[priority].endpoints
        if nearest[id(one)] == priority
    ]
    sums: dict[int, int] = {}
    for priority, _, _ in services:
        sums[priority] = sums.get(priority, 0) + 100
    made: list[bytes] = []
    known: set[tuple[bytes, int]] = set()
    addresses: dict[bytes, set[bytes]] = {}
    for priority, port, one in services:
        weight, target = max(1, int(100.0 / sums[priority] * 100)), target_of(one, case.suffix)
        if port is None or len(target) > 255:
            continue
        if (target, port) not in known:
            known.add((target, port))
            made.append(pack("!HHH", priority, weight, port) + target)
        addresses.setdefault(target, set()).add(one.address)
    return made, addresses


def groups_of(endpoints: Sequence[Endpoint], members: Sequence[set[int]]) -> list[Group]:
    """A group for each set of indexes, and one of all at the end, as `*` gives it."""
    chosen = [tuple(one for at, one in enumerate(endpoints) if at in some) for some in members]
    return [*map(Group, chosen), Group(tuple(endpoints))]


SOME_ENDPOINTS = st.lists(
    st.tuples(st.booleans(), st.sampled_from(["", "", "web-0", "web-1"])), min_size=1, max_size=60
).map(
    lambda shapes: [
        endpoint(f"fd00::{at + 1:x}" if six else f"10.0.0.{at + 1}", hostname=hostname)
        for at, (six, hostname) in enumerate(shapes)
    ]
)
SOME_PORTS = st.lists(st.sampled_from((80, 81, 82, None)), min_size=1, max_size=3, unique=True)
SOME_MEMBERS = st.lists(st.sets(st.integers(0, 59)), max_size=3)


@hypothesis_settings(max_examples=80, deadline=None)
@given(SOME_ENDPOINTS, SOME_MEMBERS, SOME_PORTS, st.sampled_from((SUFFIX, LONG_SUFFIX)))
def test_records_are_those_of_coredns_for_services_with_these_priorities(
    endpoints: list[Endpoint], members: list[set[int]], ports: list[int | None], suffix: bytes
) -> None:
    families = [[one for one in endpoints if len(one.address) == length] for length in (4, 16)]
    case = Case([groups_of(some, members) for some in families], ports, suffix)
    made, addresses = records(case)
    expected, glue = as_coredns(case)
    assert sorted(made) == sorted(expected)
    assert addresses == glue
    numbers = [unpack_from("!H", rdata)[0] for rdata in made]
    assert numbers == sorted(numbers), "the nearest come first"


def many(number: int, first: int = 0) -> tuple[Endpoint, ...]:
    return tuple(endpoint(f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}") for at in range(first, first + number))


def nested(endpoints: Sequence[Endpoint], *sizes: int) -> Case:
    """One pool at one port: the first `size` endpoints for each size, then all of them."""
    return Case([[Group(tuple(endpoints[:size])) for size in (*sizes, len(endpoints))]])


@pytest.mark.parametrize("limit", [512, 1232, 65535])
def test_an_answer_that_does_not_fit_has_the_nearest_endpoints_and_is_cut_beyond_the_limit(limit: int) -> None:
    endpoints = many(5000)
    made, addresses = records(nested(endpoints, 3, 10), limit)
    priorities = [unpack_from("!H", rdata)[0] for rdata in made]
    assert priorities == ([0] * 3 + [1] * 7 + [2] * 4990)[: len(made)]
    assert [rdata[6:] for rdata in made] == [target_of(one) for one in endpoints[: len(made)]]
    assert addresses == {}
    size = sum(12 + len(rdata) for rdata in made)
    assert size > limit  # so that the writer sets TC
    assert sum(12 + len(rdata) for rdata in made) - limit < limit


@pytest.mark.parametrize("limit", [512, 65535])
def test_names_that_fit_are_found_behind_any_number_of_names_that_do_not(limit: int) -> None:
    named = [endpoint(f"10.9.0.{at}", hostname=f"w{at}") for at in range(90)]
    case = Case([[Group((*many(5000), *named))]], suffix=LONG_SUFFIX)
    made, _ = records(case, limit)
    assert [rdata[6:] for rdata in made] == [target_of(one, LONG_SUFFIX) for one in named[: len(made)]]
    assert len(made) == len(named) or sum(12 + len(rdata) for rdata in made) > limit


def weights(made: Sequence[bytes]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for rdata in made:
        priority, weight = unpack_from("!HH", rdata)
        found.setdefault(priority, set()).add(weight)
    return found


@pytest.mark.parametrize(
    ("number", "sizes", "expected"),
    [
        (3, (1,), {0: {100}, 1: {50}}),
        (60, (50,), {0: {2}, 1: {10}}),
        (2000, (1998,), {0: {1}, 1: {50}}),
        (2002, (2000,), {0: {1}, 1: {1}}),  # more than 4,000 to count
        (3000, (3, 2998), {0: {33}, 1: {1}, 2: {1}}),
        (10, (4, 4), {0: {25}, 2: {16}}),  # a key that adds no endpoint
    ],
)
def test_the_weight_counts_the_endpoints_that_a_priority_adds(
    number: int, sizes: tuple[int, ...], expected: dict[int, set[int]]
) -> None:
    assert weights(records(nested(many(number), *sizes))[0]) == expected


def test_no_further_priority_is_looked_up_than_a_reply_has_room_for() -> None:
    case = nested(many(3000), 5, 1000)
    records(case, 1232)
    assert case.taken == [0, 1]


def test_endpoints_are_looked_up_once_for_all_ports_and_not_after_the_last_one_is_found() -> None:
    endpoints = many(3)
    groups = [Group(endpoints[:1]), Group(endpoints), *[Group(endpoints)] * 14]
    case = Case([groups], range(1, 1001))
    made, _ = records(case)
    assert len(made) == 3000
    assert case.taken == [0, 1]


def test_without_endpoints_there_is_no_record() -> None:
    assert Case([[Group(()), Group(())]]).sections(512) == ((), ())


def test_addresses_of_a_target_are_together() -> None:
    endpoints = (endpoint("10.0.0.1", hostname="web"), endpoint("10.0.0.2", hostname="web"))
    _, additional = nested(endpoints, 1).sections(512)
    assert additional == (RRset(target_of(endpoints[0]), RRType.A, TTL, tuple(one.address for one in endpoints)),)
