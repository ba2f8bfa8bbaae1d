"""EDNS options of a query that `forward` sends to its upstreams.

Options of clients are for this server alone, since EDNS is hop by hop (RFC 6891 section 6.2.6). Those that a rule of
`rewrite edns0` sets, or keeps as the client sent them, go to the upstream. Its answer holds only for queries with the
same ones, so they are a part of the keys of `cache` (`plugins.cache.entry.key_of`) and of single-flight.
"""

from typing import NamedTuple

from topodns.dns.message import Edns


class ForwardedOption(NamedTuple):
    """An option of `Edns.options` that goes to upstreams. It equals the plain tuple of the same code and data."""

    code: int
    data: bytes


def forwarded_options(edns: Edns | None) -> tuple[ForwardedOption, ...]:
    """The options of an OPT record that go to upstreams, in their order."""
    if edns is None or not edns.options:
        return ()
    return tuple(option for option in edns.options if isinstance(option, ForwardedOption))
