"""The file of a `file` directive, with those that it includes: read at start and after each change."""

import logging
import os.path
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from topodns.corefile.errors import shown
from topodns.dependency import Fact
from topodns.dns.name import Name, name_text
from topodns.dns.zonefile import BadZone, ZoneRecord, parse_zone
from topodns.files.poller import FilePoller
from topodns.files.regular import read_regular
from topodns.files.text import BadText, decoded
from topodns.plugins.file.settings import ZoneFile
from topodns.plugins.file.zone import TableBuilder, ZoneTable, file_fact

log = logging.getLogger(__name__)


MAX_OCTETS: Final = 1 << 20  # of a file and those that it includes, enough for MAX_RECORDS records


class ZoneFileSource:
    """Holds the tables of one file, one per origin.

    While the file is unreadable or malformed, the last good tables stay. `changed` is called with `file_fact` in the
    same turn of the event loop in which new tables replace the old.
    """

    def __init__(self, settings: ZoneFile) -> None:
        self.changed: Callable[[frozenset[Fact]], object] = lambda facts: None
        self.poller = FilePoller(
            path=settings.path, interval=settings.reload, read=self._read, changed=self._changed, failed=self._warn
        )
        self._origins = settings.origins
        self._may_come = settings.reload > 0  # a file that is missing at start
        self._tables: dict[Name, ZoneTable] = {}

    def table(self, origin: Name) -> ZoneTable | None:
        """The current table of one of the settings' origins; None while the file was never read."""
        return self._tables.get(origin)

    def load(self) -> None:
        """Read the file at start. Raises BadZone, and with `reload 0` OSError (as CoreDNS); else OSError is logged."""
        try:
            self.poller.load()
        except OSError as problem:
            if not self._may_come:
                raise
            log.warning("plugin/file: %s; SERVFAIL until it can be read", self._reason(problem))

    def _changed(self) -> None:
        """Report the dependency, after new tables. CoreDNS waits for another serial; here any change is applied."""
        serial = next(iter(self._tables.values())).serial
        log.info("plugin/file: %s: read again, serial %s", self.poller.path, serial)
        self.changed(frozenset((file_fact(self.poller.path),)))

    def _warn(self, problem: Exception) -> None:
        log.warning("plugin/file: %s; the records read before stay", self._reason(problem))

    def _reason(self, problem: Exception) -> str:
        text = problem.strerror if isinstance(problem, OSError) else None
        return f"cannot read {shown(self.poller.path)}: {text}" if text else str(problem)

    def _read(self) -> Iterator[None]:
        """Read the file, in steps of `parse_zone`; the new tables apply at the end. Raises OSError or BadZone."""
        tables, warnings = {}, list[str]()
        for origin in self._origins:
            reading = _Reading(self.poller)
            builder = TableBuilder(origin)
            try:
                for record in parse_zone(reading.text(self.poller.path), origin, reading.included):
                    if record is not None:
                        builder.add(record)
                    yield
                tables[origin] = builder.done()
            except BadZone as problem:
                place = self._place(problem.file, problem.line)
                raise BadZone(f"{place}: {problem.problem} (zone {name_text(origin)})") from None
            warnings += self._beside_cname(builder.beside_cname)
        self._tables = tables
        for text in warnings:
            log.warning("plugin/file: %s", text)

    def _place(self, file: str, line: int) -> str:
        file = file or self.poller.path
        return f"{file}:{line}" if line else file

    def _beside_cname(self, found: Mapping[Name, tuple[ZoneRecord, ZoneRecord]]) -> Iterator[str]:
        """The warning of a zone with `TableBuilder.beside_cname`: the first of these names, and their number."""
        if not found:
            return
        name, records = next(iter(found.items()))
        first, second = (self._place(record.file, record.line) for record in records)
        problem = f"{name_text(name)} has a CNAME and other records, also at {second}: not all of them are answered"
        yield f"{first}: {problem}" + (f"; {len(found)} names have both" if len(found) > 1 else "")


class _Reading:
    """One reading of the zone file and of the files that it includes, MAX_OCTETS octets at most in all."""

    def __init__(self, poller: FilePoller) -> None:
        self._poller = poller
        self._left = MAX_OCTETS

    def included(self, file: str, name: str) -> tuple[str, str]:
        """(path, text) of a file that `file`, or "" for the zone file, names; paths are relative to that file's.

        Raises BadText, also if it cannot be read.
        """
        path = os.path.join(os.path.dirname(file or self._poller.path), name)
        self._poller.note(path)
        try:
            return path, self.text(path)
        except OSError as problem:
            raise BadText(f"$INCLUDE: cannot read {shown(path)}: {problem.strerror}") from None

    def text(self, path: str) -> str:
        """The text of a file. Raises OSError or BadZone."""
        octets = read_regular(path, self._left + 1)
        if len(octets) > self._left:
            raise BadZone(f"longer than {MAX_OCTETS} octets, with the files that include it", file=path)
        self._left -= len(octets)
        try:
            return decoded(octets)
        except ValueError as problem:
            raise BadZone(str(problem), file=path) from None
