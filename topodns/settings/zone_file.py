"""The `file` directive: small zones whose records are in a file."""

from dataclasses import dataclass

from topodns.dns.names import Name


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """One `file` directive, for each of its origins; a block may have several."""

    path: str  # need not exist where it is looked for again
    origins: tuple[Name, ...]  # the text is read anew for each, with the origin as its $ORIGIN
    reload: float = 60.0  # seconds between looks at the file; 0: never
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next step; root: all
