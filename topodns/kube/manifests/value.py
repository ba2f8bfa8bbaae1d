"""The results of the YAML and JSON readers: a whole document of a file, or an error."""

from typing import NamedTuple


class BadManifest(Exception):
    """A file cannot be parsed as manifests; `line` (from 1) and `column` (from 0) are where the error was found.

    `at_end`: the text ends too early; it may be still being written.
    """

    def __init__(self, file: str, line: int, problem: str, column: int = 0, at_end: bool = False) -> None:
        super().__init__(f"{file}:{line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem
        self.place = line, column
        self.at_end = at_end


class Value(NamedTuple):
    """A whole document of a file. `line` and `item_lines` (of its top-level `items`) count from 1."""

    content: object
    line: int
    item_lines: list[int]
