import pytest

from topodns.dns.rrtype import RRType
from topodns.query.counters import (
    BEYOND,
    DURATION_BUCKETS,
    MAX_CELLS,
    NAMED_CELLS,
    SIZE_BUCKETS,
    QueryCounters,
    ReplyKind,
    size_bucket,
    type_label,
)

PLAIN = ReplyKind("cluster.local.", "A", "NOERROR", "kubernetes", False, "", "", 1, 1)


def socket_counters() -> QueryCounters:
    return QueryCounters("dns://:53", "udp", "1")


def test_kinds_are_counted_apart() -> None:
    counts = socket_counters()
    negative = PLAIN._replace(rcode="NXDOMAIN")
    for kind in (PLAIN, negative, PLAIN):
        counts.count(counts.cell(kind), 0.001, 45, 61)
    assert dict(counts.kinds()) == {PLAIN: 2, negative: 1}


def test_a_kind_that_was_only_asked_for_counts_nothing() -> None:
    counts = socket_counters()
    counts.cell(PLAIN)
    assert dict(counts.kinds()) == {PLAIN: 0}


def test_a_cell_is_counted_on_by_incrementing_its_slot() -> None:
    counts = socket_counters()
    cell = counts.cell(PLAIN)
    cell[0] += 1  # type: ignore[operator]  # as the UDP loop does for a ready-made answer
    assert counts.cell(PLAIN) is cell
    assert dict(counts.kinds()) == {PLAIN: 1}


def slots(counts: QueryCounters, origin: str = "cluster.local.") -> dict[float, float]:
    """The buckets of an origin that are not empty, by their upper bound."""
    bounds = (*DURATION_BUCKETS, float("inf"))
    return {
        bound: number for bound, number in zip(bounds, counts.durations[(origin, "")].counts, strict=True) if number
    }


@pytest.mark.parametrize(
    ("seconds", "bound"),
    [
        (0.0, 0.00025),
        (0.00025, 0.00025),
        (0.000251, 0.0005),
        (0.0005, 0.0005),
        (0.1, 0.128),
        (8.192, 8.192),
        (8.193, float("inf")),
    ],
)
def test_a_duration_falls_into_the_bucket_that_bounds_it(seconds: float, bound: float) -> None:
    counts = socket_counters()
    counts.count(counts.cell(PLAIN), seconds, 45, 61)
    assert slots(counts) == {bound: 1}
    assert counts.durations[("cluster.local.", "")].sum == seconds


def test_durations_are_kept_by_origin() -> None:
    counts = socket_counters()
    counts.count(counts.cell(PLAIN), 0.001, 45, 61)
    counts.count(counts.cell(PLAIN._replace(qtype="SRV")), 0.001, 45, 61)
    counts.count(counts.cell(PLAIN._replace(origin=".")), 0.1, 45, 61)
    assert slots(counts) == {0.001: 2}
    assert slots(counts, ".") == {0.128: 1}


def test_a_batch_is_booked_with_its_mean_on_the_origin_of_its_last_answer() -> None:
    counts = socket_counters()
    counts.batch_done(64, 0.128, counts.cell(PLAIN), [40] * 64, [60] * 64)
    assert slots(counts) == {0.002: 64}
    assert counts.durations[("cluster.local.", "")].sum == 0.128
    assert counts.octets == {("cluster.local.", ""): [64 * 40, 64 * 60]}
    assert dict(counts.kinds()) == {PLAIN: 0}  # the loop has counted them


def test_of_a_batch_only_hits_are_booked() -> None:
    counts = socket_counters()
    counts.batch_done(2, 0.001, counts.cell(PLAIN), [40, 31, 50, 0], [60, 0, 70, 0])
    assert slots(counts) == {0.0005: 2}
    assert counts.octets == {("cluster.local.", ""): [90, 130]}


def test_a_batch_without_hits_books_nothing() -> None:
    counts = socket_counters()
    counts.batch_done(0, 0.1, None, [40], [0])
    assert (counts.durations, counts.octets) == ({}, {})


