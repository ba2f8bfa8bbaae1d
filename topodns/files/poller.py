"""File poller: one file of a directive, and others that it includes, read at start and again after each change."""

import asyncio
from collections.abc import Callable, Iterator

from topodns.files.regular import FileState, file_state
from topodns.files.text import BadText
from topodns.time_slices import in_slices


class FilePoller:
    """Compares the states of the file and of those that it includes with those of the last reading, every `interval`
    seconds; if one differs, reads it again.

    After a reading that ended in OSError, it is read at each comparison; after bad text, only once it has changed.
    """

    def __init__(
        self,
        path: str,
        interval: float,
        read: Callable[[], Iterator[None]],
        changed: Callable[[], object],
        failed: Callable[[OSError | BadText], object],
    ) -> None:
        """`interval`: seconds; 0: the file is read by `load` only. `read` works in short steps, and keeps what it has
        read at its end; it raises OSError or BadText.

        After a reading by `run`, `changed` is called in the same turn of the event loop. After a failed one, `failed`
        is called, but once for equal OSErrors in succession (one raised by `load` counts).
        """
        self.path = path
        self.modified = 0.0  # mtime of the file at its last reading, in Unix seconds; 0.0: none
        self._interval = interval
        self._read = read
        self._changed = changed
        self._failed = failed
        self._seen: dict[str, FileState | None] = {}  # by path, at the last reading; None: there was none
        self._noted: dict[str, FileState | None] = {}  # of the reading under way
        self._unreadable = ""  # the OSError of the last look; "": none

    def load(self) -> None:
        """Read the file, all steps without a pause. Calls neither `changed` nor `failed`. Raises OSError or BadText."""
        try:
            for _ in self._steps():
                pass
        except OSError as problem:
            self._unreadable = str(problem)
            raise

    async def run(self) -> None:
        """Compare and read the file until cancelled; returns at once if `interval` is 0."""
        while self._interval > 0:
            await asyncio.sleep(self._interval)
            try:
                await self._look()
                self._unreadable = ""
            except OSError as problem:
                if str(problem) != self._unreadable:
                    self._failed(problem)
                self._unreadable = str(problem)
            except BadText as problem:
                self._unreadable = ""
                self._failed(problem)

    def note(self, path: str) -> None:
        """Note that the reading under way depends on this file too; called before the file is read."""
        self._noted[path] = _state_or_none(path)

    async def _look(self) -> None:
        state = file_state(self.path)
        if self._seen.get(self.path) != state or any(_state_or_none(path) != each for path, each in self._seen.items()):
            await in_slices(self._steps())
            self._changed()

    def _steps(self) -> Iterator[None]:
        state = file_state(self.path)  # before reading, so that a change during it is found by the next look
        self._noted = {self.path: state}
        try:
            yield from self._read()
        except BadText:
            self._seen = self._noted
            raise
        self._seen, self.modified = self._noted, state.modified / 1e9


def _state_or_none(path: str) -> FileState | None:
    try:
        return file_state(path)
    except OSError:
        return None
