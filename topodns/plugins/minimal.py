"""The `minimal` plugin: removes the authority and additional sections of positive answers."""

from typing import Final

from topodns.dns.message import Query
from topodns.plugins.compatibility import same
from topodns.plugins.plugin import Plugin, parse_flag
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.plugin import ChainPart, Client, Resolution
from topodns.query.response_type import ResponseType, response_type


def minimize(query: Query, client: Client, resolution: Resolution) -> Resolution:
    """A positive answer without its authority and additional sections; any other response as it is.

    So negative answers keep their SOA (RFC 2308), and referrals their NS records.
    """
    response = resolution.response
    if response_type(query, response) is ResponseType.NOERROR:
        response.authority = response.additional = ()
    return resolution


def _setup(settings: bool, block: BlockSetup) -> Install:
    return everywhere(ChainPart(wrapper=minimize))


PLUGIN: Final = Plugin(
    name="minimal",
    coredns=same(),
    parse=parse_flag,
    setup=_setup,
)
