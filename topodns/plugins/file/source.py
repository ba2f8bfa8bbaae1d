"""The files of `file` directives: read at start, and again when they have changed."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from typing import Final

from topodns.cluster.facts import Fact
from topodns.dns.names import Name, name_text
from topodns.dns.zone_text import BadZone, parse_zone
from topodns.edge.regular_file import read_regular
from topodns.resolve.zone_file import TableBuilder, ZoneTable, file_fact
from topodns.settings.zone_file import ZoneFile

log = logging.getLogger(__name__)

MAX_OCTETS: Final = 1 << 20  # of a file, which MAX_RECORDS records fit in

_STRETCH: Final = 5  # records that are read in half a millisecond

Look = tuple[int, int, int]


class ZoneFileSource:
    """Holds the tables of one file, one for each origin that it is read for.

    A file that cannot be read, or is broken, leaves the last good tables in place. `changed` is called, with
    `file_fact`, in the same turn of the loop in which new tables count.
    """

    def __init__(self, settings: ZoneFile) -> None:
        self.changed: Callable[[frozenset[Fact]], object] = lambda facts: None
        self._path = settings.path
        self._origins = settings.origins
        self._interval = settings.reload
        self._seen: Look | None = None
        self._tables: dict[Name, ZoneTable] = {}

    def table(self, origin: Name) -> ZoneTable | None:
        """What is known of one of the settings' origins; None while the file was never read."""
        return self._tables.get(origin)

    def load(self) -> None:
        """Read the file, at start. Raises BadZone; OSError only where it is not looked for again (as CoreDNS)."""
        try:
            for _ in self._read():
                pass
        except OSError as problem:
            if not self._interval:
                raise
            log.warning("plugin/file: %s; SERVFAIL until it can be read", problem)

    async def run(self) -> None:
        """Look again for ever. CoreDNS waits for another serial; here whatever changes the file counts."""
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
        """Read the file in short stretches; the new tables count when it is done. Raises OSError or BadZone."""
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
