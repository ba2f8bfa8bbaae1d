"""What `make bench-compare` computes, asks and writes. Nothing is measured here."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.cluster import MANY
from bench.compare.cluster import addresses, objects, pod_name, records, sized_name, write_local_data, write_zone
from bench.compare.document import (
    CPU,
    DOCUMENT,
    INTERPRETERS,
    LATENCY,
    MACHINE,
    MEASUREMENTS,
    QUOTED,
    TARGETS,
    cells_of,
    cpu_table,
    latency_table,
    marked,
    quotation,
    ratios_to_peer,
    renewed,
    targets_table,
    wrapped,
)
from bench.compare.figures import Changes, Figures, Latency, Reading, Spread, is_disturbed, median_latency
from bench.compare.loads import (
    ADDRESS_NODES,
    ADDRESSES,
    SHORT,
    Loads,
    Method,
    Row,
    has_records,
    hot_pool,
    keyed_pool,
    mixed_pool,
    names_once,
    services_once,
)
from bench.compare.plot import Line, svg
from bench.compare.report import beside_servers, by_interpreter, document_of
from bench.compare.rounds import Found, change_slices
from bench.programs import COREDNS
from bench.questions import Question
from bench.scale.stand_in import Stage, StandIn
from release.sbom import IMAGE_PYTHON
from tests.support.documents import ROOT
from tests.support.fake_api.resources import Object
from topodns.dns.rrtype import RRType

OWN, PEER, FLOOR = "topodns", "CoreDNS 1.14.7", "C echo"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def figures() -> Figures[Row]:
    """Of two rounds: in the second everything took twice as long, except the floor, which was disturbed."""
    found: Figures[Row] = Figures()
    for row in Row:
        for server, cpu in ((OWN, 6.0), (PEER, 20.0), (FLOOR, 4.0)):
            found.note(row, server, 0, Reading(cpu))
            found.note(row, server, 1, Reading(2 * cpu, disturbed=server == FLOOR))
    return found


def test_a_ratio_is_of_figures_of_the_same_round(figures: Figures[Row]) -> None:
    assert figures.values(Row.HOT, OWN) == [6.0, 12.0]
    assert figures.ratio(Row.HOT, OWN, PEER) == pytest.approx(0.3)
    assert figures.ratio(Row.HOT, OWN, FLOOR) == pytest.approx(1.5)
    assert figures.ratio(Row.HOT, OWN, "unbound") is None


def test_a_disturbed_measurement_is_no_figure_but_counts_as_dropped(figures: Figures[Row]) -> None:
    assert figures.values(Row.HOT, FLOOR) == [4.0]
    assert figures.dropped == len(Row)
    assert figures.fewest() == 1
    figures.note(Row.HOT, "NSD", 0, Reading(5.0, disturbed=True))
    assert figures.fewest() == 0


def test_a_short_run_keeps_what_was_disturbed() -> None:
    found: Figures[Row] = Figures(keep_all=True)
    found.note(Row.HOT, OWN, 0, Reading(6.0, disturbed=True))
    assert (found.values(Row.HOT, OWN), found.dropped) == ([6.0], 1)


@pytest.mark.parametrize(("taken", "disturbed"), [(0.0, False), (0.05, False), (0.06, True)])
def test_a_server_that_waits_for_its_core_for_more_than_a_twentieth_is_disturbed(taken: float, disturbed: bool) -> None:
    assert is_disturbed(taken, 1.0) == disturbed


def test_latencies_are_medians_of_rounds_and_lost_queries_are_added() -> None:
    rounds = [Latency(1, 2, 3, 4, 5, 1), Latency(2, 3, 4, 5, 6, 0), Latency(9, 9, 9, 9, 9, 2)]
    assert median_latency(rounds) == Latency(2, 3, 4, 5, 6, 3)


def test_the_table_has_median_spread_and_both_ratios(figures: Figures[Row]) -> None:
    lines = cpu_table(figures, (OWN, PEER, "NSD 4.6.1"), OWN, PEER, FLOOR).splitlines()
    assert lines[0].startswith("| CPU of an answer, us | C echo | topodns | CoreDNS 1.14.7 | NSD 4.6.1 | topodns / ")
    assert lines[2] == f"| {Row.HOT.value} | 4 (4..4) | 9 (6..12) | 30 (20..40) | - | 0.30 | 1.50 |"
    assert len(lines) == 2 + len(Row)


def test_a_row_that_nothing_measured_is_left_out() -> None:
    found: Figures[Row] = Figures()
    found.note(Row.MIX, OWN, 0, Reading(1234.5))
    assert cpu_table(found, (OWN,), OWN, PEER, FLOOR).splitlines()[2:] == [
        f"| {Row.MIX.value} | - | 1234 (1234..1234) | - | - |"
    ]


def test_latencies_are_by_changes_a_second_then_by_server() -> None:
    one = Latency(40.4, 60, 100, 2000, 23.4, 0)
    none, some, elsewhere = Changes(0), Changes(20), Changes(20, queried=False)
    lines = latency_table({(none, OWN): one, (some, OWN): one, (elsewhere, OWN): one, (none, PEER): one}).splitlines()
    assert lines[2] == "| topodns | 0 | 40 | 60 | 100 | 2,000 | 23 | 0 |"
    assert [line.split(" | ")[:2] for line in lines[3:]] == [
        ["| CoreDNS 1.14.7", "0"],
        ["| topodns", "20, of other Services"],
        ["| topodns", "20"],
    ]


class StandInOfNothing(StandIn):
    """Notes the Services whose slices it is to change."""

    def control(self, name: str, **arguments: Any) -> None:
        self.services = {(namespace, slice_name.removesuffix("-0")) for namespace, slice_name in arguments["slices"]}


@pytest.mark.parametrize("queried", [True, False])
def test_changes_are_of_services_that_are_queried_while_latencies_are_measured_or_of_others(queried: bool) -> None:
    api = StandInOfNothing(0, 0)
    change_slices(api, Changes(20, queried), 4.0)
    asked = {tuple(question.name.split(".")[1::-1]) for question in (*keyed_pool(), *hot_pool())}
    assert api.services
    assert (api.services <= asked, api.services.isdisjoint(asked)) == (queried, not queried)


def test_changes_under_which_latencies_are_measured_keep_pods_in_their_podcidrs() -> None:
    """Each gives the endpoint an address that it did not have, also in later rounds, in the /16 of its Node."""
    manifests = list(objects())
    stage = Stage(0, manifests)
    keys = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in manifests if is_slice_of_headless(one)]

    def addresses_now() -> list[str]:
        found = [stage.stores["endpointslices"].get(key) for key in keys]
        return [address for one in found if one for endpoint in one["endpoints"] for address in endpoint["addresses"]]

    async def churn() -> None:
        stage.loop = asyncio.get_running_loop()
        stage.churn(keys, None, len(keys), 1, 0.0)
        for _ in range(2 + len(keys)):  # a change in each turn of the loop
            await asyncio.sleep(0)

    for _ in range(2):
        before = addresses_now()
        asyncio.run(churn())
        changed = [(old, new) for old, new in zip(before, addresses_now(), strict=True) if old != new]
        assert len(changed) == len(keys)
        assert all(old.split(".")[:2] == new.split(".")[:2] for old, new in changed)
        assert not {new for _, new in changed} & set(before)


def is_slice_of_headless(value: Object) -> bool:
    return value["kind"] == "EndpointSlice" and value["metadata"]["name"] in {f"headless{each}-0" for each in range(10)}


def test_each_target_is_beside_its_figure(figures: Figures[Row]) -> None:
    lines = targets_table(cpu_table(figures, (OWN, PEER), OWN, PEER, FLOOR)).splitlines()
    assert f"| {Row.SERVICES_ONCE.value} | 20 us | 9 us |" in lines
    assert f"| {Row.FORWARDED_UDP.value} | 0.9 x CoreDNS | 0.30 x |" in lines
    assert len(lines) == 2 + 5


def test_readme_quotes_three_ratios_of_the_table(figures: Figures[Row]) -> None:
    table = cpu_table(figures, (OWN, PEER), OWN, PEER, FLOOR)
    assert ratios_to_peer(table)[Row.MIX.value] == "0.30"
    assert quotation(table).count("0.30 for ") == 3
    assert max(map(len, quotation(table).splitlines())) <= 120


def test_only_what_is_between_the_markers_is_renewed() -> None:
    text = "one\n<!-- a: begin -->\nold\n<!-- a: end -->\ntwo\n"
    new = renewed(text, "a", "new\nlines\n")
    assert new == "one\n<!-- a: begin -->\nnew\nlines\n<!-- a: end -->\ntwo\n"
    assert marked(new, "a") == "new\nlines"


@pytest.mark.parametrize("text", ["", "<!-- a: begin -->\n", "<!-- a: end -->\n<!-- a: begin -->\n"])
def test_a_document_without_both_markers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="in the document"):
        renewed(text, "a", "new")


def test_a_long_sentence_is_broken_between_words() -> None:
    assert wrapped("word " * 30).splitlines() == ["word " * 23 + "word", " ".join(["word"] * 6)]


def test_the_plot_has_a_dot_for_each_figure_on_one_scale() -> None:
    lines = [
        Line("hot", {OWN: Spread(10, 9, 11)}),
        Line("<cold>", {OWN: Spread(100, 90, 110), PEER: Spread(31.6, 30, 33)}),
    ]
    root = ElementTree.fromstring(svg("head", (OWN, PEER), lines))
    dots = {each.findtext(f"{SVG}title"): each for each in root.iter() if each.find(f"{SVG}title") is not None}
    del dots["head"]
    assert set(dots) == {"hot: topodns 10", "<cold>: topodns 100", "<cold>: CoreDNS 1.14.7 31.6"}
    left, right = (float(dots[name].attrib["cx"]) for name in ("hot: topodns 10", "<cold>: topodns 100"))
    square = dots["<cold>: CoreDNS 1.14.7 31.6"].attrib
    between = float(square["x"]) + float(square["width"]) / 2
    assert between == pytest.approx((left + right) / 2, abs=1)  # 31.6 is the middle of 10 and 100, by logarithm


def test_a_report_has_the_conditions_and_its_tables(figures: Figures[Row]) -> None:
    found = Found(figures)
    found.latencies[Changes(0), OWN].append(Latency(40, 60, 100, 2000, 23, 0))
    texts = beside_servers(found, (OWN, PEER), 2, "Python 3.13.5")
    assert list(texts) == [MACHINE, CPU, LATENCY]
    assert "topodns by Python 3.13.5" in " ".join(texts[MACHINE].split())
    assert f"Rounds: 2; measurements that were disturbed and left out: {len(Row)}." in " ".join(texts[MACHINE].split())
    assert texts[CPU].splitlines()[2].endswith("| 0.30 | 1.50 |")
    assert texts[CPU].endswith("(performance.svg)")
    (only,) = by_interpreter(found, ("3.11.7", "3.11.2", "3.14.0"), 2).values()
    assert only.split("\n\n")[1].splitlines()[0].endswith("| 3.14.0 / 3.11.2 | 3.14.0 / C echo |")


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        svg("head", (OWN,), [])


# The loads.


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory) -> Loads:
    return Loads(tmp_path_factory.mktemp("loads"), SHORT, Random(1))


def test_every_row_is_asked_once_in_the_order_first_asked_before_hot(loads: Loads) -> None:
    others = (*loads.forwarded.values(), loads.cached, loads.node_once, loads.node_cached)
    assert sorted(load.row.name for load in (*loads.cluster, *others)) == sorted(row.name for row in Row)
    assert [load.row for load in loads.cluster[:2]] == [Row.SERVICES_ONCE, Row.NAMES_ONCE]
    assert all(load.warm_up is None for load in (*loads.cluster[:2], *loads.forwarded.values(), loads.node_once))
    assert all(load.warm_up is not None for load in (*loads.cluster[2:], loads.cached, loads.node_cached))


def test_a_load_says_how_many_of_its_answers_have_records(loads: Loads) -> None:
    of_row = {load.row: load for load in loads.cluster}
    assert of_row[Row.HOT].with_records == len(read_questions(of_row[Row.HOT].file)) == SHORT.hot
    assert of_row[Row.SERVICES_ONCE].with_records == 2_000
    assert of_row[Row.NAMES_ONCE].with_records == SHORT.names_once / 2
    assert of_row[Row.DNSPERF].with_records is None
    assert of_row[Row.DNSPERF].method is Method.DNSPERF


def test_the_mix_is_that_of_perf_tests() -> None:
    questions = mixed_pool()
    assert len(questions) % 25 == 0
    first = questions[:25]
    absent = [question for question in first if question.name.endswith("cluster.local") and not exists(question.name)]
    assert len(absent) == 14
    assert sorted({question.name for question in first if not question.name.endswith("cluster.local")}) == [
        "google.com",
        "web0",
        "web1",
    ]
    assert sum(map(has_records, first)) == 6  # A of both Services, of their labels alone, of google.com, of the Pod


def exists(name: str) -> bool:
    return has_records(Question(b"", name, RRType.A))


def test_keys_are_asked_for_from_fifty_addresses_on_twenty_nodes() -> None:
    clients = {question.client for question in keyed_pool()}
    assert len(clients) == ADDRESSES == 50
    assert len({client[1] for client in clients}) == ADDRESS_NODES == 20


def test_names_that_are_asked_once_are_all_different() -> None:
    names = [question.name for question in names_once(1_000, Random(1))]
    assert len(set(names)) == 1_000
    services = [(question.name, question.rtype) for question in services_once(Random(1))]
    assert len(set(services)) == len(services) == 4_000
    assert len({question.name for question in hot_pool()}) == 300


# The names of the servers that do not follow the API server.


def test_the_static_names_are_those_of_the_cluster(tmp_path: Path) -> None:
    made = list(objects())
    found = addresses(made)
    assert len(found[sized_name(1_000)]) == len(set(found[sized_name(1_000)])) == 1_000
    assert found["web1.ns1.svc.cluster.local"] == ["10.96.0.1"]
    content = list(records(made, (1,)))
    assert MANY not in {name for name, _ in content}
    assert (pod_name(1), "127.0.0.1") in content
    asked = {question.name for question in (*hot_pool(), *keyed_pool(), *services_once(Random(1)))}
    assert asked <= {name for name, _ in content}
    zone_text = write_zone(tmp_path / "zone", content[:1]).read_text()
    assert zone_text.splitlines()[-1] == "web0.ns0.svc.cluster.local. IN A 10.96.0.0"
    local = write_local_data(tmp_path / "local", content[:1]).read_text()
    assert "local-zone: cluster.local. static\n" in local
    assert local.splitlines()[-1] == "local-data: 'web0.ns0.svc.cluster.local. 30 IN A 10.96.0.0'"


def read_questions(path: Path) -> list[tuple[bytes, bytes]]:
    """The (packed client, message) pairs of a file of `write_questions`."""
    data, at, questions = path.read_bytes(), 0, []
    while at < len(data):
        end = at + 6 + int.from_bytes(data[at + 4 : at + 6], "big")
        questions.append((data[at : at + 4], data[at + 6 : end]))
        at = end
    return questions


# performance.md and measurements.md have a figure for each load, and README.md quotes some as they are.

TEXT = (ROOT / DOCUMENT).read_text()
BY_INTERPRETER = (ROOT / MEASUREMENTS).read_text()


def table_in(marker: str, text: str = TEXT) -> str:
    """The table of the part between these markers."""
    return "\n".join(line for line in marked(text, marker).splitlines() if line.startswith("|"))


def cells(table: str, server: str) -> dict[str, str]:
    """The cell of each row in the column of this server."""
    head, *rows = cells_of(table)
    return {row[0]: row[head.index(server)] for row in rows}


@pytest.mark.parametrize("server", ["topodns", f"CoreDNS {COREDNS}"])
def test_each_load_has_a_figure(server: str) -> None:
    found = cells(table_in(CPU), server)
    assert list(found) == [row.value for row in Row]
    assert [row for row, cell in found.items() if cell == "-"] == []


@pytest.mark.parametrize("version", ["3.11", IMAGE_PYTHON])
def test_each_load_has_a_figure_by_the_oldest_python_and_by_the_images(version: str) -> None:
    table = table_in(INTERPRETERS, BY_INTERPRETER)
    name = next(name for name in cells_of(table)[0] if name.startswith(f"Python {version}."))
    found = cells(table, name)
    assert list(found) == [row.value for row in Row]
    assert [row for row, cell in found.items() if cell == "-"] == []


@pytest.mark.parametrize("changes", ["0", "20", "200, of other Services", "200"])
def test_latencies_were_measured_while_endpoints_changed(changes: str) -> None:
    servers = {row[0] for row in cells_of(table_in(LATENCY)) if row[1] == changes}
    assert {"topodns", f"CoreDNS {COREDNS}"} <= servers


@pytest.mark.parametrize("marker", [MACHINE, CPU, LATENCY, INTERPRETERS])
def test_a_text_is_renewed_in_the_document_that_has_its_markers(marker: str) -> None:
    assert marked((ROOT / document_of({marker: ""})).read_text(), marker)


def test_the_readme_quotes_the_table() -> None:
    assert marked((ROOT / "README.md").read_text(), QUOTED) == quotation(table_in(CPU))


def test_the_targets_are_beside_the_figures_of_the_table() -> None:
    assert marked(TEXT, TARGETS) == targets_table(table_in(CPU))


def test_the_plot_has_each_load() -> None:
    plot = (ROOT / DOCUMENT).with_suffix(".svg")
    assert f"({plot.name})" in TEXT
    words = " ".join(text for each in ElementTree.fromstring(plot.read_text()).iter() if (text := each.text))
    assert [row.value for row in Row if row.value not in words] == []
