"""The file of a `file` directive: read at start and after each change."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from typing import Final

from topodns.dependency import Fact
from topodns.dns.name import Name, name_text
from topodns.dns.zonefile import BadZone, parse_zone
from topodns.files.regular import read_regular
from topodns.plugins.file.settings import ZoneFile
from topodns.plugins.file.zone import TableBuilder, ZoneTable, file_fact

log = logging.getLogger(__name__)


MAX_OCTETS: Final = 1 << 20  # of a file, enough for MAX_RECORDS records

_STRETCH: Final = 5  # records read in about half a millisecond

Look = tuple[int, int, int]


class ZoneFileSource:
    """Holds the tables of one file, one per origin.

    While the file is unreadable or malformed, the last good tables stay. `changed` is called with `file_fact` in the
    same turn of the event loop in which new tables replace the old.
    """

    def __init__(self, settings: ZoneFile) -> None:
        self.changed: Callable[[frozenset[Fact]], object] = lambda facts: None
        self._path = settings.path
        self._origins = settings.origins
        self._interval = settings.reload
        self._seen: Look | None = None
        self._tables: dict[Name, ZoneTable] = {}

    def table(self, origin: Name) -> ZoneTable | None:
        """The current table of one of the settings' origins; None while the file was never read."""
        return self._tables.get(origin)

    def load(self) -> None:
        """Read the file at start. Raises BadZone; OSError only with `reload 0` (as CoreDNS)."""
        try:
            for _ in self._read():
                pass
        except OSError as problem:
            if not self._interval:
                raise
            log.warning("plugin/file: %s; SERVFAIL until it can be read", problem)

    async def run(self) -> None:
        """Check the file until cancelled. CoreDNS waits for another serial; here any change of the file is applied."""
        while self._interval > 0:
            await asyncio.sleep(self._interval)
            try:
                if _look_at(self._path) != self._seen:
                    await self._reload()
            except (OSError, BadZone) as problem:
                log.warning("plugin/file: %s; the records read before stay", problem)

    async def _reload(self) -> None:
        for _ in self._read():
            await asyncio.sleep(0)
        serial = next(iter(self._tables.values())).serial
        log.info("plugin/file: %s: read again, serial %s", self._path, serial)

    def _read(self) -> Iterator[None]:
        """Read the file, a few records per step; the new tables apply at the end. Raises OSError or BadZone."""
        self._seen = _look_at(self._path)
        text = _read_text(self._path)
        tables = {}
        for origin in self._origins:
            builder = TableBuilder(origin)
            try:
                for number, record in enumerate(parse_zone(text, origin)):
                    builder.add(record)
                    if number % _STRETCH == 0:
                        yield
                tables[origin] = builder.done()
            except BadZone as problem:
                raise BadZone(f"{self._path} as {name_text(origin)}: {problem}") from None
        self._tables = tables
        self.changed(frozenset((file_fact(self._path),)))


def _look_at(path: str) -> Look:
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns, status.st_size


def _read_text(path: str) -> str:
    octets = read_regular(path, MAX_OCTETS + 1)
    if len(octets) > MAX_OCTETS:
        raise BadZone(f"{path}: longer than {MAX_OCTETS} octets")
    try:
        return octets.decode()
    except UnicodeDecodeError as problem:
        raise BadZone(f"{path}: octet {problem.start} is not UTF-8") from None
