"""The settings of a `file` directive."""

from dataclasses import dataclass

from topodns.dns.name import Name


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """One `file` directive with all its origins; a server block may have several."""

    path: str  # need not exist, unless `reload` is 0
    origins: tuple[Name, ...]  # the file is parsed once for each, with the origin as its $ORIGIN
    reload: float = 60.0  # seconds between checks of the file; 0: never
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next plugin; root: all
