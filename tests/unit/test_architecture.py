"""The habits that keep the house readable, held by measure: CONTRIBUTING.md says why."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "topodns").rglob("*.py"))
MAX_MODULE = 400
MAX_FUNCTION = 60

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield node


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_small_and_opens_with_its_subject(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_MODULE
    assert ast.get_docstring(ast.parse(text)), "no docstring"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_function_fits_on_a_screen(path: Path) -> None:
    too_long = [f.name for f in functions(path) if (f.end_lineno or f.lineno) - f.lineno >= MAX_FUNCTION]
    assert too_long == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_variable_has_the_name_zone_alone(path: Path) -> None:
    """`origin` is a DNS zone's name, `topology_zone` the value of topology.kubernetes.io/zone."""
    if path.name == "structs.py":
        return  # spells the API's own field names
    names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
    names |= {arg.arg for f in functions(path) for arg in [*f.args.args, *f.args.kwonlyargs]}
    assert "zone" not in names


def test_the_unit_tests_mirror_the_package() -> None:
    packages = {path.parent.relative_to(ROOT / "topodns") for path in MODULES}
    tested = {path.parent.relative_to(ROOT / "tests/unit") for path in (ROOT / "tests/unit").rglob("test_*.py")}
    assert {package for package in tested if package not in packages} == set()


def test_a_type_name_is_defined_once() -> None:
    """One word, one meaning: a reader who meets a name knows which one it is. Private classes are left out."""
    trees = [ast.parse(path.read_text()) for path in MODULES]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1 and not name.startswith("_")] == []
