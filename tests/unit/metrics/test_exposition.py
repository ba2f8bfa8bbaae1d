"""Families of the process in the formats of prometheus_client, as its parsers read them, and who gets which format."""

import math
import re
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families

from topodns.metrics.exposition import (
    HISTOGRAMS,
    MAX_RANGES,
    OPEN_METRICS,
    ROWS,
    TEXT,
    TEXT_1,
    Exposition,
    Form,
    PublishedCollector,
    form_for,
)
from topodns.metrics.registry import Distribution, Published, Reading
from topodns.query.histogram import Histogram

Rows = Iterable[tuple[tuple[str, ...], float]]


def gauge(name: str, labels: tuple[str, ...], rows: Rows, documentation: str = "Held.") -> Reading:
    return Reading(name, documentation, "gauge", labels, lambda: rows)


def text(*published: Published, form: Form = TEXT) -> str:
    """The exposition of these families alone."""
    whole = b"".join(Exposition(lambda: published).pieces(form.encode)).decode()
    return re.sub(r"(?m)^(# \w+ )?(process|python)_.*\n", "", whole)


def test_a_gauge_has_its_help_its_type_and_a_line_for_each_row_with_sorted_labels() -> None:
    assert text(gauge("held", ("zone", "kind"), [(("b", "a"), 1.0), (("", "x"), 2.5)])) == (
        "# HELP held Held.\n"
        "# TYPE held gauge\n"
        'held{kind="a",zone="b"} 1.0\n'
        'held{kind="x",zone=""} 2.5\n'
    )  # fmt: skip


def test_a_counter_s_name_ends_in_total_and_without_labels_it_has_no_braces() -> None:
    assert text(Reading("asked", "Queries.", "counter", (), lambda: [((), 7)])) == (
        "# HELP asked_total Queries.\n# TYPE asked_total counter\nasked_total 7.0\n"
    )


def sizes() -> Distribution:
    counted = Histogram((0.25, 100.0))
    for size in (0.25, 200, 250.25):
        counted.observe(size)
    return Distribution("size", "Octets.", ("proto",), lambda: [(("udp",), counted)])


def test_a_histogram_s_buckets_hold_all_that_is_below_their_bound_which_is_written_as_by_coredns() -> None:
    assert text(sizes()) == (
        "# HELP size Octets.\n"
        "# TYPE size histogram\n"
        'size_bucket{le="0.25",proto="udp"} 1.0\n'
        'size_bucket{le="100",proto="udp"} 1.0\n'
        'size_bucket{le="+Inf",proto="udp"} 3.0\n'
        'size_count{proto="udp"} 3.0\n'
        'size_sum{proto="udp"} 450.5\n'
    )


def test_open_metrics_has_bounds_as_floats_counters_without_total_in_their_head_and_one_end() -> None:
    asked = Reading("asked", "Queries.", "counter", ("proto",), lambda: [(("udp",), 7)])
    assert text(asked, sizes(), form=OPEN_METRICS) == (
        "# HELP asked Queries.\n"
        "# TYPE asked counter\n"
        'asked_total{proto="udp"} 7.0\n'
        "# HELP size Octets.\n"
        "# TYPE size histogram\n"
        'size_bucket{le="0.25",proto="udp"} 1.0\n'
        'size_bucket{le="100.0",proto="udp"} 1.0\n'
        'size_bucket{le="+Inf",proto="udp"} 3.0\n'
        'size_count{proto="udp"} 3.0\n'
        'size_sum{proto="udp"} 450.5\n'
        "# EOF\n"
    )


@pytest.mark.parametrize("form", [TEXT, OPEN_METRICS], ids=["text", "OpenMetrics"])
def test_a_family_without_rows_is_still_announced(form: Form) -> None:
    assert text(gauge("held", ("kind",), []), form=form).startswith("# HELP held Held.\n# TYPE held gauge\n")


def test_help_and_values_are_escaped_as_the_format_says() -> None:
    lines = text(gauge("held", ("kind",), [(('a \\ "b"\nc',), 0)], documentation='a \\ "b"\nc'))
    assert lines == '# HELP held a \\\\ "b"\\nc\n# TYPE held gauge\nheld{kind="a \\\\ \\"b\\"\\nc"} 0.0\n'


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (1e22, "1e+22"),
        (3, "3.0"),
        (1234567, "1.234567e+06"),
    ],
)
def test_numbers_are_written_as_go_reads_them(value: float, written: str) -> None:
    assert text(gauge("held", (), [((), value)])).endswith(f"\nheld {written}\n")


@pytest.mark.parametrize(
    "published",
    [gauge("held", ("one", "two"), [(("one",), 1)]), Distribution("held", "", (), lambda: [(("one",), Histogram(()))])],
    ids=["a value is missing", "a label is missing"],
)
def test_a_row_with_other_values_than_labels_is_a_bug(published: Published) -> None:
    with pytest.raises(ValueError, match="held has"):
        text(published)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(TEXTS, st.floats(allow_nan=False))
def test_whatever_a_label_says_prometheus_reads_it_back(label: str, value: float) -> None:
    held = gauge("held", ("kind",), [((label,), value)])
    for form, families in ((TEXT, text_string_to_metric_families), (OPEN_METRICS, open_metrics_families)):
        (family,) = families(text(held, form=form))
        (sample,) = family.samples
        assert (sample.labels, sample.value) == ({"kind": label}, value)


