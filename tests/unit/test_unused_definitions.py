"""Code that only tests use is a feature that does nothing: each definition of topodns has a user in topodns.

Definitions are functions, classes and constants of modules, and methods. Tests, bench/ and release/ are no users. A
name of a module is used where this module or one that imports it reads it; a method where any attribute of its name is
read, as its object's class is not known here. Fields are not looked at: many are read by position.
"""

import ast
import importlib
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support.syntax_trees import tree_of

ROOT = Path(__file__).parents[2]

CALLED_FROM_OUTSIDE: Final[Mapping[str, str]] = {
    "app.signals.ignore_signals": "`app.workers.link` starts a Python with it",
    "app.workers.worker.main": "`app.workers.link` starts a Python with it",
    "locator.leader_election.FencedLock.create": "the leader election of the package kubernetes calls it",
    "logs.RateLimit.filter": "logging calls it",
    "metrics.exposition._": "takes what is not needed of a pair",
}
"""Definitions whose users are not in topodns, and who they are. See also `_overrides` and `_entry_points`."""

_READ_BY_NAME: Final = ("attrgetter", "getattr", "methodcaller")
_ANNOTATION: Final = re.compile(r"[A-Za-z_][\w.]*([\[|][\w.\[\]|, ]*)?")
_LOADED: Final = "PLUGIN"  # of the modules that `plugins.order.load` imports by name

Function = ast.FunctionDef | ast.AsyncFunctionDef
Modules = Mapping[str, ast.Module]  # by the module's name below the package `topodns`


@dataclass(frozen=True, slots=True)
class Definition:
    name: str  # MODULE.NAME or MODULE.CLASS.NAME
    key: str  # of the reads that count: of MODULE.NAME, or of any attribute .NAME
    lines: range


def modules() -> Modules:
    found = {}
    for path in sorted((ROOT / "topodns").rglob("*.py")):
        parts = path.relative_to(ROOT / "topodns").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = tree_of(path)
    return found


def definitions(module: str, body: Iterable[ast.stmt], nodes: Iterable[ast.AST]) -> Iterator[Definition]:
    """Those of a module, each before those within it."""
    for node in body:
        for name in _defined(node):
            yield Definition(_joined(module, name), _joined(module, name), _lines(node))
    for owner in nodes:
        if not isinstance(owner, ast.ClassDef):
            continue
        for node in owner.body:
            if isinstance(node, Function) and not node.name.startswith("__"):
                yield Definition(_joined(module, f"{owner.name}.{node.name}"), f".{node.name}", _lines(node))


