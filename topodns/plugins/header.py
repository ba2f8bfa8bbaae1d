"""The `header` plugin: sets and clears flags in the headers of queries and responses."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from topodns.corefile.arguments import choice, no_args, no_body, wrong
from topodns.corefile.errors import hint
from topodns.corefile.parser import Directive
from topodns.dns.message import Flag, Query
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.plugin import ChainPart, Client, Resolution


@dataclass(frozen=True, slots=True)
class Header:
    """Flags (`Flag` bits) to set and clear: in queries before, in responses after the plugins below."""

    query_set: int = 0
    query_clear: int = 0
    response_set: int = 0
    response_clear: int = 0


_SELECTORS: Final = ("query", "response")
_HEADER_FLAGS: Final[Mapping[str, int]] = {"aa": Flag.AA, "ra": Flag.RA, "rd": Flag.RD}


def parse_header(directive: Directive, _: Context) -> Header:
    """Lines `query|response set|clear FLAGS...`; the later of two lines for the same flag applies."""
    no_args(directive)
    if not directive.body:
        raise directive.error("'header' has no line, expected query or response, set or clear, and flags")
    header = Header()
    for line in directive.body:
        header = _header_line(line, header)
    return header


def _header_line(line: Directive, header: Header) -> Header:
    no_body(line)
    selector = line.name.lower()
    if selector not in _SELECTORS:
        raise line.error(
            f"unknown option {line.shown_name(_SELECTORS)} of 'header'{hint(selector, _SELECTORS)}{line.missing_brace}"
        )
    if len(line.args) < 2:
        raise wrong(line, "set or clear, and then flags: aa, ra or rd")
    setting = choice(line, line.args[0].lower(), {"set": True, "clear": False})
    bits = 0
    for word in line.args[1:]:
        bits |= choice(line, word.lower(), _HEADER_FLAGS)
    if selector == "query":
        chosen, cleared = _with_bits(header.query_set, header.query_clear, bits, setting)
        return replace(header, query_set=chosen, query_clear=cleared)
    chosen, cleared = _with_bits(header.response_set, header.response_clear, bits, setting)
    return replace(header, response_set=chosen, response_clear=cleared)


def _with_bits(chosen: int, cleared: int, bits: int, setting: bool) -> tuple[int, int]:
    if setting:
        return chosen | bits, cleared & ~bits
    return chosen & ~bits, cleared | bits


class HeaderFlags:
    """Alters the responses of the plugins below; `alter_query` alters the queries that those see."""

    def __init__(self, settings: Header) -> None:
        self._settings = settings

    def alter_query(self, query: Query) -> Query:
        """The query with its flags set and cleared."""
        return query._replace(flags=(query.flags | self._settings.query_set) & ~self._settings.query_clear)

    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """The response with RD as in `query`, which `alter_query` has altered, and then its flags set and cleared."""
        response, settings = resolution.response, self._settings
        desired = query.flags & Flag.RD
        response.flags = (response.flags | desired | settings.response_set) & ~settings.response_clear
        response.cleared |= Flag.RD & ~desired
        response.cleared = (response.cleared & ~settings.response_set) | settings.response_clear
        return resolution


def _setup(settings: Header, block: BlockSetup) -> Install:
    flags = HeaderFlags(settings)
    return everywhere(ChainPart(wrapper=flags, alter=flags.alter_query))


PLUGIN: Final = Plugin(
    name="header",
    coredns=same(),
    parse=parse_header,
    setup=_setup,
)
