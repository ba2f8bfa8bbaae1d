"""What the readers hand to the door: a whole document of a file, or why there is none."""

from typing import NamedTuple


class BadManifest(Exception):
    """A file that cannot be read as manifests, with the line (from 1) where that shows."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


class Value(NamedTuple):
    """A whole document of a file. `item_lines` belongs to the elements of its top-level `items`."""

    content: object
    line: int
    item_lines: list[int]
