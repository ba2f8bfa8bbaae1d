"""Files of Python parsed once for all tests that look at them: the package has some 400,000 nodes."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the file in the order of `ast.walk`."""
    return tuple(ast.walk(tree_of(path)))
