"""Each block of commands that is marked as one that a test runs has a name of its own, and a test that runs it."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.documents import DOCUMENTS, ROOT
from tests.support.runnable import blocks

MARKED = [(block.document, block.name) for document in DOCUMENTS for block in blocks(document)]


def run_in(source: str) -> Iterator[tuple[str, str]]:
    """The blocks that a module calls something with: `call("DOCUMENT", "NAME", ...)`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            document, *names = [each.value if isinstance(each, ast.Constant) else None for each in node.args] or [None]
            if isinstance(document, str) and document in DOCUMENTS:
                yield from ((document, name) for name in names if isinstance(name, str))


@pytest.fixture(scope="module")
def run_by_tests() -> set[tuple[str, str]]:
    sources = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("*.py")))
    return {each for source in sources if ".md" in source for each in run_in(source)}


def test_no_two_marked_blocks_of_a_document_have_one_name() -> None:
    assert MARKED
    assert sorted(MARKED) == sorted(set(MARKED))


@pytest.mark.parametrize(("document", "name"), MARKED)
def test_every_marked_block_is_run_by_a_test(document: str, name: str, run_by_tests: set[tuple[str, str]]) -> None:
    assert (document, name) in run_by_tests


def test_what_runs_a_block_is_a_call_with_its_document_and_its_name() -> None:
    assert set(
        run_in('follow("README.md", "one", "two", x="three")\nblock("a.md", "one")\n("README.md", "four")\n')
    ) == {
        ("README.md", "one"),
        ("README.md", "two"),
    }
