"""A node cache that was started, until it ends."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.proc import NoAnswer

STOP_PATIENCE: Final = 20.0  # seconds

_LOOK: Final = 0.002  # seconds between two looks at something that is waited for
_LAST: Final = 5  # lines of a log


def wait_for(condition: Callable[[], object], patience: float) -> float | None:
    """Seconds until it holds; None where it does not within `patience`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + patience:
            return None
        time.sleep(_LOOK)
    return time.monotonic() - began


@dataclass(frozen=True)
class Place:
    """The files of one life."""

    folder: Path

    @property
    def template(self) -> Path:
        return self.folder / "Corefile.base"

    @property
    def pid_file(self) -> Path:
        return self.folder / "pid"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def write_template(self, text: str) -> None:
        self.folder.mkdir()
        self.template.write_text(text)


class Life:
    """`pid` is the process that answers, `supervisor` the one above it, if there is one."""

    def __init__(self, process: subprocess.Popen[bytes], place: Place) -> None:
        self._process, self._place = process, place

    @property
    def pid(self) -> int:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[0]) if children else self._process.pid

    @property
    def supervisor(self) -> int | None:
        return self._process.pid if self.pid != self._process.pid else None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def says_that_it_serves(self) -> bool:
        """Raises NoAnswer where it has ended."""
        if self._process.poll() is not None:
            raise NoAnswer(f"ended with {self._process.returncode}: {self.last_words()}")
        return self._place.pid_file.exists()

    def stop(self) -> float:
        """End as the kubelet ends it; the seconds that it takes. Raises NoAnswer."""
        began = time.monotonic()
        self._process.terminate()
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"does not stop: {self.last_words()}") from None
        return time.monotonic() - began

    def end(self) -> None:
        """However it is."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def last_words(self) -> str:
        """The end of its log."""
        return "\n".join(self._place.log.read_text().splitlines()[-_LAST:])