def large() -> list[Published]:
    """Families of more rows than a part has, and one in parts of its own, the first of them without rows."""
    many = [((f"dns://:{number}", "a.b"), float(number)) for number in range(3 * ROWS + 1)]
    counted = Histogram((1.0, 2.0))
    counted.observe(1.5)
    return [
        Reading("asked", "Queries.", "counter", ("server", "name"), lambda: ()),
        Reading("asked", "Queries.", "counter", ("server", "name"), lambda: many),
        Distribution("size", "Octets.", ("n",), lambda: [((str(n),), counted) for n in range(2 * HISTOGRAMS + 1)]),
        Reading("held", "Held.", "gauge", (), lambda: [((), 1)]),
    ]


class Whole:
    """The families of a collector, the parts of each put together."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        for part in self._collect():
            whole = families.setdefault(part.name, Metric(part.name, part.documentation, part.type))
            whole.samples.extend(part.samples)
        return families.values()


def test_the_pieces_are_together_what_the_library_makes_of_whole_families() -> None:
    whole = generate_latest(Whole(PublishedCollector(large).collect)).decode()
    assert text(*large()) == whole
    assert whole.count("# HELP") == 3
    assert whole.count("\nasked_total{") == 3 * ROWS + 1


def test_open_metrics_in_pieces_is_one_exposition() -> None:
    families = list(open_metrics_families(text(*large(), form=OPEN_METRICS)))  # type: ignore[no-untyped-call]
    assert [(family.name, len(family.samples)) for family in families] == [
        ("asked", 3 * ROWS + 1),
        ("size", (2 * HISTOGRAMS + 1) * 5),
        ("held", 1),
    ]


def test_no_piece_has_more_samples_than_a_step_should_make() -> None:
    pieces = list(Exposition(large).pieces(TEXT.encode))
    assert max(piece.count(b"\n") for piece in pieces) <= max(ROWS, 5 * HISTOGRAMS)


def test_a_row_that_appears_while_a_family_is_exposed_does_not_disturb_it() -> None:
    rows = {(str(number),): 1.0 for number in range(2 * ROWS)}
    pieces = Exposition(lambda: [Reading("held", "", "gauge", ("n",), rows.items)]).pieces(TEXT.encode)
    seen = [next(pieces), next(pieces)]
    rows[("new",)] = 1.0
    seen += pieces
    assert b"".join(seen).count(b"held{") == 2 * ROWS


def test_the_library_s_own_collectors_describe_process_and_interpreter() -> None:
    for form, families in ((TEXT, text_string_to_metric_families), (OPEN_METRICS, open_metrics_families)):
        names = {family.name for family in families(b"".join(Exposition(tuple).pieces(form.encode)).decode())}
        assert names >= {"process_cpu_seconds", "process_resident_memory_bytes", "process_open_fds"}
        assert names >= {"python_info", "python_gc_collections"}


PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    "text/plain;version=1.0.0;q=0.5"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", TEXT),
        (PROMETHEUS_2, OPEN_METRICS),
        (PROMETHEUS_3, OPEN_METRICS),
        (PROTOBUF, TEXT_1),
        ("text/plain;version=1.0.0", TEXT_1),
        ("text/plain; version=1.0.0; escaping=dots", TEXT_1),
        ("Text/Plain; Version=0.0.4", TEXT),
        ("application/openmetrics-text", OPEN_METRICS),
        ("application/openmetrics-text; version=0.0.1", TEXT),
        ("text/plain;version=0.0.4;q=0.9, application/openmetrics-text;version=1.0.0;q=0.5", TEXT),
        ("text/plain;version=1.0.0;q=0.1, application/openmetrics-text;version=1.0.0;q=0.5", OPEN_METRICS),
        ("application/openmetrics-text;version=1.0.0;q=0, text/plain;version=1.0.0", TEXT_1),
        ("application/openmetrics-text;version=1.x, text/plain;version=1.0.0;q=0.5", TEXT_1),
        ("application/openmetrics-text;version=\xb2", TEXT),
        (";;q=,,=", TEXT),
    ],
)
def test_the_accept_header_chooses_the_form(accept: str, form: Form) -> None:
    assert form_for(accept).content_type == form.content_type


def test_content_types_are_three_whatever_a_client_wants() -> None:
    assert [form.content_type for form in (TEXT, TEXT_1, OPEN_METRICS)] == [
        "text/plain; version=0.0.4; charset=utf-8",
        "text/plain; version=1.0.0; charset=utf-8; escaping=underscores",
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    ]
    assert form_for("application/openmetrics-text;version=7.8.9;escaping=values") is OPEN_METRICS


@given(st.text(st.characters(max_codepoint=255), max_size=200))
def test_no_accept_header_is_an_error(accept: str) -> None:
    assert form_for(accept) in (TEXT, TEXT_1, OPEN_METRICS)


def test_only_the_first_media_ranges_are_read() -> None:
    assert form_for("a/b," * (MAX_RANGES - 1) + "text/plain;version=1.0.0") is TEXT_1
    assert form_for("a/b," * MAX_RANGES + "text/plain;version=1.0.0") is TEXT
