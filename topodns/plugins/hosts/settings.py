"""The settings of a `hosts` directive."""

from dataclasses import dataclass

from topodns.dns.name import Name
from topodns.plugins.hosts.table import HostEntry

DEFAULT_HOSTS_FILE = "/etc/hosts"


@dataclass(frozen=True, slots=True)
class Hosts:
    origins: tuple[Name, ...]  # names outside are ignored; reverse names need not be inside
    file: str = DEFAULT_HOSTS_FILE  # need not exist
    inline: tuple[HostEntry, ...] = ()
    ttl: int = 3600  # seconds, 1..65535
    reverse: bool = True  # answer PTR
    reload: float = 5.0  # seconds between checks of the file; 0: never
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next plugin; root: all
    fallthrough_unsupported: bool = False  # there, types other than A, AAAA and PTR do so even for a known name
