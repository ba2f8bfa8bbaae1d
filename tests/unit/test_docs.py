"""The documents are true: their sessions happen, the names in them exist."""

import ast
import asyncio
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO, TextIOWrapper
from ipaddress import ip_address
from pathlib import Path
from pkgutil import resolve_name
from random import Random
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.demo import PORT, Demo
from tests.support.dns_messages import Opt, Reply, query
from tests.support.documents import DOCUMENTS, ROOT
from tests.support.exposition_samples import exposition_text
from tests.support.syntax_trees import nodes_of
from topodns.app.admin_endpoints import Admin
from topodns.app.listeners import Listeners
from topodns.app.load import settings_from_text
from topodns.app.metrics import Metrics
from topodns.app.process_metrics import Events, readings_of_each_process, readings_of_the_server
from topodns.app.workers.pool import WorkerPool
from topodns.cli.main import main
from topodns.inspect.routes import inspection
from topodns.kube.client.contract import ApiSettings
from topodns.locator.metrics import LocatorCounts
from topodns.metrics.registry import Published, Reading
from topodns.plugins.kubernetes.distance import EndpointDistances
from topodns.plugins.kubernetes.metrics import cluster_readings
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load
from topodns.plugins.setup import MetricsSource, Shared
from topodns.query.query_sample import QuerySample
from topodns.time_slices import do_at_once
from topodns.topology.select import Reason

# Sessions in our documents: ```console blocks as commands and their output, and dig's lines as facts.

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENDED = re.compile(r" # status (\d+)$")
_STATUS = re.compile(r"status: (\w+)")
_FLAGS = re.compile(r"^;; flags: ([a-z ]+);", re.MULTILINE)
_EDE = re.compile(r"^; EDE: \d+ \([^)]*\): \((.*)\)$", re.MULTILINE)
_SERIAL = re.compile(r"(IN SOA \S+ \S+) \d+ ")


class Command(NamedTuple):
    """One command and the lines that the document says it prints.

    `printf TEXT | COMMAND` gives it TEXT to read, and a comment `# status 1` behind it says how it ends.
    """

    words: tuple[str, ...]
    output: str
    stdin: str = ""
    status: int = 0


def commands(document: str) -> Iterator[Command]:
    """The text behind each `$ ` of the document's console blocks, up to the next."""
    for block in _BLOCK.findall(document):
        assert block.startswith("$ "), f"output without its command: {block.splitlines()[0]}"
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield _command(line, output)


def _command(line: str, output: str) -> Command:
    words, stdin = shlex.split(line, comments=True), ""
    if words[0] == "printf":
        (_, text, bar), words = words[:3], words[3:]
        assert bar == "|", f"one text and one command behind it: {line}"
        stdin = text.encode().decode("unicode_escape")
    ended = _ENDED.search(line)
    return Command(tuple(words), output, stdin, int(ended[1]) if ended else 0)


@dataclass
class Dig:
    """A dig command line: what it asks, and which sections it prints."""

    server: str = ""
    port: str = ""
    source: str = "127.0.0.1"
    name: str = ""
    qtype: str = "A"
    options: list[tuple[int, bytes]] = field(default_factory=list)
    shown: set[str] = field(default_factory=lambda: {"comments", "answer", "authority", "additional"})

    @property
    def question(self) -> str:
        return f"{self.name} {self.qtype}"

    @property
    def opt(self) -> Opt:
        """The OPT record that dig sends by default, without its cookie."""
        return Opt(1232, tuple(self.options))

    def facts(self, output: str) -> dict[str, object]:
        """The facts in dig's output, as far as it is the same each time."""
        records = [_steady(line) for line in output.splitlines() if line and not line.startswith(";")]
        facts: dict[str, object] = {"records": records}
        if "comments" in self.shown:
            status, flags, ede = _STATUS.search(output), _FLAGS.search(output), _EDE.search(output)
            facts["status"] = status and status[1]
            facts["flags"] = set(flags[1].split()) if flags else None
            facts["ede"] = ede[1] if ede else ""
        return facts

    def facts_of(self, reply: Reply) -> dict[str, object]:
        """The facts in dig's output for this reply."""
        sections = {"answer": reply.answer, "authority": reply.authority, "additional": reply.additional}
        records = [_steady(line) for name, lines in sections.items() if name in self.shown for line in lines]
        facts: dict[str, object] = {"records": records}
        if "comments" in self.shown:
            facts |= {"status": reply.rcode, "flags": reply.flag_names, "ede": reply.ede}
        return facts


