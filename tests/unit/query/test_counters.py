import pytest

from topodns.dns.message import RRType
from topodns.resolve.tally import DURATION_BUCKETS, MAX_CELLS, SIZE_BUCKETS, Kind, Tally, type_label

PLAIN = Kind("cluster.local.", "A", "NOERROR", "kubernetes", False, "", "", 45, 61)


def tally() -> Tally:
    return Tally("dns://:53", "udp", "1")


def test_kinds_are_counted_apart() -> None:
    counts = tally()
    negative = PLAIN._replace(rcode="NXDOMAIN")
    for kind in (PLAIN, negative, PLAIN):
        counts.count(counts.cell(kind), 0.001)
    assert dict(counts.kinds()) == {PLAIN: 2, negative: 1}


def test_a_kind_that_was_only_asked_for_counts_nothing() -> None:
    counts = tally()
    counts.cell(PLAIN)
    assert dict(counts.kinds()) == {PLAIN: 0}


def test_a_cell_is_counted_on_by_incrementing_its_slot() -> None:
    counts = tally()
    cell = counts.cell(PLAIN)
    cell[0] += 1  # type: ignore[operator]  # as the UDP loop does for a ready-made answer
    assert counts.cell(PLAIN) is cell
    assert dict(counts.kinds()) == {PLAIN: 1}


def slots(counts: Tally, origin: str = "cluster.local.") -> dict[float, float]:
    """The buckets of an origin that are not empty, by their upper bound."""
    bounds = (*DURATION_BUCKETS, float("inf"))
    return {bound: number for bound, number in zip(bounds, counts.durations[(origin, "")][1:], strict=True) if number}


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
    counts = tally()
    counts.count(counts.cell(PLAIN), seconds)
    assert slots(counts) == {bound: 1}
    assert counts.durations[("cluster.local.", "")][0] == seconds


def test_durations_are_kept_by_origin() -> None:
    counts = tally()
    counts.count(counts.cell(PLAIN), 0.001)
    counts.count(counts.cell(PLAIN._replace(qtype="SRV")), 0.001)
    counts.count(counts.cell(PLAIN._replace(origin=".")), 0.1)
    assert slots(counts) == {0.001: 2}
    assert slots(counts, ".") == {0.128: 1}


def test_a_batch_is_booked_with_its_mean_on_the_origin_of_its_last_answer() -> None:
    counts = tally()
    counts.batch_done(64, 0.128, counts.cell(PLAIN))
    assert slots(counts) == {0.002: 64}
    assert counts.durations[("cluster.local.", "")][0] == 0.128
    assert dict(counts.kinds()) == {PLAIN: 0}  # the loop has counted them


def test_a_batch_without_hits_books_nothing() -> None:
    counts = tally()
    counts.batch_done(0, 0.1, None)
    assert counts.durations == {}


def test_buckets_are_coredns_s() -> None:
    assert DURATION_BUCKETS[0] == 0.00025
    assert DURATION_BUCKETS[-1] == 8.192
    assert len(DURATION_BUCKETS) == 16
    assert SIZE_BUCKETS == (0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16000, 32000, 48000, 64000)


def test_a_flood_of_kinds_ends_in_sizes_rounded_up_to_their_bucket() -> None:
    counts = tally()
    for size in range(MAX_CELLS):
        counts.cell(PLAIN._replace(query_size=size))
    for size in range(12, 65536):
        counts.count(counts.cell(PLAIN._replace(origin="flood.", query_size=size, response_size=size)), 0.0)
    flood = {kind: times for kind, times in counts.kinds() if kind.origin == "flood."}
    assert len(flood) <= len(SIZE_BUCKETS) + 1
    assert sum(flood.values()) == 65536 - 12
    sizes = {kind.query_size for kind in flood}
    assert sizes == {kind.response_size for kind in flood} == {*SIZE_BUCKETS[1:], 65535}


def test_a_flood_of_kinds_ends_in_nobody_being_named_but_counted_all_the_same() -> None:
    counts = tally()
    for size in range(MAX_CELLS):
        counts.cell(PLAIN._replace(query_size=size))
    for number in range(1000):
        counts.count(counts.cell(PLAIN._replace(missed=f"shop/{number}", prefix=f"10.0.{number % 256}.0/24")), 0.0)
    flood = {kind: times for kind, times in counts.kinds() if kind.missed}
    assert [(kind.missed, kind.prefix, times) for kind, times in flood.items()] == [("others", "others", 1000)]


def test_kinds_known_before_the_flood_are_counted_on_exactly() -> None:
    counts = tally()
    known = counts.cell(PLAIN)
    for size in range(MAX_CELLS + 10):
        counts.cell(PLAIN._replace(response_size=size))
    assert counts.cell(PLAIN) is known


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
