"""SRV records with priorities: as CoreDNS makes them of services with priorities, and cut where a reply is full."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import pack, unpack_from

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.model_builders import endpoint
from topodns.cluster.endpoint_names import endpoint_label
from topodns.cluster.endpoints import Group, Pool, Segment
from topodns.cluster.model import Endpoint
from topodns.dns.message import RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.records import Sections, ranked_srv_records
from topodns.query.plugin import ANY_SIZE

SUFFIX = b"".join(map(label_wire, ("db", "default", "svc", "cluster", "local"))) + b"\0"
LONG = b"".join(label_wire(label) for label in ("a" * 60, "b" * 60, "c" * 60, "d" * 57, "local")) + b"\0"
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


@settings(max_examples=200, deadline=None)
@given(SOME_ENDPOINTS, SOME_MEMBERS, SOME_PORTS, st.sampled_from((SUFFIX, LONG)))
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
    case = Case([[Group((*many(5000), *named))]], suffix=LONG)
    made, _ = records(case, limit)
    assert [rdata[6:] for rdata in made] == [target_of(one, LONG) for one in named[: len(made)]]
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
