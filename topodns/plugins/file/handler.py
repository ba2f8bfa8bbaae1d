"""The `file` plugin: answers queries under the origins of one `file` directive from the tables of its zones."""

from collections.abc import Callable
from typing import Final

from topodns.dns.message import Ede, EdeCode, Query, Response
from topodns.dns.name import Name, is_below_any, is_subdomain
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.file.lookup import look_up
from topodns.plugins.file.settings import ZoneFile
from topodns.plugins.file.zone import ZoneTable, file_fact, soa_of_absence
from topodns.query.cname import Chase, follow
from topodns.query.plugin import Answered, Client, FellThrough, Resolution

PLUGIN: Final = "file"

_TRANSFERS: Final = frozenset((RRType.AXFR, RRType.IXFR))
_UNREAD: Final = Ede(EdeCode.NOT_READY, "the zone file could not be read yet")


class ZoneFileStep:
    """The plugin of one `file` directive. `table` returns an origin's current table, None while none was ever read.

    Answers depend on `file_fact`: the reader of a changed file must report it.
    """

    def __init__(
        self, settings: ZoneFile, table: Callable[[Name], ZoneTable | None], chase: Chase | None = None
    ) -> None:
        self._origins = tuple(sorted(settings.origins, key=len, reverse=True))
        self._fallthrough = settings.fallthrough
        self._facts = (file_fact(settings.path),)
        self._table = table
        self._chase = chase

    def __call__(self, query: Query, client: Client) -> Answered | FellThrough | None:
        """The resolution of a query under one of the origins, or FellThrough by `fallthrough`; None for all others."""
        qname = query.qname
        origin = next((each for each in self._origins if is_subdomain(qname, each)), None)
        if origin is None:
            return None
        if query.qtype in _TRANSFERS:
            return Resolution(Response(Rcode.REFUSED, flags=0), PLUGIN)
        table = self._table(origin)
        if table is None:
            return Resolution(Response(Rcode.SERVFAIL, flags=0, ede=_UNREAD), PLUGIN, facts=self._facts)
        finding = look_up(table, query)
        if finding.absent and is_below_any(qname, self._fallthrough):
            return FellThrough(self._facts)
        resolution = Resolution(finding.response, PLUGIN, facts=self._facts)
        if finding.elsewhere is None:
            return resolution
        return follow(finding.elsewhere, resolution, query, client, self._chase, soa_of_absence(table))