def parse_dig(words: Sequence[str]) -> Dig:
    """The part of dig's command line that our documents use."""
    dig, rest = Dig(), iter(words)
    for word in rest:
        if word in ("-b", "-p"):
            setattr(dig, {"-b": "source", "-p": "port"}[word], next(rest))
        elif word == "-x":
            dig.name, dig.qtype = f"{ip_address(next(rest)).reverse_pointer}.", "PTR"
        elif word.startswith("@"):
            dig.server = word[1:]
        elif word.startswith("+"):
            _take_option(dig, word[1:])
        elif not dig.name:
            dig.name = word
        else:
            dig.qtype = word
    return dig


def _take_option(dig: Dig, option: str) -> None:
    name, _, value = option.partition("=")
    if name == "noall":
        dig.shown.clear()
    elif name == "ednsopt":
        code, _, data = value.partition(":")
        dig.options.append((int(code), bytes.fromhex(data)))
    else:
        assert name in ("comments", "answer", "authority", "additional"), f"+{option}: not known here"
        dig.shown.add(name)


def _steady(record: str) -> str:
    """One record with single blanks and without the serial of an SOA, which is the time of the last change."""
    return _SERIAL.sub(r"\1 SERIAL ", " ".join(record.split()))


COMMANDS = [(name, command) for name, text in DOCUMENTS.items() for command in commands(text)]
DIGS = [(name, command) for name, command in COMMANDS if command.words[0] == "dig"]
RUNS = [(name, command) for name, command in COMMANDS if command.words[0] == ".venv/bin/topodns"]

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TREE_PATH = re.compile(r"`((?:topodns|tests|config|docs|bench)/[^`\s*]*|[a-z_]+/[a-z_]+\.py)`")
COREFILE = re.compile(r"<<'END' &\n(.*?)^END$", re.MULTILINE | re.DOTALL)  # handed to `topodns -conf stdin`
PARTS = sorted(path.stem for path in (ROOT / "topodns").iterdir() if path.stem.strip("_") == path.stem)
CODE_NAME = re.compile(rf"`((?:{'|'.join(PARTS)})\.(?!py`)[\w.]+)`")
MAX_DEPTH = 6  # blanks before a package in the tree; what is further in says more of the one above
FAULT_ROW = re.compile(r"^\| [KN](\d+) \| (.*) \|$", re.MULTILINE)
WRITTEN_TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)
NAMED_TEST = re.compile(r"`((?:\w+/)*test_\w+\.py)::(test_\w+)`")
HELD = ("tests", "a test that holds it")
NUMBERED_TEST = re.compile(r"test_((?:[kn]\d+_)+)", re.IGNORECASE)
FAULT_OF_A_TEST = re.compile(r"([kn])(\d\d)_")
METRIC_ROW = re.compile(r"^\| `((?:coredns|topodns|process|python)_\w+)` \| (\w+) \| ([\w, ]*)\|", re.MULTILINE)


def titled(case: tuple[str, Command]) -> str:
    name, command = case
    return f"{name}: {shlex.join(command.words)}"


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


def test_every_command_of_a_session_is_one_that_is_tried_here() -> None:
    assert [titled(case) for case in COMMANDS if case not in DIGS and case not in RUNS] == []
    assert {name for name, _ in DIGS} >= {"README.md", "docs/reference/topology.md"}
    assert {name for name, _ in RUNS} >= {"README.md", "docs/operate/troubleshooting.md"}


@pytest.mark.parametrize(("name", "command"), DIGS, ids=map(titled, DIGS))
def test_dig_prints_the_output_in_the_document(demo: Demo, name: str, command: Command) -> None:
    dig = parse_dig(command.words[1:])
    assert (dig.server, dig.port) == ("127.0.0.1", str(PORT))
    for _ in range(3):  # made, made again and kept, then ready-made
        assert dig.facts(command.output) == dig.facts_of(demo.ask(dig.question, dig.source, dig.opt))


@pytest.mark.parametrize(("name", "command"), RUNS, ids=map(titled, RUNS))
def test_topodns_prints_the_output_in_the_document(
    name: str, command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(command.stdin.encode())))
    assert main(command.words[1:]) == command.status
    printed = capsys.readouterr()
    assert printed.out + printed.err == command.output


