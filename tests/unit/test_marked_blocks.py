"""Each block of commands that is marked as one that a test runs has a name of its own, and a test that runs it. Where
it takes something away, no command follows one that has failed, also when it is pasted.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.documents import DOCUMENTS, ROOT
from tests.support.runnable_blocks import Block, blocks

ALL = [block for document in DOCUMENTS for block in blocks(document)]
MARKED = [(block.document, block.name) for block in ALL]
RUNNERS: Final = {"block", "follow", "switch_on"}
CALLED: Final = re.compile(rf"\b(?:{'|'.join(sorted(RUNNERS))})\(")
TAKES_AWAY: Final = re.compile(r"\b(?:scale|uninstall|delete)\b")
CONTINUED: Final = re.compile(r"(\\|&&|\|)\n")
SUBSHELL: Final = re.compile(r"\(\s*set -e\b.*\)", re.DOTALL)
GOES_ON: Final = {
    ("docs/operate/node-cache.md", "remove")
}  # it takes away what there may be, and not all of that is there

Function = ast.FunctionDef | ast.AsyncFunctionDef


def run_in(source: str) -> Iterator[tuple[str, str]]:
    """The blocks that a module's tests run: `follow("DOCUMENT", "NAME", ...)`, in what pytest can come to."""
    module = ast.parse(source)
    for function in ast.walk(module):
        if isinstance(function, Function) and is_reached(function, module):
            for node in ast.walk(function):
                yield from named_by(node)


def is_reached(function: Function, module: ast.Module) -> bool:
    """Whether it is a test, a fixture, or named by something else in its module."""
    decorators = [ast.unparse(each).partition("(")[0] for each in function.decorator_list]
    if function.name.startswith("test_") or "pytest.fixture" in decorators:
        return True
    own = set(map(id, ast.walk(function)))
    return any(name_of(node) == function.name for node in ast.walk(module) if id(node) not in own)


def named_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Call) and name_of(node.func) in RUNNERS:
        document, *names = [each.value if isinstance(each, ast.Constant) else None for each in node.args] or [None]
        if isinstance(document, str) and document in DOCUMENTS:
            yield from ((document, name) for name in names if isinstance(name, str))


def name_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def stops_in_time(block: Block) -> bool:
    """Whether nothing is taken away, or all is one chain of && or a subshell that ends where a command fails."""
    if not TAKES_AWAY.search(block.text) or SUBSHELL.fullmatch(block.text.strip()):
        return True
    commands = re.split(r"[\n;]|\|\|", CONTINUED.sub(r"\1 ", block.text).strip())
    return len(commands) == 1


@pytest.fixture(scope="module")
def run_by_tests() -> set[tuple[str, str]]:
    sources = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("*.py")))
    likely = (source for source in sources if ".md" in source and CALLED.search(source))
    return {each for source in likely for each in run_in(source)}


def test_no_two_marked_blocks_of_a_document_have_one_name() -> None:
    assert MARKED
    assert sorted(MARKED) == sorted(set(MARKED))


@pytest.mark.parametrize(("document", "name"), MARKED)
def test_every_marked_block_is_run_by_a_test(document: str, name: str, run_by_tests: set[tuple[str, str]]) -> None:
    assert (document, name) in run_by_tests


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('def test_it(): follow("README.md", "one", "two", x="three")', {"one", "two"}),
        ('@pytest.fixture(scope="module")\ndef a(): return operator.follow("README.md", "one")', {"one"}),
        ('def a(): switch_on("README.md", "one")\ndef test_it(): eventually(a)', {"one"}),
        ('def test_it():\n def a(): block("README.md", "one").run({})\n a()', {"one"}),
        ('def test_it(): print("README.md", "one")', set()),
        ('def test_it(): follow("a.md", "one")', set()),
        ('def test_it(): return ("README.md", "one")', set()),
        ('def a(): follow("README.md", "one"); a()', set()),
        ('follow("README.md", "one")', set()),
    ],
)
def test_only_a_call_in_collected_tests_counts_as_running_a_block(source: str, names: set[str]) -> None:
    assert set(run_in(source)) == {("README.md", name) for name in names}


@pytest.mark.parametrize("block", ALL, ids=lambda block: f"{block.document}: {block.name}")
def test_a_marked_block_that_takes_something_away_stops_where_a_command_fails(block: Block) -> None:
    assert stops_in_time(block) != ((block.document, block.name) in GOES_ON)


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("one\ntwo\n", True),
        ("kubectl delete pod \\\n    a\n", True),
        ("kubectl scale deployment a \\\n    --replicas=2 &&\nhelm uninstall a | cat &&\nthree\n", True),
        ("( set -e\n  kubectl scale deployment a --replicas=0\n  two\n)\n", True),
        ("one\nkubectl delete pod a\n", False),
        ("one &&\nkubectl delete pod a\nthree\n", False),
        ("one; kubectl delete pod a\n", False),
        ("one || helm uninstall a\n", False),
        ("( one\n  kubectl delete pod a\n)\n", False),
        ("( set -e\n  one\n)\nkubectl delete pod a\n", False),
    ],
)
def test_whether_a_block_stops_in_time_shows_in_its_text(text: str, stops: bool) -> None:
    assert stops_in_time(Block("a.md", 1, "a", text)) == stops