def test_octets_are_summed_exactly_by_origin() -> None:
    counts = socket_counters()
    for query_size, response_size in ((33, 101), (1232, 0)):
        counts.count(counts.cell(PLAIN), 0.001, query_size, response_size)
    counts.count(counts.cell(PLAIN._replace(origin=".")), 0.001, 40, 50)
    assert counts.octets == {("cluster.local.", ""): [1265, 101], (".", ""): [40, 50]}


def test_buckets_are_coredns_s() -> None:
    assert DURATION_BUCKETS[0] == 0.00025
    assert DURATION_BUCKETS[-1] == 8.192
    assert len(DURATION_BUCKETS) == 16
    assert SIZE_BUCKETS == (0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16000, 32000, 48000, 64000)


@pytest.mark.parametrize(
    ("size", "bucket"),
    [(0, 0), (1, 1), (100, 1), (101, 2), (511, 5), (512, 6), (64000, 13), (64001, BEYOND), (65535, BEYOND)],
)
def test_a_size_falls_into_the_bucket_that_bounds_it(size: int, bucket: int) -> None:
    assert size_bucket(size) == bucket


FLOOD = [
    PLAIN._replace(
        qtype=f"TYPE{number % 20}",
        rcode=f"RCODE{number % 7}",
        dnssec_ok=bool(number % 2),
        query_bucket=1 + number % BEYOND,
        response_bucket=number % (BEYOND + 1),
        topology_key=f"key{number % 300}" if number % 3 else "",
        missed=f"shop/{number % 101}" if number % 5 else "",
        prefix=f"10.0.{number % 101}.0/24" if number % 7 else "",
    )
    for number in range(60_000)
]


def test_a_flood_of_kinds_ends_in_hundreds_of_cells_that_count_it_all() -> None:
    counts = socket_counters()
    for kind in FLOOD:
        counts.count(counts.cell(kind), 0.0, 45, 61)
    kinds = dict(counts.kinds())
    assert len(kinds) <= MAX_CELLS + 2 * 7 * 8  # answered or not; rcodes; who is named in the three ways or in none
    assert sum(kinds.values()) == len(FLOOD)
    for number in range(7):
        rcode = f"RCODE{number}"
        assert sum(times for kind, times in kinds.items() if kind.rcode == rcode) == len(
            [kind for kind in FLOOD if kind.rcode == rcode]
        )
    unanswered = sum(times for kind, times in kinds.items() if not kind.response_bucket)
    assert unanswered == len([kind for kind in FLOOD if not kind.response_bucket])


def test_in_a_flood_no_new_name_gets_a_label_but_all_are_counted() -> None:
    counts = socket_counters()
    for number in range(NAMED_CELLS):
        counts.cell(PLAIN._replace(outcome=str(number)))
    for number in range(1000):
        kind = PLAIN._replace(missed=f"shop/{number}", prefix=f"10.0.{number % 256}.0/24", topology_key=str(number))
        counts.count(counts.cell(kind), 0.0, 45, 61)
    flood = {kind: times for kind, times in counts.kinds() if kind.missed}
    assert [(*kind[6:9], kind.missed, kind.prefix, times) for kind, times in flood.items()] == [
        ("others", 1, 1, "others", "others", 1000)
    ]


def test_kinds_known_before_the_flood_are_counted_on_as_they_are() -> None:
    counts = socket_counters()
    known = counts.cell(PLAIN._replace(missed="shop/cache"))
    for kind in FLOOD:
        counts.cell(kind)
    assert counts.cell(PLAIN._replace(missed="shop/cache")) is known


@pytest.mark.parametrize(
    ("qtype", "label"),
    [
        (RRType.A, "A"),
        (RRType.AAAA, "AAAA"),
        (RRType.SRV, "SRV"),
        (RRType.HTTPS, "HTTPS"),
        (RRType.ANY, "ANY"),
        (RRType.NAPTR, "other"),
        (RRType.OPT, "other"),
        (1000, "other"),
        (0, "other"),
    ],
)
def test_the_label_of_a_type_is_coredns_s(qtype: int, label: str) -> None:
    assert type_label(qtype) == label
