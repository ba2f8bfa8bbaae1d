"""The `hosts` directive: names and addresses from a file and from the Corefile."""

from dataclasses import dataclass
from typing import NamedTuple

from topodns.dns.names import Name

DEFAULT_HOSTS_FILE = "/etc/hosts"


class HostEntry(NamedTuple):
    """One line: an address, packed, and its names in lower case. A first label `*` stands for any one label."""

    address: bytes
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Hosts:
    origins: tuple[Name, ...]  # names outside are left out; reverse names need not be inside
    file: str = DEFAULT_HOSTS_FILE  # need not exist
    inline: tuple[HostEntry, ...] = ()
    ttl: int = 3600  # seconds, 1..65535
    reverse: bool = True  # answer PTR
    reload: float = 5.0  # seconds between looks at the file; 0: never
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next step; root: all
    fallthrough_unsupported: bool = False  # there, other types than A, AAAA and PTR do so even where the name is known
