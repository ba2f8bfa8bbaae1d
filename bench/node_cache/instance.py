"""One started instance of a node cache: its files, its processes, and its end."""

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

_LOOK: Final = 0.002  # seconds between two evaluations of a condition
_LAST: Final = 5  # lines of a log that an error message quotes


def wait_for(condition: Callable[[], object], patience: float) -> float | None:
    """Wait until the condition is true. Returns the seconds that it took; None if it was not true within `patience`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + patience:
            return None
        time.sleep(_LOOK)
    return time.monotonic() - began


@dataclass(frozen=True)
class InstanceFiles:
    """The files of one instance."""

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


class Instance:
    """An instance. `pid`: the process that answers. `supervisor`: its parent, the watchdog; None without one."""

    def __init__(self, process: subprocess.Popen[bytes], files: InstanceFiles) -> None:
        self._process, self._files = process, files

    @property
    def pid(self) -> int:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[0]) if children else self._process.pid

    @property
    def supervisor(self) -> int | None:
        return self._process.pid if self.pid != self._process.pid else None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def has_pid_file(self) -> bool:
        """Whether it has written its pid file, which it does once it serves. Raises NoAnswer if it has ended."""
        if self._process.poll() is not None:
            raise NoAnswer(f"ended with {self._process.returncode}: {self.log_tail()}")
        return self._files.pid_file.exists()

    def stop(self) -> float:
        """Send SIGTERM, as the kubelet does, and wait. Returns the seconds until the end.

        Raises NoAnswer if it does not end within STOP_PATIENCE.
        """
        began = time.monotonic()
        self._process.terminate()
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"does not stop: {self.log_tail()}") from None
        return time.monotonic() - began

    def kill(self) -> None:
        """Send SIGKILL to its process group, and wait for the process; nothing if it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def log_tail(self) -> str:
        """The last lines of its log."""
        return "\n".join(self._files.log.read_text().splitlines()[-_LAST:])