def test_the_corefile_of_the_readme_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").touch()
    (example,) = COREFILE.findall(DOCUMENTS["README.md"])
    (block,) = settings_from_text(example, str(ROOT / "Corefile"), 53, {"HOME": str(tmp_path)}).blocks
    assert block.settings.get("kubernetes") is not None
    assert block.settings["kubernetes"].api == ApiSettings(kubeconfig=str(tmp_path / ".kube/config"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_file_that_is_named_exists(name: str) -> None:
    named = [path for path in TREE_PATH.findall(DOCUMENTS[name]) if "NAME" not in path]
    assert [path for path in named if not (ROOT / path).exists() and not (ROOT / "topodns" / path).exists()] == []


@pytest.mark.parametrize("name", ["docs/develop/architecture.md", "CONTRIBUTING.md"])
def test_every_name_of_code_that_is_named_exists(name: str) -> None:
    named = CODE_NAME.findall(DOCUMENTS[name])
    assert named
    for each in named:
        resolve_name(f"topodns.{each}")


def test_the_packages_of_the_architecture_are_those_that_are_checked() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    (layers,) = [each["layers"] for each in tools["importlinter"]["contracts"] if each["type"] == "layers"]
    checked = [name.removeprefix("topodns.") for name in layers]
    section = DOCUMENTS["docs/develop/architecture.md"].partition("## Packages")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == checked[1:]  # without __main__
    packages = {
        path.stem for path in (ROOT / "topodns").iterdir() if path.stem not in ("__init__", "__pycache__", "py")
    }
    assert packages == set(checked)


def test_both_lists_of_libraries_have_the_importer_and_the_reason_of_every_library() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    declared = re.findall(r'^  "([\w-]+)>=\S+", +# topodns\.(\S+)$', pyproject, re.MULTILINE)
    architecture = DOCUMENTS["docs/develop/architecture.md"].partition("## Libraries")[2].partition("\n## ")[0]
    libraries = DOCUMENTS["docs/develop/libraries.md"].partition("\n## ")[0]
    for section in (architecture, libraries):
        assert sorted(re.findall(r"^\| ([\w-]+) \| `([\w.]+)` \| .+ \|$", section, re.MULTILINE)) == sorted(declared)


@pytest.fixture(scope="module")
def exposition(demo: Demo) -> str:
    """The exposition of the example after a few queries."""
    demo.ask("cache.shop.svc.cluster.local A", "127.10.1.100")
    events = Events()
    events.generation = demo.generation
    return exposition_text(Metrics(lambda: [demo.socket_counters], all_readings(demo, events)))


def all_readings(demo: Demo, events: Events) -> list[Published]:
    """Those of every server, of every plugin, of clusters and workers, and of `topodns locator`."""
    assert demo.assembly.cluster_maker is not None
    source = MetricsSource(Shared(), events.blocks, lambda: [demo.socket_counters])
    of_plugins = [
        reading for name in ORDER if (metrics := load(name).metrics) is not None for reading in metrics(source)
    ]
    of_clusters = [*cluster_readings(events.clusters, demo.assembly.cluster_maker), _of_distances(events)]
    of_http = Admin(Metrics(list, ()), more=inspection(list)).readings()
    of_the_locator = LocatorCounts().readings("nodelocator")
    of_workers = WorkerPool(lambda work, _: asyncio.create_task(work), list).readings()
    of_the_server = [*readings_of_the_server(events), *readings_of_each_process(Listeners(Random(0)))]
    return [*of_the_server, *of_plugins, *of_clusters, *of_http, *of_the_locator, *of_workers]


def _of_distances(events: Events) -> Published:
    """As after one query."""
    sample = QuerySample()
    sample.add(0.0, 1, query("cache.shop.svc.cluster.local A"), bytes((127, 10, 1, 100)), None)
    distances = EndpointDistances(events.clusters, sample)
    do_at_once(distances.count_steps())
    return distances.reading()


def documented_metrics() -> Mapping[str, tuple[str, set[str]]]:
    rows = METRIC_ROW.findall(DOCUMENTS["docs/reference/metrics.md"])
    return {name: (kind, {label.strip() for label in labels.split(",")} - {""}) for name, kind, labels in rows}


def test_every_metric_is_documented_and_every_documented_metric_is_there(exposition: str) -> None:
    published = dict(re.findall(r"^# TYPE (\w+) (\w+)$", exposition, re.MULTILINE))
    assert {name: kind for name, (kind, _) in documented_metrics().items()} == published


def test_metrics_have_the_labels_that_are_documented(exposition: str) -> None:
    documented = documented_metrics()
    for family in text_string_to_metric_families(exposition):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        for sample in family.samples:
            assert sample.labels.keys() - {"le"} == documented[name][1], sample.name


def test_metrics_without_samples_would_have_the_labels_that_are_documented(demo: Demo) -> None:
    documented = documented_metrics()
    for published in all_readings(demo, Events()):
        is_counter = isinstance(published, Reading) and published.kind == "counter"
        assert set(published.labels) == documented[f"{published.name}_total" if is_counter else published.name][1], (
            published.name
        )


def test_every_outcome_of_a_selection_is_documented() -> None:
    table = DOCUMENTS["docs/reference/metrics.md"].partition("| `outcome` |")[2].partition("\n\n")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    # An empty family is no choice: the step decides before it comes to a selection that is counted.
    assert documented == {reason.value for reason in Reason} - {Reason.NO_ENDPOINTS.value}


@pytest.fixture(scope="module")
def written_tests() -> Mapping[str, list[str]]:
    """The names of the tests by the path of their file."""
    return {
        str(path.relative_to(ROOT)): WRITTEN_TEST.findall(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
    }


def faults(heading: str) -> dict[int, str]:
    """The rows of a chapter of evidence.md, by the number of the fault."""
    chapter = DOCUMENTS["docs/develop/evidence.md"].partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {int(number): row for number, row in FAULT_ROW.findall(chapter)}


def named_tests(text: str, written: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Tests that a text names, each with the path of its file, or with "" where it is not one file that is meant."""
    found = []
    for file, name in NAMED_TEST.findall(text):
        paths = [path for path in written if f"/{path}".endswith(f"/{file}")]
        found.append((paths[0] if len(paths) == 1 else "", name))
    return found


def test_every_test_that_is_named_is_there_and_there_once(written_tests: Mapping[str, list[str]]) -> None:
    named = [each for text in DOCUMENTS.values() for each in named_tests(text, written_tests)]
    assert named
    assert [(path, name) for path, name in named if written_tests.get(path, []).count(name) != 1] == []


def test_every_fault_of_the_api_server_has_a_test() -> None:
    held = faults("Tests of each fault")
    assert set(faults("Faults of the API server")) == set(held)
    assert [fault for fault, row in held.items() if not NAMED_TEST.search(row)] == []


def claims(text: str) -> list[list[str]]:
    """The cells of each row below a head whose last column has tests."""
    rows, held = [], False
    for line in FENCED.sub("", text).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not cells:
            held = False
        elif cells[-1].strip(" |") in HELD:
            held = True
        elif held and set(line) - set("|-"):
            rows.append(cells)
    return rows


def test_every_claim_is_held_by_a_test() -> None:
    rows = claims(DOCUMENTS["docs/develop/evidence.md"])
    assert len(rows) > 100
    assert [cells for cells in rows if not NAMED_TEST.search(cells[-1])] == []


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.startswith(("docs/operate/", "docs/migrate/"))])
def test_documents_for_operators_name_no_tests_and_no_numbers_of_faults(name: str) -> None:
    assert NAMED_TEST.findall(DOCUMENTS[name]) == []
    assert re.findall(r"\b[KN]\d{1,2}\b", FENCED.sub("", DOCUMENTS[name])) == []


@pytest.mark.parametrize("name", ["docs/operate/reliability.md", "docs/operate/security.md"])
def test_a_page_for_the_night_has_less_than_1500_words(name: str) -> None:
    assert len([word for word in DOCUMENTS[name].split() if re.search(r"\w", word)]) < 1500


def test_the_documents_for_operators_have_at_most_55000_words() -> None:
    folders = ("docs/operate/", "docs/reference/", "docs/migrate/")
    assert sum(len(text.split()) for name, text in DOCUMENTS.items() if name.startswith(folders)) <= 55_000


def test_a_guarantee_with_the_number_of_a_fault_names_a_test_of_that_fault() -> None:
    section = DOCUMENTS["docs/develop/evidence.md"].partition("\n## Guarantees\n")[2].partition("\n## ")[0]
    chapters = {"K": faults("Faults of the API server"), "N": faults("Faults of a node cache")}
    numbers = {f"{kind}{fault}" for kind, rows in chapters.items() for fault in rows}
    rows = claims(section)
    assert len(rows) > 20
    for *_, more, tests in rows:
        named = set(re.findall(r"\b[KN]\d+\b", more))
        assert named <= numbers
        found = [f"{kind.upper()}{fault}" for _, name in NAMED_TEST.findall(tests) for kind, fault in numbers_of(name)]
        assert not named or named & set(found), tests


def test_the_worked_examples_of_sizing_follow_from_its_formula() -> None:
    def numbers(heading: str) -> list[list[float]]:
        section = DOCUMENTS["docs/operate/sizing.md"].partition(f"\n### {heading}\n")[2].partition("\n##")[0]
        rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
        found = [[float(cell.replace(",", "")) for cell in row if re.fullmatch(r"[\d,.]+", cell)] for row in rows]
        return [row for row in found if row]

    formula = numbers("The formula")[:6]  # itself, then one of each thing: KB resident, KB at most
    examples = numbers("Worked examples")
    assert [len(row) for row in formula] == [2] * 6
    assert len(examples) >= 3
    for *sizes, resident, peak, with_use in examples:
        for got, column in ((resident, 0), (peak, 1)):
            assert got == round(
                sum(row[column] * count for row, count in zip(formula, [1, *sizes], strict=True)) / 1000
            )
        assert with_use == resident + 40


def test_every_fault_of_a_node_cache_has_a_test_with_its_number() -> None:
    held = faults("Faults of a node cache")
    assert list(held) == list(range(1, 24))
    for fault, row in held.items():
        numbered = {int(found) for _, name in NAMED_TEST.findall(row) for found in re.findall(r"^test_n(\d+)_", name)}
        assert numbered == {fault}


def test_a_test_with_the_number_of_a_fault_is_in_the_row_of_that_fault_and_in_no_other(
    written_tests: Mapping[str, list[str]],
) -> None:
    rows = {"k": faults("Tests of each fault"), "n": faults("Faults of a node cache")}
    stands = {
        (*each, kind, fault)
        for kind, chapter in rows.items()
        for fault, row in chapter.items()
        for each in named_tests(row, written_tests)
        if NUMBERED_TEST.match(each[1])
    }
    belongs = {
        (path, name, kind, fault)
        for path, names in written_tests.items()
        for name in names
        for kind, fault in numbers_of(name)
    }
    assert belongs - stands == set()
    assert stands - belongs == set()


def numbers_of(name: str) -> list[tuple[str, int]]:
    """The faults that a test is about: `test_k01_k02_...`, in lower case and with two digits."""
    numbered = NUMBERED_TEST.match(name)
    if numbered is None:
        return []
    found = FAULT_OF_A_TEST.findall(numbered[1])
    assert "".join(f"{kind}{digits}_" for kind, digits in found) == numbered[1], name
    return [(kind, int(digits)) for kind, digits in found]


# The messages that docs/operate/troubleshooting.md quotes are in the code.

# A table whose first column is headed `... says` has a message in each row: wholly in code, or it is no message.
TABLE = re.compile(r"^\| [/\w ]* says \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
MESSAGE = re.compile(r"^\| (`+)(.+?)\1 \|", re.MULTILINE)
# Placeholders in a message for text that differs each time.
PLACEHOLDER = re.compile(
    r"\b(?:ADDRESS|CIDR|COUNT|EXPECTED|KEYS?|KINDS?|MEANT|NAMES?|NAMESPACE|NODES?|PROBLEM|RESOURCE|SECONDS|SERVICE|SOURCE"
    r"|UPSTREAMS?|VALUE|VERB|WHAT|ZONE)\b"
)
FORMATTED = re.compile(r"%[-.\w]*?[dgrsf]|\{[^}]*\}")


def messages() -> list[str]:
    text = (ROOT / "docs/operate/troubleshooting.md").read_text(encoding="utf-8")
    return [message for rows in TABLE.findall(text) for _, message in MESSAGE.findall(rows)]


def texts(path: Path) -> Iterator[str]:
    """The strings of a module but for its docstrings, in pieces where something is put into them."""
    docstrings = {id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr)}
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            value = node.value
            text = value.decode("latin-1") if isinstance(value, bytes) else value if isinstance(value, str) else ""
            yield from FORMATTED.split(text)


@pytest.fixture(scope="module")
def said() -> str:
    """All that topodns can say, a piece a line."""
    return "\n".join(piece for path in sorted((ROOT / "topodns").rglob("*.py")) for piece in texts(path))


def test_there_are_messages_of_each_kind() -> None:
    found = messages()
    assert len(found) > 30
    assert {"client location unknown", "Shutting down", "CAP_NET_ADMIN is missing"} <= set(found)


@pytest.mark.parametrize("message", messages())
def test_a_message_that_is_quoted_is_one_that_topodns_gives(said: str, message: str) -> None:
    pieces = [piece for piece in PLACEHOLDER.split(message) if re.search("[a-zA-Z]", piece)]
    assert pieces
    assert [piece for piece in pieces if piece not in said] == []
