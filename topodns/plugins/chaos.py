"""The `chaos` directive: who this server is, as TXT records of class CH (RFC 4892 and BIND's custom)."""

from random import Random
from typing import Final

from topodns.dns.message import Query, Response, RRClass, RRset, RRType
from topodns.dns.names import Name
from topodns.resolve.step import Client, Resolution, Scope
from topodns.settings.steps import Chaos

DEFAULT_AUTHORS: Final = ("The topodns authors",)
_VERSION_NAMES: Final[tuple[Name, ...]] = (("version", "bind"), ("version", "server"))
_HOST_NAMES: Final[tuple[Name, ...]] = (("hostname", "bind"), ("id", "server"))
_AUTHORS_NAME: Final[Name] = ("authors", "bind")
_MAX_STRING: Final = 255  # RFC 1035 section 3.3: a character-string's length is one octet


class ChaosText:
    """`version` is what the directive's empty one stands for, `hostname` this host's name. Authors come shuffled."""

    def __init__(self, settings: Chaos, version: str, hostname: str, rng: Random) -> None:
        self._texts = dict.fromkeys(_VERSION_NAMES, _character_string(settings.version or version))
        self._texts.update(dict.fromkeys(_HOST_NAMES, _character_string(hostname)))
        self._authors = tuple(_character_string(author) for author in settings.authors or DEFAULT_AUTHORS)
        self._rng = rng

    def __call__(self, query: Query, client: Client) -> Resolution | None:
        """The TXT asked for, TTL 0 and without AA; None for any other class, type or name."""
        if query.qclass != RRClass.CH or query.qtype != RRType.TXT:
            return None
        if query.qname == _AUTHORS_NAME:
            authors = self._rng.sample(self._authors, len(self._authors))
            return Resolution(_txt(*authors), "chaos", Scope.CLIENT)
        text = self._texts.get(query.qname)
        return None if text is None else Resolution(_txt(text), "chaos")


def _txt(*rdatas: bytes) -> Response:
    return Response(answer=(RRset(b"", RRType.TXT, 0, rdatas, RRClass.CH),), flags=0)


def _character_string(text: str) -> bytes:
    octets = text.encode()[:_MAX_STRING]
    return bytes((len(octets),)) + octets
