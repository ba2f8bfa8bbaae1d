"""The `chaos` plugin: this server's version, host name and authors as TXT records of class CH (RFC 4892 and BIND)."""

from dataclasses import dataclass
from random import Random
from typing import Final

from topodns import __version__
from topodns.corefile.arguments import no_body
from topodns.corefile.parser import Directive
from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import Name
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.plugin import ChainPart, Client, Resolution, Scope


@dataclass(frozen=True, slots=True)
class Chaos:
    version: str = ""  # "": topodns's own
    authors: tuple[str, ...] = ()


_MAX_STRING: Final = 255  # octets of a TXT record's string, RFC 1035 section 3.3


def parse_chaos(directive: Directive, _: Context) -> Chaos:
    """`chaos [VERSION] [AUTHORS...]`, each cut to 255 octets; authors sorted, without repeats, as in CoreDNS."""
    no_body(directive)
    if not directive.args:
        return Chaos()
    version, *authors = map(_text_string, directive.args)
    return Chaos(version, tuple(sorted(set(authors))))


def _text_string(text: str) -> str:
    return text.encode("utf-8", "replace")[:_MAX_STRING].decode("utf-8", "ignore")


DEFAULT_AUTHORS: Final = ("The topodns authors",)
_VERSION_NAMES: Final[tuple[Name, ...]] = (("version", "bind"), ("version", "server"))
_HOST_NAMES: Final[tuple[Name, ...]] = (("hostname", "bind"), ("id", "server"))
_AUTHORS_NAME: Final[Name] = ("authors", "bind")


class ChaosText:
    """The plugin of a `chaos` directive. `version` is for settings without one; `hostname` is this host's name.

    Authors come in random order.
    """

    def __init__(self, settings: Chaos, version: str, hostname: str, rng: Random) -> None:
        self._texts = dict.fromkeys(_VERSION_NAMES, _character_string(settings.version or version))
        self._texts.update(dict.fromkeys(_HOST_NAMES, _character_string(hostname)))
        self._authors = tuple(_character_string(author) for author in settings.authors or DEFAULT_AUTHORS)
        self._rng = rng

    def __call__(self, query: Query, client: Client) -> Resolution | None:
        """The TXT records of the name, with TTL 0 and without AA; None for any other class, type or name."""
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


def _setup(settings: Chaos, block: BlockSetup) -> Install:
    process = block.process
    return everywhere(ChainPart(step=ChaosText(settings, f"topodns-{__version__}", process.host_name, process.rng)))


def _classes(settings: Chaos) -> tuple[int, ...]:
    return (RRClass.CH,)


PLUGIN: Final = Plugin(
    name="chaos",
    coredns=differs(Effect.ANSWER, "VERSION is topodns's own where none is given, and there are no AUTHORS then"),
    parse=parse_chaos,
    setup=_setup,
    classes=_classes,
)
