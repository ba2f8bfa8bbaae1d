"""The contract of file watchers of plugins, which start and stop with their server block."""

from typing import Protocol


class FileSource(Protocol):
    """A file that has been read; `run` watches it for changes until cancelled."""

    async def run(self) -> None: ...
