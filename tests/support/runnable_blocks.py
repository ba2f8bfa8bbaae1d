"""The shell blocks of our documents that a test runs: `<!-- run: NAME -->` is on the line above their ```sh."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from textwrap import dedent
from typing import Final, NamedTuple

from tests.support.documents import DOCUMENTS, ROOT

_MARK: Final = re.compile(r"^ *<!-- *run\b(.*)\n", re.MULTILINE)
_NAME: Final = re.compile(r": ([a-z0-9-]+) -->")
_FENCED: Final = re.compile(r" *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SHELL: Final = "set -eu -o pipefail; trap 'echo \"status $? of: $BASH_COMMAND\" >&2' ERR\n"


class BlockFailed(AssertionError):
    """A block ended with another status than 0, or not in time: its place, its text and all that it printed."""


class Block(NamedTuple):
    """A marked block. `line` is the one of its mark, from 1; `text` has no margin."""

    document: str
    line: int
    name: str
    text: str

    def run(self, environment: Mapping[str, str], directory: Path = ROOT, patience: float = 300) -> str:
        """The output of bash, errors too, with `environment` added to ours. The first command that fails is the last.

        Raises BlockFailed, after `patience` seconds too. Background processes of the block end with it.
        """
        with TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            shell = subprocess.Popen(
                ["bash", "-c", _SHELL + self.text],
                cwd=directory,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            ending = _ending(shell, patience)
            output.seek(0)
            printed = output.read()
        if ending != "status 0":
            raise BlockFailed(f"{self.document}:{self.line}: {self.name}: {ending}\n{self.text}printed\n{printed}")
        return printed


def _ending(shell: "subprocess.Popen[bytes]", patience: float) -> str:
    try:
        return f"status {shell.wait(patience)}"
    except subprocess.TimeoutExpired:
        return f"not within {patience:g} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def blocks(document: str) -> Iterator[Block]:
    """The marked blocks of a document, a path from the root, in their order. Raises ValueError at a mark of nothing."""
    yield from blocks_in(document, DOCUMENTS[document])


def blocks_in(document: str, text: str) -> Iterator[Block]:
    """The same of a text."""
    for mark in _MARK.finditer(text):
        line = text.count("\n", 0, mark.start()) + 1
        name, fenced = _NAME.fullmatch(mark[1]), _FENCED.match(text, mark.end())
        if name is None or fenced is None:
            raise ValueError(f"{document}:{line}: expected <!-- run: NAME --> and ```sh on the next line")
        yield Block(document, line, name[1], dedent(fenced[1]))


def block(document: str, name: str) -> Block:
    """The one of this name. Raises ValueError where there is none, or more than one."""
    (found,) = (each for each in blocks(document) if each.name == name)
    return found
