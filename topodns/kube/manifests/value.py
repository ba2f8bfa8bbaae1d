"""The results of the YAML and JSON readers: a whole document of a file, or an error."""

from typing import NamedTuple


class BadManifest(Exception):
    """A file cannot be parsed as manifests; `line` (from 1) is where the error was found."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


class Value(NamedTuple):
    """A whole document of a file. `line` and `item_lines` (of its top-level `items`) count from 1."""

    content: object
    line: int
    item_lines: list[int]
