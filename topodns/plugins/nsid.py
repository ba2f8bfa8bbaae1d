"""The `nsid` plugin: adds the server's identifier to replies for clients that request it (RFC 5001)."""

from typing import Final

from topodns.corefile.arguments import no_body
from topodns.corefile.parser import Directive
from topodns.dns.message import Option, Query
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.plugin import ChainPart, Client, Resolution

_MAX_NSID: Final = 255  # octets


def parse_nsid(directive: Directive, _: Context) -> str:
    """The arguments, joined by blanks; "" without any. Raises ConfigError for more than 255 octets.

    A longer text would silently be left out of most UDP replies.
    """
    no_body(directive)
    text = " ".join(directive.args)
    if len(text.encode()) > _MAX_NSID:
        raise directive.error(f"'nsid' has {len(text.encode())} octets, expected at most {_MAX_NSID}")
    return text


class Nsid:
    """The plugin of an `nsid` directive. `identifier` is the directive's text; if it is "", `hostname` is sent."""

    def __init__(self, identifier: str, hostname: str) -> None:
        self._option = (Option.NSID, (identifier or hostname).encode())

    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """The response; if the query has the option NSID, with this server's NSID in place of any other."""
        if query.edns is None or query.edns.option(Option.NSID) is None:
            return resolution
        response = resolution.response
        others = tuple(option for option in response.options if option[0] != Option.NSID)
        response.options = (*others, self._option)
        return resolution


def _setup(settings: str, block: BlockSetup) -> Install:
    return everywhere(ChainPart(wrapper=Nsid(settings, block.process.host_name)))


PLUGIN: Final = Plugin(
    name="nsid",
    coredns=same(),
    parse=parse_nsid,
    setup=_setup,
)
