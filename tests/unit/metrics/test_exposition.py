"""The text format 0.0.4, byte for byte and as Prometheus's own parser reads it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from topodns.metrics.exposition import counter, gauge, histogram
from topodns.query.histogram import Histogram


def test_a_gauge_has_its_help_its_type_and_a_line_for_each_row() -> None:
    rows = [(("b", "a"), 1.0), (("", "x"), 2.5)]
    assert "".join(gauge("held", "Objects held.", ("zone", "kind"), rows)) == (
        "# HELP held Objects held.\n"
        "# TYPE held gauge\n"
        'held{kind="a",zone="b"} 1.0\n'
        'held{kind="x",zone=""} 2.5\n'
    )  # fmt: skip


def test_a_counter_s_name_ends_in_total_and_without_labels_it_has_no_braces() -> None:
    assert "".join(counter("asked", "Questions.", (), [((), 7)])) == (
        "# HELP asked_total Questions.\n# TYPE asked_total counter\nasked_total 7.0\n"
    )


def test_a_histogram_s_buckets_hold_all_that_is_below_their_bound() -> None:
    sizes = Histogram((0.25, 100.0))
    for size in (0.25, 200, 250.25):
        sizes.observe(size)
    assert "".join(histogram("size", "Octets.", ("proto",), [(("udp",), sizes)])) == (
        "# HELP size Octets.\n"
        "# TYPE size histogram\n"
        'size_bucket{le="0.25",proto="udp"} 1.0\n'
        'size_bucket{le="100",proto="udp"} 1.0\n'
        'size_bucket{le="+Inf",proto="udp"} 3.0\n'
        'size_count{proto="udp"} 3.0\n'
        'size_sum{proto="udp"} 450.5\n'
    )


def test_a_family_without_rows_is_still_announced() -> None:
    assert "".join(gauge("held", "Objects.", ("kind",), [])) == "# HELP held Objects.\n# TYPE held gauge\n"


def test_help_and_values_are_escaped_as_the_format_says() -> None:
    lines = "".join(gauge("held", 'a \\ "b"\nc', ("kind",), [(('a \\ "b"\nc',), 0)]))
    assert lines == '# HELP held a \\\\ "b"\\nc\n# TYPE held gauge\nheld{kind="a \\\\ \\"b\\"\\nc"} 0.0\n'


@pytest.mark.parametrize(
    ("value", "text"), [(math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN"), (1e22, "1e+22"), (3, "3.0")]
)
def test_numbers_are_written_as_go_reads_them(value: float, text: str) -> None:
    assert list(gauge("held", "", (), [((), value)]))[-1] == f"held {text}\n"


def test_a_row_with_too_few_values_is_a_bug() -> None:
    with pytest.raises(ValueError):
        list(gauge("held", "", ("one", "two"), [(("one",), 1)]))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(TEXT, st.floats(allow_nan=False))
def test_whatever_a_label_says_prometheus_reads_it_back(label: str, value: float) -> None:
    (family,) = text_string_to_metric_families("".join(gauge("held", "Held.", ("kind",), [((label,), value)])))
    (sample,) = family.samples
    assert (sample.labels, sample.value) == ({"kind": label}, value)