def _joined(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name


def _defined(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines, but for `__all__` and the like."""
    names: Iterable[str] = ()
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            names = (node.name,)
        case ast.AnnAssign(target=ast.Name(id=name)):
            names = (name,)
        case ast.Assign():
            names = (each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name))
    return (name for name in names if not name.endswith("__"))


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def reads(module: str, body: Iterable[ast.stmt], nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """The keys that a module reads, and the line of each."""
    names = {name: _joined(module, name) for node in body for name in _defined(node)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("topodns"):
            origin = node.module.removeprefix("topodns").removeprefix(".")
            names |= {each.asname or each.name: _joined(origin, each.name) for each in node.names}
    for node in (*nodes, *_quoted(nodes)):
        for key in _keys(node, names):
            yield key, getattr(node, "lineno", 0)


def _keys(node: ast.AST, names: Mapping[str, str]) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in names:
            yield names[name]
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in names:
            yield from (f".{name}", f"{names[module]}.{name}")
        case ast.Attribute(attr=name):
            yield f".{name}"
        case ast.MatchClass(kwd_attrs=attributes):
            yield from (f".{name}" for name in attributes)
        case ast.Call(func=ast.Name(id=function), args=arguments) if function in _READ_BY_NAME:
            for each in arguments:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield f".{each.value}"


def _quoted(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of annotations in quotes, at the lines of the quotes."""
    for node in nodes:
        if (
            not isinstance(node, ast.Constant)
            or not isinstance(node.value, str)
            or not _ANNOTATION.fullmatch(node.value)
        ):
            continue
        try:
            annotation = ast.parse(node.value, mode="eval")
        except SyntaxError:
            continue
        for each in ast.walk(annotation):
            yield ast.copy_location(each, node)


class Product:
    """The definitions of modules and what reads them. Code outside of definitions is always used."""

    def __init__(self, modules: Modules) -> None:
        self._by_key = defaultdict[str, list[str]](list)
        self._keys = defaultdict[str, set[str]](set)  # read within a definition, by its name; "" is outside of all
        for module, tree in modules.items():
            nodes = list(ast.walk(tree))
            innermost: dict[int, str] = {}
            for each in definitions(module, tree.body, nodes):
                self._by_key[each.key].append(each.name)
                innermost |= dict.fromkeys(each.lines, each.name)
            for key, line in reads(module, tree.body, nodes):
                self._keys[innermost.get(line, "")].add(key)

    def unused(self, called: Iterable[str]) -> list[str]:
        """The definitions that nothing reads but what is unused itself, if those `called` are used."""
        left = {name for names in self._by_key.values() for name in names}
        found, done = ["", *called], set[str]()
        while found:
            name = found.pop()
            left.discard(name)
            keys = self._keys[name] - done
            done |= keys
            found += [each for key in keys for each in self._by_key[key] if each in left]
        return sorted(left)


@cache
def product() -> Product:
    return Product(modules())


def _entry_points() -> Iterator[str]:
    """The functions of [project.scripts], and the declarations of plugins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for target in project["scripts"].values():
        yield target.removeprefix("topodns.").replace(":", ".")
    yield from (f"{module}.{_LOADED}" for module in modules() if module.startswith("plugins."))


@cache
def _overrides() -> frozenset[str]:
    """Methods of classes outside of topodns that a class of topodns has as its own: libraries call these."""
    found = set[str]()
    for module, tree in modules().items():
        for name in (node.name for node in tree.body if isinstance(node, ast.ClassDef)):
            cls = getattr(importlib.import_module(f"topodns.{module}"), name)
            foreign = [base for base in cls.__mro__[1:] if not base.__module__.startswith("topodns")]
            found |= {f"{module}.{name}.{each}" for each in vars(cls) if any(each in vars(base) for base in foreign)}
    return frozenset(found)


def test_each_definition_has_a_user_in_the_product() -> None:
    called = {*CALLED_FROM_OUTSIDE, *_entry_points(), *_overrides()}
    assert product().unused(called) == [], "only tests use these: give them a user, or take them out with their tests"


def test_each_definition_that_is_called_from_outside_is_there_and_has_no_other_user() -> None:
    assert sorted(CALLED_FROM_OUTSIDE.keys() - set(product().unused({*_entry_points(), *_overrides()}))) == []


A: Final = "from topodns.b import used\n\n\ndef main() -> None:\n    used()\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("def other() -> None: ...", ["b.other"]),
        ("OTHER: int = 1", ["b.OTHER"]),
        ("OTHER = 1", ["b.OTHER"]),
        ("def other() -> None:\n    other()", ["b.other"]),
        ("def one() -> None:\n    two()\ndef two() -> None:\n    one()", ["b.one", "b.two"]),
        ("def one() -> None:\n    two()\ndef two() -> None: ...", ["b.one", "b.two"]),
        ("class C: ...", ["b.C"]),
        ("class C:\n    def f(self) -> 'C': ...\nused = C", ["b.C.f"]),
        ("class C:\n    def f(self) -> None: ...\nused = C().f", []),
        ("class C:\n    def f(self) -> None:\n        self.c.f()\nused = C", ["b.C.f"]),
        ("class C:\n    @property\n    def f(self) -> int: ...\nused = getattr(C(), 'f')", []),
        ("class C: ...\nused: 'C' = 1", []),
        ("class C:\n    def __len__(self) -> int: ...\nused = C", []),
    ],
)
def test_definitions_without_a_user_are_found(lines: str, expected: list[str]) -> None:
    used = "" if "used" in lines else "def used() -> None: ...\n"
    assert Product({"a": ast.parse(A), "b": ast.parse(used + lines)}).unused({"a.main"}) == expected
